"""Times of the week in which nothing is done automatically, as a calendar on the wall has them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Window:
    """From one time of the day to another, in seconds since midnight, beginning on these days (0: Monday; none: all).

    An end that is not after the begin is on the next day. The times are those that a clock on the wall shows: where it is put
    forward, what it skips is not there, and where it is put back, what it shows twice counts twice.
    """

    days: frozenset[int]
    begin_s: int
    end_s: int

    @property
    def text(self) -> str:
        """As people write it: ``sat, sun 23:00 to 02:00``."""
        days = ", ".join(DAYS[day] for day in sorted(self.days)) if self.days else "every day"
        return f"{days} {_clock(self.begin_s)} to {_clock(self.end_s)}"


def window(days: Iterable[str], begin: str, end: str) -> Window:
    """A window from its words: days like ``sun``, times like ``02:00``; ValueError says which word is wrong."""
    return Window(frozenset(_day(day) for day in days), _seconds(begin), _seconds(end))


def covering(windows: Sequence[Window], weekday: int, second: float) -> Window | None:
    """The first window that this moment is in: day of the week (0: Monday) and seconds since midnight, both as the wall's clock shows them."""
    return next((one for one in windows if _covers(one, weekday, second)), None)


def _covers(one: Window, weekday: int, second: float) -> bool:
    over_midnight = one.end_s <= one.begin_s
    if _begins(one, weekday) and one.begin_s <= second < (_DAY_S if over_midnight else one.end_s):
        return True
    return over_midnight and _begins(one, (weekday - 1) % 7) and second < one.end_s


def _begins(one: Window, weekday: int) -> bool:
    return not one.days or weekday in one.days


def _day(text: str) -> int:
    if text not in DAYS:
        msg = f"{text!r} is not a day; write {', '.join(DAYS)}"
        raise ValueError(msg)
    return DAYS.index(text)


def _seconds(text: str) -> int:
    hours, colon, minutes = text.partition(":")
    if not (colon and len(hours) == len(minutes) == 2 and (hours + minutes).isascii() and (hours + minutes).isdigit() and hours < "24" and minutes < "60"):
        msg = f"{text!r} is not a time of the day; write it like 02:00"
        raise ValueError(msg)
    return int(hours) * 3600 + int(minutes) * 60


def _clock(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}"

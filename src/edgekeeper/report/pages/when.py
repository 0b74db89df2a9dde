"""Times as a page writes them, and the ticks of an axis. Pure: a zone comes in as a function, because its rules lie in files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from edgekeeper.model.time import Span

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2419200)
_DAY_S = 86400
_FARTHEST_S = 253402300799.0  # the end of the year 9999: beyond it a stamp is no time but a mistake


@dataclass(frozen=True, slots=True)
class Zone:
    """How far local time is ahead of UTC, in seconds, at a moment; ``name`` is what the page calls it."""

    name: str
    offset: Callable[[float], float]


def fixed(seconds: int) -> Zone:
    """A zone that never changes: ``UTC+02:00``."""
    if not seconds:
        return Zone("UTC", lambda _: 0.0)
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return Zone(f"UTC{'-' if seconds < 0 else '+'}{hours:02d}:{minutes:02d}", lambda _: float(seconds))


UTC = fixed(0)


def day_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01 (Gregorian, as far as ints go)."""
    era, of_era = divmod(days + 719468, 146097)  # an era is 400 years; they begin with a March, so that the leap day is the last of a year
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def lasted(span: Span) -> str:
    """A duration as a person reads it: in whole seconds, rounded outwards, where it is long."""
    return span.brief() if span.min_s >= 10 or (math.isfinite(span.max_s) and span.max_s >= 20) else span.text()


def known(at: float | None) -> bool:
    """Whether it is a time that can be written: a number, between the years 1 and 9999."""
    return at is not None and math.isfinite(at) and -62135596800.0 <= at <= _FARTHEST_S


def iso(at: float | None) -> str | None:
    """``2026-09-07T04:55:10.000Z``; None for a time that is not known."""
    if at is None or not known(at):
        return None
    days, milli = divmod(round(at * 1000), _DAY_S * 1000)
    year, month, day = day_of(days)
    return f"{year:04d}-{month:02d}-{day:02d}T{_clock(milli // 1000)}.{milli % 1000:03d}Z"


def date(at: float, zone: Zone = UTC) -> str:
    """``2026-09-07``."""
    if not known(at):
        return "unknown"
    year, month, day = day_of(math.floor((at + zone.offset(at)) / _DAY_S))
    return f"{year:04d}-{month:02d}-{day:02d}"


def clock(at: float, zone: Zone = UTC) -> str:
    """``04:55:10``: the second that it lies in, as a log of whole seconds has it."""
    return _clock(math.floor(round(at + zone.offset(at), 6)) % _DAY_S) if known(at) else "unknown"


@dataclass(frozen=True, slots=True)
class Times:
    """How one page writes its times: in ``zone``, with the day where its window spans several."""

    zone: Zone
    days: bool

    def at(self, at: float | None) -> str:
        """``04:55:10``, or ``09-07 04:55:10`` where days differ; ``before`` and ``after`` for an end that was not seen."""
        if at is None or math.isnan(at):
            return "unknown"
        if math.isinf(at):
            return "before" if at < 0 else "after"
        return f"{date(at, self.zone)[5:]} {clock(at, self.zone)}" if self.days and known(at) else clock(at, self.zone)

    def minute(self, at: float) -> str:
        """``04:55``, or ``09-07 04:55``."""
        return self.at(at)[:-3] if known(at) else "unknown"


def times(begin: float, end: float, zone: Zone = UTC) -> Times:
    """The way of writing that fits a window."""
    return Times(zone, date(begin, zone) != date(end, zone))


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis; ``day`` where a new day begins (its label is the day)."""

    at: float
    label: str
    day: bool = False


def ticks(begin: float, end: float, most: int, zone: Zone = UTC) -> tuple[Tick, ...]:
    """At most ``most`` ticks at round local times; none where the window is empty or no time."""
    if not (known(begin) and known(end) and begin < end and most > 0):
        return ()
    ahead = zone.offset(begin)
    step = next((s for s in _STEPS_S if _ticks(begin + ahead, end + ahead, s) <= most), None)
    if step is None:
        step = _DAY_S * math.ceil((end - begin) / _DAY_S / most)
    first = math.ceil((begin + ahead) / step)
    return tuple(_tick(n * step - ahead, n * step, step) for n in range(first, math.floor((end + ahead) / step) + 1))[:most]


def _ticks(begin: float, end: float, step: int) -> int:
    return math.floor(end / step) - math.ceil(begin / step) + 1


def _tick(at: float, local: int, step: int) -> Tick:
    days, second = divmod(local, _DAY_S)
    if second == 0:
        _, month, day = day_of(days)
        return Tick(at, f"{day} {_MONTHS[month - 1]}", day=True)
    text = _clock(second)
    return Tick(at, text if step < 60 else text[:5])


def _clock(second: int) -> str:
    minutes, second = divmod(second, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{second:02d}"

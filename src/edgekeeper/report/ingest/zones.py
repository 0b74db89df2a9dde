"""Time zones by name, for stamps that have none."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from edgekeeper.errors import UsageError
from edgekeeper.report.formats import stamps

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)
_REMEMBERED = 4096


def zone_of(text: str) -> tzinfo:
    """``Europe/Berlin``, ``UTC`` or ``+02:00``; "" is UTC. UsageError for what is none."""
    if text in {"", "UTC", "Z"}:
        return UTC
    match = _OFFSET.fullmatch(text)
    if match is not None and int(match[2]) < 24 and int(match[3]) < 60:
        ahead = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-ahead if match[1] == "-" else ahead)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        msg = f"{text[:60]!a} is no time zone; write it as Europe/Berlin or +02:00"
        raise UsageError(msg) from None


class Local:
    """Seconds since 1970 of a time in a zone; ``used`` is whether any stamp needed it.

    Of an hour that is there twice, since the clock was set back, ``which`` chooses (given the earlier and the later time): without it the
    first. ``twice`` is whether a stamp lay in such an hour.
    """

    def __init__(self, zone: tzinfo, which: Callable[[float, float], float] = min) -> None:
        self._zone = zone
        self._which = which
        self._known: dict[tuple[int, int, int, int, int], tuple[float, float]] = {}
        self.used = False
        self.twice = False

    def __call__(self, year: int, month: int, day: int, hour: int, minute: int, second: float) -> float:
        """See the class."""
        self.used = True
        if self._zone is UTC:
            return stamps.utc(year, month, day, hour, minute, second)
        key = (year, month, day, hour, minute)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            at = datetime(year, month, day, hour, minute, tzinfo=self._zone)
            known = self._known[key] = (at.timestamp(), at.replace(fold=1).timestamp())
        if known[1] > known[0]:  # the other way round it is an hour that was never there
            self.twice = True
            return self._which(known[0] + second, known[1] + second)
        return known[0] + second

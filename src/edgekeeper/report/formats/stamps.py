"""Stamps of logs as seconds since 1970, without a clock or a calendar library. Pure.

Every function answers None for what is no stamp, or a day that no month has; none raises. A stamp without a zone is read by ``local``,
which makes seconds since 1970 of year, month, day, hour, minute and second of the zone of the source. A second may be 60 (a leap second).
"""

from __future__ import annotations

import re
from collections.abc import Callable

Local = Callable[[int, int, int, int, int, float], float]

_DAY_S = 86400.0
_YEARS = 10  # a leap day may be eight years back
_MONTHS = {m: i + 1 for i, m in enumerate(("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"))}
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ISO = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?(?: ?(Z|[+-]\d\d:?\d\d))?", re.ASCII)
_CLF = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.(\d{1,12}))?(?: ([+-]\d{4}))?", re.ASCII)
_BSD = re.compile(r"([A-Z][a-z]{2}) ([ \d]?\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,12}))?", re.ASCII)
_ASCTIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,12}))? (\d{4})", re.ASCII)


def days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a day of the Gregorian calendar."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def utc(year: int, month: int, day: int, hour: int, minute: int, second: float) -> float:
    """Seconds since 1970 of a time in UTC."""
    return days(year, month, day) * _DAY_S + hour * 3600 + minute * 60 + second


def iso(text: str, local: Local | None = None) -> float | None:
    """``2026-09-07T04:55:10.503803974Z`` and its kin: a space for the T, slashes (FRR), ``+02:00``, ``+0200``, a comma before the fraction.

    Without a zone it is read by ``local``, and is no stamp when there is none.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    return _seconds(int(year), int(month), int(day), (hour, minute, second, fraction), zone, local)


def clf(text: str, local: Local | None = None) -> float | None:
    """``07/Sep/2026:04:55:10 +0000``, also as HAProxy writes it: with milliseconds and without a zone (``29/Nov/2026:20:33:29.834``)."""
    match = _CLF.fullmatch(text)
    if match is None:
        return None
    day, month, year, hour, minute, second, fraction, zone = match.groups()
    return _seconds(int(year), _MONTHS.get(month, 0), int(day), (hour, minute, second, fraction), zone, local)


def asctime(text: str, local: Local) -> float | None:
    """``Sun Nov 29 20:35:03 2026``, as keepalived writes it on its console; a fraction may follow the seconds."""
    match = _ASCTIME.fullmatch(text)
    if match is None:
        return None
    month, day, hour, minute, second, fraction, year = match.groups()
    return _seconds(int(year), _MONTHS.get(month, 0), int(day), (hour, minute, second, fraction), None, local)


def bsd(text: str, local: Local, *, until: float | None = None, near: float | None = None) -> float | None:
    """``Nov 29 20:33:29`` of syslog, which has no year.

    The year is the one that brings it nearest to ``near`` (a time that is known of the same log), else the latest one that is not more
    than a day after ``until`` (the last change of the log): so a log that was written over the turn of a year reads in order. None
    when neither is known.
    """
    match = _BSD.fullmatch(text)
    if match is None:
        return None
    month, day, hour, minute, second, fraction = match.groups()
    number, clock = _MONTHS.get(month, 0), (hour, minute, second, fraction)
    if near is not None:
        year = year_of(near)
        found = (_seconds(y, number, int(day), clock, None, local) for y in (year, year - 1, year + 1))
        return min((at for at in found if at is not None), key=lambda at: abs(at - near), default=None)
    if until is None:
        return None
    latest = year_of(until) + 1
    found = (_seconds(y, number, int(day), clock, None, local) for y in range(latest, latest - _YEARS, -1))
    return next((at for at in found if at is not None and at <= until + _DAY_S), None)


def micro(value: object) -> float | None:
    """Microseconds since 1970 written in digits, as journald does (``1795985018628552``), in seconds."""
    return int(value) / 1e6 if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 16 else None


def year_of(at: float) -> int:
    """The year of a time in UTC."""
    year = 1970 + int(at // (365.2425 * _DAY_S))
    return year + (utc(year + 1, 1, 1, 0, 0, 0) <= at) - (utc(year, 1, 1, 0, 0, 0) > at)


def coarse(text: str) -> float:
    """How coarse a stamp is: 1.0 for whole seconds, 0.001 for milliseconds: the stamp may be early by as much."""
    _, dot, fraction = text.replace(",", ".").rpartition(".")
    digits = len(fraction) - len(fraction.lstrip("0123456789")) if dot else 0
    return 10.0**-digits if digits else 1.0


def _seconds(year: int, month: int, day: int, clock: tuple[str, str, str, str | None], zone: str | None, local: Local | None) -> float | None:
    hour, minute, second = int(clock[0]), int(clock[1]), int(clock[2])
    if not (1 <= month <= 12 and 1 <= day <= _LENGTHS[month - 1] and 1970 <= year <= 2199 and hour <= 23 and minute <= 59 and second <= 60):
        return None
    if month == 2 and day == 29 and (year % 4 or (year % 100 == 0 and year % 400)):
        return None
    fraction = float("0." + clock[3]) if clock[3] else 0.0
    if zone is None:  # a calendar has no second 60: it is added after
        return None if local is None else local(year, month, day, hour, minute, float(min(second, 59))) + max(0, second - 59) + fraction
    at = days(year, month, day) * _DAY_S + hour * 3600 + minute * 60 + second
    if zone != "Z":
        shift = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        at += shift if zone[0] == "-" else -shift
    return at + fraction

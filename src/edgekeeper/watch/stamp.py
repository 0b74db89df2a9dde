"""When a recorded line was written, by the time stamp that it carries. Pure.

Known: ISO 8601 at the line's start (``2026-09-07T06:58:01.123Z``, ``2026/11/29 20:33:49.961``, with or without a zone), the syslog
and keepalived forms (``Sep 07 06:52:08``, ``Sun Nov 29 20:35:03 2026``), klog's (``W1129 20:33:29.834``), a web server's
(``[29/Nov/2026:20:56:19 +0000]``), Unix seconds, and the members ``time``, ``ts``, ``timestamp`` of JSON and logfmt lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_MONTHS: Final = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_DAY_S: Final = 86400
_TIME = rb"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\d{0,9}"
_ZONE = rb" {0,1}(Z|[+-]\d\d:?\d\d(?!\d))?"
_ISO = re.compile(rb"(\d{4})[-/](\d\d)[-/](\d\d)[T ]" + _TIME + _ZONE)
_HEAD = re.compile(rb'[\[<"( ]{0,2}(?:\d{4}[-/]\d\d[-/]\d\d[T ])')
_SYSLOG = re.compile(rb"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) {1,2}(\d{1,2}) " + _TIME + rb"(?: (\d{4})(?!\d))?")
_KLOG = re.compile(rb"[IWEF](\d\d)(\d\d) " + _TIME)
_WEB = re.compile(rb"\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):" + _TIME + _ZONE)
_SECONDS = re.compile(rb"(\d{10}(?:\.\d{1,9})?)(?![\w.-])")
_MILLISECONDS = re.compile(rb"(\d{13})(?![\w.-])")
_MEMBER = re.compile(rb'(?:^|[\s{,"])@?(?:time|ts|timestamp|StartUTC)"?\s{0,2}[=:]\s{0,2}"?(?=\d)')
_MEMBER_WITHIN = 4096


@dataclass(frozen=True, slots=True)
class Calendar:
    """What a stamp does not say itself.

    ``zone_s`` is how far local time is ahead of UTC, in seconds, for a stamp without a zone; ``newest`` the Unix time that no line is
    newer than (the file's last change): a stamp without a year is of the last year in which it is not newer than a day after that.
    """

    zone_s: int = 0
    newest: float = 0.0


def stamp(line: bytes, calendar: Calendar) -> float | None:
    """The Unix time at which the line says it was written, None when it does not say so in a way that is known."""
    head = _HEAD.match(line)
    if head is not None:
        return _iso(_ISO.search(line, 0, 64), calendar)
    if (found := _SYSLOG.match(line)) is not None:
        return _syslog(found, calendar)
    if (found := _KLOG.match(line)) is not None:
        return _yearless(int(found[1]), int(found[2]), found.groups()[2:6], calendar)
    if (found := _SECONDS.match(line)) is not None:
        return float(found[1])
    if (found := _MEMBER.search(line, 0, _MEMBER_WITHIN)) is not None:
        return _member(line, found.end(), calendar)
    if (found := _WEB.search(line, 0, 512)) is not None and found[2] in _MONTHS:
        date = int(found[3]), _MONTHS.index(found[2]) + 1, int(found[1])
        return _unix(date, found.groups()[3:7], found[8], calendar)
    return None


def iso(text: bytes) -> float | None:
    """The Unix time of an ISO 8601 stamp (UTC when it has no zone) that the text begins with."""
    return _iso(_ISO.match(text), Calendar())


def _iso(found: re.Match[bytes] | None, calendar: Calendar) -> float | None:
    if found is None:
        return None
    return _unix((int(found[1]), int(found[2]), int(found[3])), found.groups()[3:7], found[8], calendar)


def _member(line: bytes, at: int, calendar: Calendar) -> float | None:
    if (found := _ISO.match(line, at)) is not None:
        return _iso(found, calendar)
    if (seconds := _SECONDS.match(line, at)) is not None:
        return float(seconds[1])
    milliseconds = _MILLISECONDS.match(line, at)
    return None if milliseconds is None else int(milliseconds[1]) / 1000


def _syslog(found: re.Match[bytes], calendar: Calendar) -> float | None:
    if found[1] not in _MONTHS:
        return None
    month, day = _MONTHS.index(found[1]) + 1, int(found[2])
    if found[7] is not None:
        return _unix((int(found[7]), month, day), found.groups()[2:6], None, calendar)
    return _yearless(month, day, found.groups()[2:6], calendar)


def _yearless(month: int, day: int, time: tuple[bytes | None, ...], calendar: Calendar) -> float | None:
    year = 1970 + int(max(0.0, calendar.newest) / (365.2425 * _DAY_S)) + 1
    for candidate in range(year, year - 6, -1):  # 29 February is not in every year
        found = _unix((candidate, month, day), time, None, calendar)
        if found is not None and found <= calendar.newest + _DAY_S:
            return found
    return None


def _unix(date: tuple[int, int, int], time: tuple[bytes | None, ...], zone: bytes | None, calendar: Calendar) -> float | None:
    year, month, day = date
    hour, minute, second = int(time[0] or 0), int(time[1] or 0), int(time[2] or 0)
    if not (1900 <= year < 9999 and 1 <= month <= 12 and 1 <= day <= _length(year, month) and hour < 24 and minute < 60 and second <= 60):
        return None
    fraction = int(time[3]) / 10 ** len(time[3]) if time[3] else 0.0
    return float(_days(year, month, day) * _DAY_S + hour * 3600 + minute * 60 + second - _offset(zone, calendar)) + fraction


def _offset(zone: bytes | None, calendar: Calendar) -> int:
    if zone is None:
        return calendar.zone_s
    if zone == b"Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[:1] == b"-" else seconds


def _length(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar (its years counted from March, so that a leap day is a year's last)."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719469

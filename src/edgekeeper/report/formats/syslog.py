"""The head of a line of syslog, in every dress that it comes in. Pure.

``Nov 29 20:33:29 lb-1 haproxy[13498]: ...`` (RFC 3164, also with a ``<134>`` before it, and as journalctl prints it with a fraction),
``2026-11-29T20:33:29.123456+00:00 lb-1 haproxy[13498]: ...`` (what rsyslog writes by default), and RFC 5424
(``<134>1 2026-11-29T20:33:29.123Z lb-1 haproxy 13498 - - ...``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context

_BSD = r"[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
_OLD = re.compile(rf"(?:<\d{{1,3}}>)?(?:({_BSD})|({_ISO})) (?:(\S{{1,255}}) )?([^\s:\[\]]{{1,128}})(?:\[(\d{{1,10}})\])?:(?: |$)", re.ASCII)
_NEW = re.compile(rf"(?:\d{{1,6}} )?<\d{{1,3}}>1 (?:({_ISO})|-) (\S{{1,255}}) (\S{{1,48}}) (\S{{1,128}}) \S{{1,32}} ", re.ASCII)
_DATA = re.compile(r'(?:-|(?:\[(?:[^\]"\\]|\\.|"(?:[^"\\]|\\.)*")*\])+)(?: |$)')
_BOM = "\ufeff"


class Head(NamedTuple):
    """Who wrote a line and when: ``at`` in seconds since 1970 (None: no stamp, or no year for it), ``stamp_s`` how coarse that is."""

    at: float | None
    stamp_s: float
    host: str
    tag: str
    rest: str


def head(line: str, context: Context) -> Head | None:
    """The head of the line and what follows it; None when the line has none."""
    old = _OLD.match(line)
    if old is not None:
        without_year, whole, host, tag, _pid = old.groups()
        at = stamps.bsd(without_year, context.local, until=context.until, near=context.near) if without_year else stamps.iso(whole)
        return Head(at, stamps.coarse(without_year or whole), host or "", tag, line[old.end() :])
    new = _NEW.match(line)
    if new is None:
        return None
    data = _DATA.match(line, new.end())
    if data is None:
        return None
    stamp, host, tag, _pid = new.groups()
    rest = line[data.end() :].removeprefix(_BOM)
    return Head(stamps.iso(stamp) if stamp else None, stamps.coarse(stamp) if stamp else 1.0, _known(host), _known(tag), rest)


def _known(word: str) -> str:
    return "" if word == "-" else word

"""A NetBird client or proxy in its text form: the sign that it is wedged, and routes that come and go. Pure.

``2006-01-02T15:04:05.000Z LEVL [fields] file.go:line: words``. The same words are in the source twice: ``couldn't fetch peer state: KEY`` at
WARN is the wedge; ``couldn't fetch peer state KEY: err`` at DEBG is every day's, and must not count (read from the source as of
August 2026).
"""

from __future__ import annotations

import re

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Parsed
from edgekeeper.report.formats.told import EventLog, Told, mark, moment
from edgekeeper.report.kinds import TRUNCATED, Kind, Skip

_LINE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) ([A-Z]{4,7}) (?:\[[^\]]*\] )?(?:[\w./-]{1,200}\.go:\d{1,6}: )?(.*)",
    re.ASCII | re.DOTALL,
)
_WEDGE = re.compile(r"couldn't fetch peer state: (\S+)")
_CHOSEN = re.compile(r"New chosen route is (\S+) with peer (\S+)(?: with score (\S+))? for network \[(.{1,255})\]")
_WITHOUT = re.compile(r"network \[(.{1,255}?)\] has not been assigned a routing peer")


def _netbird(told: Told, context: Context) -> Parsed:
    found = _LINE.match(told.words)
    if found is None:
        return Skip(TRUNCATED) if "fetch peer state" in told.words else None
    at, stamp_s = moment(stamps.iso(found[1], context.local), stamps.coarse(found[1]), context)
    level, words = found[2], found[3]
    told = told._replace(at=at, stamp_s=stamp_s, words=words)
    service = context.tag or "netbird"
    if (wedge := _WEDGE.match(words)) is not None:
        return mark(told, context, Kind.FINGERPRINT, service, words, text="couldn't fetch peer state", key=wedge[1]) if level.startswith("WARN") else None
    if (chosen := _CHOSEN.match(words)) is not None:
        return mark(told, context, Kind.NOTE, chosen[4], f"a routing peer is chosen for {chosen[4]}", service=service, peer=chosen[2], state="routed")
    if (without := _WITHOUT.match(words)) is not None:
        return mark(told, context, Kind.NOTE, without[1], f"no routing peer for {without[1]}", service=service, state="unrouted")
    return None


NETBIRD = EventLog(
    "netbird",
    _netbird,
    (b"fetch peer state", b"New chosen route is", b"has not been assigned a routing peer"),
    re.compile(
        rb"(?:^|: |\s)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:TRAC|DEBG|INFO|WARN|ERRO|FATL|PANC) (?:\[[^\]]*\] )?[\w./-]{1,200}\.go:\d{1,6}: "
    ),
)
"""The text form of NetBird's log, bare or behind the head of a syslog."""

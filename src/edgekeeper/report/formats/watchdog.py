"""Watchdogs that are shell scripts: what they print when they see a fingerprint, restart, hold back, or ask a URL. Pure.

``fingerprint "..." seen, restarting NAME``, ``restarted NAME``, ``... restart suppressed: cooldown 300s, last restart 166s ago``,
``probe URL round 1/3 failed: http_code=000``; in a syslog, where the tag names the script. Our own watches write a journal instead.
"""

from __future__ import annotations

import re
from typing import Any

from edgekeeper.report.formats.base import Context, Item, Parsed
from edgekeeper.report.formats.told import EventLog, Told, mark
from edgekeeper.report.kinds import Kind, Mark

_SEEN = re.compile(r'fingerprint "(.{1,255}?)" seen, (.*)', re.DOTALL)
_RESTARTING = re.compile(r"restarting (\S+)")
_RESTARTED = re.compile(r"restarted (\S+)")
_HELD = re.compile(r"restart suppressed(?::.*?)?(?:cooldown (\d{1,7})s)?(?:, last restart (\d{1,9})s ago)?", re.DOTALL)
_PROBE = re.compile(r"probe (\S{1,2000}?)(?: round (\d{1,4})/(\d{1,4}))? (failed|ok|succeeded|recovered)(?:: (.*))?")
_SCRIPT = re.compile(r"(?:-(?:flood|url|log))?-watchdog(?:\.sh)?$")
_SERVICES_MOST = 10_000


def _watchdog(told: Told, context: Context) -> Parsed:
    words = told.words.strip()
    service = _SCRIPT.sub("", told.tag) or "watchdog"
    began: dict[tuple[str, str], float] = context.state.setdefault("watchdog", {})
    out: list[Any] = []
    if (seen := _SEEN.fullmatch(words)) is not None:
        out.append(mark(told, context, Kind.FINGERPRINT, service, f"{service}: {seen[1]!r} is seen", text=seen[1]))
        words = seen[2]
    if (acting := _RESTARTING.fullmatch(words)) is not None:
        if told.at is not None and len(began) < _SERVICES_MOST:
            began[told.node, acting[1]] = told.at
        out.append(mark(told, context, Kind.WATCH_ACTING, acting[1], f"{acting[1]} is restarted"))
    elif (done := _RESTARTED.fullmatch(words)) is not None:
        since = began.pop((told.node, done[1]), None)
        took = told.at - since if since is not None and told.at is not None else None
        out.append(mark(told, context, Kind.WATCH_RESTARTED, done[1], f"{done[1]} was restarted", took_s=took))
    elif (held := _HELD.fullmatch(words)) is not None:
        cooldown, since_s = (float(number) if number else None for number in held.groups())
        out.append(mark(told, context, Kind.WATCH_SUPPRESSED, service, words, cooldown_s=cooldown, since_s=since_s))
    elif (probe := _PROBE.fullmatch(words)) is not None:
        out.append(_probed(told, context, service, probe))
    items: list[Item] = out
    return items if len(items) > 1 else items[0] if items else None


def _probed(told: Told, context: Context, service: str, probe: re.Match[str]) -> Mark | Any:
    url, number, of, word, error = probe.groups()
    data: dict[str, str | float | bool | None] = {"ok": word != "failed", "service": service, "error": error}
    if number:
        data |= {"round": float(number), "rounds": float(of)}
    return mark(told, context, Kind.WATCH_PROBE, url, f"probe of {url} {word}", **data)


WATCHDOG = EventLog(
    "watchdog",
    _watchdog,
    (b"fingerprint", b"restart", b"probe "),
    re.compile(
        rb'fingerprint ".{1,255}?" seen, |: restart suppressed|[\w.-]-watchdog(?:\.sh)?(?:\[\d{1,10}\])?: |(?:^|: )probe \S{1,2000} round \d{1,4}/\d{1,4} (?:failed|ok)\b'
    ),
)
"""The watchdogs of the field reports, in a syslog or a journal."""

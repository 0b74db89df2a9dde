"""keepalived's own log: ``Mon Nov 30 06:25:07 2026: text``, or bare. Pure."""

from __future__ import annotations

import re

_STAMP = re.compile(r"^(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}: )?(.*)$")
_NO_NEWS = re.compile(
    r"^((\([^)]*\) |\S+: )?[Ss]ending(/queueing)? (gratuitous|[Uu]nsolicited)|Printing |Command line: |\s*'|Assigned address|Registering |NOTICE: setting config option|CPU usage)"
)
"""Said at each start, each dump and each gratuitous ARP: five lines every 30 s."""
_LOUD = re.compile(
    r"mismatch|not a unicast peer|error|fail|unable|cannot|invalid|unknown|FAULT|died|insecure|already running|lower priority|Respawn", re.IGNORECASE
)
INFO, WARNING = 20, 30


def parse_log(line: str) -> tuple[int, str] | None:
    """Level and text of a line; None for one that says nothing new."""
    found = _STAMP.match(line.rstrip("\r\n"))
    text = found[1].strip() if found else ""
    if not text or _NO_NEWS.match(found[1] if found else ""):
        return None
    return (WARNING if _LOUD.search(text) else INFO), text

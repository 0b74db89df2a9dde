"""HAProxy's own log: lines of its startup, ``[LEVEL]  (pid) : text``, and lines of its log, bare. Pure.

What a worker says about a server it writes both ways, and the first of them several times (2.6 to 3.2):
the form with the level is left out for those.
"""

from __future__ import annotations

import re

_LEVELLED = re.compile(r"^\[(NOTICE|INFO|WARNING|ALERT|EMERG|DIAG)\s*\]\s*(?:\d+/\d+\s*)?(?:\(\d+\)\s*:\s*)?(.*)$")
_SAID_TWICE = re.compile(r"^(Server|Proxy|Health check|backend) ")
_NO_NEWS = re.compile(r"^(Proxy \S+ stopped |haproxy version is |path to executable is |Former worker \(\d+\) exited with code 0 )")
"""What each reload says, whatever was reloaded."""
DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
_LEVELS = {"NOTICE": INFO, "INFO": INFO, "DIAG": DEBUG, "WARNING": WARNING, "ALERT": ERROR, "EMERG": ERROR}


_CUT = re.compile(r" \S+/\S+ [\d/+-]+ (?:-?\d{1,3} )?\+?\d+ (?:\S+ \S+ )?D[A-Z-]{1,3} ")
"""The termination state of a connection in a tcplog or httplog line; D: its server went DOWN."""


def was_cut(line: str) -> bool:
    """Whether a line says that HAProxy ended a connection because its server went DOWN."""
    return _CUT.search(line.partition('"')[0]) is not None  # what a client asked stands behind the quote


def parse_log(line: str) -> tuple[int, str] | None:
    """Level and text of a line; None for one that says nothing, or what another line says too."""
    text = line.strip()
    if not text:
        return None
    found = _LEVELLED.match(text)
    if _NO_NEWS.match(found[2] if found is not None else text):
        return None
    if found is None:
        loud = " is DOWN" in text or " has no server available" in text or " going DOWN" in text
        return (WARNING if loud else INFO), text
    level, said = found[1], found[2]
    if not said or (level == "WARNING" and _SAID_TWICE.match(said)):
        return None
    return _LEVELS[level], said

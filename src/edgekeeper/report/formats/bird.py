"""BGP sessions as BIRD tells them, where its log has ``debug protocols { states }`` (or ``events``). Pure.

BIRD names the protocol, not the peer, and not of which kind it is. A session that goes passes several states in one moment (stop, flush, down, and start again): that
is one ``BGP_DOWN``. Without debug lines only the reasons of errors are there (``gw1: Received: Administrative shutdown``), which BIRD
writes for every BGP error by itself.
"""

from __future__ import annotations

import re

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Parsed
from edgekeeper.report.formats.told import EventLog, Told, mark, moment
from edgekeeper.report.kinds import TRUNCATED, Kind, Skip

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?|\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) (.*)", re.ASCII | re.DOTALL)
_LEVEL = re.compile(r"<[A-Z]{3,7}> ")
_SAID = re.compile(r"([A-Za-z_][\w.:-]{0,63}|'[^']{1,64}'): (State changed to (\w+)|BGP session (established|closed)|(Received|Error): (.{1,200}))")
_NOT_BGP = re.compile(r"(?:device|direct|kernel|static|bfd|pipe|ospf|rip|babel|radv|rpki|mrt|perf|aggregator|l3vpn|bmp)\d+")
"""Names that BIRD itself gives to protocols of other kinds."""

_SESSIONS_MOST = 10_000


def _bird(told: Told, context: Context) -> Parsed:
    own = _STAMP.match(told.words)
    if own is not None:
        at, stamp_s = moment(stamps.iso(own[1], context.local), stamps.coarse(own[1]), context)
        told = told._replace(at=at, stamp_s=stamp_s, words=own[2])
    level = _LEVEL.match(told.words)
    said = _SAID.fullmatch(told.words[level.end() if level else 0 :].rstrip())
    if said is None:
        return Skip(TRUNCATED) if "State changed to" in told.words else None
    protocol, _, state, session, side, reason = said.groups()
    protocol = protocol.strip("'")
    if _NOT_BGP.fullmatch(protocol):
        return None
    if side:
        if side == "Error" and "Hold timer" not in reason and "otification" not in reason:
            return None  # an error of our own of which the other side was not told: the state that follows says what came of it
        kind = Kind.BGP_NOTIFY_HEARD if side == "Received" else Kind.BGP_NOTIFY_SENT
        return mark(told, context, kind, protocol, f"BGP of {protocol}: {side.lower()} {reason}", reason=reason)
    return _changed(told, context, protocol, {"established": "up", "closed": "stop"}[session] if session else state)


def _changed(told: Told, context: Context, protocol: str, state: str) -> Parsed:
    """What a state is after the one before: a session has to start before it is up, and stops before it is gone.

    A protocol without a session (a static one, whatever its name) goes up at once, and is gone without a stop.
    """
    states: dict[str, str] = context.state.setdefault("bird", {})
    before = states.get(protocol)
    if before is not None or len(states) < _SESSIONS_MOST:
        states[protocol] = "other" if state == "up" and before not in {"start", "up"} and "session" not in told.words else state
    if state == "up":
        return mark(told, context, Kind.BGP_UP, protocol, f"BGP session {protocol} is up") if states.get(protocol) == "up" != before else None
    if before == "up" or (before is None and state == "stop"):
        return mark(told, context, Kind.BGP_DOWN, protocol, f"BGP session {protocol} is down", reason=state)
    return None


BIRD = EventLog(
    "bird",
    _bird,
    (b"State changed to", b"BGP session", b": Received: ", b": Error: "),
    re.compile(
        rb"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?|\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) <(?:TRACE|INFO|RMT|WARN|ERR|AUTH|BUG|FATAL|DBG)> "
        rb"|: State changed to (?:start|up|stop|flush|down)$|(?:^|[ ])bird6?(?:\[\d{1,10}\])?: "
    ),
)
"""BIRD 2 and 3, in a file or in a syslog."""

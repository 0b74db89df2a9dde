"""Our own journal (``journal.jsonl`` in the state folder): what watches, VIPs, load balancers, probes and a roll did and held back. Pure.

A line is ``{"schema":1,"ts","mono","node","role","event","object","decision","why","data"}``. The role ``roll`` names its events as the
kinds of marks are named (``node.cordoned``, ``pod.evicted``, ``pod.eviction_blocked``), and its own steps ``roll.*``. A drill that is recorded writes a file of the same shape, with the role ``drill``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Item, Parsed, name
from edgekeeper.report.formats.jsonline import decode
from edgekeeper.report.kinds import NO_TIME, NOT_THIS_FORMAT, Kind, Mark, Skip

SCHEMA = 1
STAMP_S = 0.001


class _Line(msgspec.Struct, gc=False):
    ts: str
    event: str
    role: str = ""
    object: str = ""
    node: str = ""
    decision: str = ""
    why: str = ""
    schema: int = 0
    data: dict[str, Any] = {}


_DECODER = msgspec.json.Decoder(_Line)
_LIKES = re.compile(rb'^\s*\{(?=.*"schema": ?1\b)(?=.*"role": ?")(?=.*"decision": ?").*"event": ?"', re.DOTALL)
_STATES = frozenset({"MASTER", "BACKUP", "FAULT", "STOP"})
_ROLL_KINDS: Final = {str(kind): kind for kind in Kind if kind.value.startswith(("node.", "pod.", "db."))}

Data = dict[str, str | float | bool | None]
Reader = Callable[[_Line], list[tuple[Kind, str, Data]]]


def _note(line: _Line) -> list[tuple[Kind, str, Data]]:
    return [(Kind.NOTE, line.object, {})]


def _armed(line: _Line) -> list[tuple[Kind, str, Data]]:
    return [(Kind.FINGERPRINT, line.object, {"text": _word(line.data, "line")})]


def _answered(line: _Line) -> list[tuple[Kind, str, Data]]:
    """Two of a watch's ends: it answers by itself, or somebody else has started it."""
    by = _word(line.data, "by")
    return [(Kind.WATCH_PROBE, line.object, {"ok": True, "by": by})] if by != "start" else _note(line)


def _cured(line: _Line) -> list[tuple[Kind, str, Data]]:
    step = _word(line.data, "step")
    return [(Kind.WATCH_ACTING, line.object, {"step": step}), (Kind.WATCH_RESTARTED, line.object, {"step": step})]


def _suppressed(line: _Line) -> list[tuple[Kind, str, Data]]:
    return [(Kind.WATCH_SUPPRESSED, line.object, {"held_by": _word(line.data, "held_by"), "left_s": _number(line.data.get("until_s"))})]


def _proved(line: _Line) -> list[tuple[Kind, str, Data]]:
    told = line.data.get("recovered_s")
    least, most = (_number(told[0]), _number(told[1])) if isinstance(told, list) and len(told) == 2 else (None, None)
    return [(Kind.WATCH_PROVEN, line.object, {"min_s": least, "max_s": most})]


def _vip(line: _Line) -> list[tuple[Kind, str, Data]]:
    """keepalived tells a state of this node; where a cluster moves the VIPs, ``from`` and ``to`` are nodes."""
    to, before = _word(line.data, "to"), _word(line.data, "from")
    vip = _word(line.data, "vip") or line.object
    if to in _STATES:
        return [(Kind.VRRP_STATE, vip, {"state": to, "from": before})]
    told: list[tuple[Kind, str, Data]] = [(Kind.VRRP_STATE, vip, {"state": "MASTER", "node": to})] if to else []
    return [*told, (Kind.VRRP_STATE, vip, {"state": "BACKUP", "node": before})] if before else told


def _server(kind: Kind) -> Reader:
    return lambda line: [(kind, line.object, {"reason": line.why})]


def _freed(line: _Line) -> list[tuple[Kind, str, Data]]:
    return [(Kind.NOTE, line.object, {"sessions": _number(line.data.get("sessions")), "state": "freed"})]


def _outage(line: _Line) -> list[tuple[Kind, str, Data]]:
    return [(Kind.OUTAGE, line.object, {key: _number(line.data.get(key)) for key in ("min_s", "max_s", "bad", "asked")})]


_EVENTS: Final[Mapping[str, Reader]] = {
    "watch.armed": _armed,
    "watch.disarmed": _answered,
    "watch.cancelled": _answered,
    "watch.confirmed": lambda line: [(Kind.WATCH_PROBE, line.object, {"ok": False, "error": line.why})],
    "watch.suppressed": _suppressed,
    "watch.cured": _cured,
    "watch.proved": _proved,
    "watch.not_proved": _note,
    "watch.blind": _note,
    "watch.sees": _note,
    "vip.master_changed": _vip,
    "vip.handed_over": _note,
    "vip.yielded": _note,
    "vip.health_changed": _note,
    "vip.covered": _note,
    "vip.uncovered": _note,
    "lb.server_marked": _server(Kind.SERVER_DOWN),
    "lb.server_released": _server(Kind.SERVER_UP),
    "lb.sessions_freed": _freed,
    "lb.held": _note,
    "member.drained": _note,
    "member.undrained": _note,
    "members.changed": _note,
    "members.held": _note,
    "engine.started": _note,
    "engine.exited": _note,
    "engine.stopped": _note,
    "config.reloaded": _note,
    "config.restart": _note,
    "config.rolled_back": _note,
    "alarm.raised": _note,
    "alarm.cleared": _note,
    "probe.down": _note,
    "probe.outage": _outage,
    "drill.outage": _outage,
    "drill.note": _note,
    "note": _note,  # what somebody wrote down by hand
}
"""What each event of a journal is to a report; others say nothing that belongs on its axis."""


class Journal:
    """``edgekeeper-journal``."""

    name = "edgekeeper-journal"
    stamp_s = STAMP_S

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The marks of one entry."""
        if not line.strip():
            return None
        one = decode(_DECODER, line)
        if isinstance(one, Skip):
            return one
        if one.schema != SCHEMA:
            return Skip(NOT_THIS_FORMAT)
        found = _roll(one) if one.role == "roll" else reader(one) if (reader := _EVENTS.get(one.event)) is not None else []
        if not found:
            return None
        at = stamps.iso(one.ts)
        if at is None:
            return Skip(NO_TIME)
        if found[0][0] is Kind.OUTAGE:  # it is told when it is over
            at = stamps.iso(_word(one.data, "first_bad")) or _number(one.data.get("first_bad")) or at
        out: list[Item] = [_mark(one, at, context, *told) for told in found]
        return out if len(out) > 1 else out[0]

    def likes(self, line: bytes) -> bool:
        """Whether the line is certainly an entry of a journal."""
        return _LIKES.search(line) is not None


def _roll(line: _Line) -> list[tuple[Kind, str, Data]]:
    data: Data = {key: value for key, value in line.data.items() if value is None or isinstance(value, str | float | int)}
    kind = _ROLL_KINDS.get(line.event)
    if kind is not None:
        return [(kind, line.object, data)]
    return [(Kind.ROLL, line.object, {"step": line.event.removeprefix("roll."), "state": line.decision, **data})]


def _mark(line: _Line, at: float, context: Context, kind: Kind, about: str, data: Data) -> Mark:
    kept = {key: name(value) if isinstance(value, str) else value for key, value in data.items() if value is not None and value != ""}
    node = str(kept.pop("node")) if kind is Kind.VRRP_STATE and "node" in kept else name(line.node) or context.node
    if line.role == "roll":
        node = name(about) if line.event.startswith("node.") else ""
    return Mark(at, kind, name(about), name(line.why or line.event), context.source, node, STAMP_S, kept)


def _word(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else None


JOURNAL = Journal()

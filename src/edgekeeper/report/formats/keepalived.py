"""VRRP as keepalived tells it: its log, and the journal of its notify FIFO. Pure.

The log has whole seconds (``Sun Nov 29 20:35:03 2026:`` on the console, or a syslog's head). A reader of the FIFO that stamps what it
reads is exact to the millisecond: a hand-over that took 274 ms is one second, or none, in the log. So the same change may be told
twice; the mark with the smaller ``stamp_s`` is the better one.
"""

from __future__ import annotations

import re

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Item, Parsed
from edgekeeper.report.formats.told import EventLog, Told, mark, moment
from edgekeeper.report.kinds import TRUNCATED, Kind, Skip

_CONSOLE = re.compile(r"([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \d{4}): (.*)", re.ASCII | re.DOTALL)
_INSTANCE = re.compile(r"(?:VRRP_Instance)?\(([^()]{1,255})\):? (.*)", re.DOTALL)
_STATE = re.compile(r"(?:[Ee]ntering|Now in) (MASTER|BACKUP|FAULT) (?:STATE|state)(?: \(([^()]*)\))?")
_ADVERT = re.compile(r"[Rr]eceived (?:priority 0 advert|0 priority)")
_FIFO = re.compile(
    r'(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) (INSTANCE|GROUP) "?([^"]{1,255}?)"? ([A-Z_]{3,40})(?: (\d{1,3}))?\s*', re.ASCII
)
_INSTANCES_MOST = 1000
_ENDS = re.compile(r"Stopping(?: VRRP.*)?|Stopping Keepalived.*|VRRP child process\(\d+\) died.*")
_VRRP_STATES = frozenset({"MASTER", "BACKUP", "FAULT", "STOP", "DELETED"})


def _log(told: Told, context: Context) -> Parsed:
    own = _CONSOLE.match(told.words)
    if own is not None:
        at, stamp_s = moment(stamps.asctime(own[1], context.local), stamps.coarse(own[1].rpartition(" ")[0]), context)
        told = told._replace(at=at, stamp_s=stamp_s, words=own[2])
    states: dict[tuple[str, str], str] = context.state.setdefault("keepalived", {})
    if _ENDS.fullmatch(told.words.rstrip()):
        return _ended(told, context, states)
    found = _INSTANCE.match(told.words)
    if found is None:
        return None
    instance, said = found[1], found[2].rstrip()
    if (state := _STATE.fullmatch(said)) is not None:
        if states.get((told.node, instance)) == state[1]:
            return None  # keepalived tells a fault at its start twice
        if len(states) < _INSTANCES_MOST or (told.node, instance) in states:
            states[told.node, instance] = state[1]
        why = {"reason": state[2]} if state[2] and state[2] != "init" else {}
        return mark(told, context, Kind.VRRP_STATE, instance, f"{instance} is {state[1]}", state=state[1], **why)
    if said.startswith("sent 0 priority"):
        return mark(told, context, Kind.VRRP_ZERO_SENT, instance, f"{instance}: its master gives it up (priority 0 is sent)")
    if _ADVERT.search(said):
        return mark(told, context, Kind.VRRP_ZERO_HEARD, instance, f"{instance}: its master gives it up (priority 0 is heard)")
    if said.startswith("Receive advertisement timeout"):
        return mark(told, context, Kind.VRRP_TIMEOUT, instance, f"{instance}: no advertisement in time")
    return Skip(TRUNCATED) if said.startswith("Entering") and len(said) < 21 else None


def _ended(told: Told, context: Context, states: dict[tuple[str, str], str]) -> Parsed:
    """The log says only that keepalived stops; each of its instances does."""
    mine = [key for key in states if key[0] == told.node]
    out: list[Item] = []
    for key in mine:
        del states[key]
        out.append(mark(told, context, Kind.VRRP_STATE, key[1], f"{key[1]} is stopped", state="STOP"))
    return out or None


def _fifo(told: Told, context: Context) -> Parsed:
    found = _FIFO.fullmatch(told.words)
    if found is None:
        return Skip(TRUNCATED)
    at, stamp_s = moment(stamps.iso(found[1], context.local), stamps.coarse(found[1]), context)
    what, instance, state, priority = found.groups()[1:]
    if state not in _VRRP_STATES or what == "GROUP":
        return None  # a group's change is told by each of its instances too; MASTER_RX_LOWER_PRI and its kin are no states
    state = "STOP" if state == "DELETED" else state
    data: dict[str, str | float | bool | None] = {"state": state, "fifo": True}
    if priority:
        data["priority"] = float(priority)
    return mark(told._replace(at=at, stamp_s=stamp_s), context, Kind.VRRP_STATE, instance, f"{instance} is {state}", **data)


KEEPALIVED = EventLog(
    "keepalived",
    _log,
    (b"ntering ", b" FAULT state", b"priority", b"advertisement timeout", b"Stopping", b"died"),
    re.compile(
        rb"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \d{4}: |(?:^|[ ])[Kk]eepalived(?:_vrrp|_healthcheckers)?(?:\[\d{1,10}\])?: "
        rb"|^(?:VRRP_Instance)?\([^()]{1,64}\):? (?:[Ee]ntering (?:MASTER|BACKUP|FAULT) |sent 0 priority|Receive advertisement timeout|Backup received priority 0 )"
    ),
)
"""keepalived 1.x and 2.x on the console or in a syslog."""

KEEPALIVED_FIFO = EventLog(
    "keepalived-fifo",
    _fifo,
    (b"INSTANCE ", b"GROUP "),
    re.compile(rb'^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:INSTANCE|GROUP) "?[^"]{1,64}"? [A-Z_]{3,40}(?: \d{1,3})?\s*$'),
)
"""Lines of the notify FIFO with the time of reading before them."""

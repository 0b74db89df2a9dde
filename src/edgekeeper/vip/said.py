"""What keepalived tells through its FIFO: lines to states, and states to what ``vip-state.json`` holds. Pure.

A line is ``INSTANCE "VI_dns" MASTER 254``. Each write of keepalived is one whole line, but a reader that
was killed half-way, or one that came late, may leave the next one a line without its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SCHEMA = 1
MOST_VIPS = 256
"""More VIPs than a configuration may have; beyond it the longest stopped one is forgotten, so that nothing grows for ever."""

_START = 'INSTANCE "'
_PREFIX = "VI_"
_LONGEST_NAME = 253
_STATES = {"MASTER": "MASTER", "BACKUP": "BACKUP", "FAULT": "FAULT", "STOP": "STOP", "DELETED": "STOP"}
_PRIORITIES = {"MASTER_PRIORITY": "MASTER", "BACKUP_PRIORITY": "BACKUP"}
_IGNORED = frozenset({"MASTER_RX_LOWER_PRI"})
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Told(NamedTuple):
    """A VIP as keepalived told it last; ``since`` is Unix time of the last change of its state."""

    state: str
    priority: int
    since: float


class Line(NamedTuple):
    """A line that was understood. ``state`` is None where it changes nothing; ``whole`` is False when something stood before its beginning."""

    vip: str
    state: str | None
    priority: int
    priority_only: bool = False
    whole: bool = True


def parse(text: str) -> Line | None:
    """A line without its end; None when it is not understood. What a torn line before it left is skipped over."""
    at = text.rfind(_START)
    words = text[at + len(_START) - 1 :].split(" ") if at >= 0 else []
    if len(words) != 3:
        return None
    quoted, event, said = words
    name = quoted[1:-1]
    vip = name[len(_PREFIX) :]
    if not quoted.endswith('"') or not name.startswith(_PREFIX) or not vip or len(vip) > _LONGEST_NAME or not _NAME.issuperset(vip):
        return None
    if not (said.isascii() and said.isdigit() and len(said) <= 3 and int(said) <= 255):
        return None
    state = _STATES.get(event) or _PRIORITIES.get(event)
    if state is None and event not in _IGNORED:
        return None
    return Line(vip, state, int(said), event in _PRIORITIES, at == 0)


def step(vips: Mapping[str, Told], line: Line, now: float) -> Mapping[str, Told]:
    """The VIPs after a line at Unix time ``now``; the very same mapping when it changes nothing."""
    before = vips.get(line.vip)
    if line.state is None:
        return vips
    state = before.state if before is not None and line.priority_only else line.state
    after = Told(state, line.priority, before.since if before is not None and before.state == state else now)
    if after == before:
        return vips
    out = {**vips, line.vip: after}
    if len(out) > MOST_VIPS:
        rest = [name for name in out if name != line.vip]
        del out[min(rest, key=lambda name: (out[name].state != "STOP", out[name].since))]
    return out


def stopped(vips: Mapping[str, Told]) -> bool:
    """Whether keepalived has let go of every VIP: nothing more is to be told."""
    return bool(vips) and all(told.state == "STOP" for told in vips.values())


def tree(node: str, updated: float, vips: Mapping[str, Told], skipped: int) -> dict[str, object]:
    """What the state file holds; ``skipped`` lines were not understood since the reader's start."""
    told = {name: {"state": t.state, "priority": t.priority, "since": round(t.since, 3)} for name, t in vips.items()}
    return {"schema": SCHEMA, "node": node, "updated": round(updated, 3), "vips": told, "skipped": skipped}


def load(found: object) -> Mapping[str, Told]:
    """The inverse of ``tree``; entries that are not as they should be are left out."""
    vips = found.get("vips") if isinstance(found, dict) and found.get("schema") == SCHEMA else None
    out: dict[str, Told] = {}
    for name, told in vips.items() if isinstance(vips, dict) else ():
        if not isinstance(told, dict) or not isinstance(name, str) or not _NAME.issuperset(name):
            continue
        state, priority, since = told.get("state"), told.get("priority"), told.get("since")
        if state in _STATES and isinstance(priority, int) and isinstance(since, int | float):
            out[name] = Told(_STATES[state], int(priority), float(since))
    return out

"""Which hosts are left alone for a while: those whose write the mesh refused, and those that are written again and again. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from edgekeeper.expose.kinds import Wish
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.plan import Action, Held, Plan

FIRST_AGAIN_S: Final = 30.0
LONGEST_AGAIN_S: Final = 900.0
"""A host whose write the mesh refuses (its domain is unknown there, say) is tried again after a pause that doubles from the one to the other."""

WAITS: Final = frozenset({"no_cluster", "unknown_domain", "taken", "invalid", "in_use", "broken", "unreachable"})

OF_ALL: Final = frozenset({"no_cluster", "broken", "unreachable"})
"""Of them those that are seldom about one host: when a write succeeds, the others are tried again at once."""

OFTEN: Final = 3
OFTEN_S: Final = 60.0
"""A service is updated so often within this time at most: two controllers that fight over an annotation would cut its clients with each of their turns."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A write that was refused: until when it is not tried again (monotonic seconds), the pause that was waited, and what was wished."""

    until: float
    pause: float
    why: str
    state: str
    kind: str
    wish: Wish | None


@dataclass(frozen=True, slots=True)
class Waits:
    """By host: what was refused, and when it was updated last."""

    refused: Mapping[str, Wait] = field(default_factory=dict)
    updated: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def held_back(waits: Waits, made: Plan, now: float) -> tuple[Plan, Waits]:
    """The plan without the hosts that are left alone, each told with its time; a host for which nothing is to be done is waited for no more."""
    go: list[Action] = []
    held = list(made.held)
    for action in made.actions:
        why = _why(waits, action, now)
        if why is None:
            go.append(action)
        else:
            held.append(Held(action.host, *why, action.wish))
    todo = {action.host for action in made.actions}
    refused = {host: wait for host, wait in waits.refused.items() if host in todo}
    return replace(made, actions=tuple(go), held=tuple(held)), replace(waits, refused=refused)


def _why(waits: Waits, action: Action, now: float) -> tuple[str, str] | None:
    """The state and the reason of a host that is left alone now."""
    wait = waits.refused.get(action.host)
    if wait is not None and now < wait.until and wait.wish == action.wish:  # another wish may fare better
        return wait.state, f"{wait.why}; tried again in {wait.until - now:.0f} s"
    times = waits.updated.get(action.host, ())
    rest = OFTEN_S - (now - times[0]) if action.kind == "update" and len(times) == OFTEN else 0.0
    if rest > 0:
        return "pending", f"it was written {OFTEN} times within {OFTEN_S:.0f} s, and each write cuts its clients; written again in {rest:.0f} s"
    return None


def noted(waits: Waits, outcomes: Collection[Outcome], now: float) -> Waits:
    """The same after a pass with these outcomes."""
    refused, updated = dict(waits.refused), dict(waits.updated)
    for one in outcomes:
        host = one.action.host
        if one.kind in WAITS:
            before = refused.get(host)
            pause = min(LONGEST_AGAIN_S, 2 * before.pause) if before is not None else FIRST_AGAIN_S
            refused[host] = Wait(now + pause, pause, one.why, one.word, one.kind, one.action.wish)
        elif one.done:
            refused.pop(host, None)
        if one.done and one.action.kind == "update":
            updated[host] = (*updated.get(host, ()), now)[-OFTEN:]
    if any(one.done for one in outcomes):
        tried = {one.action.host for one in outcomes}
        refused = {host: wait for host, wait in refused.items() if host in tried or wait.kind not in OF_ALL}
    return Waits(refused, {host: times for host, times in updated.items() if now - times[-1] < OFTEN_S})

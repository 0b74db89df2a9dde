"""Rise and fall: how many answers in a row it takes to change one's mind. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgekeeper.model.verdict import Health, Verdict


@dataclass(frozen=True, slots=True)
class Threshold:
    """The mind so far. ``run`` counts answers in a row that speak against it; unknown until ``rise`` or ``fall`` is reached."""

    fall: int = 2
    rise: int = 2
    health: Health = Health.UNKNOWN
    last: bool | None = None
    run: int = 0


def judge(state: Threshold, *, ok: bool, why: str = "") -> tuple[Threshold, Verdict]:
    """Take one more answer in; the verdict says how many in a row there were and how many it takes."""
    run = state.run + 1 if state.last == ok else 1
    needed = state.rise if ok else state.fall
    health = state.health
    if run >= needed:
        health = Health.OK if ok else Health.BAD
    new = replace(state, health=health, last=ok, run=run)
    kind = "good" if ok else "bad"
    sentence = f"{run} {kind} in a row, {needed} make it {kind}" if health.value != ("ok" if ok else "bad") else f"{run} {kind} in a row"
    return new, Verdict(health, f"{sentence}{': ' + why if why else ''}")

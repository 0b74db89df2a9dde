"""What the watches say of themselves: one item each in the status, the role's verdict, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.status import RoleStatus
from edgekeeper.ports import Clock
from edgekeeper.watch.patrol import Patrol
from edgekeeper.watch.state import Phase

AGES_MOST = 20
"""Acts of which siblings are told; more than any budget looks at in its windows by default."""


def item(patrol: Patrol, clock: Clock, place: Mapping[str, Any] | None, seen: Mapping[str, Any] | None) -> dict[str, Any]:
    """One watch, as ``/status`` shows it and its siblings read it."""
    now, state, answer = clock.monotonic(), patrol.state, patrol.answer
    phase = Phase.WANTED if state.phase is Phase.CURING and not patrol.begun else state.phase  # the store may still say no
    return {
        "name": patrol.parts.name,
        "state": str(phase),
        "why": patrol.why,
        "seeing": patrol.sight.seeing,
        "sight": patrol.sight.why,
        "probe": None if answer is None else {"ok": answer.well, "why": answer.why, "age_s": round(now - answer.asked, 3)},
        "held_by": (state.held if phase is Phase.WANTED else "") or None,
        "suppressed_for_s": round(max(0.0, state.until - now), 1) if state.held and state.until is not None else None,
        "line": state.line or None,
        "cures": patrol.cures,
        "shadow": patrol.parts.policy.shadow,
        "recovered_s": [round(s, 3) for s in state.recovered] if state.recovered is not None else None,
        "spent_ages_s": patrol.spent_ages_s(AGES_MOST),
        "last_cure_s": next(iter(patrol.spent_ages_s(1)), None),
        **(place or {}),
        "seen": dict(seen or {}),
    }


def status(items: Sequence[Mapping[str, Any]], alarms: Mapping[str, str]) -> RoleStatus:
    """The role's verdict with its details. Ready is whether it watches: what it watches may be down."""
    down = [f"{i['name']} is {i['state']}: {i['why']}" for i in items if i["state"] in {"wanted", "curing", "proving"}]
    blind = [f"{i['name']} is blind: {i['sight']}" for i in items if not i["seeing"]]
    others = [f"{name}: {why}" for name, why in alarms.items() if not name.endswith((": blind", ": wanted"))]
    bad = [*down, *blind, *others]
    word = f"{len(items)} watches" if len(items) != 1 else "1 watch"
    verdict = Verdict(Health.BAD, "; ".join(bad)) if bad else Verdict(Health.OK, f"{word}, nothing is wrong")
    ready = Verdict(Health.OK, f"{word} at work")
    return RoleStatus(verdict, ready, {"alarms": dict(alarms), "watches": [dict(i) for i in items]})


def measure(items: Sequence[Mapping[str, Any]], alarms: Mapping[str, str], metrics: Metrics) -> None:
    """The gauges of all watches."""
    metrics.replace("edgekeeper_watch_up", "watch", {i["name"]: float(i["probe"]["ok"]) for i in items if i["probe"] is not None})
    metrics.replace("edgekeeper_watch_blind", "watch", {i["name"]: float(not i["seeing"]) for i in items})
    metrics.replace("edgekeeper_watch_wanted", "watch", {i["name"]: float(i["state"] == "wanted") for i in items})
    metrics.replace("edgekeeper_watch_recovered_seconds", "watch", {i["name"]: i["recovered_s"][1] for i in items if i["recovered_s"] is not None})
    metrics.set("edgekeeper_watch_alarms", len(alarms))

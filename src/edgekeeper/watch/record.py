"""What the journal holds of the decisions of a watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgekeeper.log import INFO, WARNING, Event
from edgekeeper.model.text import printable
from edgekeeper.watch.state import Decision, Started, State
from edgekeeper.watch.state import Event as Happening

EVENTS = {
    "arm": (Event.WATCH_ARMED, "hold", INFO),
    "disarm": (Event.WATCH_DISARMED, "hold", INFO),
    "confirm": (Event.WATCH_CONFIRMED, "hold", WARNING),
    "suppress": (Event.WATCH_SUPPRESSED, "suppress", WARNING),
    "cancel": (Event.WATCH_CANCELLED, "hold", INFO),
    "prove": (Event.WATCH_PROVED, "hold", INFO),
    "fail": (Event.WATCH_NOT_PROVED, "hold", WARNING),
}
"""What is told of each kind of decision; ``act`` is told once the budget was spent, ``hold`` not at all."""


def entry_data(decision: Decision, event: Happening, now: float) -> dict[str, Any]:
    """The data of an entry: the state afterwards, the line that armed it, and what belongs to this kind of decision."""
    state = decision.state
    data: dict[str, Any] = {"state": str(state.phase)}
    if state.line:
        data["line"] = printable(state.line)[:200]
    if decision.kind in {"disarm", "cancel"}:
        data["failed"] = state.bad
        data["by"] = "start" if isinstance(event, Started) else "answer"
    if decision.kind == "suppress":
        data["held_by"] = state.held
        data["until_s"] = round(state.until - now, 1) if state.until is not None else None
    if decision.kind == "prove" and state.recovered is not None:
        data["recovered_s"] = [round(seconds, 3) for seconds in state.recovered]
    return data


def act_data(state: State, step: str, guards: Sequence[str]) -> dict[str, Any]:
    """The data of an act: the step that is applied, the line that armed the watch, and what the guards found (what they could not find out, too)."""
    return {"state": str(state.phase), "step": step, "line": printable(state.line)[:200], "guards": [note for note in guards if note]}

"""When a change is acted on: at once after a quiet time, else gathered, but never longer than the maximum."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Debounce:
    """``acted`` and ``waiting`` are monotonic seconds of the last act and of the oldest change that waits."""

    maximum_s: float
    acted: float | None = None
    waiting: float | None = None


def noticed(state: Debounce, now: float) -> Debounce:
    """A change was noticed."""
    return state if state.waiting is not None else replace(state, waiting=now)


def due_in(state: Debounce, now: float) -> float | None:
    """Seconds until the waiting changes are acted on; None when none waits.

    After a quiet time (no act within the maximum) that is at once; otherwise when the maximum since
    the last act is over. So a change waits at most the maximum, and acts are that far apart.
    """
    if state.waiting is None:
        return None
    if state.acted is None:
        return 0.0
    return max(0.0, state.acted + state.maximum_s - now)


def acted(state: Debounce, now: float) -> Debounce:
    """The waiting changes were acted on."""
    return replace(state, acted=now, waiting=None)

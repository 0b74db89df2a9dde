"""How often an automatic act may happen: one pure type, whoever acts.

The store that keeps it over restarts is ``host/budgets.py``; it locks and fsyncs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Budget:
    """At most ``limit`` acts in any ``window_s`` seconds; ``spent`` holds their wall-clock times."""

    limit: int
    window_s: float
    spent: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Spending:
    """The answer to "may I?": the budget afterwards, whether it is allowed, and the reason."""

    budget: Budget
    allowed: bool
    why: str


def spend(budget: Budget, now: float) -> Spending:
    """Take one act out of the budget, or say when the next is allowed.

    A clock that jumped back never frees an act: times in the future count as just spent, for one window
    from now (and not until the clock has caught up again).
    """
    recent = tuple(min(t, now) for t in budget.spent if now - t < budget.window_s)
    if len(recent) >= budget.limit:
        again = min((*recent, now)) + budget.window_s - now
        kept = replace(budget, spent=recent)
        return Spending(kept, False, f"{len(recent)} of {budget.limit} in {budget.window_s:g} s are spent; again in {again:.0f} s")
    left = budget.limit - len(recent) - 1
    return Spending(replace(budget, spent=(*recent, now)), True, f"{left} of {budget.limit} left in {budget.window_s:g} s")

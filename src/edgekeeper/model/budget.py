"""How often an automatic act may happen: one pure type, whoever acts.

Several rules hold at once, and a pause that doubles with each act that did not help. The store that keeps it over restarts is
``host/budgets.py``; it locks and fsyncs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

LONGEST_PAUSE_S = 3600.0
"""The pause after acts that did not help grows up to this: a service that is past helping is tried once an hour."""

FORGOTTEN_S = 2 * LONGEST_PAUSE_S
"""After so long without an act, those that did not help are forgotten: what comes then is another trouble."""

_KEPT = 256
"""So many acts are remembered where the rules do not need more."""


@dataclass(frozen=True, slots=True)
class Window:
    """At most ``limit`` acts in any ``window_s`` seconds. A cooldown is one act in its time."""

    limit: int
    window_s: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """Up to ``capacity`` acts in quick succession, then one more each ``every_s`` seconds: in any time T at most capacity + T / every_s."""

    capacity: int
    every_s: float


Rule = Window | Bucket


@dataclass(frozen=True, slots=True)
class Budget:
    """What all ``rules`` allow; ``spent`` holds the times of acts in ascending order, on the axis of the ``now`` that is asked with.

    ``poor`` is how many acts in a row did not help. With ``pause_s`` the next one is then allowed that long after the last, twice as
    long after the second, and so on up to LONGEST_PAUSE_S. ``note`` is added to each reason why an act is not allowed.
    """

    rules: tuple[Rule, ...]
    spent: tuple[float, ...] = ()
    pause_s: float = 0.0
    poor: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Spending:
    """The answer to "may I?": the budget afterwards, whether it is allowed, the reason, and in how many seconds it is (0: now)."""

    budget: Budget
    allowed: bool
    why: str
    again_s: float = 0.0


def spend(budget: Budget, now: float) -> Spending:
    """Take one act out of the budget, or say which rule holds and when the next is allowed.

    A clock that jumped back never frees an act: times in the future count as just spent (and not until the clock has caught up
    again). Of ``spent`` the last are kept, in their order; what no rule needs any more is left out.
    """
    budget = _settled(budget, now)
    held = [(wait, why) for wait, why in (_pause(budget, now), *(_wait(rule, budget.spent, now) for rule in budget.rules)) if wait > 0]
    if held:
        again, why = max(held)
        return Spending(budget, False, f"{why}{budget.note and f' ({budget.note})'}; again in {_ceil(again)} s", again)
    after = replace(budget, spent=(*budget.spent, now))
    return Spending(after, True, ", ".join(_left(rule, after.spent, now) for rule in budget.rules) or "no rule limits it")


def _ceil(seconds: float) -> int:
    """Whole seconds to wait, so that asking again then is not too early."""
    return max(math.ceil(round(seconds, 3)), 1)


def _pause(budget: Budget, now: float) -> tuple[float, str]:
    if not budget.poor or not budget.pause_s or not budget.spent:
        return 0.0, ""
    pause = min(budget.pause_s * 2.0 ** min(budget.poor - 1, 32), LONGEST_PAUSE_S)
    last = "the last one" if budget.poor == 1 else f"the last {budget.poor}"
    return pause - (now - budget.spent[-1]), f"{last} did not help, the pause is {pause:g} s"


def _wait(rule: Rule, spent: tuple[float, ...], now: float) -> tuple[float, str]:
    """How long this rule still holds (0 or less: it does not), and its sentence."""
    if isinstance(rule, Window):
        if rule.limit < 1:
            return rule.window_s, f"{rule.limit} in {rule.window_s:g} s allows none"
        recent = sum(1 for t in spent if now - t < rule.window_s)
        if recent < rule.limit:
            return 0.0, ""
        return rule.window_s - (now - spent[-rule.limit]), f"{recent} of {rule.limit} in {rule.window_s:g} s are spent"
    if rule.capacity < 1:
        return rule.every_s, f"{rule.capacity} in quick succession allows none"
    # The n-th last act left a full bucket at best: since then it must have filled up by what was taken, less what it holds, plus one.
    waits = ((number + 1 - rule.capacity) * rule.every_s - (now - t) for number, t in enumerate(reversed(spent), 1))
    return max(waits, default=0.0), f"{rule.capacity} of {rule.capacity} in quick succession are spent, one more each {rule.every_s:g} s"


def _left(rule: Rule, spent: tuple[float, ...], now: float) -> str:
    if isinstance(rule, Window):
        return f"{rule.limit - sum(1 for t in spent if now - t < rule.window_s)} of {rule.limit} left in {rule.window_s:g} s"
    debt = max((_debt(rule, number, now - t) for number, t in enumerate(reversed(spent), 1)), default=0.0)
    return f"{math.floor(rule.capacity - debt + 1e-9)} of {rule.capacity} left in quick succession"


def _debt(bucket: Bucket, number: int, age_s: float) -> float:
    """How far below full the bucket is by the last ``number`` acts, the first of which is so old; the worst of all is what it lacks."""
    return number - age_s / bucket.every_s if bucket.every_s > 0 else 0.0


def _settled(budget: Budget, now: float) -> Budget:
    """The budget without what no rule needs any more."""
    spent = tuple(sorted(min(t, now) for t in budget.spent))
    poor = budget.poor if spent and now - spent[-1] < FORGOTTEN_S else 0
    budget = replace(budget, spent=spent, poor=poor)
    horizon_s = max([rule.window_s for rule in budget.rules if isinstance(rule, Window)], default=0.0)
    buckets = [rule for rule in budget.rules if isinstance(rule, Bucket)]
    worst = dict.fromkeys(range(len(buckets)), 0.0)
    kept = 1 if poor else 0  # the pause counts from the last
    for number, t in enumerate(reversed(spent), 1):
        if now - t < horizon_s:
            kept = number
        for at, bucket in enumerate(buckets):
            # One that is no deeper in debt than those after it never will be: each act to come counts for all of them.
            if (debt := _debt(bucket, number, now - t)) > worst[at]:
                worst[at], kept = debt, number
    most = max([_KEPT, *(rule.limit for rule in budget.rules if isinstance(rule, Window))])
    return replace(budget, spent=_folded(spent[len(spent) - kept :], most, max([b.every_s for b in buckets], default=0.0), now))


def _folded(spent: tuple[float, ...], most: int, every_s: float, now: float) -> tuple[float, ...]:
    """The last ``most``. What is left out leaves its debt behind: one act less is made up by the others being no older than ``every_s`` after it."""
    if len(spent) <= most:
        return spent
    left_out, kept = spent[: len(spent) - most], spent[len(spent) - most :]
    floor = left_out[0]
    for t in (*left_out[1:], kept[0]):
        floor = max(t, floor + every_s)
    return tuple(min(max(t, floor), now) for t in kept)

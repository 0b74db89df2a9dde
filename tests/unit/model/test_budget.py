from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.model.budget import Budget, spend

WINDOW = 60.0


def play(limit: int, times: list[float]) -> list[float]:
    """Ask at each of these readings of the clock; the readings at which it was allowed."""
    budget = Budget(limit, WINDOW)
    allowed = []
    for now in times:
        answer = spend(budget, now)
        budget = answer.budget
        if answer.allowed:
            allowed.append(now)
    return allowed


def test_what_is_left_and_when_it_is_allowed_again_are_told() -> None:
    first = spend(Budget(2, WINDOW), 100.0)
    assert (first.allowed, first.why) == (True, "1 of 2 left in 60 s")
    second = spend(first.budget, 110.0)
    third = spend(second.budget, 120.0)
    assert (third.allowed, third.why) == (False, "2 of 2 in 60 s are spent; again in 40 s")
    assert spend(third.budget, 160.0).allowed


def test_a_limit_of_none_allows_nothing() -> None:
    assert not spend(Budget(0, WINDOW), 100.0).allowed


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.lists(st.floats(0, 50), max_size=40))
def test_never_more_than_the_limit_in_any_window(limit: int, steps: list[float]) -> None:
    now, times = 1000.0, []
    for step in steps:
        now += step
        times.append(now)
    allowed = play(limit, times)
    for start in allowed:
        assert sum(1 for t in allowed if start <= t < start + WINDOW) <= limit


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.lists(st.tuples(st.floats(0, 50), st.floats(0, 500)), max_size=25))
def test_a_clock_that_jumps_back_never_frees_an_act(limit: int, steps: list[tuple[float, float]]) -> None:
    """Each step lets true time pass and sets the clock back; in true time the limit holds."""
    true, behind, budget = 1000.0, 0.0, Budget(limit, WINDOW)
    allowed = []
    for passed, back in steps:
        true, behind = true + passed, behind + back
        answer = spend(budget, true - behind)
        budget = answer.budget
        if answer.allowed:
            allowed.append(true)
    for start in allowed:
        assert sum(1 for t in allowed if start <= t < start + WINDOW - 1e-6) <= limit


@pytest.mark.parametrize("back", [10.0, 86_400.0])
def test_a_clock_that_jumped_back_holds_for_one_window_and_says_so(back: float) -> None:
    """Times in the future count as just spent: not until the clock has caught up again."""
    budget = spend(Budget(1, WINDOW), 100_000.0).budget
    now = 100_000.0 - back
    refused = spend(budget, now)
    assert not refused.allowed
    assert refused.why.endswith("again in 60 s")
    assert not spend(refused.budget, now + 59).allowed
    assert spend(refused.budget, now + 60).allowed

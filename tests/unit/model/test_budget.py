from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.model import budget as module
from edgekeeper.model.budget import FORGOTTEN_S, LONGEST_PAUSE_S, Bucket, Budget, Rule, Window, spend

WINDOW = 60.0
RULES = st.lists(
    st.one_of(st.builds(Window, st.integers(1, 5), st.sampled_from([30.0, 100.0])), st.builds(Bucket, st.integers(1, 3), st.sampled_from([10.0, 25.0]))),
    min_size=1,
    max_size=3,
)


def window(limit: int, window_s: float = WINDOW) -> Budget:
    return Budget((Window(limit, window_s),))


def play(budget: Budget, times: list[float]) -> list[float]:
    """Ask at each of these readings of the clock; the readings at which it was allowed."""
    allowed = []
    for now in times:
        answer = spend(budget, now)
        budget = answer.budget
        if answer.allowed:
            allowed.append(now)
    return allowed


def most_in(rule: Rule, allowed: list[float], slack_s: float = 0.0) -> bool:
    """Whether no stretch of time has more acts than the rule allows in one so long."""
    for i, first in enumerate(allowed):
        for number, last in enumerate(allowed[i:], 1):
            if isinstance(rule, Window):
                if last - first < rule.window_s - slack_s and number > rule.limit:
                    return False
            elif number > rule.capacity + (last - first + slack_s) / rule.every_s:
                return False
    return True


def test_what_is_left_and_when_it_is_allowed_again_are_told() -> None:
    first = spend(window(2), 100.0)
    assert (first.allowed, first.why, first.again_s) == (True, "1 of 2 left in 60 s", 0.0)
    second = spend(first.budget, 110.0)
    third = spend(second.budget, 120.0)
    assert (third.allowed, third.why, third.again_s) == (False, "2 of 2 in 60 s are spent; again in 40 s", 40.0)
    assert spend(third.budget, 160.0).allowed


def test_a_few_in_quick_succession_then_one_at_a_time_and_a_window_beside_it() -> None:
    budget = Budget((Bucket(3, 60.0), Window(6, 3600.0)))
    allowed, now, whys = [], 0.0, []
    while now < 3700:
        answer = spend(budget, now)
        budget = answer.budget
        whys.append(answer.why)
        if answer.allowed:
            allowed.append(now)
            now += 1.0
        else:
            now += answer.again_s
    assert allowed[:7] == [0.0, 1.0, 2.0, 60.0, 120.0, 180.0, 3600.0]
    assert whys[0] == "2 of 3 left in quick succession, 5 of 6 left in 3600 s"
    assert whys[3] == "3 of 3 in quick succession are spent, one more each 60 s; again in 57 s"
    assert "6 of 6 in 3600 s are spent; again in 3419 s" in whys, "the rule that holds longest is the one that is told"


@pytest.mark.parametrize("rule", [Window(0, WINDOW), Bucket(0, WINDOW)])
def test_a_limit_of_none_allows_nothing(rule: Rule) -> None:
    answer = spend(Budget((rule,)), 100.0)
    assert not answer.allowed
    assert "allows none" in answer.why
    assert answer.again_s > 0


def test_the_pause_doubles_with_each_act_that_did_not_help_and_ends_with_one_that_did() -> None:
    budget, now = replace(window(1000, 1.0), pause_s=60.0), 0.0
    pauses = []
    for poor in range(10):
        budget = replace(spend(budget, now).budget, poor=poor)
        held = spend(budget, now + 1.0)
        if poor:
            assert "did not help" in held.why
            assert not spend(budget, now + 1.0 + held.again_s - 0.1).allowed
            now += 1.0 + held.again_s
            pauses.append(1.0 + held.again_s)
        else:
            assert held.allowed
            now += 1.0
    assert pauses == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert spend(replace(budget, poor=0), now + 1.0).allowed
    assert not spend(replace(budget, poor=10_000), now - 1.0).allowed, "it grows no further, and overflows nothing"
    assert spend(budget, now + FORGOTTEN_S).budget.poor == 0, "what comes much later is another trouble"


@settings(max_examples=40, deadline=None)
@given(RULES, st.lists(st.floats(0, 50), max_size=30))
def test_never_more_than_each_rule_allows_and_never_later_than_it_says(rules: list[Rule], steps: list[float]) -> None:
    now, budget, allowed = 1000.0, Budget(tuple(rules)), []
    for step in steps:
        now += step
        answer = spend(budget, now)
        if answer.allowed:
            allowed.append(now)
        else:
            assert answer.again_s > 0
            assert not spend(budget, now + answer.again_s * 0.999).allowed, "not before it is said"
            assert spend(answer.budget, now + answer.again_s + 1e-6).allowed, "and then it is"
        budget = answer.budget
    assert all(most_in(rule, allowed, 1e-6) for rule in rules)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3), st.integers(3, 5), st.lists(st.integers(0, 3), min_size=10, max_size=40))
def test_a_bucket_is_the_one_of_the_textbook_also_when_only_a_few_acts_are_remembered(capacity: int, every: int, steps: list[int]) -> None:
    now, level, then, textbook = 0, float(capacity), 0, []
    for step in steps:
        now += step
        level, then = min(level + (now - then) / every, float(capacity)), now
        if level >= 1 - 1e-9:
            level -= 1
            textbook.append(float(now))
    times = [float(sum(steps[: i + 1])) for i in range(len(steps))]
    budget = Budget((Bucket(capacity, float(every)),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_KEPT", 4)
        assert play(budget, times) == textbook


def test_memory_is_bounded() -> None:
    busy, many = Budget((Bucket(2, 1.0),)), window(300, 1e9)
    for now in range(400):
        busy, many = spend(busy, float(now)).budget, spend(many, float(now)).budget
    assert len(busy.spent) <= 257
    assert len(many.spent) == 300
    assert spend(busy, 1e6).budget.spent == (1e6,), "what no rule needs any more is forgotten"


@settings(max_examples=30, deadline=None)
@given(RULES, st.lists(st.tuples(st.floats(0, 50), st.floats(0, 500)), max_size=25))
def test_a_clock_that_jumps_back_never_frees_an_act(rules: list[Rule], steps: list[tuple[float, float]]) -> None:
    """Each step lets true time pass and sets the clock back; in true time the rules hold."""
    true, behind, budget = 1000.0, 0.0, Budget(tuple(rules))
    allowed = []
    for passed, back in steps:
        true, behind = true + passed, behind + back
        answer = spend(budget, true - behind)
        budget = answer.budget
        if answer.allowed:
            allowed.append(true)
    assert all(most_in(rule, allowed, 1e-6) for rule in rules)


@pytest.mark.parametrize("back", [10.0, 86_400.0])
def test_a_clock_that_jumped_back_holds_for_one_window_and_says_so(back: float) -> None:
    """Times in the future count as just spent: not until the clock has caught up again."""
    budget = spend(window(1), 100_000.0).budget
    now = 100_000.0 - back
    refused = spend(budget, now)
    assert not refused.allowed
    assert refused.why.endswith("again in 60 s")
    assert not spend(refused.budget, now + 59).allowed
    assert spend(refused.budget, now + 60).allowed

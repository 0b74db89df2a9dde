from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.supervise.debounce import Debounce, acted, due_in, noticed


def test_the_first_change_acts_at_once_and_the_next_waits_for_the_rest_of_the_maximum() -> None:
    state = noticed(Debounce(5), 100)
    assert due_in(state, 100) == 0
    state = acted(state, 100)
    assert due_in(state, 101) is None
    state = noticed(state, 102)
    assert due_in(state, 102) == 3
    assert due_in(noticed(state, 104), 104) == 1
    assert due_in(state, 105) == 0


def test_the_oldest_waiting_change_is_remembered() -> None:
    state = noticed(noticed(Debounce(5), 100), 103)
    assert state.waiting == 100
    assert acted(state, 104).waiting is None


def test_after_a_quiet_time_a_change_acts_at_once() -> None:
    assert due_in(noticed(acted(Debounce(5), 100), 200), 200) == 0


def test_without_debounce_everything_acts_at_once() -> None:
    assert due_in(noticed(acted(Debounce(0), 100), 100), 100) == 0


@settings(max_examples=75, deadline=None)
@given(st.floats(0, 10), st.lists(st.tuples(st.floats(0.001, 3), st.booleans()), max_size=40))
def test_no_change_waits_longer_than_the_maximum_and_none_is_forgotten(maximum: float, steps: list[tuple[float, bool]]) -> None:
    """Time passes in steps; a change may be noticed in each. Whoever acts when it is due is never late."""
    state, now = Debounce(maximum), 1000.0
    oldest: float | None = None
    acts: list[float] = []
    for passed, changed in [*steps, (maximum + 1, False)]:
        until = now + passed
        due = due_in(state, now)
        if due is not None and now + due <= until:
            acts.append(now + due)
            assert oldest is not None
            assert acts[-1] - oldest <= maximum + 1e-9
            state, oldest = acted(state, acts[-1]), None
        now = until
        if changed:
            state = noticed(state, now)
            oldest = now if oldest is None else oldest
            assert due_in(state, now) is not None
    if oldest is not None:  # the last change was noticed in the last step
        assert due_in(state, now) is not None
    assert all(b - a >= maximum - 1e-9 for a, b in itertools.pairwise(acts))
    if any(changed for _, changed in steps):
        assert acts


@pytest.mark.parametrize("times", [1, 50])
def test_changes_without_end_do_not_put_the_act_off(times: int) -> None:
    state = acted(Debounce(5), 100)
    for i in range(times):
        state = noticed(state, 101 + i * 0.05)
    assert due_in(state, 105) == 0

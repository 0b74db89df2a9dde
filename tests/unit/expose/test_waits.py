"""Pauses as values; what they do to a pass is in test_sync_waits."""

from __future__ import annotations

from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.waits import FIRST_AGAIN_S, LONGEST_AGAIN_S, OFTEN, OFTEN_S, Waits, held_back, noted

from .planned import asking, made, run, wishes


def test_a_pause_doubles_to_its_longest_and_is_forgotten_when_it_is_done():
    plan = run(wishes("a.example"))
    (action,) = plan.actions
    waits, now, pauses = Waits(), 0.0, []
    for _ in range(8):
        waits = noted(waits, [Outcome(action, "taken", "409")], now)
        pauses.append(waits.refused["a.example"].until - now)
        now = waits.refused["a.example"].until
        assert held_back(waits, plan, now - 1)[0].actions == ()
        assert held_back(waits, plan, now)[0].actions == plan.actions
    assert pauses[:3] == [FIRST_AGAIN_S, 2 * FIRST_AGAIN_S, 4 * FIRST_AGAIN_S]
    assert pauses[-1] == LONGEST_AGAIN_S
    assert noted(waits, [Outcome(action)], now).refused == {}


def test_a_host_for_which_nothing_is_to_be_done_is_waited_for_no_more():
    plan = run(wishes("a.example"))
    waits = noted(Waits(), [Outcome(plan.actions[0], "taken", "409")], 0.0)
    assert held_back(waits, run(wishes("b.example")), 1.0)[1].refused == {}


def test_updates_of_one_service_are_spaced_and_those_of_others_are_not():
    plan = asking(wishes("a.example", "b.example"), [made("a.example", listen_port=1), made("b.example", listen_port=1)])
    first = next(action for action in plan.actions if action.host == "a.example")
    waits = Waits()
    for i in range(OFTEN):
        waits = noted(waits, [Outcome(first)], float(i))
    left, waits = held_back(waits, plan, float(OFTEN))
    assert [action.host for action in left.actions] == ["b.example"]
    assert [held.host for held in left.held] == ["a.example"]
    assert held_back(waits, plan, OFTEN_S)[0].actions == plan.actions

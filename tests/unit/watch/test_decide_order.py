"""Answers and lines in an order of their own: what was asked when counts, and not when the answer came."""

from __future__ import annotations

from tests.unit.watch.watched import LINE

from edgekeeper.model.budget import Budget
from edgekeeper.watch.decide import TURN_S, begin, decide, due
from edgekeeper.watch.state import Answered, Cured, Event, Former, Outlook, Phase, Policy, State, Tick


def after(*events: tuple[float, Event], policy: Policy | None = None, state: State | None = None) -> State:
    """The state when these have come at their times, with nothing asked in between."""
    state = state or begin(0.0, policy or Policy())
    for now, event in events:
        state = decide(state, event, now, policy or Policy()).state
    return state


def bad(asked: float) -> Answered:
    return Answered(False, "no answer within 1 s", asked)


def well(asked: float) -> Answered:
    return Answered(True, "it answers", asked)


def test_a_line_is_confirmed_by_rounds_that_were_asked_after_it_only() -> None:
    armed = after((10.0, LINE))
    assert after((10.1, bad(9.1)), (10.6, bad(9.6)), (10.7, bad(10.0)), state=armed).phase is Phase.ARMED
    assert after((10.7, bad(10.0)), (11.2, bad(10.5)), state=armed).phase is Phase.WANTED


def test_a_good_answer_outdoes_the_failed_rounds_of_before_it_and_none_of_after_it() -> None:
    armed = after((10.0, LINE), (10.9, bad(10.5)), (10.95, well(10.2)))
    assert after((11.1, bad(11.0)), state=armed).phase is Phase.WANTED, "both were asked after the good one"
    armed = after((10.0, LINE), (11.1, well(11.0)), (11.2, well(10.2)))
    assert after((11.5, bad(10.5)), (11.6, bad(10.6)), state=armed).phase is Phase.ARMED, "a later one was good, whatever an older one said in between"


def test_a_cure_is_proved_by_an_answer_to_a_question_that_was_asked_after_it_only() -> None:
    nothing = Outlook(None, None, Budget(()), 0.0)
    proving = after((10.0, LINE), (10.1, bad(10.0)), (10.6, bad(10.5)), (10.6, nothing), (13.0, Cured()))
    assert proving.phase is Phase.PROVING
    assert after((13.1, well(12.9)), state=proving).phase is Phase.PROVING
    assert after((13.2, well(13.1)), state=proving).phase is Phase.QUIET


def test_the_first_sign_is_the_one_after_the_last_good_answer() -> None:
    state = after((10.0, LINE), (10.1, well(10.05)), (15.1, bad(15.0)), (15.6, bad(15.5)))
    assert (state.phase, state.sign) == (Phase.WANTED, 15.0)
    state = after((10.0, LINE), (10.1, bad(10.05)), (10.6, bad(10.5)))
    assert (state.phase, state.sign) == (Phase.WANTED, 10.0)


def test_what_is_wanted_is_asked_about_as_often_as_an_armed_watch_and_a_turn_that_may_come_at_any_moment_more_often() -> None:
    slow = Policy(every_s=30.0, timeout_s=5.0, rounds=1)
    wanted = after((55.0, Tick()), (60.0, bad(55.0)), policy=slow, state=begin(0.0, slow))
    assert wanted.phase is Phase.WANTED
    assert 60.0 < wanted.next_ask <= 60.0 + slow.confirm_every_s
    held = after((60.0, Outlook(None, "edge-a goes first", Budget(()), 60.0)), policy=slow, state=wanted)
    assert 60.0 < due(held, slow) <= 60.0 + TURN_S


def test_a_step_that_the_config_does_not_have_any_more_is_the_last_one() -> None:
    policy = Policy(steps=2)
    state = begin(100.0, policy, Former(90.0, "a line", curing=True, step=5))
    assert (state.phase, state.step) == (Phase.PROVING, 1)

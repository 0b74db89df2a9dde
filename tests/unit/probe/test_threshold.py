"""Rise and fall."""

from __future__ import annotations

from edgekeeper.model.verdict import Health
from edgekeeper.probe.threshold import Threshold, judge


def play(answers: str, fall: int = 2, rise: int = 2) -> list[Health]:
    state, out = Threshold(fall=fall, rise=rise), []
    for a in answers:
        state, verdict = judge(state, ok=a == "+")
        out.append(verdict.health)
    return out


def test_unknown_until_enough_answers() -> None:
    assert play("+") == [Health.UNKNOWN]
    assert play("++") == [Health.UNKNOWN, Health.OK]
    assert play("--")[-1] is Health.BAD
    assert play("+-+-") == [Health.UNKNOWN] * 4


def test_one_bad_answer_changes_nothing_and_two_do() -> None:
    assert play("++-")[-1] is Health.OK
    assert play("++--")[-1] is Health.BAD
    assert play("++-+-+-")[-1] is Health.OK


def test_it_takes_rise_good_ones_to_come_back() -> None:
    assert play("--++", rise=3)[-1] is Health.BAD
    assert play("--+++", rise=3)[-1] is Health.OK


def test_the_verdict_says_how_many_and_why() -> None:
    state, _ = judge(Threshold(), ok=True)
    state, _ = judge(state, ok=True)
    state, verdict = judge(state, ok=False, why="refused")
    assert verdict.why == "1 bad in a row, 2 make it bad: refused"
    _, verdict = judge(state, ok=False)
    assert verdict.why == "2 bad in a row"

"""What a meter that is held up may say of others: nothing."""

from __future__ import annotations

import pytest

from edgekeeper.meter.lag import LAG_EVERY_S, Lag
from edgekeeper.model.sample import Sample


def lost(sent: float, took: float) -> Sample:
    return Sample(sent, "tcp://192.0.2.60:1", "fresh", sent, sent + took, ok=False, error="timed out")


def seen(*late: tuple[float, float]) -> Lag:
    lag = Lag(1.0)
    for now, late_s in late:
        lag.seen(now, late_s)
    return lag


def test_a_quiet_machine_counts_what_timed_out() -> None:
    assert not seen(*((10 + LAG_EVERY_S * n, 0.002) for n in range(20))).void(lost(10, 1.001), 6, timed_out=True)


@pytest.mark.parametrize(("turns", "late_s", "void"), [(2, 0.2, False), (2, 0.3, True), (6, 0.08, False), (6, 0.09, True)])
def test_lateness_counts_as_often_as_an_answer_waits_for_the_loop(turns: int, late_s: float, *, void: bool) -> None:
    assert seen((10.5, late_s)).void(lost(10, 1.0), turns, timed_out=True) is void


def test_lateness_before_the_question_is_no_excuse() -> None:
    assert not seen((9.9, 5.0)).void(lost(10, 1.0), 6, timed_out=True)


def test_a_meter_that_is_late_asks_less_until_it_is_not() -> None:
    """Else it never catches up: each question that is asked in vain makes the next ones late."""
    lag = seen((10.0, 0.1))
    assert (lag.refuses(6), lag.refuses(2)) == (True, False)
    lag.seen(10.1, 0.001)
    assert not lag.refuses(6)


def test_a_refusal_counts_however_late_the_machine_is() -> None:
    assert not seen((10.1, 0.4)).void(lost(10, 0.2), 6, timed_out=False)


def test_what_ended_long_after_its_deadline_says_nothing() -> None:
    """The process was stopped, and nobody looked at the clock meanwhile."""
    assert Lag(1.0).void(lost(10, 1.51), 2, timed_out=False)
    assert not Lag(1.0).void(lost(10, 1.49), 2, timed_out=False)


def test_it_remembers_as_long_as_a_question_can_take() -> None:
    lag = seen((10.0, 5.0), *((10.0 + n / 10, 0.02) for n in range(1, 600)))
    assert lag.most(0.0) == 0.02

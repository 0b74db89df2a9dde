from __future__ import annotations

from edgekeeper.watch.pulse import Pulse


def test_a_service_that_fails_every_second_time_is_told_and_one_that_is_well_or_dead_is_not() -> None:
    flaps, well, dead = Pulse(), Pulse(), Pulse()
    told = [flaps.beat(float(i), well=i % 2 == 0) for i in range(30)]
    assert told[8] is None, "too few to say"
    assert told[9] is not None
    assert len({text for text in told if text}) == 1, "no news each second"
    assert all(well.beat(float(i), well=True) is None for i in range(30))
    assert all(dead.beat(float(i), well=False) is None for i in range(30))


def test_one_failure_in_a_minute_is_none_and_what_was_before_is_forgotten() -> None:
    pulse = Pulse()
    assert all(pulse.beat(float(i), well=i != 20) is None for i in range(60))
    for i in range(60, 90):
        pulse.beat(float(i), well=i % 2 == 0)
    assert pulse.beat(90.0, well=True) is not None
    assert [pulse.beat(float(i), well=True) for i in range(91, 160)][-1] is None

"""The sums, beside what real engines were measured to take (see the module)."""

from __future__ import annotations

import pytest

from edgekeeper.engines.keepalived.detection import period, probe_sum, skew, why_stays


@pytest.mark.parametrize(
    ("interval", "fall", "takes", "weight", "skew_s", "measured"),
    [
        (1, 3, 0, 0, skew(190, 1), 2.54),  # fails at once
        (1, 3, 0.9, 0, skew(190, 1), 3.8),  # gives up by itself
        (1, 3, 1.03, 0, skew(190, 1), 6.2),  # takes longer than the interval, with a longer timeout
        (3, 3, 1.03, 0, skew(190, 1), 7.7),
        (1, 3, 1, 0, 0, 3.26),  # hangs until the timeout, 2.2.7, until FAULT
        (1, 3, 1, 0, 0, 5.25),  # the same, 2.3.4
        (1, 3, 3, 0, 0, 11.28),  # ignores SIGTERM, 2.3.4
        (1, 2, 1, 0, skew(100, 1, 2), 2.66),  # hangs, 2.2.7, until the move
        (1, 2, 1, 0, skew(100, 1, 2), 3.67),  # the same, 2.3.3
        (1, 2, 0, -5, skew(100, 1), 4.33),  # lowers the priority, 2.2.7
        (1, 2, 0, -5, skew(100, 1), 4.25),  # 2.3.3
        (3, 10, 0, -2, skew(100, 1, 2), 31.3),  # the settings of the kubeadm guide, fails at once
        (3, 10, 2, -2, skew(100, 1, 2), 34.3),  # hangs for its 2 s
    ],
)
def test_what_was_measured_is_within_the_sum(interval: float, fall: int, takes: float, weight: int, skew_s: float, measured: float) -> None:
    found = probe_sum(interval, fall, takes, skew_s, weight=weight)
    assert found.least_s <= measured <= found.most_s + 0.05, found


def test_the_sum_reads_as_it_is_added_up() -> None:
    found = probe_sum(3, 10, 2, skew(100, 1, 2), weight=-2, delay_s=5)
    assert found.text == "3 s x 10 + 2 s for the last look + 3 x 1 s adverts + 5 s preempt_delay + 0.61 s skew"
    assert found.most_s == pytest.approx(30 + 2 + 3 + 5 + 156 / 256)
    assert not found.is_never


def test_a_look_that_is_longer_than_the_interval_puts_off_the_next() -> None:
    assert period(1, 0.9) == (1, 1)
    assert period(1, 1) == (1, 2)
    assert period(1, 2.5) == (3, 3)


def test_skew_is_a_part_of_an_advert_or_of_a_second() -> None:
    assert skew(190, 1) == pytest.approx(0.258, abs=0.001)
    assert skew(254, 0.1) == pytest.approx(0.0008, abs=0.0001)
    assert skew(190, 0.1, 2) == pytest.approx(0.258, abs=0.001)


@pytest.mark.parametrize(
    ("failed", "others", "said"),
    [
        (99, ((100, False),), None),
        (100, ((100, False),), "as much as"),  # measured on 2.2.7 and 2.3.3: not moved in 9 s
        (98, ((90, False),), "more than"),
        (50, ((100, True), (90, True)), "nopreempt"),
        (95, ((100, True), (96, False)), None),
    ],
)
def test_when_a_lowered_priority_moves_nothing(failed: int, others: tuple[tuple[int, bool], ...], said: str | None) -> None:
    why = why_stays(failed, others)
    assert (why is None) == (said is None)
    assert said is None or said in (why or "")

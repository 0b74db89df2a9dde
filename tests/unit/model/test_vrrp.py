"""The sums of VRRP, beside what was measured."""

from __future__ import annotations

import pytest

from edgekeeper.model.vrrp import master_down_s, move_sum, skew_s


@pytest.mark.parametrize(
    ("priority", "advert", "skew"), [(254, 1.0, 0.0078125), (253, 1.0, 0.01171875), (190, 1.0, 0.2578125), (1, 1.0, 0.99609375), (190, 0.1, 0.02578125)]
)
def test_a_clean_hand_over_costs_the_skew(priority: int, advert: float, skew: float) -> None:
    assert skew_s(priority, advert) == pytest.approx(skew)
    assert master_down_s(priority, advert) == pytest.approx(3 * advert + skew)


def test_ours_by_script_is_four_seconds() -> None:
    found = move_sum(1, 3, 1.0, skew_s(253, 1.0))
    assert found.seconds == pytest.approx(4.01171875)
    assert found.text == "1 s x 3 looks + 1 s timeout + 0.012 s skew"


def test_where_failure_only_lowers_the_priority_the_owner_must_be_missed_too() -> None:
    """The kubeadm guide: interval 3, fall 10, timeout 1, weight -2; 31.3 s measured when the probe fails."""
    found = move_sum(3, 10, 1.0, skew_s(100, 1.0), lowers_only=1.0)
    assert found.seconds == pytest.approx(3 * 10 + 1 + 0.609375 + 3)
    assert found.text == "3 s x 10 looks + 1 s timeout + 0.61 s skew + 3 x 1 s adverts"

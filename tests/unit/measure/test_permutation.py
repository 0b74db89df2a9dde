"""Paired differences: exact where few, seeded chance where many, and no cry of wolf."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.measure.permutation import EXACT, Chance, change, flip_drawn, flip_exact, median_interval


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8))
def test_by_halves_is_the_same_as_trying_every_choice(differences: list[int]) -> None:
    far = abs(sum(differences))
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in product((1, -1), repeat=len(differences))]
    assert flip_exact(differences) == pytest.approx(sum(abs(s) >= far for s in sums) / len(sums))


def test_all_on_one_side_is_the_least_p() -> None:
    found = change([-10.0 - i for i in range(10)])
    assert found.p == found.least_p == 2 / 1024
    assert found.median_s == -14.5
    assert -19.0 <= found.low_s <= -14.5 <= found.high_s <= -10.0


def test_few_pairs_can_never_show_anything() -> None:
    assert change([-50.0] * 5).p == 0.0625
    assert change([-50.0] * 6).p == 0.03125
    assert change([]).p == 1.0
    assert change([0.0, 0.0]).p == 1.0


def test_chance_agrees_with_the_exact_count_and_is_the_same_each_time() -> None:
    differences = [(i * 7919 % 101) - 40 for i in range(20)]
    exact, drawn = flip_exact(differences), flip_drawn(differences, 3, draws=500)
    assert drawn == pytest.approx(exact, abs=0.07)
    assert drawn == flip_drawn(differences, 3, draws=500)
    assert not change([float(d) for d in range(1, EXACT + 2)]).exact


def test_signs_of_many_pairs_are_all_drawn() -> None:
    assert flip_drawn([0] * 39 + [1], draws=50) == 1.0
    assert flip_drawn([0] * 32 + [1] * 8, draws=400) < 0.05
    assert flip_drawn([1] * 40, draws=200) == pytest.approx(1 / 201)


def test_the_median_lies_within_its_interval() -> None:
    low, high = median_interval([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (low, high) == (1.0, 100.0)
    assert median_interval([]) == (0.0, 0.0)
    assert median_interval([7.0]) == (7.0, 7.0)


def test_chance_is_even() -> None:
    chance = Chance(1)
    counts = [0] * 10
    for _ in range(2000):
        counts[chance.below(10)] += 1
    assert all(140 <= c <= 260 for c in counts)

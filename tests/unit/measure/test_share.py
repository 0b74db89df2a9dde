"""A share of few cases comes with its interval."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.measure.share import at_most, clopper_pearson, share_text, wilson


@pytest.mark.parametrize(
    ("hits", "cases", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 6, 0.0301, 0.5635), (50, 100, 0.4038, 0.5962)],  # values of the textbook formula
)
def test_known_values(hits: int, cases: int, low: float, high: float) -> None:
    assert wilson(hits, cases) == pytest.approx((low, high), abs=2e-4)


def test_nothing_seen_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="no share"):
        wilson(2, 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 200), st.integers(0, 200))
def test_the_share_lies_inside(hits: int, misses: int) -> None:
    low, high = wilson(hits, hits + misses)
    share = hits / (hits + misses) if hits + misses else 0.5
    assert 0 <= low <= share <= high <= 1


def test_it_is_told_with_its_interval() -> None:
    assert share_text(1, 6) == "1 of 6 (3 % to 56 %)"


@pytest.mark.parametrize(
    ("hits", "cases", "low", "high"),
    [(0, 10, 0.0, 0.3085), (5, 6, 0.3588, 0.9958), (10, 10, 0.6915, 1.0), (50, 100, 0.3983, 0.6017), (0, 0, 0.0, 1.0)],  # values of the textbook formula
)
def test_known_exact_values(hits: int, cases: int, low: float, high: float) -> None:
    assert clopper_pearson(hits, cases) == pytest.approx((low, high), abs=2e-4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40))
def test_at_its_ends_so_few_or_so_many_are_just_likely_enough(hits: int, misses: int) -> None:
    cases = hits + misses
    low, high = clopper_pearson(hits, cases)
    if hits < cases:
        assert at_most(hits, cases, high) == pytest.approx(0.025, abs=1e-5)
    if hits:
        assert 1 - at_most(hits - 1, cases, low) == pytest.approx(0.025, abs=1e-5)
    with pytest.raises(ValueError, match="no share"):
        clopper_pearson(cases + 1, cases)

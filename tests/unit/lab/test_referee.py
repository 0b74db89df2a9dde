"""Promises are kept or broken by figures, and a figure that is missing breaks them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.lab.referee import Promise, judge, number, ratio, sentence

LOST = Promise("lost", "unanswered", 2)
SHARE = Promise("lost", "unanswered", 0.004, share_of="asked", over="median")


def test_kept_and_broken_by_one() -> None:
    assert judge([LOST], [{"lost": 2}])[0].kept
    assert not judge([LOST], [{"lost": 3}])[0].kept


def test_the_worst_run_counts_unless_the_median_was_promised() -> None:
    runs = [{"lost": n, "asked": 2500} for n in (1, 2, 40, 3, 4)]
    (worst, median) = judge([LOST, SHARE], runs)
    assert worst.measured == 40
    assert not worst.kept
    assert median.measured == 3
    assert median.allowed == pytest.approx(10)
    assert median.kept


def test_a_missing_figure_is_never_kept() -> None:
    (ruling,) = judge([LOST], [{"lost": 0}, {}])
    assert not ruling.kept
    assert "not measured in 1 of 2 runs" in ruling.why
    assert not judge([LOST], [])[0].kept


def test_a_share_of_nothing_asked_allows_nothing() -> None:
    assert not judge([SHARE], [{"lost": 1, "asked": 0}])[0].kept


def test_versions() -> None:
    two = Promise("x", "x", 0, since=(2, 0))
    assert [two.applies(v) for v in ((1, 9, 16), (2, 0), (2, 1, 3))] == [False, True, True]
    one = Promise("x", "x", 0, until=(2, 0))
    assert [one.applies(v) for v in ((1, 7, 3), (2, 0, 0))] == [True, False]


def test_the_sentence_says_what_broke() -> None:
    rulings = judge([LOST, Promise("late_s", "the latest answer", 2.5, "s")], [{"lost": 1, "late_s": 3.02}])
    assert sentence(rulings) == "broken: the latest answer: 3.02 s, promised at most 2.5"
    assert sentence(judge([LOST], [{"lost": 1}])) == "kept: unanswered: 1 queries, promised at most 2"
    assert sentence(()) == "nothing was promised for this engine version"


@pytest.mark.parametrize(
    ("product", "plain", "words"),
    [(0, 0, "no difference"), (0, 480, "0 instead of 480"), (3, 0, "3 instead of 0"), (3, 480, "160.0 times fewer"), (20, 10, "2.0 times more")],
)
def test_ratios_hold_at_zero(product: float, plain: float, words: str) -> None:
    assert ratio(product, plain) == words


def test_numbers() -> None:
    assert [number(v) for v in (3, 3.0, 2.5, 0.1234)] == ["3", "3", "2.5", "0.123"]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=9), st.integers(0, 100))
def test_one_more_lost_never_helps(lost: list[int], limit: int) -> None:
    for over in ("median", "worst"):
        promise = Promise("lost", "unanswered", limit, over=over)  # type: ignore[arg-type]
        before = judge([promise], [{"lost": n} for n in lost])[0].kept
        after = judge([promise], [{"lost": n + 1} for n in lost])[0].kept
        assert before or not after

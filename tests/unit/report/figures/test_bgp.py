"""F8: sessions that were down, at both ends, and whether clients lost anything by it."""

from __future__ import annotations

import math

import pytest
from tests.fakes.studies import T0, ask, mark, roll, study

from edgekeeper.report.figures.bgp import f8, gaps
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.traffic import so_few
from edgekeeper.report.kinds import Kind

DOWN, UP = Kind.BGP_DOWN, Kind.BGP_UP


def test_both_ends_are_told_each_with_its_own_gap() -> None:
    made = study(
        [
            mark(454.454, DOWN, "gw1", "bird", "n1", stamp_s=0.001),
            mark(456.764, DOWN, "192.0.2.6", "frr", "gw", stamp_s=0.001, reason="BGP Notification send", host="n1"),
            mark(463.896, UP, "gw1", "bird", "n1", stamp_s=0.001),
            mark(463.896, UP, "192.0.2.6", "frr", "gw", stamp_s=0.001),
        ]
    )
    found, _ = gaps(made)
    assert [(g.observer, round(g.span.max_s, 2)) for g in found] == [("n1", 9.44), ("gw", 7.13)]
    figure = f8(made)
    assert figure.answer.startswith(
        "2 machines tell 2 times of a session that went down (each end tells of its own), each for 7.13 s to 9.44 s; whether they carried traffic cannot be told"
    )
    assert any("different times" in note for note in figure.notes)
    assert figure.table is not None
    assert "192.0.2.6 (n1)" in figure.table.rows[1]


def test_whole_seconds_are_a_second_of_doubt_to_each_side() -> None:
    (gap,), _ = gaps(study([mark(100, DOWN, "a", stamp_s=1.0), mark(147, UP, "a", stamp_s=1.0)]))
    assert (gap.span.min_s, gap.span.max_s) == (46.0, 48.0)


def test_a_session_that_stays_down_is_open() -> None:
    (gap,), lonely = gaps(study([mark(5, UP, "b"), mark(100, DOWN, "a"), mark(110, DOWN, "a")]))
    assert gap.up is None
    assert gap.span.min_s == 1340.0
    assert math.isinf(gap.span.max_s)
    assert lonely == 1
    assert "1 did not come up again" in f8(study([mark(100, DOWN, "a")])).answer


def test_a_flap_within_a_second_is_a_short_gap() -> None:
    (gap,), _ = gaps(study([mark(100, DOWN, "a", stamp_s=1.0), mark(100, UP, "a", stamp_s=1.0)]))
    assert (gap.span.min_s, gap.span.max_s) == (0.0, 1.0)


def test_what_clients_lost_in_the_gap_is_told_by_class() -> None:
    made = study([mark(100, DOWN, "a", "frr"), mark(150, UP, "a", "frr"), mark(88, Kind.BGP_WITHDRAWN, "a", "frr")], baseline=(-1000.0, 0.0))
    for group in ("lan", "public"):
        ask(made, "x", [float(-t) for t in range(1, 1000)], group=group)
    ask(made, "x", [100 + t for t in range(50)], group="lan")
    ask(made, "x", [120.0, 121.0], group="lan", bad=True)
    figure = f8(made)
    assert figure.data["gaps"][0]["hurt"] == ["lan: 2 of 52 failed", "public: 0 requests where 50 were due"]
    assert "in 1 of them clients lost requests; the routes had been withdrawn before all" in figure.answer
    assert figure.table is not None
    assert "12.0 s before" in figure.table.rows[0]


def test_a_quiet_gap_says_that_nothing_was_lost() -> None:
    made = study([mark(100, DOWN, "a", "frr"), mark(150, UP, "a", "frr"), *roll("n1", 80, "a/x-0")], baseline=(-1000.0, 0.0))
    made.drains = drains(made)
    ask(made, "x", [*(float(-t) for t in range(1, 1000)), *(float(t) for t in range(1400))])
    assert "no class of clients lost requests in them" in f8(made).answer
    assert f8(made).table.rows[0][-1] == "n1"  # type: ignore[union-attr]


def test_gaps_outside_of_the_window_are_left_out() -> None:
    assert gaps(study([mark(-300, DOWN, "a"), mark(-200, UP, "a"), mark(1500, DOWN, "a")]))[0] == []
    assert gaps(study([mark(-10, DOWN, "a"), mark(20, UP, "a")]))[0][0].down == T0 - 10


def test_nothing_is_measured_without_lines_and_undated_ones_are_said() -> None:
    assert not f8(study()).measured
    figure = f8(study([mark(None, DOWN, "a")]))
    assert figure.answer == "sessions stayed up"
    assert figure.notes[0].startswith("1 line without a time")


@pytest.mark.parametrize(("asked", "due", "p"), [(0, 4.0, 0.0183), (2, 4.0, 0.2381), (0, 0.0, 1.0), (90, 100.0, 0.1714), (10**6, 10**6, 0.5)])
def test_how_likely_so_few_are(asked: int, due: float, p: float) -> None:
    assert so_few(asked, due) == pytest.approx(p, abs=2e-3)

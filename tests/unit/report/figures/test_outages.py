"""F1, F2, F4: bad answers counted, compared with the quiet time, and put together to outages with bounds."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.studies import T0, ask, mark, roll, skewed, study

from edgekeeper.model.sample import Sample
from edgekeeper.report.book import Numbers
from edgekeeper.report.cells import Lane
from edgekeeper.report.document import Window
from edgekeeper.report.figures.baseline import attributable, f2, quiet
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.outages import LOOK_S, PROBE, TOLD, WARM, _troubles, f4, is_probe, outages, told
from edgekeeper.report.figures.requests import f1, shared
from edgekeeper.report.kinds import Kind, Request
from edgekeeper.report.rules import Verdict
from edgekeeper.report.study import Study


def every(begin: float, end: float, step: float = 1.0) -> list[float]:
    return [begin + i * step for i in range(int((end - begin) / step))]


def app(**more: object) -> Study:
    """A route that is asked once a second, and answers badly for 40 s."""
    made = study(window=(0.0, 600.0), baseline=(-600.0, 0.0), **more)
    ask(made, "app", every(-600.5, 99.5))
    ask(made, "app", every(100.5, 140.5), bad=True)
    ask(made, "app", every(140.5, 600.5))
    return made


def probed(made: Study, source: str, failed: tuple[float, float], *, conn: str = "fresh", step: float = 2.0, until: float = 600.0) -> None:
    times = [T0 + t for t in every(0, until, step)]
    made.book.samples[source, "https://a.example/", conn] = [
        Sample(t, "https://a.example/", conn, t, t + (1.0 if failed[0] <= t - T0 < failed[1] else 0.01), not failed[0] <= t - T0 < failed[1]) for t in times
    ]


def test_a_route_that_was_down_is_an_outage_with_its_bounds() -> None:
    made = app()
    (only,) = outages(made)
    assert (only.router, only.group, only.requests, only.full, only.source) == ("app", "lan", 40, True, "access")
    assert only.span.min_s == pytest.approx(38.99, abs=1e-3)
    assert only.span.max_s == pytest.approx(42.01, abs=1e-3)
    assert only.earliest == pytest.approx(T0 + 98.5, abs=1e-3)
    assert only.latest == pytest.approx(T0 + 140.51, abs=1e-3)
    made.outages = (only,)
    figure = f4(made)
    assert figure.answer.startswith("1 outage of 1 of 1 route that were asked; the longest: app, 38 s to 43 s")
    assert figure.data["single_errors"] == 0


def test_replicas_of_the_proxy_are_one_route_and_their_clocks_widen_it() -> None:
    made = study(window=(0.0, 600.0))
    for source, wrong in (("pod-a", 0.0), ("pod-b", 0.4)):
        ask(made, "app", [t + wrong for t in every(0.5, 99.5)], source=source)
        ask(made, "app", [t + wrong for t in every(100.5, 140.5)], bad=True, source=source)
        ask(made, "app", [t + wrong for t in every(140.5, 600)], source=source)
    skewed(made, "pod-b", -0.4, 0.6, 0.0)
    (only,) = outages(made)
    assert only.requests == 80
    assert only.span.min_s <= 39
    assert only.span.max_s >= 42
    assert only.latest == pytest.approx(T0 + 140.51 + 0.6, abs=1e-3)


def test_an_outage_outside_the_window_is_none_and_one_across_its_edge_is_whole() -> None:
    made = app()
    made.window = Window(T0 + 150, T0 + 600)
    assert outages(made) == ()
    made.window = Window(T0 + 120, T0 + 600)
    (only,) = outages(made)
    assert only.requests == 40
    made.window = Window(T0, T0 + 90)
    assert outages(made) == ()


def test_a_clock_that_is_known_roughly_moves_an_outage_but_does_not_lengthen_it() -> None:
    made = app()
    skewed(made, "access", 9.5, 10.5, 10.0)
    (only,) = outages(made)
    assert only.span.max_s == pytest.approx(42.01, abs=1e-3)
    assert only.earliest == pytest.approx(T0 + 98.5 + 10 - 0.5, abs=1e-3)
    assert only.latest == pytest.approx(T0 + 140.51 + 10 + 0.5, abs=1e-3)


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32), rare=st.booleans())
def test_looking_only_around_bad_answers_finds_what_looking_at_everything_finds(seed: int, rare: bool) -> None:
    rng = random.Random(seed)
    made = study(window=(0.0, 7200.0))
    down = [(b := rng.uniform(100, 7000), b + rng.uniform(0.5, 300)) for _ in range(4)]
    for n, source in enumerate(("pod-a", "pod-b")):
        times = sorted(rng.uniform(0, 7200) for _ in range(20 if rare else 400))
        ask(made, "app", [t for t in times if not any(b <= t < e for b, e in down)], source=source, took_s=0.3 * n + 0.001)
        ask(made, "app", [t for t in times if any(b <= t < e for b, e in down)], source=source, bad=True)
    everything = _troubles(made, made.lanes(), Window(T0 - LOOK_S, T0 + 7200 + LOOK_S))
    found = outages(made)
    assert [(h.first_bad, h.requests, h.full) for h in found] == [(t.whole.first_bad, t.whole.requests, t.full) for t in everything]
    for hurt, trouble in zip(found, everything, strict=True):
        assert hurt.span.min_s == trouble.whole.min_s
        assert hurt.span.max_s == trouble.whole.max_s or (math.isinf(hurt.span.max_s) and trouble.whole.max_s > LOOK_S)


def test_a_stamp_of_whole_seconds_widens_the_bounds() -> None:
    made = app()
    made.book.sources["access"].stamp_s = 1.0
    (only,) = outages(made)
    assert only.span.min_s == pytest.approx(37.99, abs=1e-3)
    assert only.span.max_s == pytest.approx(43.01, abs=1e-3)


def test_probes_are_outages_of_their_targets_in_the_time_of_reference() -> None:
    made = study(window=(0.0, 600.0))
    probed(made, "prober", (100.0, 110.0))
    probed(made, "other", (0.0, 0.0), conn="warm")
    skewed(made, "prober", 182.9, 183.1, 183.0)
    (only,) = outages(made)
    assert (only.router, only.group, only.requests) == ("https://a.example/", PROBE, 5)
    assert is_probe(only)
    assert (only.span.min_s, only.span.max_s) == (pytest.approx(7.0), pytest.approx(12.01))
    assert only.first_bad == T0 + 100 + 183
    assert only.earliest == pytest.approx(T0 + 98 + 183 - 0.1, abs=1e-3)
    assert only.latest == pytest.approx(T0 + 110.01 + 183 + 0.1, abs=1e-3)
    assert only.group != WARM


def test_what_others_measured_is_taken_unless_their_samples_are_here() -> None:
    data = {"min_s": 3.0, "max_s": 5.0, "bad": 4}
    made = study([mark(50, Kind.OUTAGE, "dns://a", "journal", **data), mark(60, Kind.OUTAGE, "https://a.example/", "prober", **data)])
    probed(made, "prober", (0.0, 0.0))
    (only,) = outages(made)
    assert (only.group, only.span.text(), only.requests) == (TOLD, "3.00 s to 5.00 s", 4)
    odd = study([mark(50, Kind.OUTAGE, "x", min_s=math.nan, max_s="?", bad=math.inf), mark(None, Kind.OUTAGE, "y", min_s=1.0, max_s=None)])
    assert [h.router for h in outages(odd)] == ["x"]
    assert told(odd).answer == "2 outages told, the longest: y, at least 1.00 s"
    assert not told(study()).measured


def test_a_route_that_nobody_asked_is_not_measured_rather_than_well() -> None:
    made = app()
    ask(made, "quiet", [-100.0])
    ask(made, "rare", [5.0, 300.0])
    made.book.marks = roll("n1", 90, "a/app-0")
    made.drains = drains(made)
    made.outages = outages(made)
    notes = " ".join(f4(made).notes)
    assert "Not measured, since nobody asked for it in the window: quiet." in notes
    assert "While n1 was out nobody asked for rare" in notes
    assert "an outage of up to 300.0 s would not have been seen (of rare" in notes
    assert not f4(study()).measured


def test_single_errors_are_told_apart() -> None:
    made = app()
    ask(made, "app", [300.7], bad=True)
    made.outages = outages(made)
    assert len(made.outages) == 1
    assert f4(made).data["single_errors"] == 1


def test_bad_requests_are_counted_by_route_and_status_with_their_sum() -> None:
    made = app()
    made.book.sources["access"].numbers = Numbers(seen=98, expected=100)
    made.book.sources["access"].skipped["truncated"] = 3
    figure = f1(made)
    assert figure.answer == "40 of 599 requests went badly (6.7 %)"
    assert figure.table is not None
    assert figure.table.rows[0][:3] == ("app", "503", "40")
    assert figure.table.rows[-1][0] == "all"
    assert figure.data["bad"] == pytest.approx(40 / 599)
    notes = " ".join(figure.notes)
    assert "98.0 % of the lines arrived" in notes
    assert "(2 are missing" in notes
    assert "3 lines of" in notes


def test_sessions_that_were_cut_stand_beside_statuses() -> None:
    made = app()
    for bad in (True, True, False):
        request = Request(T0 + 200, 5.0, 0, "app", bad=bad)
        made.book.cells.add(Lane("access", "app", "lan"), request, Verdict.BAD if bad else Verdict.GOOD)
    made.memo.clear()
    figure = f1(made)
    assert figure.table is not None
    assert [row[1:3] for row in figure.table.rows] == [("503", "40"), ("cut", "2"), ("", "42")]
    assert not any("whole minutes" in note for note in figure.notes)


def test_statuses_of_minutes_that_the_window_cuts_add_up_and_what_is_guessed_is_said() -> None:
    made = app()
    made.window = Window(T0 + 110.0, T0 + 600.0)
    figure = f1(made)
    assert figure.table is not None
    assert [row[1:3] for row in figure.table.rows] == [("503", "30"), ("", "30")]
    assert not any("shared out" in note for note in figure.notes), "all of them had one status"
    for at in range(100, 120, 2):
        made.book.cells.add(Lane("access", "app", "lan"), Request(T0 + at + 0.5, 0.01, 502, "app"), Verdict.BAD)
    made.memo.clear()
    figure = f1(made)
    assert figure.table is not None
    assert sum(int(row[2]) for row in figure.table.rows[:-1]) == figure.data["bad_requests"] == 35
    assert any("15 bad answers at the edges of the window are shared out" in note for note in figure.notes)
    assert shared(Counter({502: 1, 503: 1, 504: 1}), 2) == {502: 1, 503: 1}


def test_no_error_before_is_a_bound_and_not_nothing() -> None:
    figure = f2(app())
    assert figure.answer.startswith("0 of 600 requests went badly from 04:30:00 to 04:40:00 (less than 0.5 %); 40 of the window's 40 are beyond that")
    assert figure.data["at_most"] == pytest.approx(0.00498, abs=1e-4)
    assert not f2(study()).measured


def test_errors_that_are_usual_are_not_the_rolls() -> None:
    low, high = attributable(40, 600, 30, 600)
    assert low == 0
    assert high == pytest.approx(40 - 600 * 0.0353, abs=0.5)
    assert attributable(40, 600, 0, 600)[1] == 40


def test_a_quiet_time_with_a_drain_in_it_is_moved_and_that_is_said() -> None:
    made = app()
    made.book.marks = [mark(-300, Kind.CORDONED, "n9"), mark(-300 - 86400, Kind.DRAINED, "n9")]
    assert quiet(made)[0] is None
    ask(made, "app", every(-600 - 7 * 86400, -7 * 86400))
    found, said = quiet(made)
    assert found is not None
    assert found.begin == T0 - 600 - 7 * 86400
    assert "a week earlier" in said
    assert said in f2(made).notes

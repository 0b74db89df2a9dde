"""When a service was dead, as its log and its recorded answers tell."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.model.sample import Sample
from edgekeeper.watch.fingerprint import Burst
from edgekeeper.watch.world import Kind, Record, Sign, Thinner, from_lines, from_probes


def hits(*times: float, rest: str = "peer A") -> list[Sign]:
    return [Sign(at, Kind.HIT, f"WARN {rest}", rest) for at in times]


def mark(at: float, kind: Kind = Kind.RECOVERED) -> Sign:
    return Sign(at, kind)


def sample(at: float, *, ok: bool, took: float = 0.01, target: str = "tcp://192.0.2.1:443", conn: str = "fresh") -> Sample:
    return Sample(at, target, conn, at - 5000, at - 5000 + took, ok)  # sent and done are on another clock than ts


def record(*samples: Sample) -> Record:
    out = Record()
    for one in samples:
        out.add(one)
    return out


def test_a_burst_ends_with_the_line_that_says_so() -> None:
    (wedge,) = from_lines([*hits(100, 102, 104), mark(110)], last=500).wedges
    assert (wedge.start, wedge.end, wedge.by) == (100, 110, "recovered")
    assert wedge.ended == (104, 110), "it ended after its last line, and before the line that says so"


def test_a_burst_that_is_silent_is_over_and_the_end_is_an_interval() -> None:
    (first, second) = from_lines(hits(100, 159, 300), last=1000).wedges
    assert (first.start, first.end, first.ended, first.by) == (100, 219, (159, 219), "silence")
    assert (second.start, second.end) == (300, 360)


def test_what_the_record_does_not_show_the_end_of_has_none() -> None:
    (wedge,) = from_lines(hits(100, 110), last=120).wedges
    assert wedge.end == math.inf
    assert wedge.by == "nothing"


def test_a_line_says_it_is_well_and_the_burst_goes_on_then_it_was_not() -> None:
    (wedge,) = from_lines([*hits(100), mark(105), *hits(108), mark(120)], last=500).wedges
    assert (wedge.start, wedge.end) == (100, 120)


def test_a_start_after_which_the_lines_go_on_did_not_help() -> None:
    first, second = from_lines([*hits(100), mark(105, Kind.STARTED), *hits(108), mark(120, Kind.STARTED)], last=500).wedges
    assert first.vain
    assert not second.vain


def test_a_burst_begins_with_as_many_lines_as_the_rule_asks_for() -> None:
    burst = Burst(lines=3, distinct=1, within_s=10)
    assert from_lines(hits(100, 105), 500, burst).wedges == ()
    assert [w.start for w in from_lines(hits(100, 105, 109), 500, burst).wedges] == [100]
    assert from_lines(hits(100, 105, 119), 500, burst).wedges == ()
    assert [w.start for w in from_lines([Sign(100, rest="x", count=7)], 500, burst).wedges] == [100], "a line that stands for seven counts seven times"


def test_the_assumption_is_said() -> None:
    world = from_lines([], 0)
    assert not world.recorded
    assert "no recorded answers" in world.notes[0]


def test_answers_are_put_on_the_clock_of_the_log_and_bound_the_wedge() -> None:
    answers = [*(sample(t, ok=True) for t in (100, 101)), sample(102, ok=False, took=1.0), sample(103, ok=False, took=1.0), sample(104, ok=True, took=0.5)]
    world = from_probes(record(*answers), [], last=0)
    (wedge,) = world.wedges
    assert (wedge.start, wedge.end) == (102, 104)
    assert wedge.began == pytest.approx((101, 103))
    assert wedge.ended == pytest.approx((103, 104.5))
    assert wedge.answer_s == pytest.approx(1.0)
    assert world.recorded


def test_a_good_answer_that_was_still_under_way_proves_nothing_about_before() -> None:
    answers = [sample(100, ok=True), sample(101, ok=True, took=3.0), sample(102, ok=False), sample(105, ok=True)]
    assert from_probes(record(*answers), [], 0).wedges[0].began[0] == 100


def test_dead_from_the_first_answer_to_the_last_has_no_bounds() -> None:
    (wedge,) = from_probes(record(sample(100, ok=False), sample(101, ok=False)), [], last=0).wedges
    assert wedge.began[0] == -math.inf
    assert wedge.end == math.inf


def test_any_target_that_answers_makes_it_well_unless_all_are_needed() -> None:
    one, two = "tcp://192.0.2.1:1", "tcp://192.0.2.2:1"
    answers = [sample(t, ok=not 103 <= t < 106, target=one) for t in range(100, 110)] + [sample(t, ok=not 105 <= t < 108, target=two) for t in range(100, 110)]
    both = record(*sorted(answers, key=lambda s: s.ts))
    assert [(w.start, w.end) for w in from_probes(both, [], 0, need="any").wedges] == [(105, 106)]
    assert [(w.start, w.end) for w in from_probes(both, [], 0, need="all").wedges] == [(103, 108)]
    assert [(w.start, w.end) for w in from_probes(both, [], 0, targets=[two]).wedges] == [(105, 108)]


def test_a_fresh_connection_is_the_clients_way() -> None:
    answers = [sample(t, ok=t < 103, conn="fresh") for t in range(100, 106)] + [sample(t, ok=True, conn="warm") for t in range(100, 106)]
    assert [w.start for w in from_probes(record(*answers), [], 0).wedges] == [103]


def test_lines_beyond_the_recorded_answers_are_told() -> None:
    answers = record(sample(100, ok=True), sample(130, ok=True))
    notes = " ".join(from_probes(answers, hits(50, 110, 500), last=600).notes)
    assert "2 lines are of a time" in notes
    assert "gap of 30 s" in notes


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 700), min_size=1, max_size=5), st.booleans())
def test_a_long_record_says_the_same_kept_small(runs: list[int], ok: bool) -> None:
    kept, at, edges = Record(), 1000.0, []
    for length in runs:
        edges.append((at, at + length, ok))
        for _ in range(length):
            kept.add(sample(at, ok=ok))
            at += 1.0
        ok = not ok
    wedges = from_probes(kept, [], 0).wedges
    bad = [(begin, end if number + 1 < len(edges) else math.inf) for number, (begin, end, well) in enumerate(edges) if not well]
    assert [(w.start, w.end) for w in wedges] == bad
    for wedge in wedges:
        assert wedge.began == pytest.approx((wedge.start - 1 if wedge.start > 1000 else -math.inf, wedge.start + 0.01))


def test_a_flood_is_kept_small_and_loses_no_burst() -> None:
    thin = Thinner(distinct=2, most=100)
    for number in range(4000):
        thin.add(1000 + number * 0.05, Kind.HIT, "line", f"peer {number % 5}")
    signs = thin.signs()
    assert len(signs) <= 100
    assert sum(sign.count for sign in signs) == 4000
    assert signs[0].at == 1000
    assert max(sign.until for sign in signs) == pytest.approx(1199.95)
    (wedge,) = from_lines(signs, 2000, Burst(lines=10, distinct=2)).wedges
    assert (wedge.start, wedge.ended[0]) == (1000, pytest.approx(1199.95))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1e4), st.sampled_from(list(Kind)), st.sampled_from("abc")), max_size=80), st.integers(1, 3), st.integers(1, 30))
def test_whatever_comes_in_whatever_order_is_counted_and_bounded(lines: list[tuple[float, Kind, str]], distinct: int, most: int) -> None:
    thin = Thinner(distinct, most)
    for at, kind, rest in lines:
        thin.add(at, kind, "", rest)
    signs = thin.signs()
    assert len(signs) <= max(most, 4 * distinct)
    assert sum(sign.count for sign in signs) == len(lines)
    assert [s.at for s in signs] == sorted(s.at for s in signs)
    for wedge in from_lines(signs, 1e4).wedges:
        assert wedge.start <= wedge.end
        assert wedge.ended[0] <= wedge.ended[1]


def test_where_both_were_asked_the_fresh_connections_count() -> None:
    warm = [sample(at, ok=True, conn="kept") for at in range(100, 130)]
    fresh = [sample(at + 0.5, ok=not 110 <= at < 120, conn="fresh") for at in range(100, 130)]
    (wedge,) = from_probes(record(*warm, *fresh), [], 0).wedges
    assert (wedge.start, wedge.end) == (110.5, 120.5)

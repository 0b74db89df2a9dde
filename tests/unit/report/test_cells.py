import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report import cells as module
from edgekeeper.report.cells import BINS, EDGES_S, OTHER, Cells, Lane
from edgekeeper.report.kinds import Request
from edgekeeper.report.rules import Rules, Verdict

LANE = Lane("log", "web", "lan")
RULES = Rules()
REQUESTS = st.builds(
    Request,
    start=st.integers(0, 400_000).map(lambda ms: 1_788_756_000 + ms / 1000),
    took_s=st.sampled_from([0.0, 0.0005, 0.002, 0.4, 3.0, 61.0]),
    status=st.sampled_from([200, 404, 500, 502, 503, 499, 101]),
    masked=st.sampled_from([0, 0, 2]),
)


def added(requests, settle=0):
    made = Cells()
    for i, r in enumerate(requests):
        made.add(LANE, r, RULES.verdict(r))
        if settle and i % settle == 0:
            made.settle()
    return made


def expected(requests):
    """The cells by a simple way of counting."""
    made = {}
    for r in requests:
        made.setdefault(int(r.start), []).append((r, RULES.verdict(r)))
    return dict(sorted(made.items()))


def close(one, two):
    return (math.isnan(one) and math.isnan(two)) or abs(one - two) < 5e-6


def check(made, requests):
    truth = expected(requests)
    found = made.cells(LANE)
    assert [c.second for c in found] == list(truth)
    for cell, rows in zip(found, truth.values(), strict=True):
        good = [r for r, v in rows if v is Verdict.GOOD]
        bad = [r for r, v in rows if v is Verdict.BAD]
        counts = Counter(v for _, v in rows)
        assert (cell.good, cell.bad, cell.gone, cell.other) == tuple(counts[v] for v in (Verdict.GOOD, Verdict.BAD, Verdict.GONE, Verdict.OTHER))
        assert cell.masked == sum(r.masked > 0 for r in good)
        for edges, of in ((cell[6:10], good), (cell[10:14], bad)):
            starts, ends = [r.start for r in of] or [math.nan], [r.start + r.took_s for r in of] or [math.nan]
            assert all(map(close, edges, (min(starts), max(starts), min(ends), max(ends))))


@settings(max_examples=15)
@given(st.lists(REQUESTS, max_size=40), st.integers(0, 40))
def test_cells_are_what_was_added_in_any_order_and_in_any_parts(requests, cut):
    check(added(requests), requests)
    one, two = added(requests[:cut]), added(requests[cut:])
    one.merge(two)
    check(one, requests)
    assert sum(one.total(LANE)[:4]) == len(requests)


def test_a_dense_lane_is_made_into_seconds(monkeypatch):
    monkeypatch.setattr(module, "FULL", 50)
    requests = [Request(1000.0 + (i % 7) + i / 1e5, 0.01 * (i % 5), 200) for i in range(1000)]
    made = added(requests, settle=10)
    columns = made.columns[LANE]
    check(made, requests)
    assert not columns.blocks
    assert len(columns.settled.seconds) == 7


@settings(max_examples=12)
@given(st.lists(REQUESTS, max_size=40), st.floats(1_788_756_000, 1_788_756_400), st.floats(0, 300))
def test_a_window_is_a_part_of_the_whole(requests, begin, length):
    made = added(requests)
    end = begin + length
    inside = [c for c in made.cells(LANE) if math.floor(begin) <= c.second < end]
    assert str(made.cells(LANE, begin, end)) == str(inside)
    assert made.total(LANE, begin, end).bad == sum(c.bad for c in inside)
    assert made.total(LANE, begin, end).good == sum(c.good for c in inside)


@settings(max_examples=12)
@given(st.lists(REQUESTS, max_size=40))
def test_minutes_hold_statuses_and_durations_of_the_good(requests):
    made = added(requests)
    minutes = made.minutes(LANE)
    assert [m.minute for m in minutes] == sorted({int(r.start) // 60 for r in requests})
    for minute in minutes:
        mine = [r for r in requests if int(r.start) // 60 == minute.minute]
        assert minute.statuses == Counter(r.status for r in mine)
        took = Counter(sum(r.took_s >= edge for edge in EDGES_S) for r in mine if RULES.verdict(r) is Verdict.GOOD)
        assert minute.took == [took[i] for i in range(BINS)]
    assert made.statuses(LANE) == Counter(r.status for r in requests)


def test_edges_are_a_millisecond_to_a_minute():
    assert EDGES_S[0] < 0.0011
    assert 50 < EDGES_S[-1] < 60
    assert list(EDGES_S) == sorted(EDGES_S)


def test_a_cut_session_is_filed_where_it_was_cut():
    made = added([Request(1000.0, 7200.0, 0, bad=True, cause="killed: server down"), Request(2000.0, 5.0, 0)])
    assert [(c.second, c.good, c.bad, c.bad_last_start) for c in made.cells(LANE) if c.bad] == [(8200, 0, 1, 8200.0)]
    assert made.causes(LANE, 8100, 8300) == {"killed: server down": 1}
    assert made.ended(LANE) == {"killed: server down": 1, "ended": 1}
    assert made.ended(LANE, 8000.0) == {"killed: server down": 1}


def test_a_websocket_counts_where_it_ended():
    made = added([Request(1000.0, 7200.0, 101)])
    assert made.ended(LANE, 8000.0, 9000.0) == {"WebSocket": 1}
    assert made.ended(LANE, 900.0, 1100.0) == {}


def test_made_up_routes_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "LANES", 5)
    made, other = Cells(), Cells()
    for i in range(20):
        for cells in (made, other):
            cells.add(Lane("log", f"host-{i}{'' if cells is made else 'x'}", ""), Request(1.0, 0.0, 200), Verdict.GOOD)
    made.merge(other)
    assert len(made.lanes()) <= 6
    assert made.total(Lane("log", OTHER, "")).good == 35
    assert made.refused


def test_made_up_causes_are_bounded():
    made = added([Request(float(i), 0.0, 503, cause=f"cause {i}") for i in range(500)])
    assert len(made.causes(LANE)) <= 65
    assert made.causes(LANE)["(other)"] == 500 - 64


def test_times_that_are_none_are_refused():
    made = Cells()
    for start in (-1.0, 2.0**33, 5e9):
        assert not made.add(LANE, Request(start, 0.0, 200), Verdict.GOOD)
    for took in (math.nan, math.inf, -5.0):
        assert made.add(LANE, Request(5.0, took, 200), Verdict.GOOD)
    assert made.total(LANE).good == 3

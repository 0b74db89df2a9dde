"""Which marks of two machines are one event: what is not certain is left out, the true offset is inside what remains."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.studies import mark, study

from edgekeeper.measure.clocks import solve
from edgekeeper.report.book import Book, Source
from edgekeeper.report.clockpairs import EVICTIONS, GIVEN_UP, IDS, NOTIFICATIONS, bounds
from edgekeeper.report.figures.clocks import GIVEN, UNKNOWN, clocks_of, f13
from edgekeeper.report.kinds import Kind, Mark


def node(source: str) -> str:
    return source


def asked(ident: str, sent: float, took: float, source: str = "edge") -> Mark:
    made = mark(sent, Kind.CLOCK, ident, source, side="sent")
    return Mark(made.at, made.kind, made.object, "", source, "", 0.0, {"side": "sent", "until": (made.at or 0) + took})


def logged(ident: str, at: float, source: str = "proxy", stamp_s: float = 0.0) -> Mark:
    return mark(at, Kind.CLOCK, ident, source, stamp_s=stamp_s, side="logged")


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 1.0]))
def test_ids_in_a_log_hold_the_true_offset(seed: int, coarse: float) -> None:
    rng = random.Random(seed)
    marks = []
    for n in range(20):
        sent, there, back = n * 3 + rng.random(), rng.random() * 0.02, rng.random() * 0.02
        stamp = sent + there + 183.4
        marks += [asked(f"id-{n}", sent, there + back), logged(f"id-{n}", math.floor(stamp) if coarse else stamp, stamp_s=coarse)]
    found = solve(bounds(marks, node), "proxy")["edge"]
    assert found.low <= 183.4 <= found.high
    assert found.methods == (IDS,)
    assert not found.moved


def test_an_id_that_is_told_twice_or_was_made_up_is_left_out() -> None:
    assert bounds([asked("a", 1, 0.1), logged("a", 5), logged("a", 900)], node) == []
    assert bounds([asked("a", 1, 0.1), asked("a", 2, 0.1), logged("a", 5)], node) == []
    assert bounds([logged("a", 5)], node) == []
    assert bounds([asked("a", 1, -3.0), logged("a", 5)], node) == []
    assert bounds([asked("a", 1, math.nan), logged("a", 5)], node) == []
    assert len(bounds([asked("a", 1, 0.1), logged("a", 5, "proxy-1"), logged("a", 5, "proxy-2")], node)) == 2


def test_priority_zero_is_heard_after_it_was_sent_and_both_ways_bound_both_sides() -> None:
    one = [mark(10, Kind.VRRP_ZERO_SENT, "VI_dns", "n1"), mark(13.5, Kind.VRRP_ZERO_HEARD, "VI_dns", "n2", stamp_s=1.0)]
    found = solve(bounds(one, node), "n1")["n2"]
    assert found.low == pytest.approx(-4.501)
    assert math.isinf(found.high)
    back = [mark(50, Kind.VRRP_ZERO_SENT, "VI_dns", "n2"), mark(47.2, Kind.VRRP_ZERO_HEARD, "VI_dns", "n1")]
    found = solve(bounds(one + back, node), "n1")["n2"]
    assert found.high == pytest.approx(47.2 - 50 + 0.001)
    assert found.methods == (GIVEN_UP,)


def test_messages_of_which_both_ends_do_not_tell_the_same_number_are_left_out() -> None:
    sent = [mark(t, Kind.VRRP_ZERO_SENT, "VI", "n1") for t in (10, 20)]
    assert bounds([*sent, mark(12, Kind.VRRP_ZERO_HEARD, "VI", "n2")], node) == []
    third = mark(11, Kind.VRRP_ZERO_SENT, "VI", "n3")
    assert bounds([sent[0], third, mark(12, Kind.VRRP_ZERO_HEARD, "VI", "n2")], node) == [], "it may have been either"


def test_a_notification_is_paired_only_between_the_two_that_can_have_meant_each_other() -> None:
    gw, n1 = mark(10, Kind.BGP_NOTIFY_SENT, "192.0.2.1", "gw", code="6/2"), mark(11, Kind.BGP_NOTIFY_HEARD, "192.0.2.254", "n1", code="6/2")
    assert [b.method for b in bounds([gw, n1], node)] == [NOTIFICATIONS]
    n2 = mark(11, Kind.BGP_NOTIFY_HEARD, "192.0.2.254", "n2", code="6/2")
    assert bounds([gw, n1, n2], node) == []
    assert bounds([gw, mark(11, Kind.BGP_NOTIFY_HEARD, "192.0.2.254", "n1", code="4/0")], node) == []


def test_a_pod_is_killed_between_its_eviction_and_the_end_of_it() -> None:
    told = [mark(10, Kind.EVICTING, "a/x-0", "admin"), mark(40, Kind.EVICTED, "a/x-0", "admin")]
    kill = mark(15, Kind.POD, "a/x-0", "kubelet", stamp_s=1.0, reason="Killing", message="Stopping container app")
    found = solve(bounds([*told, kill], node), "admin")["kubelet"]
    assert (found.low, found.high) == (pytest.approx(-6.001), pytest.approx(25.001))
    assert found.methods == (EVICTIONS,)
    restarted = mark(15, Kind.POD, "a/x-0", "kubelet", reason="Killing", message="Container app failed liveness probe, will be restarted")
    assert bounds([*told, restarted], node) == []
    later = mark(300, Kind.POD, "a/x-0", "kubelet", reason="Killing", message="Stopping container app")
    assert bounds([*told, kill, later], node) == [], "one of two stops: which, nobody knows"
    twice = mark(200, Kind.EVICTING, "a/x-0", "admin-2")
    assert bounds([*told, twice, kill], node) == []


def book(*marks: Mark) -> Book:
    made = study(marks).book
    for source in made.sources.values():
        source.node, source.first = source.name, marks[0].at
    return made


def test_the_table_shows_raw_and_corrected_and_nothing_is_corrected_silently() -> None:
    made = book(asked("a", 0, 0.02), logged("a", 183.41), mark(5, Kind.NOTE, "x", "silent"))
    clocks = {c.node: c for c in clocks_of(made, "proxy", {})}
    assert clocks["edge"].shift_s == 183.4
    assert clocks["silent"].method == UNKNOWN
    figure = f13(study([]))
    assert figure.answer == "all that was read is of one clock"
    view = study([])
    view.book, view.clocks = made, clocks
    figure = f13(view)
    assert figure.answer == "1 clock corrected, the most that of edge, which is 183.39 s to 183.41 s behind; nothing tells of silent, taken as right"
    assert figure.table is not None
    row = next(row for row in figure.table.rows if row[0] == "edge")
    assert row[1:5] == ("+183.400 s", "+183.389 s to +183.411 s", "04:40:00", "04:43:03")


def test_a_clock_that_the_config_gives_is_taken_and_carries_others() -> None:
    made = book(asked("a", 0, 0.02), logged("a", 10.01))
    clocks = {c.node: c for c in clocks_of(made, "ref", {"proxy": 5.0})}
    assert (clocks["proxy"].shift_s, clocks["proxy"].method) == (5.0, GIVEN)
    assert clocks["edge"].shift_s == 15.0
    assert "through others" in clocks["edge"].method
    assert clocks_of(Book(sources={"a": Source("a", "a", "x")}), "a", {})[0].shift_s == 0

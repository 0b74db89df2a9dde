"""Beside outages: latencies, sessions, hidden failures, clean drains, pinned victims, clients."""

from __future__ import annotations

import math

from tests.fakes.studies import T0, ask, mark, roll, study

from edgekeeper.report.cells import EDGES_S, Lane
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.outages import outages
from edgekeeper.report.figures.pinned import clients, f15
from edgekeeper.report.figures.quality import clean, cut, latency, masked, quantile
from edgekeeper.report.kinds import Kind, Request
from edgekeeper.report.rules import Verdict
from edgekeeper.report.study import Study


def test_quantiles_are_told_as_the_bounds_of_their_bin() -> None:
    made = study(window=(0.0, 600.0), baseline=(-600.0, 0.0))
    ask(made, "fast", range(-600, 0, 5), took_s=0.02)
    ask(made, "fast", range(0, 600, 5), took_s=0.3)
    figure = latency(made)
    low, high = figure.data["window_s"]["0.95"]
    assert low <= 0.3 <= high <= low * 1.7
    low, high = figure.data["before_s"]["0.5"]
    assert low <= 0.02 <= high
    assert figure.answer.startswith("95 of 100 good answers came within ")
    assert "; in the quiet time before, within 2" in figure.answer
    assert not latency(study()).measured
    assert quantile([0, 0], 0.5) is None
    assert quantile([*[0] * len(EDGES_S), 3], 0.5) == (EDGES_S[-1], math.inf)


def session(made: Study, at: float, cause: str, *, bad: bool, status: int = 0) -> None:
    made.book.cells.add(Lane("lb", "api", ""), Request(T0 + at, 5.0, status, "api", cause=cause, bad=bad), Verdict.BAD if bad else Verdict.GOOD)


def test_sessions_that_were_killed_are_told_apart_from_those_that_ended() -> None:
    made = study(window=(0.0, 600.0), baseline=(-600.0, 0.0))
    session(made, 100, "killed: server down", bad=True)
    session(made, 101, "", bad=False)
    session(made, 102, "", bad=False, status=101)
    session(made, -200, "", bad=False, status=101)
    figure = cut(made)
    assert figure.answer == "1 session killed by the balancer; 1 WebSocket ended (1 in the quiet time before)"
    assert figure.data["ended"] == {"killed: server down": 1, "ended": 1, "WebSocket": 1}
    assert not cut(study()).measured


def test_failures_that_the_proxy_hid_are_counted_apart() -> None:
    made = study(window=(0.0, 600.0))
    ask(made, "app", range(100))
    made.book.cells.add(Lane("access", "app", "lan"), Request(T0 + 5, 0.01, 200, "app", masked=1), Verdict.GOOD)
    figure = masked(made)
    assert figure.answer == "1 request failed at first and went well on another attempt (0.99 %)"
    assert masked(study()).measured is False


def test_three_clean_drains_prove_next_to_nothing() -> None:
    made = study([m for n in range(3) for m in roll(f"n{n}", 300.0 * n, "a/x-0")], window=(0.0, 1200.0))
    ask(made, "calm", range(0, 1200, 5))
    ask(made, "hurt", range(0, 1200, 5))
    ask(made, "hurt", [320.0 + i for i in range(20)], bad=True)
    made.drains = drains(made)
    made.outages = outages(made)
    figure = clean(made)
    assert figure.answer.startswith(
        "5 of 6 pairs of a route and a drain were clean; 3 clean drains of a route prove only that less than 63.2 % of drains hurt it"
    )
    assert figure.table is not None
    assert [row[0] for row in figure.table.rows] == ["calm"]
    assert not clean(study()).measured


def test_who_hangs_on_a_dead_server_is_named_with_age_and_address() -> None:
    made = study(
        [
            mark(10, Kind.SERVER_DOWN, "cp/cp-2", "haproxy"),
            mark(5, Kind.PINNED, "cp/cp-2", "sess", client="192.0.2.41:57976", age_s=11.0),
            mark(20, Kind.PINNED, "cp/cp-2", "sess", client="192.0.2.41:57976", age_s=26.0),
            mark(20, Kind.PINNED, "cp/cp-1", "sess", client="192.0.2.42:50000", age_s=26.0),
            mark(20, Kind.PINNED, "cp/cp-3", "sess", client="[2001:db8::1]:50000", age_s=7.0, down=True),
            mark(30, Kind.LEASE_AGE, "n2", "api", age_s=64.0),
            mark(31, Kind.LEASE_AGE, "n1", "api", age_s=4.0),
        ]
    )
    figure = f15(made)
    assert figure.answer == "2 clients held on to 2 servers that were down; the leases of n2 were not renewed for more than 10 s"
    assert figure.data == {"servers": {"cp/cp-2": ["192.0.2.41"], "cp/cp-3": ["[2001:db8::1]"]}, "leases": {"n2": 64.0}}
    assert figure.table is not None
    assert figure.table.rows[0] == ("cp/cp-2", "1", "26.0 s", "192.0.2.41", "04:40:20")
    assert not f15(study()).measured


def test_a_server_that_came_back_is_no_trap_any_more() -> None:
    marks = [mark(10, Kind.SERVER_DOWN, "a/b", "h"), mark(15, Kind.SERVER_UP, "a/b", "h"), mark(20, Kind.PINNED, "a/b", "s", client="192.0.2.1:1")]
    assert f15(study(marks)).data["servers"] == {}


def test_clients_are_ranked_by_how_long_nothing_went_well() -> None:
    made = study(window=(0.0, 600.0))
    for client, wait in (("192.0.2.1", 10), ("192.0.2.2", 50), ("192.0.2.3", 0)):
        ask(made, "app", [90.0], client=client)
        ask(made, "app", [100.0] if wait else [], client=client, bad=True)
        ask(made, "app", [100.0 + wait], client=client)
    figure = clients(made)
    assert figure.answer == "2 clients of 3 had bad answers; the worst had no good one for 50.0 s"
    assert figure.table is not None
    assert [row[0] for row in figure.table.rows] == ["192.0.2.2", "192.0.2.1"]
    assert not clients(study()).measured

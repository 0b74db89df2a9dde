"""Counts on clocks that are apart by parts of a second, at the edges of windows and of logs; clients of several replicas; what is compared with what."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from tests.fakes.studies import T0, ask, hurt, mark, roll, skewed, study

from edgekeeper.model.sample import Sample
from edgekeeper.report.book import Book, Source
from edgekeeper.report.cells import Lane
from edgekeeper.report.document import Clock, Window
from edgekeeper.report.figures.baseline import AS_ASKED, f2, quiet
from edgekeeper.report.figures.budget import budget, down_minutes, user_minutes
from edgekeeper.report.figures.clocks import clocks_of
from edgekeeper.report.figures.counts import asked, at_most, by_minute, total
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.edge import f5
from edgekeeper.report.figures.followed import followed, without_s
from edgekeeper.report.figures.minutes import f3
from edgekeeper.report.figures.moves import f6
from edgekeeper.report.figures.outages import f4, outages, told
from edgekeeper.report.figures.pinned import clients
from edgekeeper.report.figures.recover import recoveries
from edgekeeper.report.figures.timeline import timeline
from edgekeeper.report.kinds import Kind, Request
from edgekeeper.report.make import Wanted, make
from edgekeeper.report.people import Run
from edgekeeper.report.rules import Verdict
from edgekeeper.report.study import Settings, Study


def steady(shift: float) -> Study:
    """A request every 0.7 s over half an hour, of a clock that is ``shift`` behind."""
    made = study(window=(0.0, 1200.0))
    ask(made, "app", [at * 0.7 - 300 - shift for at in range(2571)])
    skewed(made, "access", shift, shift, shift)
    return made


@pytest.mark.parametrize("shift", [0.0, 182.99, -61.4, 0.4, 0.5, 120.0])
def test_each_request_is_in_one_minute_and_in_one_window(shift: float) -> None:
    made = steady(shift)
    whole, parts = Window(T0, T0 + 1200), [Window(T0 + at, T0 + at + 150) for at in range(0, 1200, 150)]
    n = asked(total(made, made.lanes(), whole))
    assert abs(n - 1714) <= 2
    assert sum(asked(counts) for _, counts in by_minute(made, made.lanes(), whole)) == n
    assert sum(asked(total(made, made.lanes(), part)) for part in parts) == n
    own = Counter(math.floor((second + shift + 0.5 - T0) / 60) for second in (math.floor(T0 - shift - 300 + 0.7 * at + 1e-9) for at in range(2571)))
    assert [asked(counts) for _, counts in by_minute(made, made.lanes(), whole)] == [own[minute] for minute in range(20)], "where its middle lies"
    first = by_minute(made, made.lanes(), Window(T0 + 30, T0 + 100))
    assert [asked(counts) for _, counts in first] == [pytest.approx(43, abs=2), pytest.approx(57, abs=2)]
    assert asked(total(made, made.lanes(), None)) == 2571


def test_a_minute_behind_the_end_of_the_log_is_not_one_in_which_nobody_asked() -> None:
    made = study(window=(0.0, 1200.0), baseline=(-600.0, 0.0))
    ask(made, "app", range(-600, 600, 3))
    figure = f3(made)
    assert figure.answer == "every class asked in every whole minute that was read"
    assert figure.multiples[0].minutes[15][1] is None
    made = study(window=(0.0, 1200.0), baseline=(-600.0, 0.0))
    ask(made, "app", [t for t in range(-600, 1201, 3) if not 0 <= t < 60])
    assert f3(made).answer == "lan: 20 requests that were due did not come, in 1 minute", "the first minute is whole, too"


def test_a_window_that_is_not_asked_for_holds_the_last_line_of_a_log_in_whole_seconds() -> None:
    book = Book(sources={"access": Source("access", "access", "test", stamp_s=1.0, first=T0, last=T0 + 120)})
    for at in (0, 60, 120):
        book.cells.add(Lane("access", "app", ""), Request(T0 + at, 0.0, 503, "app"), Verdict.BAD)
    report = make(book, Settings(), Wanted())
    assert (report.window.begin, report.window.end) == (T0, T0 + 180)
    assert next(f for f in report.figures if f.id == "F1").data["bad_requests"] == 3
    asked_for = make(book, Settings(), Wanted(window=Window(T0 + 0.4, T0 + 119.5, AS_ASKED)))
    assert (asked_for.window.begin, asked_for.window.end) == (T0, T0 + 120)


def test_a_drain_that_a_journal_tells_of_disturbs_the_quiet_time_and_what_was_asked_for_stays() -> None:
    made = study([mark(-300, Kind.NODE_STATE, "n9", state="NodeNotSchedulable")], window=(0.0, 600.0), baseline=(-600.0, 0.0))
    ask(made, "app", range(-600, 600, 3))
    assert quiet(made)[0] is None
    ask(made, "app", range(-86400 - 300, -86400, 3), source="yesterday")
    found, said = quiet(made)
    assert found is not None
    assert (found.begin, "a day earlier" in said) == (T0 - 86400 - 300, True), "no more of it than was read"
    assert f2(made).data["requests"] == 100
    made.baseline = replace(made.baseline or found, why=AS_ASKED)
    found, said = quiet(made)
    assert found == made.baseline
    assert "not quiet" in said


def test_errors_that_were_usual_before_are_not_fewer_than_none() -> None:
    made = study(window=(0.0, 600.0), baseline=(-600.0, 0.0))
    ask(made, "app", range(-600, 600, 3))
    ask(made, "app", range(-600, -300, 30), bad=True)
    assert f2(made).answer.endswith("in the window none did")
    ask(made, "app", [300.0], bad=True)
    assert "0 of the window's 1 are beyond that" in f2(made).answer


def served_twice() -> Study:
    """One client of two replicas: good every 10 s at each, bad at both from 100 to 130."""
    made = study(window=(0.0, 600.0))
    for number, source in enumerate(("a", "b")):
        for at in range(0, 600, 10):
            t = at + 5.0 * number
            ask(made, "app", [t], client="192.0.2.7", source=source, bad=100 <= t < 130)
    return made


def test_a_client_of_two_replicas_is_one_client() -> None:
    made = served_twice()
    (one,) = followed(made)
    assert one.sources == ("a", "b")
    users = user_minutes(made)
    assert users.hurt == 1
    assert users.up == pytest.approx((95 + 465) / 60)
    assert users.down == users.down_most == pytest.approx(30 / 60)
    assert clients(made).answer == "1 client of 1 had bad answers; the worst had no good one for 30.0 s"


def test_where_good_answers_of_another_replica_lie_between_the_next_one_is_not_known() -> None:
    runs = (Run(0, 600, 0, ok=True), Run(100, 120, 3, ok=False), Run(130, 600, 0, ok=True))
    assert down_minutes(runs, 0, 600)[1] == pytest.approx(20 / 60)
    assert down_minutes(runs, 0, 600, most=True)[1] == pytest.approx(30 / 60)
    assert without_s(runs, 0, 600) == 20
    assert without_s((Run(0, 90, 0, ok=True), Run(100, 120, 3, ok=False), Run(110, 115, 0, ok=True), Run(130, 140, 0, ok=True)), 0, 600) == 30


def test_requests_of_a_month_are_estimated_from_the_time_that_was_read() -> None:
    made = study(window=(0.0, 600.0))
    ask(made, "app", range(600))
    ask(made, "app", range(600, 1200), source="rotated")
    ask(made, "app", [100.5], bad=True)
    assert budget(made).data["budget"] == pytest.approx(1 / (1201 / 1198 * 28 * 86400 * 0.001), rel=0.01)


def test_an_eviction_on_another_clock_is_as_uncertain_as_that_clock() -> None:
    made = study(roll("n1", 100, "git/gitea-0"))
    made.drains = drains(made)
    ask(made, "gitea@docker", [0.0, 200.0])
    made.outages = (hurt("gitea@docker", 115, 150),)
    (sharp,) = recoveries(made)
    skewed(made, "roll", -3.0, 3.0, 0.0)
    (rough,) = recoveries(made)
    assert (rough.whole.min_s, rough.whole.max_s) == (sharp.whole.min_s - 3, sharp.whole.max_s + 3)


def test_an_eviction_that_was_refused_counts_from_when_it_was_asked_again() -> None:
    made = study([*roll("n1", 100, "git/gitea-0"), mark(115, Kind.EVICTING, "git/gitea-0", "roll")])
    made.drains = drains(made)
    ask(made, "gitea@docker", [0.0, 200.0])
    made.outages = (hurt("gitea@docker", 118, 150),)
    assert recoveries(made)[0].evicted == T0 + 115


def test_a_route_that_nobody_asked_for_had_no_outage_of_no_seconds() -> None:
    made = study([*roll("n1", 100, "git/gitea-0"), *roll("n2", 500, "git/gitea-0")])
    made.drains = drains(made)
    ask(made, "gitea@docker", [0.0, 200.0])
    figure = f6(made)
    assert figure.table is not None
    assert figure.table.rows[0][-1] == "not measured: nobody asked"
    ask(made, "gitea@docker", [550.0])
    figure = f6(made)
    assert figure.table is not None
    assert figure.table.rows[0][-1] == "no outage seen"


def test_an_outage_over_the_edge_of_the_window_is_bounded_by_probes_beyond() -> None:
    made = study(window=(0.0, 100.0))
    made.book.samples["a", "https://a.example/", "fresh"] = [
        Sample(T0 + t, "https://a.example/", "fresh", T0 + t, T0 + t + 0.1, not 80 <= t < 120) for t in range(0, 200, 2)
    ]
    (way,) = f5(made).data["ways"]
    assert way["asked"] == 51
    assert way["outages"][0]["max_s"] == pytest.approx(42.1)


def test_the_clock_that_was_set_in_an_outage_widens_it() -> None:
    made = study(window=(0.0, 600.0))
    ask(made, "app", range(0, 600, 2))
    made.book.cells.columns.clear()
    ask(made, "app", [t for t in range(0, 600, 2) if not 100 <= t < 140])
    ask(made, "app", range(100, 140, 2), bad=True)
    (before,) = outages(made)
    made.clocks = {"access": Clock("access", -2.0, 2.0, 0.0, "ids", moved=True)}
    (after,) = outages(made)
    assert after.span.max_s == pytest.approx(before.span.max_s + 4)
    assert after.span.min_s == pytest.approx(before.span.min_s - 4)


def test_an_outage_within_one_second_names_only_the_class_that_it_hurt() -> None:
    for shift in (0.0, 0.4, 0.99):
        made = study(window=(0.0, 600.0))
        ask(made, "app", range(0, 600, 2), group="public")
        ask(made, "app", [100.05 - shift, 100.5 - shift, 100.95 - shift], bad=True)
        skewed(made, "access", shift, shift, shift)
        (one,) = outages(made)
        assert one.group == "lan"


def test_a_bound_is_rounded_up() -> None:
    assert [at_most(part) for part in (0.0, 0.77639, 0.000948, 0.0010353, 0.005, 1.0)] == ["0 %", "77.7 %", "0.095 %", "0.11 %", "0.5 %", "100.0 %"]


def test_what_the_timeline_draws_as_sure_is_no_longer_than_the_outage_surely_was() -> None:
    made = study()
    one = hurt("app", 100, 160)
    made.outages = (replace(one, span=replace(one.span, min_s=45.0, max_s=75.25)),)
    figure = timeline(made)
    assert figure.timeline is not None
    (bar,) = figure.timeline.rows[0].bars
    assert (bar.sure_begin, bar.sure_end) == (T0 + 115, T0 + 160)
    assert bar.label == "45 s to 1 min 16 s"


def test_counts_that_others_tell_are_whole() -> None:
    figure = told(study([mark(10, Kind.OUTAGE, "vip", min_s=1.0, max_s=2.0, bad=3.0, asked=1200.0), mark(20, Kind.OUTAGE, "x", bad=float("nan"))]))
    assert figure.table is not None
    assert [row[2:4] for row in figure.table.rows] == [("3", "1,200"), ("-", "-")]


def test_an_outage_over_the_edge_is_told_whole_and_hides_no_single_error() -> None:
    made = study(window=(0.0, 600.0))
    ask(made, "app", [t + 0.5 for t in range(-300, 900) if not -20 <= t < 20])
    ask(made, "app", [t + 0.5 for t in range(-20, 20)], bad=True)
    ask(made, "app", [300.2], bad=True)
    made.outages = outages(made)
    assert [h.requests for h in made.outages] == [40]
    figure = f4(made)
    assert figure.data["single_errors"] == 1
    assert figure.notes[:2] == (
        "1 outage reaches over the edge of the window and is told as a whole.",
        "1 bad answer stood alone and counts as a single error, not as an outage.",
    )


def test_the_report_says_which_quiet_time_was_compared_with() -> None:
    book = Book(sources={"access": Source("access", "access", "test", first=T0 - 86400 - 900, last=T0 + 600)})
    for at in (-86400 - 100, -100, 0, 300):
        book.cells.add(Lane("access", "app", ""), Request(T0 + at, 0.0, 200, "app"), Verdict.GOOD)
    book.marks = [mark(-100, Kind.CORDONED, "n9")]
    book.sources["log"] = Source("log", "log", "test")
    report = make(book, Settings(), Wanted(window=Window(T0, T0 + 600, AS_ASKED)))
    assert report.baseline is not None
    assert (report.baseline.begin, report.baseline.why) == (T0 - 86400 - 600, "the same time a day earlier")


def test_a_clock_that_runs_fast_gains() -> None:
    book = Book(sources={name: Source(name, name, "test", node=name) for name in ("edge", "probe")})
    for at in range(0, 1000, 10):
        sent = mark(at, Kind.CLOCK, f"id-{at}", "probe", side="sent", until=T0 + at + 0.02)
        book.marks += [sent, replace(sent, at=T0 + at + 0.01 + at * 200e-6, source="edge", data={"side": "logged"})]
    (clock,) = (c for c in clocks_of(book, "probe", {}) if c.node == "edge")
    assert clock.moved
    assert re.search(r"it gains (1[6-9]\d|200) to 2[0-4]\d s in a million", clock.method)


@pytest.mark.parametrize(("shift", "inside"), [(0.4, 0), (0.6, 1)])
def test_a_second_that_the_begin_of_the_window_cuts_is_in_it_when_most_of_it_is(shift: float, inside: int) -> None:
    made = study(window=(0.0, 60.0))
    ask(made, "app", [-1.0])
    skewed(made, "access", shift, shift, shift)
    assert asked(total(made, made.lanes(), made.window)) == inside

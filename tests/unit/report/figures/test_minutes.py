"""F3 and what is told twice: a minute without requests, a minute without errors, and what two methods say of one outage."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.fakes.studies import T0, ask, mark, study

from edgekeeper.model.time import Span
from edgekeeper.report.document import Window
from edgekeeper.report.figures.minutes import f3, groups
from edgekeeper.report.figures.readings import JOURNALS, MINUTES, Reading, agreed, by_method, episodes, readings, told_twice
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Study

SLOTS = (3.0, 13.0, 33.0, 43.0)
"""When in each minute the clients on a schedule ask."""


def edge(dark: dict[int, int], *marks: Mark) -> Study:
    """A public class that asks four times a minute, of which so many are missing in some minutes, beside a busy one."""
    made = study(marks, window=(0.0, 1440.0), baseline=(-1440.0, 0.0), groups=("public", "lan"))
    for minute in range(-24, 24):
        ask(made, "site", [60.0 * minute + s for s in SLOTS[: 4 - dark.get(minute, 0)]], group="public")
        ask(made, "site", [60.0 * minute + s for s in range(0, 60, 7)], group="lan")
    return made


def test_a_class_on_a_schedule_that_falls_silent_is_seen() -> None:
    figure = f3(edge({8: 2, 9: 4}))
    assert figure.answer == "public: 6 requests that were due did not come, in 2 minutes"
    assert figure.table is not None
    assert figure.table.columns == ("minute", "public", "bad", "lan", "bad")
    assert figure.table.rows[9] == ("04:49", "0", "0", "9", "0")
    public, lan = figure.multiples
    assert (public.name, public.minutes[9][1:], lan.minutes[9][1:]) == ("public", (0, 0), (9, 0))


def test_silence_of_clients_that_come_by_chance_is_judged_by_its_probability() -> None:
    made = study(window=(0.0, 600.0), baseline=(-600.0, 0.0))
    ask(made, "site", [-600 + 10 * i + (i % 7) for i in range(40)])
    ask(made, "site", [t for t in range(0, 600, 15) if not 120 <= t < 180])
    (note,) = f3(made).notes
    assert "4.0 requests a minute were to be expected" in note
    assert "comes by chance with 1.8 %: the silence is no proof" in note
    made = study(window=(0.0, 600.0), baseline=(-600.0, 0.0))
    ask(made, "site", [-600 + i + (i % 3) * 0.1 for i in range(0, 600, 2)] + [-1.0])
    ask(made, "site", [t for t in range(600) if not 120 <= t < 180])
    (note,) = f3(made).notes
    assert "does not explain the silence from 04:42:00 (1 minute)" in note


def test_minutes_that_no_source_covers_are_not_zero() -> None:
    made = study(window=(0.0, 600.0))
    ask(made, "site", range(120, 300, 5))
    (series,) = f3(made).multiples
    assert [n for _, n, _ in series.minutes][:6] == [None, None, 12, 12, 12, None]
    assert not f3(study()).measured


def test_a_class_is_on_a_schedule_when_the_config_or_an_even_quiet_time_says_so() -> None:
    public, lan = groups(edge({}))
    assert (public.due, public.expected) == (4.0, 4.0)
    assert lan.due == 9.0
    uneven = edge({-5: 1})
    assert groups(uneven)[0].due is None
    uneven.settings = replace(uneven.settings, periodic={"public": 4.0})
    assert groups(uneven)[0].due == 4.0


def watchdog(trigger: float, answer: float, host: str) -> list[Mark]:
    """A journal of a watchdog that restarts and hears an answer."""
    return [
        mark(trigger, Kind.WATCH_ACTING, "proxy", f"{host}.log", host, what="fingerprint seen"),
        mark(trigger + 2, Kind.WATCH_RESTARTED, "proxy", f"{host}.log", host),
        mark(answer, Kind.WATCH_PROVEN, "proxy", f"{host}.log", host),
    ]


def test_two_minutes_of_the_one_and_forty_seconds_of_the_other_can_both_be_true() -> None:
    made = edge({8: 2, 9: 4}, *watchdog(505, 545, "edge-1"), *watchdog(505, 585, "edge-2"))
    found = {r.method: r for r in readings(made)}
    assert found[MINUTES].span == Span(60.0, 180.0), "more were missing in two minutes than one minute has: one was missed twice"
    figure = told_twice(made)
    assert figure.data["episodes"][0]["methods"] == {MINUTES: [60.0, 180.0], JOURNALS: [39.0, 81.0]}
    assert figure.data["episodes"][0]["agree"]
    assert figure.table is not None
    assert figure.table.rows[-1][3:] == ("1 min 0 s to 1 min 21 s", "can all be true")


def test_readings_that_cannot_both_be_true_are_shown_as_such() -> None:
    made = edge({8: 4, 9: 4, 10: 4}, *watchdog(505, 515, "edge-1"))
    figure = told_twice(made)
    assert figure.answer.endswith("of 1 they cannot all be true")
    assert figure.table is not None
    assert figure.table.rows[-1][3:] == ("-", "can only be true if it began well before the watchdog's trigger")
    assert agreed([Span(0, 10), Span(11, 20)]) is None


def test_half_a_dip_in_two_minutes_proves_no_length() -> None:
    (only,) = readings(edge({8: 2, 9: 2}))
    assert only.span == Span(0.0, 120.0)
    assert not told_twice(edge({8: 2, 9: 2})).measured


def test_a_journal_of_which_the_minutes_show_nothing_was_shorter_than_a_minute() -> None:
    figure = told_twice(edge({}, *watchdog(505, 525, "edge-1")))
    assert figure.data["episodes"][0]["methods"][MINUTES] == [0.0, 60.0]


def test_a_minute_that_no_log_covers_is_no_witness_that_all_came() -> None:
    made = edge({}, *watchdog(505, 525, "edge-1"))
    made.book.sources["access"].last = T0 + 490
    made.memo.clear()
    assert not told_twice(made).measured


def test_readings_far_apart_are_of_several_outages() -> None:
    def at(begin: float, end: float, method: str = JOURNALS) -> Reading:
        return Reading(method, "x", begin, end, Span(0, end - begin), "")

    assert [len(e) for e in episodes([at(0, 10), at(60, 70), at(200, 210)])] == [2, 1]
    assert by_method([at(0, 10), at(5, 40)]) == {JOURNALS: Span(0, 35)}


def test_an_open_end_is_told_as_open() -> None:
    made = study([mark(100, Kind.WATCH_ACTING, "proxy", "edge.log", "edge-1", what="fingerprint seen")], window=(0.0, 600.0))
    (only,) = readings(made)
    assert math.isinf(only.span.max_s)
    assert made.window == Window(T0, T0 + 600)

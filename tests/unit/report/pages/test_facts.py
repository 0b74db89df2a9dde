from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.fakes import reports

from edgekeeper.model.time import Span
from edgekeeper.report.pages import facts
from edgekeeper.report.pages.when import times

SAID = times(reports.BEGIN, reports.END)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (Span(40.2, 79.1), "40 s to 1 min 20 s"),
        (Span(0.8, 1.3), "0.80 s to 1.30 s"),
        (Span(0.0, 4.0), "less than 4.00 s"),
        (Span(0.0, 90.0), "less than 1 min 30 s"),
        (Span(41.0, math.inf), "at least 41 s"),
        (Span(2.0, math.inf), "at least 2.00 s"),
    ],
)
def test_a_duration_is_an_interval_rounded_outwards(span: Span, text: str) -> None:
    assert facts.lasted(span) == text


def test_the_facts_beside_the_verdict() -> None:
    assert dict(facts.facts(reports.demo(), SAID)) == {
        "Window": "24m (first cordon - 60 s to last uncordon + 300 s)",
        "Baseline": "04:24:00 to 04:48:00 (as long, right before)",
        "Outages": "24",
        "Longest": "1 min 16 s to 1 min 23 s (syncthing)",  # not the one whose end nobody saw
        "Lines read": "8,214, 3 skipped",
    }
    none = replace(reports.demo(), baseline=None, outages=(), skipped={})
    assert dict(facts.facts(none, SAID))["Outages"] == "none seen"
    assert dict(facts.facts(none, SAID))["Baseline"] == "none"
    assert facts.read(none) == "8,214 lines, all of them read."


def test_columns_that_say_nothing_are_left_out() -> None:
    outages = reports.hurts()
    assert "told by" not in facts.outage_table(outages, SAID).columns
    two = (replace(outages[0], source="probe"), *outages[1:])
    assert facts.outage_table(two, SAID).columns == facts.OUTAGE_COLUMNS
    one_class = tuple(replace(h, group="") for h in outages)
    assert "clients" not in facts.outage_table(one_class, SAID).columns
    assert facts.source_table(({"name": "a", "lines": 3},), SAID).columns == ("source", "lines")


def test_a_clock_without_a_bound_says_so() -> None:
    assert facts.clock_rows(reports.demo().clocks)[2] == (
        "gw-1",
        "+0.412 s",
        "no bound",
        "+0.412 s",
        "7 BGP notifications, one way",
        "no: it drifted or was set meanwhile",
    )


def test_reasons_come_most_first_and_only_those_that_happened() -> None:
    report = replace(reports.demo(), skipped={"b": 1, "a": 1, "c": 9000, "d": 0})
    assert facts.skipped_rows(report) == (("c", "9,000"), ("a", "1"), ("b", "1"))

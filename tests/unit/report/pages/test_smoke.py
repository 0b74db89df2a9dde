from __future__ import annotations

import math
import re

import pytest
from tests.fakes import reports

from edgekeeper.report.document import Smoke
from edgekeeper.report.pages import smoke
from edgekeeper.report.pages.when import times

SAID = times(0, 3600)
FAST = Smoke("a", ((0.0, 0.010, 0.020, 0.0), (20.0, None, None, 1.0), (40.0, 0.010, 0.1, 0.25)))


def test_where_nothing_answered_the_line_breaks_and_the_failures_hang_down() -> None:
    text = str(smoke.plot("k", FAST, SAID))
    assert re.search(r'd="M0 64h333.3M666.7 64h333.3" class="median"', text)
    assert re.search(r'd="M333.3 0v18h333.4V0zM666.7 0v4.5h333.3V0z" class="failed"', text)
    assert "median 10 ms, 95th percentile up to 100 ms, failures in 2 of 3 slots" in text


def test_a_failure_in_a_hundred_is_seen() -> None:
    assert 'd="M0 0v2h1000V0z" class="failed"' in str(smoke.plot("k", Smoke("a", ((0.0, 0.01, 0.02, 0.01),)), SAID))


def test_the_scale_goes_by_decades_that_are_labelled() -> None:
    text = str(smoke.plot("k", Smoke("a", ((0.0, 0.0009, 0.0011, 0.0), (20.0, 0.5, 1.2, 0.0))), SAID))
    assert re.findall(r'top:[0-9.-]+px">([^<]+)<', text) == ["0.1 ms", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.00012, "0.12 ms"), (0.0012, "1.2 ms"), (0.012, "12 ms"), (0.9994, "999 ms"), (1.0, "1 s"), (1.25, "1.2 s"), (210, "210 s")]
)
def test_latencies_are_written_as_people_do(seconds: float, text: str) -> None:
    assert smoke.took(seconds) == text


def test_many_slots_are_put_together_without_hiding_a_failure() -> None:
    long = Smoke("a", tuple((20.0 * i, 0.01, 0.02, 1.0 if i == 77 else 0.0) for i in range(2000)))
    few = smoke.slots(long)
    assert len(few) <= smoke.MOST_SLOTS
    assert sum(f > 0 for *_, f in few) == 1
    assert max(f for *_, f in few) == pytest.approx(1 / 9)


def test_where_nothing_was_asked_nothing_is_drawn() -> None:
    rare = Smoke("a", ((0.0, 0.1, 0.1, 0.0), (60.0, 0.1, 0.1, 0.0), (120.0, 0.1, 0.1, 0.0), (600.0, 0.1, 0.1, 0.0), (660.0, 0.1, 0.1, 0.0)))
    assert smoke.ends(rare.slots) == (60, 120, 210, 660, 720)
    axis = smoke.axis_of([rare, FAST])
    assert (axis.begin, axis.end) == (0, 720)
    text = str(smoke.plot("k", rare, SAID, axis=axis))
    assert re.search(r'd="M0 64h83.3V64h83.4V64h125M833.3 64h83.4V64h83.3" class="median"', text)


def test_those_that_failed_most_come_first() -> None:
    assert [s.name for s in smoke.worst_first((Smoke("good", ((0.0, 1, 1, 0.0),)), FAST))] == ["a", "good"]


def test_the_table_says_it_in_words() -> None:
    assert smoke.rows_of((FAST,), SAID)[1] == ("a", "00:00:20", "no answer", "", "100 %")


@pytest.mark.parametrize("odd", [Smoke("x", ()), Smoke("x", ((0.0, 0.0, math.inf, math.nan), (1.0, 1e-12, 1e12, -1.0)))])
def test_odd_numbers_do_not_stop_a_page(odd: Smoke) -> None:
    assert "nan" not in str(smoke.plot("k", odd, SAID))


def test_the_demo_goes_dark_once() -> None:
    assert [smoke.sentence(s).endswith("failures in 4 of 72 slots") for s in reports.smokes()] == [True, False]

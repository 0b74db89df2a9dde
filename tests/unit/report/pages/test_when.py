from __future__ import annotations

from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.pages.when import UTC, Zone, clock, date, fixed, iso, known, ticks, times

NOON = 1788782400.0  # 2026-09-07 12:00:00 UTC


@settings(max_examples=25)
@given(st.integers(-62135596800000, 253402300799000))
def test_the_calendar_is_that_of_the_standard_library(milli: int) -> None:
    at = datetime.fromtimestamp(0, UTC_ZONE) + timedelta(milliseconds=milli)
    assert iso(milli / 1000) == at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@settings(max_examples=15)
@given(st.floats(-6e10, 2e11), st.integers(-14 * 4, 14 * 4))
def test_day_and_clock_are_those_of_the_zone(at: float, quarters: int) -> None:
    there = datetime.fromtimestamp(0, timezone(timedelta(minutes=15 * quarters))) + timedelta(seconds=round(at))
    zone = fixed(900 * quarters)
    assert (date(round(at), zone), clock(round(at), zone)) == (there.strftime("%Y-%m-%d").rjust(10, "0"), there.strftime("%H:%M:%S"))


@pytest.mark.parametrize("at", [None, float("nan"), float("inf"), float("-inf"), 1e300, -1e18])
def test_what_is_no_time_is_not_written_as_one(at: float | None) -> None:
    assert not known(at)
    assert iso(at) is None
    assert at is None or (date(at), clock(at)) == ("unknown", "unknown")


def test_an_end_that_was_not_seen_says_so() -> None:
    said = times(NOON, NOON + 60)
    assert [said.at(at) for at in (NOON, None, float("inf"), float("-inf"))] == ["12:00:00", "unknown", "after", "before"]


def test_a_window_over_midnight_writes_the_day() -> None:
    assert times(NOON, NOON + 86400).at(NOON) == "09-07 12:00:00"
    assert times(NOON, NOON + 3600, fixed(12 * 3600)).at(NOON) == "00:00:00"
    assert times(NOON - 60, NOON + 60, fixed(12 * 3600)).minute(NOON) == "09-08 00:00"


@settings(max_examples=25)
@given(st.floats(1, 1e8), st.integers(1, 14), st.sampled_from([UTC, fixed(7200), fixed(-12600)]))
def test_ticks_are_few_even_and_inside(length: float, most: int, zone: Zone) -> None:
    found = ticks(NOON + 0.3, NOON + 0.3 + length, most, zone)
    assert len(found) <= most
    assert all(NOON + 0.3 <= t.at <= NOON + 0.3 + length for t in found)
    assert len({round(b.at - a.at, 3) for a, b in pairwise(found)}) <= 1
    for place, tick in enumerate(found):
        again = next((later for later in range(place + 1, len(found)) if found[later].label == tick.label), None)
        assert again is None or length > 86400 * 300 or any(t.day for t in found[place:again]), "the same time of another day stands behind that day"


def test_ticks_lie_on_round_local_times_and_midnight_is_the_day() -> None:
    found = ticks(NOON, NOON + 86399, 12, fixed(7200))
    assert [t.label for t in found] == ["14:00", "16:00", "18:00", "20:00", "22:00", "8 Sep", "02:00", "04:00", "06:00", "08:00", "10:00", "12:00"]
    assert [t.label for t in found if t.day] == ["8 Sep"]
    assert [t.label for t in ticks(NOON, NOON + 3, 4)] == ["12:00:00", "12:00:01", "12:00:02", "12:00:03"]


@pytest.mark.parametrize(("begin", "end"), [(NOON, NOON), (NOON, NOON - 1), (NOON, float("inf")), (float("nan"), NOON)])
def test_no_axis_has_no_ticks(begin: float, end: float) -> None:
    assert ticks(begin, end, 5) == ()

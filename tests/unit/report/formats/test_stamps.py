from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.stamps import utc

_MOMENTS = st.integers(86400, 7258118400 - 2 * 86400).map(lambda at: datetime.fromtimestamp(at, UTC).replace(tzinfo=None, microsecond=at % 999_983))


@settings(max_examples=40)
@given(_MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_every_dress_of_a_moment_reads_as_that_moment(moment: datetime, zone: int) -> None:
    at = moment.replace(tzinfo=UTC).timestamp()
    there = moment + timedelta(minutes=zone)
    sign, hours, minutes = "-" if zone < 0 else "+", *divmod(abs(zone), 60)
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    iso = f"{there:%Y-%m-%dT%H:%M:%S}".rjust(19, "0")
    written = f"{there.day:02d}/{months[there.month - 1]}/{there.year:04d}:{there:%H:%M:%S}"
    assert stamps.iso(f"{iso}.{there.microsecond:06d}{sign}{hours:02d}:{minutes:02d}") == pytest.approx(at, abs=2e-6)
    assert stamps.iso(f"{iso}{sign}{hours:02d}{minutes:02d}") == int(at // 1)
    assert stamps.clf(f"{written} {sign}{hours:02d}{minutes:02d}") == int(at // 1)


@settings(max_examples=40)
@given(_MOMENTS, st.integers(0, 363))
def test_a_stamp_without_a_year_is_of_the_year_before_the_last_change(moment: datetime, ago: int) -> None:
    moment = moment.replace(microsecond=0)
    until = moment.replace(tzinfo=UTC).timestamp() + ago * 86400
    text = f"{moment:%b %e %H:%M:%S}"
    assert stamps.bsd(text, utc, until=until) == moment.replace(tzinfo=UTC).timestamp() or (moment.month, moment.day) == (2, 29)


def test_a_log_over_the_turn_of_the_year_reads_in_order() -> None:
    until = utc(2027, 1, 1, 5, 0, 0)
    lines = ("Nov 29 20:33:29", "Dec 31 23:59:59", "Jan  1 00:00:00", "Jan 01 04:59:59")
    found = [stamps.bsd(line, utc, until=until) for line in lines]
    assert found == [utc(2026, 11, 29, 20, 33, 29), utc(2026, 12, 31, 23, 59, 59), utc(2027, 1, 1, 0, 0, 0), utc(2027, 1, 1, 4, 59, 59)]


def test_a_copied_log_takes_its_year_from_what_it_says_itself() -> None:
    known = utc(2024, 12, 31, 23, 0, 0)
    assert stamps.bsd("Jan  1 00:00:01", utc, until=utc(2026, 11, 30, 0, 0, 0), near=known) == utc(2025, 1, 1, 0, 0, 1)
    assert stamps.bsd("Dec 31 22:00:00", utc, near=known) == utc(2024, 12, 31, 22, 0, 0)


def test_a_leap_day_is_of_a_leap_year() -> None:
    assert stamps.bsd("Feb 29 00:00:00", utc, until=utc(2027, 1, 1, 0, 0, 0)) == utc(2024, 2, 29, 0, 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-04-32T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2026-01-01T00:00:00",  # no zone, and nothing to read it by
        "2026-01-01T00:00:00Zx",
        "٢٠٢٦-01-01T00:00:00Z",
        "",
    ],
)
def test_what_no_calendar_has_is_no_stamp(text: str) -> None:
    assert stamps.iso(text) is None


def test_a_stamp_without_zone_is_read_by_the_zone_of_its_source() -> None:
    def berlin(*civil: float) -> float:
        return utc(*civil) - 3600  # type: ignore[arg-type]

    at = utc(2026, 11, 29, 20, 33, 49) - 3600
    assert stamps.iso("2026/11/29 20:33:49.250", berlin) == at + 0.25
    assert stamps.clf("29/Nov/2026:20:33:49.250", berlin) == at + 0.25
    assert stamps.asctime("Sun Nov 29 20:33:49 2026", berlin) == at
    assert stamps.bsd("Nov 29 20:33:49", berlin, until=at) == at


def test_a_leap_second_asks_the_calendar_for_no_second_60() -> None:
    def calendar(*civil: float) -> float:
        assert civil[5] < 60
        return utc(*civil)  # type: ignore[arg-type]

    assert stamps.iso("2016-12-31 23:59:60.5", calendar) == utc(2017, 1, 1, 0, 0, 0.5)


def test_how_coarse_a_stamp_is() -> None:
    assert [stamps.coarse(text) for text in ("Nov 29 20:33:29", "20:33:49.961", "2026-09-07T06:55:10,503803+02:00")] == [1.0, 1e-3, 1e-6]


@settings(max_examples=60)
@given(st.text(max_size=40))
def test_nothing_raises(text: str) -> None:
    for read in (stamps.iso, stamps.clf):
        read(text)
        read(text, utc)
    stamps.asctime(text, utc)
    stamps.bsd(text, utc, until=1.0)
    stamps.coarse(text)
    stamps.micro(text)

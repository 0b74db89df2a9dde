from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.stamp import Calendar, iso, stamp

NEWEST = datetime(2026, 11, 30, 10, 0, tzinfo=UTC).timestamp()
EAST = Calendar(zone_s=3600, newest=NEWEST)


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("2026-09-07T06:58:01.123Z WARN client.go:126: x", "2026-09-07T06:58:01.123Z"),
        ("2026-09-07T06:58:01.123456789Z text", "2026-09-07T06:58:01.123456Z"),
        ("2026-09-07T06:58:01+0200 lb-1 haproxy[1]: journalctl -o short-iso", "2026-09-07T04:58:01Z"),
        ("2026-09-07T06:58:01.5-03:30 x", "2026-09-07T10:28:01.5Z"),
        ("2026-09-07 06:58:01,250 a Python log in local time", "2026-09-07T05:58:01.25Z"),
        ("2026/11/29 20:33:49.961 BGP: x", "2026-11-29T19:33:49.961Z"),
        ('[2026-09-07T04:55:12.103Z] "GET / HTTP/2" 200', "2026-09-07T04:55:12.103Z"),
        ("Sep 07 06:52:08 proxy-1 watchdog[811]: x", "2026-09-07T05:52:08Z"),
        ("Sep  7 06:52:08 proxy-1 watchdog[811]: x", "2026-09-07T05:52:08Z"),
        ("<13>Dec 24 12:00:00 proxy-1 of the year before", "2025-12-24T11:00:00Z"),
        ("Feb 29 12:00:00 proxy-1 of the last leap year", "2024-02-29T11:00:00Z"),
        ("Sun Nov 29 20:35:03 2026: (VI_dns) Entering BACKUP STATE", "2026-11-29T19:35:03Z"),
        ("W1129 20:33:29.834123       1 controller.go:12] x", "2026-11-29T19:33:29.834123Z"),
        ('192.0.2.9 - - [29/Nov/2026:20:56:19 +0000] "GET / HTTP/1.1" 200', "2026-11-29T20:56:19Z"),
        ('time="2026-09-07T17:22:11Z" level=warning', "2026-09-07T17:22:11Z"),
        ('{"level":"info","ts":"2026-03-02T12:30:07Z","msg":"x"}', "2026-03-02T12:30:07Z"),
        ('{"level":"info","ts":1772454607.5,"msg":"x"}', "2026-03-02T12:30:07.5Z"),
        ('{"level":30,"time":1772454607500,"msg":"pino"}', "2026-03-02T12:30:07.5Z"),
        ("1772454607.5 x", "2026-03-02T12:30:07.5Z"),
    ],
)
def test_when_a_line_says_it_was_written(line, at):
    assert stamp(line.encode(), EAST) == pytest.approx(datetime.fromisoformat(at).timestamp(), abs=2e-6)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "backend apps has no server available!",
        "2026-13-07T06:58:01Z x",
        "2026-02-29T06:58:01Z x",
        "2026-09-07T24:58:01Z x",
        "Sex 07 06:52:08 x",
        "Sep 31 06:52:08 x",
        "\tat 2026-09-07T06:58:01Z in the middle",
        "17724546071 x",
        "level=info time=soon",
    ],
)
def test_a_line_that_does_not_say_when_is_not_guessed(line):
    assert stamp(line.encode(), EAST) is None


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**33).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)), st.integers(-14 * 60, 14 * 60))
def test_the_calendar_is_that_of_the_standard_library(moment, minutes):
    aware = moment.astimezone(timezone(timedelta(minutes=minutes)))
    assert iso(aware.isoformat().encode()) == pytest.approx(aware.timestamp(), abs=2e-6)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([b"", b"2026-09-07T06:58:01", b"Sep 07 06:52:08 ", b"[29/Nov/2026:", b'{"ts":', b"W1129 "]))
def test_no_line_makes_it_fail(rest, head):
    stamp(head + rest, EAST)


def test_a_year_that_no_clock_shows_is_no_stamp() -> None:
    assert iso(b"9999-12-31T23:59:59Z") is None
    assert iso(b"0001-01-01T00:00:00Z") is None

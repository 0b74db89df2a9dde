"""Stamps without a zone, also in the hour that is there twice when the clock is set back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from edgekeeper.errors import UsageError
from edgekeeper.report.ingest.part import Part, read_part
from edgekeeper.report.ingest.zones import Local, zone_of
from edgekeeper.report.kinds import Kind
from edgekeeper.report.rules import Rules

_DOWN = "BGP: [PXVXG-TFNNT] %ADJCHANGE: neighbor 192.0.2.6(n1) in vrf default Down BGP Notification send"
_UP = "BGP: [N9HHH-F8H1M] %ADJCHANGE: neighbor 192.0.2.6(n1) in vrf default Up"


def utc(text: str) -> float:
    return datetime.fromisoformat(f"2026-10-25T{text}").replace(tzinfo=UTC).timestamp()


def test_an_hour_that_is_there_twice_is_asked_about_and_no_other() -> None:
    asked = []

    def later(first: float, second: float) -> float:
        asked.append(second - first)
        return second

    local = Local(zone_of("Europe/Berlin"), later)
    assert local(2026, 10, 25, 1, 59, 59.5) == utc("00:00:00") - 0.5
    assert not local.twice
    assert local(2026, 10, 25, 2, 30, 1.0) == local(2026, 10, 25, 2, 30, 1.0) == utc("01:30:01")
    assert asked == [3600.0, 3600.0]
    assert local.twice
    assert local(2026, 10, 25, 3, 0, 0.0) == utc("02:00:00")
    assert Local(zone_of("Europe/Berlin"))(2026, 10, 25, 2, 30, 1.0) == utc("00:30:01")


def test_an_hour_that_was_never_there_asks_nobody() -> None:
    local = Local(zone_of("Europe/Berlin"), lambda *_: pytest.fail("asked"))
    assert local(2026, 3, 29, 2, 30, 0.0) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("word", ["Mars/Phobos", "../../etc/passwd", "+99:00", "a\0b"])
def test_what_is_no_zone(word: str) -> None:
    with pytest.raises(UsageError):
        zone_of(word)


def marks(tmp_path: Path, lines: list[str]) -> tuple[list[tuple[Kind, float]], list[str]]:
    log = tmp_path / "gw-frr.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    book = read_part(Part(str(log), "gw", zone="Europe/Berlin"), Rules()).book
    return [(mark.kind, mark.at or 0.0) for mark in book.marks], book.sources["gw"].warnings


def test_the_order_of_lines_tells_which_hour_was_meant(tmp_path: Path) -> None:
    found, warnings = marks(tmp_path, [f"2026/10/25 02:59:30.000 {_DOWN}", f"2026/10/25 02:00:20.000 {_UP}", f"2026/10/25 02:10:00.000 {_DOWN}"])
    assert found == [(Kind.BGP_DOWN, utc("00:59:30")), (Kind.BGP_UP, utc("01:00:20")), (Kind.BGP_DOWN, utc("01:10:00"))]
    assert any("an hour is there twice" in warning for warning in warnings)


def test_two_threads_that_write_in_disorder_are_no_change_of_the_clock(tmp_path: Path) -> None:
    found, _ = marks(tmp_path, [f"2026/10/25 02:10:00.900 {_DOWN}", f"2026/10/25 02:10:00.100 {_UP}"])
    assert found == [(Kind.BGP_DOWN, utc("00:10:00.900")), (Kind.BGP_UP, utc("00:10:00.100"))]


def test_an_access_log_is_dated_by_the_begin_of_requests_that_may_have_taken_long(tmp_path: Path) -> None:
    log = tmp_path / "lb.log"
    stamps = ["02:20:00.000", "02:05:00.000", "02:59:00.000", "02:01:00.000", "02:30:00.000"]
    line = '198.51.100.4:52562 [25/Oct/2026:{}] web apps/app-1 0/0/0/1/1 200 116 - - ---- 4/2/1/1/0 0/0 "GET /ok HTTP/1.1"\n'
    log.write_text("".join(line.format(stamp) for stamp in stamps))
    book = read_part(Part(str(log), "lb", zone="Europe/Berlin"), Rules()).book
    seconds = [cell.second for lane in book.cells.lanes() for cell in book.cells.cells(lane)]
    assert seconds == [utc(text) for text in ("00:05:00", "00:20:00", "00:59:00", "01:01:00", "01:30:00")]

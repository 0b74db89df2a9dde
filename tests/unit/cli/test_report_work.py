"""What ``edgekeeper report`` makes of its options, and what it refuses before gigabytes are read."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from edgekeeper.cli.main import run
from edgekeeper.cli.report_work import Asked, check, gather, judge, write_page
from edgekeeper.config.report import ReportOf
from edgekeeper.errors import RefusedError, UsageError
from edgekeeper.report.book import Book, Source
from edgekeeper.report.cells import Lane
from edgekeeper.report.ingest.cells_file import write
from edgekeeper.report.kinds import Request
from edgekeeper.report.make import Report
from edgekeeper.report.rules import Rules

SAID = ReportOf.model_validate({})
T0 = datetime.fromisoformat("2026-09-07T04:00:00Z").timestamp()


@pytest.fixture
def book() -> Book:
    made = Book(sources={"access.log": Source("access.log", "access.log", "traefik-json", lines=1, first=T0, last=T0)})
    request = Request(T0, 0.01, 200, "web")
    made.cells.add(Lane("access.log", "web", ""), request, Rules().verdict(request))
    made.cells.settle()
    return made


def reported(book: Book, **options: object) -> Report:
    return judge(book, Asked(**options), SAID)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "zone", "begin", "end"),
    [
        ("2026-09-07T04:48Z..05:12Z", "", "2026-09-07T04:48Z", "2026-09-07T05:12Z"),
        ("2026-09-07T04:48Z..05:12", "Europe/Berlin", "2026-09-07T04:48Z", "2026-09-07T05:12Z"),
        ("2026-09-07T23:50Z..00:10Z", "", "2026-09-07T23:50Z", "2026-09-08T00:10Z"),
        ("2026-09-07T06:48:00+02:00..07:12:00+02:00", "", "2026-09-07T04:48Z", "2026-09-07T05:12Z"),
        ("2026-09-07T06:48..07:12", "Europe/Berlin", "2026-09-07T04:48Z", "2026-09-07T05:12Z"),
        ("2026-09-07T00:30+02:00..22:50Z", "", "2026-09-06T22:30Z", "2026-09-06T22:50Z"),
        ("2026-09-07 04:48..2026-09-08 05:12", "", "2026-09-07T04:48Z", "2026-09-08T05:12Z"),
        ("2026-09-07T04:48Z+24m", "", "2026-09-07T04:48Z", "2026-09-07T05:12Z"),
    ],
)
def test_windows(book: Book, text: str, zone: str, begin: str, end: str) -> None:
    window = reported(book, window=text, zone=zone).window
    assert (window.begin, window.end) == (datetime.fromisoformat(begin).timestamp(), datetime.fromisoformat(end).timestamp())


@pytest.mark.parametrize("text", ["..", "yesterday..today", "2026-09-07T04:48Z", "2026-09-07T04:48Z+0s", "2026-09-07T05Z..2026-09-07T04Z", "2026-09-07T05Z..x"])
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(UsageError):
        check(Asked(window=text), None)


def test_a_baseline_within_the_window_is_refused() -> None:
    with pytest.raises(UsageError, match="overlaps"):
        check(Asked(window="2026-09-07T04:10Z..04:20Z", baseline="2026-09-07T04:00Z..04:11Z"), None)
    check(Asked(window="2026-09-07T04:10Z..04:20Z", baseline="2026-09-07T04:00Z..04:10Z"), None)


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "{", '{"schema": 1}'])
def test_what_is_no_former_report(tmp_path: Path, text: str) -> None:
    (tmp_path / "former.json").write_text(text)
    with pytest.raises(UsageError, match="is not a report"):
        check(Asked(against=tmp_path / "former.json"), None)


@pytest.mark.parametrize(
    "options",
    [
        {"clocks": ("nosuch=5s",)},
        {"reference": "nosuch"},
        {"clocks": ("access.log=5s",), "reference": "access.log"},
        {"clocks": ("gw=--5s",)},
        {"clocks": ("gw=",)},
    ],
)
def test_a_clock_that_would_not_be_corrected_is_refused(book: Book, options: dict[str, object]) -> None:
    book.sources["frr.log"] = Source("frr.log", "frr.log", "frr", node="gw")
    with pytest.raises(UsageError):
        reported(book, **options)
    assert {clock.node: clock.shift_s for clock in reported(book, clocks=("gw=-5s",)).clocks}["gw"] == -5.0


def test_a_clock_that_is_known_to_be_wrong_is_not_the_one_of_reference(book: Book) -> None:
    made = reported(book, clocks=("access.log=5s",), window="2026-09-07T04:00:04Z+2s")
    assert [(clock.node, clock.shift_s) for clock in made.clocks] == [("access.log", 5.0)]
    assert "1 request failed" in made.verdict
    book.sources["frr.log"] = Source("frr.log", "frr.log", "frr", node="gw")
    assert {clock.node: clock.shift_s for clock in reported(book, clocks=("access.log=5s",)).clocks} == {"gw": 0.0, "access.log": 5.0}


def test_what_is_no_file_is_not_replaced_and_not_waited_for(book: Book, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RefusedError, match="is no file"):
        write(book, pipe)
    with pytest.raises(UsageError, match="is no page"):
        write_page(reported(book), pipe)
    assert pipe.is_fifo()


def test_a_page_in_no_folder_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        check(Asked(), tmp_path / "nosuch" / "roll.html")


def test_an_empty_name_is_not_the_current_folder() -> None:
    with pytest.raises(UsageError, match="is empty"):
        gather(Asked(logs=("",)), SAID, None)


@pytest.mark.parametrize("more", [["--html", "roll.html"], ["--fail-if", "outages > 0"], ["--against", "former.json"]])
def test_what_sql_does_not_answer_is_refused(more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "access.log").write_text("x")
    assert run(["report", str(tmp_path / "access.log"), "--sql", "SELECT 1", *more]) == UsageError.exit_code
    assert "in place of a report" in capsys.readouterr().err

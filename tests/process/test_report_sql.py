"""Questions in SQL reach what was read and nothing else; Parquet holds the same."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from edgekeeper.errors import MissingError, RefusedError, StepFailedError, UsageError
from edgekeeper.report.book import Book, Source
from edgekeeper.report.cells import Lane
from edgekeeper.report.ingest.cells_file import write as write_cells
from edgekeeper.report.ingest.sql import TABLES, ask, write_parquet
from edgekeeper.report.kinds import Kind, Mark, Request
from edgekeeper.report.rules import Rules

BEGIN = 1_788_756_900.0


@pytest.fixture(scope="module")
def book() -> Book:
    made, rules = Book(), Rules()
    made.sources["a.log"] = Source("a.log", "/logs/a.log", "traefik-json", lines=3, first=BEGIN)
    for number, status in enumerate((200, 503, 200)):
        request = Request(BEGIN + number, 0.1, status, "git", "192.0.2.7")
        made.cells.add(Lane("a.log", "git", "lan"), request, rules.verdict(request))
    made.marks.append(Mark(BEGIN + 0.5, Kind.NOTE, "it's", "a 'quoted' one; DROP TABLE cells", data={"n": 1.0}))
    return made


def test_what_was_read_can_be_asked_about(book: Book) -> None:
    columns, rows = ask(book, 'SELECT router, "class", sum(good) AS good, sum(bad) AS bad, min(stamp) AS first FROM cells GROUP BY ALL')
    assert columns == ("router", "class", "good", "bad", "first")
    assert rows == [("git", "lan", 2, 1, "2026-09-07T04:55:00.000Z")]
    _, joined = ask(
        book, "SELECT m.object, m.data->>'n', s.status, bad_first_start, good_first_start FROM marks m, minutes s, cells c WHERE status=503 AND bad=1"
    )
    assert joined == [("it's", "1.0", 503, BEGIN + 1, None)]
    _, several = ask(book, "SELECT [1, 2], {'a': 1.5::DECIMAL(4,2)}, 'nan'::DOUBLE, x'0a'::BLOB, DATE '2026-01-01', INTERVAL 2 MINUTE")
    assert several == [([1, 2], {"a": 1.5}, None, several[0][3], "2026-01-01", 120.0)]


def test_every_table_is_there_and_may_be_empty(book: Book) -> None:
    for table in TABLES:
        assert ask(Book(), f"SELECT * FROM {table}")[1] == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT content FROM read_text('{file}')",
        "SELECT * FROM glob('/*')",
        "COPY cells TO '{file}.out'",
        "ATTACH '{file}.db'",
        "EXPORT DATABASE '{file}.d'",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "INSTALL httpfs",
        "SET memory_limit = '1TB'",
        "LOAD '{file}'",
        "SELECT nonsense",
        "",
    ],
)
def test_a_question_reaches_no_file_and_no_setting(book: Book, query: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    with pytest.raises(UsageError, match="--sql"):
        ask(book, query.format(file=file))
    assert list(tmp_path.iterdir()) == [file]


def test_an_answer_that_is_too_long_is_refused(book: Book) -> None:
    with pytest.raises(UsageError, match="LIMIT"):
        ask(book, "SELECT * FROM range(11)", rows=10)


def test_parquet_holds_the_same_and_is_whole_or_absent(book: Book, tmp_path: Path) -> None:
    said = write_parquet(book, tmp_path / "it's.parquet")
    assert "it's.minutes.parquet" in said
    found = duckdb.sql(f"SELECT router, bad FROM read_parquet('{str(tmp_path).replace(chr(39), chr(39) * 2)}/it''s.parquet') WHERE bad > 0").fetchall()
    assert found == [("git", 1)]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["it's.parquet", *(f"it's.{t}.parquet" for t in TABLES if t != "cells")])
    with pytest.raises(StepFailedError, match="cannot be written"):
        write_parquet(book, tmp_path / "no" / "such.parquet")


def test_a_log_that_was_named_twice_is_not_lost(book: Book, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("a line\n")
    for write in (write_cells, write_parquet):
        with pytest.raises(RefusedError, match="not overwritten"):
            write(book, log)
    assert log.read_text() == "a line\n"
    kept = tmp_path / "kept.jsonl"
    assert write_cells(book, kept) == write_cells(book, kept)
    assert kept.stat().st_mode & 0o777 == 0o640  # addresses of clients are in it
    write_parquet(book, tmp_path / "kept.parquet")
    write_parquet(book, tmp_path / "kept.parquet")


def test_without_the_extra_the_way_to_it_is_told(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingError, match=r"pip install 'edgekeeper\[sql\]'"):
        ask(book, "SELECT 1")

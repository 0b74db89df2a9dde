"""Questions in SQL about what was read, and its columns as Parquet: both through DuckDB, which is an extra.

The engine lives in memory and may not touch a file, a network or its own settings while somebody's question runs: a question that came
with a mail can do no more than be slow.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from edgekeeper.errors import EdgekeeperError, MissingError, StepFailedError, UsageError
from edgekeeper.report.book import Book
from edgekeeper.report.cells import EDGES_S
from edgekeeper.report.ingest.cells_file import only_over_its_like

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BATCH = 50_000
"""Rows that are handed over at once, a JSON text for each column: 50,000 of four columns take 28 ms, as lists of Python's objects 113 ms, row
by row 16 s (DuckDB 2.0.1, measured 2026-11-30)."""
_ROWS = 1_000_000
"""Rows of an answer; one that has more is cut, which is said."""
_MEMORY = "2GB"

_EDGES = tuple(f"{kind}_{edge}" for kind in ("good", "bad") for edge in ("first_start", "last_start", "first_end", "last_end"))
_LANE = (("source", "VARCHAR"), ("router", "VARCHAR"), ("class", "VARCHAR"))
TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "cells": (*_LANE, ("second", "BIGINT"), *((n, "UINTEGER") for n in ("good", "bad", "gone", "other", "masked")), *((edge, "DOUBLE") for edge in _EDGES)),
    "minutes": (*_LANE, ("minute", "BIGINT"), ("status", "USMALLINT"), ("requests", "UINTEGER")),
    "latencies": (*_LANE, ("minute", "BIGINT"), ("under_s", "DOUBLE"), ("answers", "UINTEGER")),
    "marks": tuple(
        (name, "DOUBLE" if name in {"at_s", "stamp_s"} else "VARCHAR") for name in ("at_s", "kind", "object", "what", "source", "node", "stamp_s", "data")
    ),
    "samples": (
        *((name, "VARCHAR") for name in ("source", "target", "conn")),
        ("sent", "DOUBLE"),
        ("done", "DOUBLE"),
        ("ok", "BOOLEAN"),
        ("slow", "BOOLEAN"),
        ("error", "VARCHAR"),
        *((name, "DOUBLE") for name in ("connect_ms", "tls_ms", "first_byte_ms")),
        ("answered_by", "VARCHAR"),
    ),
    "sources": (
        *((name, "VARCHAR") for name in ("name", "path", "format", "node", "zone")),
        ("lines", "BIGINT"),
        ("skipped", "BIGINT"),
        ("first", "DOUBLE"),
        ("last", "DOUBLE"),
        ("warnings", "VARCHAR"),
    ),
    "clients": (
        ("source", "VARCHAR"),
        ("class", "VARCHAR"),
        ("address", "VARCHAR"),
        ("first", "DOUBLE"),
        ("last", "DOUBLE"),
        ("bad", "UINTEGER"),
        ("ok", "BOOLEAN"),
    ),
}
"""Tables, their columns and types. Times are seconds since 1970 on the clock of the source (``minute``: minutes), nothing is corrected.

``under_s`` is the upper edge of a bin, NULL for that of all longer ones; a time of a kind that there was none of is NULL.
"""
_STAMPS = {"cells": "second", "minutes": "minute * 60", "latencies": "minute * 60", "marks": "at_s", "samples": "sent", "clients": "first"}
"""Of which each table has a column ``stamp``, a TIMESTAMP in UTC."""


def ask(book: Book, query: str, rows: int = _ROWS) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Names of the columns and the rows of the answer, in values that JSON knows; times are ISO 8601 in UTC.

    MissingError when DuckDB is not installed; UsageError says what is wrong with the question, or that its answer is too long.
    """
    duckdb = _engine()
    with _filled(duckdb, book) as base:
        base.execute("SET enable_external_access = false")
        base.execute("SET lock_configuration = true")
        try:
            answer = base.execute(query) if query.strip() else None
            columns = tuple(str(column[0]) for column in answer.description or ()) if answer is not None else ()
            found = answer.fetchmany(rows + 1) if answer is not None and columns else []
        except (duckdb.Error, RuntimeError) as err:
            msg = f"--sql: {' '.join(str(err).split())[:400]}; tables are {', '.join(TABLES)}"
            raise UsageError(msg) from None
    if not columns:
        msg = "--sql: nothing was asked for; write a SELECT"
        raise UsageError(msg)
    if len(found) > rows:
        msg = f"--sql: the answer has more than {rows} rows; add a LIMIT, or count in the question"
        raise UsageError(msg)
    return columns, [tuple(_plain(value) for value in row) for row in found]


def write_parquet(book: Book, path: Path) -> str:
    """Write the cells to ``path`` and every other table beside it (``NAME.minutes.parquet``...); says so in a sentence.

    MissingError when DuckDB is not installed; RefusedError when another kind of file has one of the names; StepFailedError when a file
    cannot be written: what was there stays.
    """
    written, size = [], 0
    duckdb = _engine()
    targets = {table: path if table == "cells" else path.with_name(f"{path.stem}.{table}.parquet") for table in TABLES}
    for target in targets.values():
        only_over_its_like(target, lambda head: head.startswith(b"PAR1"))
    with _filled(duckdb, book) as base:
        for table, target in targets.items():
            temp = target.with_name(f".{target.name}.{uuid4().hex}")
            try:
                try:
                    quoted = str(temp).replace("'", "''")
                    base.execute(f"COPY {table} TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)")
                    temp.chmod(0o640)  # addresses of clients are in one
                    size += temp.stat().st_size
                    temp.replace(target)
                finally:
                    temp.unlink(missing_ok=True)
            except (OSError, duckdb.Error) as err:
                msg = f"{target} cannot be written: {' '.join(str(err).split())[:300]}; what was there stays"
                raise StepFailedError(msg) from None
            written.append(target.name)
    return (
        f"{path}: the cells were written, and beside them {', '.join(written[1:])}; {size / 1024:.0f} KiB in all; to read them here again, keep them as .jsonl"
    )


def _engine() -> Any:
    try:
        import duckdb  # noqa: PLC0415 - an extra: most installations have none
    except ImportError:
        msg = "DuckDB is not installed; install it with: pip install 'edgekeeper[sql]'"
        raise MissingError(msg) from None
    return duckdb


@contextlib.contextmanager
def _filled(duckdb: Any, book: Book) -> Iterator[DuckDBPyConnection]:
    """An engine in memory with all of the book in it."""
    settings = {"memory_limit": _MEMORY, "temp_directory": "", "autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    base = duckdb.connect(":memory:", config=settings)
    try:
        base.execute("SET TimeZone = 'UTC'")
        for table, rows in _rows(book):
            columns = TABLES[table]
            base.execute(f"CREATE TABLE {table} ({', '.join(f'{_quoted(name)} {kind}' for name, kind in columns)})")
            unnested = ", ".join(f"unnest(from_json(?, '[\"{kind}\"]'))" for _, kind in columns)
            while batch := list(islice(rows, _BATCH)):
                by_column = [msgspec.json.encode(column).decode() for column in zip(*batch, strict=True)]
                base.execute(f"INSERT INTO {table} SELECT {unnested}", by_column)
            if table in _STAMPS:
                stamp = f"make_timestamp(CAST(round(CAST({_STAMPS[table]} AS DOUBLE) * 1e6) AS BIGINT))"
                base.execute(f"ALTER TABLE {table} ADD COLUMN stamp TIMESTAMP")
                base.execute(f"UPDATE {table} SET stamp = {stamp}")  # noqa: S608 - of the constants above
        yield base
    except duckdb.Error as err:
        msg = f"DuckDB does not take what was read: {' '.join(str(err).split())[:300]}; nothing was asked"
        raise EdgekeeperError(msg) from None
    finally:
        base.close()


def _quoted(name: str) -> str:
    return f'"{name}"'


def _rows(book: Book) -> Iterator[tuple[str, Iterator[Sequence[Any]]]]:
    cells = book.cells
    yield "cells", ((*lane, *cell) for lane in cells.lanes() for cell in cells.cells(lane))
    minutes = [(lane, minute) for lane in cells.lanes() for minute in cells.minutes(lane)]
    yield "minutes", ((*lane, m.minute, status, n) for lane, m in minutes for status, n in sorted(m.statuses.items()))
    edges = (*EDGES_S, math.inf)
    yield "latencies", ((*lane, m.minute, edge, n) for lane, m in minutes for edge, n in zip(edges, m.took, strict=True) if n)
    yield (
        "marks",
        ((m.at, str(m.kind), m.object, m.what, m.source, m.node, m.stamp_s, json.dumps(dict(m.data))) for m in book.marks),
    )
    yield (
        "samples",
        (
            (key[0], s.target, s.conn, s.sent, s.done, s.ok, s.slow, s.error, s.connect_ms, s.tls_ms, s.first_byte_ms, s.answered_by)
            for key, samples in book.samples.items()
            for s in samples
        ),
    )
    yield (
        "sources",
        (
            (s.name, s.path, s.format, s.node, s.zone, s.lines, s.skipped.total(), s.first, s.last, "; ".join(s.warnings))
            for s in (book.sources[name] for name in sorted(book.sources))
        ),
    )
    runs: Iterable[tuple[Any, ...]] = (
        (c.who.source, c.who.group, c.who.address, run.first, run.last, run.answers, run.ok) for c in cells.clients() for run in c.runs
    )
    yield "clients", iter(runs)


def _plain(value: Any) -> Any:
    """A value of DuckDB as JSON has it: no number that is none, no time that is not ISO 8601."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime():
            text = (value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)).isoformat(timespec="milliseconds")
            return f"{text}Z"
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case bytes() | bytearray():
            return bytes(value).hex()
        case _:
            return str(value)

"""What was counted, as lines of JSON: kept beside a ticket, and read again beside other logs. Pure.

The first line says what it is and of which schema; then come sources, lanes (seconds, minutes, words), clients, marks and samples in
batches of some hundred, and at the end a line that says how many there were, so that a torn file is known for one. Times within a second
are relative to it, in microseconds. Of a request nothing is in it but its route and its class; of clients that were followed, the address.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from edgekeeper.model.sample import Sample
from edgekeeper.report.book import Book, Numbers, Source
from edgekeeper.report.cells import BINS, Lane
from edgekeeper.report.columns import LATEST, Columns
from edgekeeper.report.kinds import NOT_THIS_FORMAT, REASONS, TRUNCATED, WRONG_TYPE, Kind, Mark
from edgekeeper.report.people import Person, Run

SCHEMA = 1
KIND = "edgekeeper.cells"
_BATCH = 500
_MICRO = 1_000_000
T = TypeVar("T")

Good = tuple[int, int, int, int, int, int]
"""Second, how many, then microseconds after it: first begin, last begin, first end, last end."""
Rare = tuple[int, int, int, int, int, int | None, int | None, int | None, int | None]
"""Second, how many bad, gone, other, masked, then the same of the bad ones."""


class SourceLine(msgspec.Struct, forbid_unknown_fields=True):
    """A source as it was read."""

    name: str
    path: str
    format: str
    node: str
    stamp_s: float
    zone: str
    lines: int
    skipped: dict[str, int]
    first: float | None
    last: float | None
    warnings: list[str]
    numbers: tuple[int, int, int]


class MarkLine(msgspec.Struct, array_like=True):
    """A mark."""

    at: float | None
    kind: str
    object: str
    what: str
    source: str
    node: str
    stamp_s: float
    data: dict[str, str | float | bool | None]


class SampleLine(msgspec.Struct, array_like=True):
    """A probe; target and connection are told beside."""

    ts: float
    sent: float
    done: float
    ok: bool
    slow: bool
    error: str | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None
    answered_by: str | None


class Line(msgspec.Struct, omit_defaults=True):
    """One line; which fields it has says what it is."""

    schema: int | None = None
    kind: str | None = None
    source: SourceLine | None = None
    lane: tuple[str, str, str] | None = None
    good: list[Good] = []
    rare: list[Rare] = []
    minutes: list[tuple[int, int, int | None, int]] = []
    """Minute, status, bin of the latency (None: not told), how many."""
    causes: list[tuple[int, str, int]] = []
    ended: list[tuple[int, str, int]] = []
    clients: list[tuple[str, str, str, list[tuple[float, float, int, bool]]]] = []
    lost: int = 0
    marks: list[MarkLine] = []
    probe: tuple[str, str, str] | None = None
    samples: list[SampleLine] = []
    end: int | None = None
    """How many lines came before."""


_DECODER = msgspec.json.Decoder(Line)


def is_cells(line: bytes) -> bool:
    """Whether a first line begins such a file (of whatever schema)."""
    return line.startswith(b'{"schema":') and f'"kind":"{KIND}"'.encode() in line[:100]


def lines(book: Book) -> Iterator[bytes]:
    """The whole of a book, each line with its end."""
    count = 0
    for line in _lines(book):
        count += 1
        yield msgspec.json.encode(line) + b"\n"
    yield msgspec.json.encode(Line(end=count)) + b"\n"


def _lines(book: Book) -> Iterator[Line]:
    yield Line(schema=SCHEMA, kind=KIND)
    for name in sorted(book.sources):
        yield Line(source=_source(book.sources[name]))
    for lane in book.cells.lanes():
        yield from _lane(lane, book.cells.columns[lane])
    for who in _batches(book.cells.clients()):
        yield Line(clients=[(*c.who, [(run.first, run.last, run.answers, run.ok) for run in c.runs]) for c in who])
    if book.cells.clients_lost:
        yield Line(lost=book.cells.clients_lost)
    for marks in _batches(book.marks):
        yield Line(marks=[MarkLine(m.at, str(m.kind), m.object, m.what, m.source, m.node, m.stamp_s, dict(m.data)) for m in marks])
    for probe, samples in book.samples.items():
        for some in _batches(samples):
            yield Line(probe=probe, samples=[_sample(s) for s in some])


def _source(s: Source) -> SourceLine:
    numbers = (s.numbers.seen, s.numbers.expected, s.numbers.resets)
    return SourceLine(s.name, s.path, s.format, s.node, s.stamp_s, s.zone, s.lines, dict(s.skipped), s.first, s.last, list(s.warnings), numbers)


def _lane(lane: Lane, columns: Columns) -> Iterator[Line]:
    for good in _batches(columns.runs()):
        yield Line(lane=lane, good=[(second, n, _micro(a), _micro(b), _micro(c), _micro(d)) for second, n, a, b, c, d in good])
    for rare in _batches(columns.uncommon.rows()):
        yield Line(lane=lane, rare=[(*row[:5], *(None if math.isnan(edge) else _micro(edge) for edge in row[5:])) for row in rare])  # type: ignore[misc]
    for minutes in _batches(columns.noted()):
        yield Line(lane=lane, minutes=[(minute, status, took if took < BINS else None, n) for minute, status, took, n in minutes])
    for word in _batches(columns.causes.items()):
        yield Line(lane=lane, causes=[(minute, text, n) for (minute, text), n in word])
    for word in _batches(columns.ended.items()):
        yield Line(lane=lane, ended=[(minute, text, n) for (minute, text), n in word])


def _sample(s: Sample) -> SampleLine:
    return SampleLine(s.ts, s.sent, s.done, s.ok, s.slow, s.error, s.connect_ms, s.tls_ms, s.first_byte_ms, s.answered_by)


def _micro(offset: float) -> int:
    return round(offset * _MICRO)


def _batches(several: Iterable[T]) -> Iterator[list[T]]:
    left = iter(several)
    while batch := list(islice(left, _BATCH)):
        yield batch


class Reader:
    """Puts the lines of one file into a book. ``read`` takes them one by one; ``finish`` says what is wrong with the whole."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.count = 0
        self.complete = False

    def read(self, line: bytes) -> str | None:
        """Take one line; a reason of ``REASONS`` when it cannot be read. A line is taken as a whole or not at all."""
        try:
            said = _DECODER.decode(line)
        except msgspec.ValidationError:
            return WRONG_TYPE
        except (msgspec.DecodeError, UnicodeDecodeError):
            return TRUNCATED
        if said.end is not None:
            self.complete = said.end == self.count
            return None
        self.count += 1
        if said.schema is not None:
            return None if said.schema == SCHEMA and said.kind == KIND else NOT_THIS_FORMAT
        if not _possible(said):
            return WRONG_TYPE
        self._take(said)
        return None

    def finish(self) -> str | None:
        """A sentence when lines are missing; None when all that was written is there."""
        return None if self.complete else "it ends too early or lines of it are missing: what is here was read"

    def _take(self, said: Line) -> None:
        book = self.book
        if said.source is not None:
            _put_source(book, said.source)
        if said.lane is not None:
            _put_lane(book.cells.lane(Lane(*said.lane)), said)
        for source, group, address, runs in said.clients:
            book.cells.people.put(Person(source, group, address), [Run(*run) for run in runs])
        book.cells.people.lost += said.lost
        book.marks.extend(Mark(m.at, Kind(m.kind), m.object, m.what, m.source, m.node, m.stamp_s, m.data) for m in said.marks)
        if said.probe is not None:
            _, target, conn = said.probe
            found = book.samples.setdefault(said.probe, [])
            for s in said.samples:
                more = (s.ok, s.slow, s.error, s.connect_ms, s.tls_ms, s.first_byte_ms, s.answered_by)
                found.append(Sample(s.ts, target, conn, s.sent, s.done, *more))


_KINDS = frozenset(str(kind) for kind in Kind)


def _possible(said: Line) -> bool:
    """Whether all numbers are such that columns can hold them."""
    seconds = [good[0] for good in said.good] + [rare[0] for rare in said.rare]
    words = [*said.causes, *said.ended]
    minutes = [minute for minute, *_ in said.minutes] + [minute for minute, _, _ in words]
    counts = [good[1] for good in said.good] + [n for _, a, b, c, d, *_ in said.rare for n in (a, b, c, d)]
    counts += [n for _, _, _, n in said.minutes] + [n for _, _, n in words]
    offsets = [edge for _, _, *edges in said.good for edge in edges]
    offsets += [edge for _, _, _, _, _, *edges in said.rare for edge in edges if edge is not None]
    return (
        all(0 <= second < LATEST for second in seconds)
        and all(0 <= minute < LATEST / 60 for minute in minutes)
        and all(0 <= count < 2**31 for count in counts)
        and all(abs(offset) < 2**50 for offset in offsets)
        and all(0 <= status <= 999 and (took is None or 0 <= took < BINS) for _, status, took, _ in said.minutes)
        and all(mark.kind in _KINDS for mark in said.marks)
        and all(runs for *_, runs in said.clients)
        and (said.source is None or set(said.source.skipped) <= set(REASONS))
    )


def _put_source(book: Book, s: SourceLine) -> None:
    made = Source(s.name, s.path, s.format, s.node, s.stamp_s, s.zone, s.lines, Counter(s.skipped), s.first, s.last, s.warnings, Numbers(*s.numbers))
    book.merge(Book({s.name: made}))


def _put_lane(columns: Columns, said: Line) -> None:
    for second, count, a, b, c, d in said.good:
        columns.settled.add(second, count, a / _MICRO, b / _MICRO, c / _MICRO, d / _MICRO)
    for row in said.rare:
        columns.uncommon.put((*row[:5], *(math.nan if edge is None else edge / _MICRO for edge in row[5:])))
    for minute, status, took, count in said.minutes:
        columns.put(minute, status, BINS if took is None else took, count)
    for minute, text, count in said.causes:
        columns.word(columns.causes, minute, text, count)
    for minute, text, count in said.ended:
        columns.word(columns.ended, minute, text, count)

"""Logs to a book: the one entry. Recognises, divides, spreads over processes, puts together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgekeeper.errors import UsageError
from edgekeeper.host.archive import Archive
from edgekeeper.model.text import printable
from edgekeeper.report.book import Book, Numbers, Source
from edgekeeper.report.cells_text import KIND, is_cells
from edgekeeper.report.formats import FORMATS, by_name
from edgekeeper.report.ingest.files import names
from edgekeeper.report.ingest.lines import BLOCK
from edgekeeper.report.ingest.part import Part, first_lines, look
from edgekeeper.report.ingest.workers import spread, usual_jobs
from edgekeeper.report.ingest.zones import zone_of
from edgekeeper.report.numbers import Counters
from edgekeeper.report.rules import Rules

_PIECE = 2**25
"""Bytes of a file that are worth a task of their own."""
_ALONE = frozenset({"traefik-json", "traefik-clf", "combined", "ingress-nginx", "envoy", "haproxy"})
"""Formats each of whose lines can be read without the ones before: such a file can be read in several parts at once."""
_PROBES = frozenset({"probe-record", "edgekeeper-journal", KIND, ""})
"""Formats that may hold the other side of what our probes asked ("": what was not recognised at once)."""
_SINGULAR = frozenset({"traefik-json", "probe-record", "haproxy"})
"""Formats that write milliseconds and a number or a port into a line, so that the same line twice is the same request twice."""
_FIRST = 4096
_NAMED = 5

_KEPT_TWICE = (
    "cells that were kept of it were read beside it, or twice, or of two machines' logs of one name: what is in both is counted twice, and "
    "as of one clock; leave one out, or read the logs themselves"
)
_NUMBERED_TWICE = "the proxy's running numbers come more than once: it is of several proxies, or the same lines were read twice"


@dataclass(frozen=True, slots=True)
class Input:
    """A log to read. ``path`` is a file or ``-``; "" of the others: the file's name, no machine, UTC, recognised by content.

    ``within`` is the folder that was named, where the file itself was not: then it is left out when it is of no format that is known, and
    that is said in one warning. What was named itself counts: all of its lines could not be read.
    """

    path: str
    name: str = ""
    node: str = ""
    zone: str = ""
    format: str = ""
    within: str = ""


def read(inputs: Sequence[Input], rules: Rules, *, jobs: int | None = None, progress: Callable[[str], None] | None = None) -> Book:
    """Read all inputs; MissingError when a file cannot be read, UsageError for an unknown format or zone.

    ``progress`` is told a sentence now and then. Damaged lines, lines that are too long, a compressed file that ends too early: all are
    counted in their sources, none ends the reading.
    """
    for one in inputs:
        zone_of(one.zone)
        if one.format and by_name(one.format) is None:
            msg = f"{one.format[:60]!a} is not a format; write one of {', '.join(f.name for f in FORMATS)}"
            raise UsageError(msg)
    jobs = jobs or usual_jobs()
    inputs = _once(inputs)
    called = names([i.path for i in inputs])
    found = [(one, _parts(one, one.name or name, jobs)) for one, name in zip(inputs, called, strict=True)]
    left_out = [one for one, (first, *_) in found if one.within and not first.format]
    if len(left_out) == len(found):
        left_out = []
    parts = [part for one, several in found if one not in left_out for part in several]
    if not any(part.format in _PROBES or part.path == "-" for part in parts):
        parts = [replace(part, probed=False) for part in parts]
    book = Book()
    counters: dict[str, Counters] = {}
    kept: dict[str, str] = {}
    for number, (part, came) in enumerate(spread(parts, rules, jobs), 1):
        counters.setdefault(part.name, Counters()).merge(came.counters)
        known = [name for name, more in came.book.sources.items() if KIND in (part.format, kept.get(name)) and _overlap(book.sources.get(name), more)]
        kept |= dict.fromkeys(came.book.sources, part.format)
        book.merge(came.book)
        for name in known:
            book.sources[name].warnings.append(_KEPT_TWICE)
        if progress is not None:
            progress(f"{number} of {len(parts)} parts read: {part.path}")
    _number(book, counters)
    _say_copies(book, [first for one, (first, *_) in found if one not in left_out])
    for folder in dict.fromkeys(one.within for one in left_out):
        _say_left_out(book, folder, [Path(one.path).name for one in left_out if one.within == folder])
    return book


def _once(inputs: Sequence[Input]) -> list[Input]:
    """A file that was named in two ways is read once, as it was named first."""
    found: dict[tuple[int, int] | str, Input] = {}
    for one in inputs:
        try:
            known = Path(one.path).stat() if one.path != "-" else None
        except OSError:  # said where it is opened
            known = None
        found.setdefault((known.st_dev, known.st_ino) if known is not None else one.path, one)
    return list(found.values())


def _overlap(one: Source | None, other: Source) -> bool:
    """Whether two sources of one name tell of the same time."""
    if one is None or one.first is None or one.last is None or other.first is None or other.last is None:
        return False
    return one.first < other.last and other.first < one.last


def _number(book: Book, counters: Mapping[str, Counters]) -> None:
    for name, counted in counters.items():
        if name in book.sources:  # a file of cells brings sources of its own
            mine, more = book.sources[name].numbers, counted.numbers()
            book.sources[name].numbers = Numbers(mine.seen + more.seen, mine.expected + more.expected, mine.resets + more.resets)
            if more.seen and not more.expected:
                book.sources[name].warnings.append(_NUMBERED_TWICE)


def _say_copies(book: Book, parts: Sequence[Part]) -> None:
    """A copy of a log that is read beside it doubles every count, and nothing else would tell."""
    known: dict[bytes, Part] = {}
    for part in parts:
        other = known.setdefault(part.first, part)
        if part.first and other is not part and part.name in book.sources:
            mine, its = (printable(one.path, 120) for one in (part, other))
            book.sources[part.name].warnings.append(f"{mine} begins with the same line as {its}: what is in both is counted twice; leave one out")


def _say_left_out(book: Book, folder: str, files: Sequence[str]) -> None:
    some = ", ".join(printable(name, 60) for name in files[:_NAMED]) + (", ..." if len(files) > _NAMED else "")
    many = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    first = next(iter(book.sources.values()), None)
    if first is not None:
        first.warnings.append(f"in {folder} {many} of no format that is known and left out: {some}")


def _parts(one: Input, name: str, jobs: int) -> list[Part]:
    """The file as a whole, or, where its lines can be read apart and it is large, in as many parts as keep all processes busy."""
    whole = Part(one.path, name, one.node, one.zone, format=one.format)
    if one.path == "-":
        return [whole]
    archive = Archive(one.path)
    try:
        packed = archive.packed
        head = bytearray(BLOCK)
        filled = 0
        while count := archive.fill(memoryview(head)[filled:]):
            filled += count
        lines = first_lines([bytes(head[:filled])])
        envelope, kind = look(lines[:-1] if len(lines) > 1 else lines)
        kind = by_name(one.format) if one.format else kind
        if kind is None:
            return [replace(whole, format=KIND)] if lines and is_cells(lines[0]) else [whole]
        whole = replace(whole, envelope=envelope.name, format=kind.name, first=lines[0][:_FIRST] if lines and kind.name in _SINGULAR else b"")
        if packed or archive.size is None or archive.size < 2 * _PIECE or jobs == 1 or kind.name not in _ALONE or envelope.joins:
            return [whole]
        count = min(4 * jobs, archive.size // _PIECE)
        edges = [archive.size * i // count for i in range(count)]
        ends: list[int | None] = [*edges[1:], None]
        return [replace(whole, begin=a, end=b) for a, b in zip(edges, ends, strict=True)]
    finally:
        archive.close()

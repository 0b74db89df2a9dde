"""Studies for tests: marks and requests by hand, around one moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgekeeper.model.time import Span
from edgekeeper.report.book import Book, Source
from edgekeeper.report.cells import Lane
from edgekeeper.report.document import Clock, Hurt, Window
from edgekeeper.report.kinds import Kind, Mark, Request
from edgekeeper.report.rules import Verdict
from edgekeeper.report.study import Settings, Study

T0 = 1_788_756_000.0
"""2026-09-07 04:40:00 UTC; tests count seconds from here."""


def mark(at: float | None, kind: Kind, about: str, source: str = "log", node: str = "", stamp_s: float = 0.0, what: str = "", **data: Any) -> Mark:
    """A mark ``at`` seconds after ``T0``."""
    return Mark(None if at is None else T0 + at, kind, about, what, source, node, stamp_s, data)


def study(marks: Iterable[Mark] = (), *, window: tuple[float, float] = (0.0, 1440.0), baseline: tuple[float, float] | None = None, **settings: Any) -> Study:
    """A study of these marks; the clock of each source is that of reference."""
    book = Book(marks=list(marks))
    for one in book.marks:
        book.sources.setdefault(one.source, Source(one.source, one.source, "test"))
    quiet = Window(T0 + baseline[0], T0 + baseline[1]) if baseline else None
    return Study(book, Window(T0 + window[0], T0 + window[1]), quiet, {}, Settings(**settings))


def skewed(made: Study, node: str, min_s: float, max_s: float, shift_s: float) -> None:
    """Say that a node's clock is to be corrected."""
    made.clocks = {**made.clocks, node: Clock(node, min_s, max_s, shift_s, "said")}


def ask(
    made: Study, router: str, times: Iterable[float], *, bad: bool = False, group: str = "lan", source: str = "access", took_s: float = 0.01, client: str = ""
) -> None:
    """Requests that begin so many seconds after ``T0``."""
    known = made.book.sources.setdefault(source, Source(source, source, "test"))
    for at in times:
        request = Request(T0 + at, took_s, 503 if bad else 200, router, client)
        made.book.cells.add(Lane(source, router, group), request, Verdict.BAD if bad else Verdict.GOOD)
        known.lines += 1
        known.first = min(known.first if known.first is not None else T0 + at, T0 + at)
        known.last = max(known.last or 0.0, T0 + at)
    made.memo.clear()


def hurt(
    router: str, first: float, last: float, *, wide_s: float = 2.0, group: str = "lan", source: str = "access", cause: str = "", full: bool = True
) -> Hurt:
    """An outage whose bad requests began from ``first`` to ``last`` seconds after ``T0``, with ``wide_s`` of doubt."""
    span = Span(last - first, last - first + wide_s)
    edges = T0 + first - wide_s / 2, T0 + last + wide_s / 2
    return Hurt(router, group, span, T0 + first, T0 + last, 10, cause, full, source, *edges)


def roll(node: str, begin: float, *pods: str, source: str = "roll") -> list[Mark]:
    """A drain with all its times: cordoned at ``begin``, pods evicted 10 s later and gone 20 s later, given back 200 s later."""
    moves = [m for i, pod in enumerate(pods) for m in (mark(begin + 10 + i, Kind.EVICTING, pod, source), mark(begin + 20 + i, Kind.EVICTED, pod, source))]
    return [mark(begin, Kind.CORDONED, node, source), *moves, mark(begin + 60, Kind.DRAINED, node, source), mark(begin + 200, Kind.UNCORDONED, node, source)]

"""What parsers hand out, put into a book under one source's name. Pure."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field, replace

from edgekeeper.model.sample import Sample
from edgekeeper.report.book import Book, Source
from edgekeeper.report.cells import Lane
from edgekeeper.report.formats.base import Parsed
from edgekeeper.report.kinds import NO_TIME, Kind, Mark, Request, Skip
from edgekeeper.report.numbers import Counters
from edgekeeper.report.rules import Rules

_CLOCKS = 1000
"""Marks of a clock that a part may have before only every 64th is kept: a probe asks four times a second all day."""


@dataclass(slots=True)
class Read:
    """What came out of a part of a source."""

    book: Book = field(default_factory=Book)
    counters: Counters = field(default_factory=Counters)


class Taker:
    """Takes what the lines of one source say. ``read`` is what came of it; ``settle`` is to be called now and then, and at the end."""

    def __init__(self, source: Source, rules: Rules) -> None:
        self.source = source
        self.rules = rules
        self.read = Read()
        self.read.book.sources[source.name] = source
        self.numbers: list[int] = []
        self._clocks = 0
        self._written = -math.inf
        self.back_s = 0.0
        """By how much lines went back in time, at the most: requests are written when they end."""

    def take(self, item: Parsed) -> None:
        """One line's worth."""
        match item:
            case None:
                pass
            case Request():
                self._request(item)
            case Skip():
                self.skip(item.reason)
            case Mark():
                self._mark(item)
            case Sample():
                self.read.book.samples.setdefault((self.source.name, item.target, item.conn), []).append(item)
                self.seen(item.ts)
            case _:
                for one in item:
                    self.take(one)

    def skip(self, reason: str, count: int = 1) -> None:
        """Lines that could not be read."""
        self.source.skipped[reason] += count

    def seen(self, at: float) -> None:
        """A stamp, on the source's own clock."""
        source = self.source
        if source.first is None or at < source.first:
            source.first = at
        if source.last is None or at > source.last:
            source.last = at

    def written(self, at: float) -> None:
        """When a line was written, on the source's own clock, of lines in their order."""
        if math.isfinite(at):
            self.back_s = max(self.back_s, self._written - at)
            self._written = at

    def settle(self) -> None:
        """A block is over: its running numbers are looked at together."""
        if self.numbers:
            self.read.counters.feed(self.numbers)
            self.numbers.clear()

    def _request(self, request: Request) -> None:
        if not math.isfinite(request.start):
            self.skip(NO_TIME)
            return
        group = self.rules.group_of(request.client, request.start) if request.client else ""
        if not self.read.book.cells.add(Lane(self.source.name, request.router, group), request, self.rules.verdict(request)):
            self.skip(NO_TIME)
            return
        if request.number is not None and request.number >= 0:
            self.numbers.append(request.number)
        self.seen(request.start)

    def _mark(self, mark: Mark) -> None:
        if mark.kind is Kind.CLOCK and not self._wanted(mark):
            return
        node = mark.node or self.source.node
        if mark.source != self.source.name or mark.node != node:
            mark = replace(mark, source=self.source.name, node=node)
        self.read.book.marks.append(mark)
        self.source.stamp_s = max(self.source.stamp_s, mark.stamp_s)
        if mark.at is not None:
            self.seen(mark.at)

    def _wanted(self, mark: Mark) -> bool:
        """Which ones are kept is told by the name, so that both sides keep the same."""
        self._clocks += 1
        return self._clocks <= _CLOCKS or zlib.crc32(mark.object.encode()) % 64 == 0

"""Everything that was read, before anybody asks what it means: sources, cells, marks, probes. Pure.

A book can be merged with another: files, replicas and stores of logs combine without sorting a line.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from edgekeeper.model.sample import Sample
from edgekeeper.report.cells import Cells
from edgekeeper.report.kinds import Mark


@dataclass(slots=True)
class Numbers:
    """Running numbers of one writing process: lines seen, lowest and highest number, and how often it began anew.

    ``seen / (highest - lowest + 1)`` is the share of lines that arrived: the log's own completeness.
    """

    seen: int = 0
    expected: int = 0
    resets: int = 0


@dataclass(slots=True)
class Source:
    """One thing that was read. ``name`` is what figures call it; ``node`` the machine whose clock wrote it.

    ``stamp_s`` is how coarse its stamps are, ``zone`` how a time without zone was read ("" where lines have one), ``ends`` whether a
    line is dated by the end of a request. ``first`` and ``last`` are the earliest and latest stamp on its own clock.
    """

    name: str
    path: str
    format: str
    node: str = ""
    stamp_s: float = 0.0
    zone: str = ""
    lines: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    first: float | None = None
    last: float | None = None
    warnings: list[str] = field(default_factory=list)
    numbers: Numbers = field(default_factory=Numbers)


@dataclass(slots=True)
class Book:
    """All that was read. ``samples`` are probes by (source, target, conn), on the clock of their source (``sent`` and ``done`` in wall seconds)."""

    sources: dict[str, Source] = field(default_factory=dict)
    cells: Cells = field(default_factory=Cells)
    marks: list[Mark] = field(default_factory=list)
    samples: dict[tuple[str, str, str], list[Sample]] = field(default_factory=dict)

    def merge(self, other: Book) -> None:
        """Take in all of another book."""
        for name, source in other.sources.items():
            mine = self.sources.setdefault(name, source)
            if mine is not source:
                _add(mine, source)
        self.cells.merge(other.cells)
        self.marks.extend(other.marks)
        for key, samples in other.samples.items():
            self.samples.setdefault(key, []).extend(samples)


def _add(mine: Source, other: Source) -> None:
    mine.lines += other.lines
    mine.skipped.update(other.skipped)
    mine.first = min((at for at in (mine.first, other.first) if at is not None), default=None)
    mine.last = max((at for at in (mine.last, other.last) if at is not None), default=None)
    mine.warnings.extend(w for w in other.warnings if w not in mine.warnings)
    mine.stamp_s = max(mine.stamp_s, other.stamp_s)
    mine.numbers.seen += other.numbers.seen
    mine.numbers.expected += other.numbers.expected
    mine.numbers.resets += other.numbers.resets

"""Running numbers of the processes that wrote a log: which of its lines never arrived. Pure.

Traefik numbers the requests of a process. Two replicas in one file, and a restart, are two counters; a hole in one is a lost line. Numbers
are handed in by the block: those of one counter lie close together in it, so that a block falls into runs, and each run continues the
counter that was last seen just before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from edgekeeper.report.book import Numbers

_APART = 1000
"""Numbers further apart than this within a block are of two counters."""
_HOLE = 20_000
"""A run that begins at most so far after a counter's last number continues it; what lies between was lost."""
_COUNTERS = 64


class Counters:
    """The counters of one source; ``feed`` takes the numbers of a block of lines, in any order."""

    __slots__ = ("runs", "too_many")

    def __init__(self) -> None:
        self.runs: list[list[int]] = []
        """[lowest, highest, seen] of each counter."""
        self.too_many = False

    def feed(self, numbers: Sequence[int]) -> None:
        """Take in the numbers of a block."""
        if not numbers:
            return
        low, high, seen = min(numbers), max(numbers), len(numbers)
        if high - low <= 2 * seen + _APART:
            self.add(low, high, seen)
            return
        ordered = sorted(numbers)
        begun = 0
        for i, (before, after) in enumerate(pairwise(ordered), 1):
            if after - before > _APART:
                self.add(ordered[begun], before, i - begun)
                begun = i
        self.add(ordered[begun], high, seen - begun)

    def add(self, low: int, high: int, seen: int) -> None:
        """Take in a run of one counter."""
        if self.too_many:
            return
        for run in reversed(self.runs):
            if run[0] - _APART <= low <= run[1] + _HOLE:
                run[0], run[1], run[2] = min(run[0], low), max(run[1], high), run[2] + seen
                return
        self.runs.append([low, high, seen])
        self.too_many = len(self.runs) > _COUNTERS

    def merge(self, other: Counters) -> None:
        """Take in those of the next part of the same log."""
        self.too_many |= other.too_many
        for low, high, seen in other.runs:
            self.add(low, high, seen)

    def numbers(self) -> Numbers:
        """What they say. ``expected`` is 0 where nothing can be told: no numbers, or such as are not those of a few counters."""
        runs: list[list[int]] = []
        for low, high, count in sorted(self.runs):  # a rotated set may have been read newest first
            if runs and 0 < low - runs[-1][1] <= _APART:
                runs[-1][1:] = high, runs[-1][2] + count
            else:
                runs.append([low, high, count])
        seen = sum(run[2] for run in runs)
        expected = sum(high - low + 1 for low, high, _seen in runs)
        if self.too_many or seen > expected or not runs:
            return Numbers(seen=seen)
        return Numbers(seen=seen, expected=expected, resets=len(runs) - 1)

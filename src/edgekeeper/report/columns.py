"""The columns of one lane: appended to while lines are read, put in order when they are asked for. Pure.

Numbers lie in arrays, not in objects. A good answer takes 12 bytes until there are several in a second, on the whole; then such blocks are
made into seconds of 24 bytes each, so that a lane never grows beyond the seconds that it has. What was not good is kept by the second at
once: it is rare.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from edgekeeper.report.minutes import BINS, Minutes, rising
from edgekeeper.report.rules import Verdict

LATEST = 2.0**32 - 1
"""The last second that has a place, in the year 2106."""
NANO = 1e9
_WORDS = 64
"""Causes of a lane that are told apart; more are ``(other)``: a cause may come from a log."""
FULL = 8192
"""Good answers of a lane after which they make a block."""
_SMALL = 1024
"""Blocks up to this many are put together."""
_DENSE = 3
"""Answers a second from which on a block is made into seconds."""


class Block:
    """Good answers of a while: the second and microsecond in which each was asked for, and how many nanoseconds it took."""

    __slots__ = ("high", "low", "micros", "ordered", "seconds", "tooks")

    def __init__(self, seconds: array[int], micros: array[int], tooks: array[float]) -> None:
        self.seconds, self.micros, self.tooks = seconds, micros, tooks
        self.low, self.high = min(seconds), max(seconds)
        self.ordered = False

    def extend(self, other: Block) -> None:
        """Take in another one."""
        self.seconds.extend(other.seconds)
        self.micros.extend(other.micros)
        self.tooks.extend(other.tooks)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.ordered = False

    def order(self) -> None:
        """By the second."""
        if not self.ordered and not rising(self.seconds):
            places = sorted(range(len(self.seconds)), key=self.seconds.__getitem__)
            self.seconds = array("I", map(self.seconds.__getitem__, places))
            self.micros = array("I", map(self.micros.__getitem__, places))
            self.tooks = array("f", map(self.tooks.__getitem__, places))
        self.ordered = True

    def count(self, begin: float | None, end: float | None) -> int:
        """How many of them were asked for in [floor(begin), end)."""
        if (begin is None or begin <= self.low) and (end is None or end > self.high):
            return len(self.seconds)
        self.order()
        low, high = _span(self.seconds, begin, end)
        return high - low

    def runs(self, begin: float | None = None, end: float | None = None) -> Iterator[tuple[int, int, float, float, float, float]]:
        """Each second with how many there were, and their first and last start and end, relative to the second."""
        self.order()
        low, high = _span(self.seconds, begin, end)
        while low < high:
            second = self.seconds[low]
            if low + 1 == high or self.seconds[low + 1] != second:
                start = self.micros[low] / 1e6
                yield second, 1, start, start, start + self.tooks[low] / NANO, start + self.tooks[low] / NANO
                low += 1
                continue
            after = bisect_right(self.seconds, second, low, high)
            micros = self.micros[low:after]
            ends = [micro / 1e6 + took / NANO for micro, took in zip(micros, self.tooks[low:after], strict=True)]
            yield second, after - low, min(micros) / 1e6, max(micros) / 1e6, min(ends), max(ends)
            low = after


class Seconds:
    """Seconds with good answers in them: how many, and the first and last start and end, relative to the second."""

    __slots__ = ("counts", "first_end", "first_start", "last_end", "last_start", "ordered", "seconds")

    def __init__(self) -> None:
        self.seconds, self.counts = array("I"), array("I")
        self.first_start, self.last_start, self.first_end, self.last_end = array("f"), array("f"), array("f"), array("f")
        self.ordered = True

    def add(self, second: int, count: int, first_start: float, last_start: float, first_end: float, last_end: float) -> None:
        """One more; the same second may be there already."""
        if self.seconds and second <= self.seconds[-1]:
            self.ordered = False
        self.seconds.append(second)
        self.counts.append(count)
        self.first_start.append(first_start)
        self.last_start.append(last_start)
        self.first_end.append(first_end)
        self.last_end.append(last_end)

    def extend(self, other: Seconds) -> None:
        """Take in another one."""
        self.ordered &= other.ordered and not (self.seconds and other.seconds and other.seconds[0] <= self.seconds[-1])
        for name in _SECONDS:
            getattr(self, name).extend(getattr(other, name))

    def runs(self, begin: float | None = None, end: float | None = None) -> Iterator[tuple[int, int, float, float, float, float]]:
        """See ``Block.runs``."""
        self.order()
        for i in range(*_span(self.seconds, begin, end)):
            yield self.seconds[i], self.counts[i], self.first_start[i], self.last_start[i], self.first_end[i], self.last_end[i]

    def order(self) -> None:
        """By the second, each of them once."""
        if self.ordered:
            return
        old = [getattr(self, name) for name in _SECONDS]
        for name in _SECONDS:
            setattr(self, name, array(getattr(self, name).typecode))
        for i in sorted(range(len(old[0])), key=old[0].__getitem__):
            second, count, first_start, last_start, first_end, last_end = (column[i] for column in old)
            if self.seconds and self.seconds[-1] == second:
                self.counts[-1] += count
                self.first_start[-1] = min(self.first_start[-1], first_start)
                self.last_start[-1] = max(self.last_start[-1], last_start)
                self.first_end[-1] = min(self.first_end[-1], first_end)
                self.last_end[-1] = max(self.last_end[-1], last_end)
            else:
                self.add(second, count, first_start, last_start, first_end, last_end)
        self.ordered = True


class Uncommon:
    """Seconds with answers that were not good, or good ones that were masked; times of the bad ones, relative to the second."""

    __slots__ = ("bads", "first_end", "first_start", "gones", "last_end", "last_start", "masks", "ordered", "others", "seconds")

    def __init__(self) -> None:
        self.seconds, self.bads, self.gones, self.others, self.masks = array("I"), array("I"), array("I"), array("I"), array("I")
        self.first_start, self.last_start, self.first_end, self.last_end = array("f"), array("f"), array("f"), array("f")
        self.ordered = True

    def add(self, second: int, verdict: Verdict, start: float, end: float, count: int = 1) -> None:
        """Some answers; a good one was masked. Times count only for bad ones."""
        if not self.seconds or self.seconds[-1] != second:
            self.ordered &= not self.seconds or self.seconds[-1] < second
            self.seconds.append(second)
            for column in (self.bads, self.gones, self.others, self.masks):
                column.append(0)
            for edge in (self.first_start, self.last_start, self.first_end, self.last_end):
                edge.append(math.nan)
        (self.masks, self.bads, self.gones, self.others)[verdict][-1] += count
        if verdict is Verdict.BAD:
            for first, last, value in ((self.first_start, self.last_start, start), (self.first_end, self.last_end, end)):
                if not first[-1] <= value:  # also where there is none yet
                    first[-1] = value
                if not last[-1] >= value:
                    last[-1] = value

    def extend(self, other: Uncommon) -> None:
        """Take in another one."""
        self.ordered &= other.ordered and not (self.seconds and other.seconds and other.seconds[0] <= self.seconds[-1])
        for name in _UNCOMMON:
            getattr(self, name).extend(getattr(other, name))

    def order(self) -> None:
        """By the second, each of them once."""
        if self.ordered:
            return
        old = [getattr(self, name) for name in _UNCOMMON]
        for name in _UNCOMMON:
            setattr(self, name, array(getattr(self, name).typecode))
        for i in sorted(range(len(old[0])), key=old[0].__getitem__):
            second, bad, gone, other, masked, first_start, last_start, first_end, last_end = (column[i] for column in old)
            if bad:
                self.add(second, Verdict.BAD, first_start, first_end, bad)
                self.add(second, Verdict.BAD, last_start, last_end, 0)
            for verdict, count in ((Verdict.GONE, gone), (Verdict.OTHER, other), (Verdict.GOOD, masked)):
                if count:
                    self.add(second, verdict, 0.0, 0.0, count)
        self.ordered = True

    def rows(self) -> Iterator[tuple[int, int, int, int, int, float, float, float, float]]:
        """Second, bad, gone, other, masked, first and last start and end of the bad ones (nan: none), by the second."""
        self.order()
        return zip(*(getattr(self, name) for name in _UNCOMMON), strict=True)

    def put(self, row: Sequence[float]) -> None:
        """A row of ``rows`` of another one."""
        self.ordered &= not self.seconds or self.seconds[-1] < row[0]
        for name, value in zip(_UNCOMMON, row, strict=True):
            getattr(self, name).append(value)

    def span(self, begin: float | None = None, end: float | None = None) -> range:
        """The places of the seconds in [floor(begin), end)."""
        self.order()
        return range(*_span(self.seconds, begin, end))


class Columns:
    """One lane. Good answers are appended to ``open`` (second, microsecond, status) and ``tooks`` (nanoseconds).

    They are closed, which makes a block of them, when there are ``FULL`` of them, and to be asked or merged.
    """

    __slots__ = ("blocks", "causes", "ended", "minutes", "open", "settled", "tooks", "uncommon", "uncommon_minutes")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.settled = Seconds()
        self.uncommon = Uncommon()
        self.minutes, self.uncommon_minutes = Minutes(), Minutes()
        self.causes: Counter[tuple[int, str]] = Counter()
        self.ended: Counter[tuple[int, str]] = Counter()
        self._open()

    def _open(self) -> None:
        # one column for three numbers: what the hot loop of a reader touches must fit into a processor's cache
        self.open, self.tooks = array("I"), array("f")

    def good(self, second: int, micro: int, took_ns: float, status: int) -> None:
        """A good answer."""
        self.open.extend((second, micro, status))
        self.tooks.append(took_ns)

    def close(self) -> None:
        """Make a block of what is open, and count its minutes."""
        if self.open:
            seconds = self.open[0::3]
            self.minutes.count(seconds, self.open[2::3], self.tooks)
            self._keep(Block(seconds, self.open[1::3], self.tooks))
            self._open()
        self.uncommon_minutes.close()

    def _keep(self, block: Block) -> None:
        if len(block.seconds) > _DENSE * (block.high - block.low + 1):
            for run in block.runs():
                self.settled.add(*run)
        elif self.blocks and len(self.blocks[-1].seconds) < _SMALL:
            last = self.blocks.pop()
            last.extend(block)
            self._keep(last)
        else:
            self.blocks.append(block)

    @staticmethod
    def word(counter: Counter[tuple[int, str]], minute: int, word: str, count: int = 1) -> None:
        """Count a word into a minute; how many different words is bounded."""
        if (minute, word) not in counter and len(counter) >= _WORDS:
            known = {old for _minute, old in counter}
            word = word if word in known or len(known) < _WORDS else "(other)"
        counter[minute, word] += count

    def merge(self, other: Columns) -> None:
        """Take in all of another one of the same lane."""
        self.close()
        other.close()
        for block in other.blocks:
            self._keep(block)
        self.settled.extend(other.settled)
        self.uncommon.extend(other.uncommon)
        self.minutes.extend(other.minutes)
        self.uncommon_minutes.extend(other.uncommon_minutes)
        for mine, others in ((self.causes, other.causes), (self.ended, other.ended)):
            for (minute, word), count in others.items():
                self.word(mine, minute, word, count)

    def runs(self, begin: float | None = None, end: float | None = None) -> Iterator[tuple[int, int, float, float, float, float]]:
        """Seconds with good answers, of all blocks: one second may come more than once. See ``Block.runs``."""
        self.close()
        for block in self.blocks:
            if (begin is None or block.high >= math.floor(begin)) and (end is None or block.low < end):
                yield from block.runs(begin, end)
        yield from self.settled.runs(begin, end)

    def edges(self) -> list[int]:
        """The first and the last second in which anything good began, of each block; of what is closed."""
        return [edge for block in self.blocks for edge in (block.low, block.high)] + (
            [min(self.settled.seconds), max(self.settled.seconds)] if self.settled.seconds else []
        )

    def goods(self, begin: float | None = None, end: float | None = None) -> int:
        """How many good answers there are."""
        self.close()
        count = sum(block.count(begin, end) for block in self.blocks)
        self.settled.order()
        low, high = _span(self.settled.seconds, begin, end)
        return count + sum(self.settled.counts[low:high])

    def noted(self, begin: float | None = None, end: float | None = None) -> Iterator[tuple[int, int, int, int]]:
        """See ``Minutes.rows``; the good ones first, then the others."""
        self.close()
        yield from self.minutes.rows(begin, end)
        yield from self.uncommon_minutes.rows(begin, end)

    def put(self, minute: int, status: int, took: int, count: int) -> None:
        """A row of ``noted`` of another one."""
        (self.minutes if took < BINS else self.uncommon_minutes).put(minute, status, took, count)

    def sums(self) -> Counter[int]:
        """How many had which status and took how long, of all minutes: by the status times 64, plus the bin."""
        self.close()
        return self.minutes.totals + self.uncommon_minutes.totals

    def above(self, status: int) -> list[tuple[int, int]]:
        """Minute and count of what had that status or a higher one, not added up."""
        self.close()
        return self.minutes.above(status) + self.uncommon_minutes.above(status)


def _span(column: array[int], begin: float | None, end: float | None) -> tuple[int, int]:
    low = 0 if begin is None else bisect_left(column, math.floor(begin))
    return low, len(column) if end is None else bisect_left(column, end)


_SECONDS = ("seconds", "counts", "first_start", "last_start", "first_end", "last_end")
_UNCOMMON = ("seconds", "bads", "gones", "others", "masks", "first_start", "last_start", "first_end", "last_end")

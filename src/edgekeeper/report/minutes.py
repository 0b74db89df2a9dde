"""How many requests of a minute had which status and took how long, in arrays. Pure.

A status and a bin of durations make a key of 16 bits; a row is a minute, a key and a count, in 10 bytes. Rows may be there more than once
and in any order while lines are read; they are put in order by the minute when a span of them is asked for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import islice, repeat
from operator import floordiv, le

EDGES_S = tuple(2**octave * part / 1e9 for octave in range(20, 36) for part in (1.0, 1.5))
"""Upper edges of the bins of how long an answer took, two to an octave of nanoseconds: 1.05 ms to 51.5 s; one more bin holds all longer ones."""
BINS = len(EDGES_S) + 1
"""How many bins there are; as a bin itself it means that the duration does not count."""
STATUS_MOST = 999
_BIN = {(exponent << 7 | half << 6): bisect_right(EDGES_S, 2.0 ** (exponent - 127) * (1 + half / 2) / 1e9) for exponent in range(256) for half in (0, 1)}
"""The bin of a 32-bit float of nanoseconds, by its exponent and the first bit of its fraction: the upper 16 bits, but for six of them."""
_FIRST_BIT = bytes(byte & 0xC0 for byte in range(256))
_LITTLE = array("H", b"\1\0")[0] == 1


class Minutes:
    """Rows of minute, key and count; ``totals`` is the count of each key."""

    __slots__ = ("counts", "keys", "minutes", "open", "totals")

    def __init__(self) -> None:
        self.minutes, self.keys, self.counts = array("I"), array("H"), array("I")
        self.open: Counter[tuple[int, int]] = Counter()
        self.totals: Counter[int] = Counter()

    def note(self, minute: int, status: int, count: int = 1) -> None:
        """Count some of a status whose duration does not count."""
        self.open[minute, (status if 0 <= status <= STATUS_MOST else 0) << 6 | BINS] += count

    def close(self) -> None:
        """Make rows of what is open."""
        for (minute, key), count in self.open.items():
            self.put(minute, key >> 6, key & 63, count)
        self.open.clear()

    def count(self, seconds: array[int], statuses: array[int], tooks: array[float]) -> None:
        """Count answers by their second, status and nanoseconds.

        Each is made one number of 64 bits, by whole columns of bytes: half the time that tuples and a search for the bin take.
        """
        numbers = bytearray(8 * len(seconds))
        took, status = _bytes(tooks), _bytes(statuses)
        minute = _bytes(array("I", map(floordiv, seconds, repeat(60))))
        numbers[0::8], numbers[1::8] = took[2::4].translate(_FIRST_BIT), took[3::4]
        numbers[2::8], numbers[3::8] = status[0::4], status[1::4]
        numbers[4::8], numbers[5::8], numbers[6::8], numbers[7::8] = minute[0::4], minute[1::4], minute[2::4], minute[3::4]
        column = array("Q", bytes(numbers))
        if not _LITTLE:
            column.byteswap()
        counts = Counter(column)
        keys = [number >> 10 & 0xFFC0 | _BIN[number & 0xFFFF] for number in counts]
        self.minutes.extend([number >> 32 for number in counts])
        self.keys.extend(keys)
        self.counts.extend(counts.values())
        totals = self.totals
        for key, count in zip(keys, counts.values(), strict=True):
            totals[key] = totals.get(key, 0) + count

    def put(self, minute: int, status: int, took: int, count: int) -> None:
        """A row, as ``rows`` has it."""
        key = status << 6 | took
        self.minutes.append(minute)
        self.keys.append(key)
        self.counts.append(count)
        self.totals[key] += count

    def extend(self, other: Minutes) -> None:
        """Take in another one."""
        other.close()
        self.minutes.extend(other.minutes)
        self.keys.extend(other.keys)
        self.counts.extend(other.counts)
        self.totals.update(other.totals)

    def rows(self, begin: float | None = None, end: float | None = None) -> Iterator[tuple[int, int, int, int]]:
        """Minute, status, bin (``BINS``: the duration does not count), count, of the minutes that begin in [floor(begin), end), in seconds.

        By the minute, not added up.
        """
        self.close()
        if not rising(self.minutes):
            places = sorted(range(len(self.minutes)), key=self.minutes.__getitem__)
            self.minutes = array("I", map(self.minutes.__getitem__, places))
            self.keys = array("H", map(self.keys.__getitem__, places))
            self.counts = array("I", map(self.counts.__getitem__, places))
        low = 0 if begin is None else bisect_left(self.minutes, int(begin // 60))
        high = len(self.minutes) if end is None else bisect_left(self.minutes, end / 60)
        for minute, key, count in zip(self.minutes[low:high], self.keys[low:high], self.counts[low:high], strict=True):
            yield minute, key >> 6, key & 63, count

    def above(self, status: int) -> list[tuple[int, int]]:
        """Minute and count of the rows with that status or a higher one."""
        self.close()
        least = status << 6
        if max(self.totals, default=0) < least:
            return []
        return [(minute, count) for minute, key, count in zip(self.minutes, self.keys, self.counts, strict=True) if key >= least]


def rising(column: array[int]) -> bool:
    """Whether no number is smaller than the one before."""
    return all(map(le, column, islice(column, 1, None)))


def _bytes(column: array[int] | array[float]) -> bytes:
    """The bytes of a column, the lowest of each number first."""
    if _LITTLE:
        return column.tobytes()
    other = column[:]
    other.byteswap()
    return other.tobytes()

"""Whole lines out of a stream of bytes, in blocks, with flat memory whatever the lines are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

LINE_MOST = 2**20
"""Bytes of a line; a longer one is dropped up to its end, and counted."""
BLOCK = 2**17
"""Bytes that are asked for at once: what fits into a processor's cache is parsed there."""


class Blocks:
    """Blocks of whole lines that begin in [begin, end) of what ``fill`` gives, which starts at ``begin`` (one byte before it when not 0).

    ``fill`` puts bytes into a buffer and says how many, 0 at the end. A block is a view that is valid until the next one; each of its lines
    ends with a newline, but for the last one of the stream. ``too_long`` counts lines that were dropped.
    """

    def __init__(self, fill: Callable[[memoryview], int], begin: int = 0, end: int | None = None) -> None:
        self._fill = fill
        self._begin = begin
        self._end = end
        self.too_long = 0

    def __iter__(self) -> Iterator[memoryview]:
        buffer = bytearray(LINE_MOST + BLOCK)
        view = memoryview(buffer)
        end = self._end
        at = max(0, self._begin - 1)  # where in the stream the buffer begins
        filled = 0
        skipping = self._begin > 0  # the line that is under way there is not ours
        while count := self._fill(view[filled : filled + BLOCK]):
            fresh, filled = filled, filled + count
            start = 0
            if skipping or filled > LINE_MOST:
                newline = buffer.find(b"\n", fresh, filled)
                if not skipping and not 0 <= newline <= LINE_MOST:
                    self.too_long += 1
                    skipping = True
                if skipping:
                    start = newline + 1 if newline >= 0 else filled
                    if end is not None and at + start >= end:
                        return
                    skipping = newline < 0
            stop, done = self._stop(buffer, at, max(start, fresh), filled)
            if stop >= 0:
                yield view[start : stop + 1]
                if done:
                    return
                start = stop + 1
            filled -= start
            buffer[:filled] = buffer[start : start + filled]
            at += start
        if filled:
            yield view[:filled]

    def _stop(self, buffer: bytearray, at: int, start: int, filled: int) -> tuple[int, bool]:
        """Where the last whole line in the buffer ends (-1: nowhere), and whether it is the last of all that are ours."""
        if self._end is not None and at + filled >= self._end:
            stop = buffer.find(b"\n", max(start, self._end - at - 1), filled)  # its end may come later
            if stop >= 0:
                return stop, True
        return buffer.rfind(b"\n", start, filled), False

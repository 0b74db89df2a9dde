"""Whole lines out of pieces. Pure.

A service's line may be cut anywhere by a read, be longer than anybody wants to keep, or follow a hole
of zero bytes (a file that was truncated under a writer that went on at its old place).
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 2**20
"""Bytes of a line that are kept; a service that never ends its line must not fill the memory."""


class Cutter:
    """Gives out whole lines, each with its end, and keeps the beginning of the next one.

    A line longer than ``limit`` is given out once, cut, and the rest of it is dropped up to its end: given
    out as a line of its own, what a client had put there would look like the beginning of one.
    ``skip`` drops everything up to the first end of a line: reading began inside one.
    """

    def __init__(self, limit: int = LONGEST, *, skip: bool = False) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._skip = skip

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line that are kept."""
        return len(self._kept)

    def feed(self, piece: bytes) -> bytes:
        """The lines that are whole now, perhaps none."""
        if self._skip:
            _, end, piece = piece.partition(b"\n")
            if not end:
                return b""
            self._skip = False
        cut = piece.rfind(b"\n") + 1
        if not cut:
            return self._begin(piece)
        whole = bytes(self._kept) + piece[:cut] if self._kept else piece[:cut]
        self._kept.clear()
        if len(whole) > self._limit or whole[0] == 0 or b"\n\0" in whole:
            whole = b"".join(fit for line in whole.splitlines(keepends=True) if (fit := self._fit(line)))
        return whole + self._begin(piece[cut:])

    def end(self) -> bytes:
        """Nothing follows any more: what is kept, as a line."""
        kept, self._skip = bytes(self._kept), False
        self._kept.clear()
        return kept + b"\n" if kept else b""

    def _begin(self, piece: bytes) -> bytes:
        """Keep the beginning of a line; when it is too long already, give out what there is and drop the rest."""
        if piece and not self._kept:
            piece = piece.lstrip(b"\0")
        self._kept += piece
        if len(self._kept) < self._limit:
            return b""
        out = bytes(self._kept[: self._limit - 1]) + b"\n"
        self._kept.clear()
        self._skip = True
        return out

    def _fit(self, line: bytes) -> bytes:
        line = line.lstrip(b"\0")
        return line if len(line) <= self._limit else line[: self._limit - 1] + b"\n"

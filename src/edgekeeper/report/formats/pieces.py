"""Pieces of a line that a runtime cut, waiting for the last one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekeeper.report import kinds
from edgekeeper.report.formats.base import Context
from edgekeeper.report.kinds import Skip

LONGEST = 1 << 20
"""Bytes of a joined line; of a longer one nothing is kept, and it counts as one line that was too long."""
STREAMS = 256
"""Streams that may have pieces waiting at once; the oldest is given up."""


@dataclass(slots=True)
class _Waiting:
    at: float | None
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0


class Pieces:
    """The pieces of a source, by stream."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}

    @staticmethod
    def of(context: Context, envelope: str) -> Pieces:
        """Those of a source; they live in its context."""
        found = context.state.get(envelope)
        if not isinstance(found, Pieces):
            found = context.state[envelope] = Pieces()
        return found

    def add(self, stream: str, piece: bytes, at: float | None, context: Context, *, last: bool) -> bytes | Skip | None:
        """The line that this piece completes, with its time in the context; None while more is to come."""
        waiting = self._waiting.pop(stream, None)
        if waiting is None:
            context.envelope_at = at
            if last:
                return piece
            waiting = _Waiting(at)
        waiting.size += len(piece)
        if waiting.size > LONGEST:
            waiting.pieces.clear()
        else:
            waiting.pieces.append(piece)
        if last:
            context.envelope_at = waiting.at
            return Skip(kinds.TOO_LONG) if waiting.size > LONGEST else b"".join(waiting.pieces)
        self._waiting[stream] = waiting
        if len(self._waiting) > STREAMS:
            del self._waiting[next(iter(self._waiting))]
        return None

    def left(self) -> list[bytes | Skip]:
        """All that never got its last piece, and forget it."""
        found: list[bytes | Skip] = [Skip(kinds.TOO_LONG) if w.size > LONGEST else b"".join(w.pieces) for w in self._waiting.values()]
        self._waiting.clear()
        return found

"""Lines and their stamps out of what Docker's log endpoint sends. Pure.

A container without a terminal: frames of eight bytes (the output: 1 or 2, three zeros, the length) and an entry, which is a stamp,
a space and the text. With a terminal: the entries alone. Docker cuts a line into entries of 16 KiB; only the last of them ends with a
newline, and all have the stamp of the first. The last line of a process that ended without a newline has none either, and what
follows has another stamp (dockerd 20.10.24 and 28.5.2, measured 2026-11-30).
"""

from __future__ import annotations

from edgekeeper.watch.sources.lines import LONGEST

Line = tuple[bytes, bytes]
"""Docker's stamp of a line, and the line with its end."""

_HEAD = 8
_LARGEST = 4 * 2**20
_STAMP = 64
_PIECE = 16384
_LEFT = 16


class Entries:
    """Whole lines from pieces of one stream; ``terminal`` says which of the two shapes it has. One stream each.

    ``left`` is what former processes of the same container ended with, oldest first: a terminal's log does not show where that ends.
    """

    def __init__(self, *, terminal: bool = False, left: tuple[bytes, ...] = ()) -> None:
        self._terminal = terminal
        self.left = left
        self._buffer = bytearray()
        self._begun: dict[int, tuple[bytes, bytearray]] = {}
        self._dropping = False

    def feed(self, piece: bytes) -> list[Line]:
        """The lines that are whole now; ValueError when this is not what Docker sends, or says that Docker failed."""
        return self._bare(piece) if self._terminal else self._framed(piece)

    def end(self) -> list[Line]:
        """The stream has ended with its process: what that left without an end of a line, as lines."""
        if self._terminal:
            last = bytes(self._buffer)
            self._buffer.clear()
            if not last:
                return []
            self.left = (*(raw for raw in self.left[1 - _LEFT :] if raw != last), last)
            return [unglued(last + b"\n")]
        out = [(stamp, bytes(text) + b"\n") for stamp, text in self._begun.values()]
        self._begun.clear()
        return out

    def _framed(self, piece: bytes) -> list[Line]:
        buffer = self._buffer
        buffer += piece
        out: list[Line] = []
        at, have = 0, len(buffer)
        while have - at >= _HEAD:
            if buffer[at] > 2 or buffer[at + 1] or buffer[at + 2] or buffer[at + 3]:
                raise ValueError(self._strange(bytes(buffer[at : at + 200])))
            length = int.from_bytes(buffer[at + 4 : at + 8], "big")
            end = at + _HEAD + length
            if end > have:
                if length > _LARGEST:
                    raise ValueError(self._strange(b""))
                break
            entry = bytes(buffer[at + _HEAD : end])
            stamp, _, text = entry.partition(b" ")
            if self._begun or text[-1:] != b"\n":
                self._join(buffer[at], stamp, text, out)
            else:
                out.append((stamp, text))
            at = end
        del buffer[:at]
        return out

    def _join(self, output: int, stamp: bytes, text: bytes, out: list[Line]) -> None:
        """Put together what belongs together; a piece with another stamp belongs to another line."""
        begun = self._begun.pop(output, None)
        if begun is not None and begun[0] != stamp:
            out.append((begun[0], bytes(begun[1]) + b"\n"))
            begun = None
        whole = begun[1] if begun is not None else bytearray()
        room = LONGEST - 1 - len(whole)
        whole += text if len(text) <= room else text[: max(0, room)]
        if text[-1:] == b"\n":
            out.append((stamp, bytes(whole) if whole[-1:] == b"\n" else bytes(whole) + b"\n"))
        else:
            self._begun[output] = (stamp, whole)

    def _bare(self, piece: bytes) -> list[Line]:
        if self._dropping:
            _, end, piece = piece.partition(b"\n")
            if not end:
                return []
            self._dropping = False
        self._buffer += piece
        cut = self._buffer.rfind(b"\n") + 1
        out = [unglued(line) for line in self._lines(bytes(self._buffer[:cut]))] if cut else []
        del self._buffer[:cut]
        if len(self._buffer) > LONGEST:
            out.append(unglued(bytes(self._buffer) + b"\n"))
            self._buffer.clear()
            self._dropping = True
        return out

    def _lines(self, raw: bytes) -> list[bytes]:
        """The raw lines of a terminal; one that begins with what was left, and goes on with another stamp, is two."""
        lines = raw.removesuffix(b"\n").split(b"\n")
        for left in self.left:
            own = left.partition(b" ")[0]
            lines = [
                part for line in lines for part in ((left, line[len(left) :]) if line.startswith(left) and not line.startswith(own, len(left)) else (line,))
            ]
        return [line for line in lines if line]

    def _strange(self, head: bytes) -> str:
        if head[:1] == b"\x03":
            return f"dockerd broke off the log: {head[_HEAD:].decode('utf-8', 'replace').strip()}"
        return "what comes is not Docker's log"


def unglued(raw: bytes) -> Line:
    """The stamp and the line of what a container with a terminal wrote, without the stamps that stand between its pieces."""
    stamp, space, text = raw.partition(b" ")
    if len(stamp) > _STAMP:
        return b"", raw
    text = text.removesuffix(b"\n").removesuffix(b"\r")
    mark = stamp + space
    if len(text) > _PIECE and text.startswith(mark, _PIECE):
        step = _PIECE + len(mark)
        text = text[:_PIECE] + b"".join(text[at + len(mark) : at + step] for at in range(_PIECE, len(text), step))
    return stamp, text[: LONGEST - 1] + b"\n"

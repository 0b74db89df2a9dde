"""Which lines of a container's log are new: none of before, none twice, none left out, over as many streams as it takes. Pure.

A stream of Docker's gives the last lines of the log and then what is written; so each stream but the first begins with lines that are
known. dockerd 20.10 reads the start of a file once more after each rotation (up to some hundreds of lines come twice, measured
2026-11-30); the two outputs of a container are stamped by two threads and may stand out of order by microseconds; and the clock that
stamps them can be set back. Two lines with the same text and the same stamp to the nanosecond count as one.

Podman 4.3.1 stamps lines with whole seconds, in local time (measured 2026-11-30). It repeats none within a stream, so there all are given;
at the joint of two streams a line that is the same as another one of its second counts as that one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

from edgekeeper.watch.sources.entries import Line
from edgekeeper.watch.stamp import iso

REMEMBERED = 4096
"""Lines by which a line that comes again is known; up to twice as many are kept, 60 bytes each."""
_LONG_MEMORY = 100_000
"""The same while the stream lags behind, until it was looked whether anything was left out meanwhile."""
_HELD_BYTES = 32 * 2**20
_SET_BACK_S = 1.0
_LENGTH = len("2026-11-30T10:08:09.757158858Z")
_MARKED = 16
_TOLD_APART = 4096
"""Bytes of a line that a mark tells it by."""


class Progress:
    """How far one container's log was read. ``since`` is the Unix time from which its lines count."""

    def __init__(self, since: float) -> None:
        self.lagging = False
        self.given = 0
        """Lines that were handed over."""
        self._since = since
        self._high = b""
        self._young: set[int] = set()
        self._old: set[int] = set()
        self._oldest = b""
        self._next_oldest = b""
        self._recent: deque[Line] = deque(maxlen=_MARKED)
        self._marked: frozenset[tuple[str, int]] = frozenset()
        # of a stream that has just begun, until its first new line
        self.catching = True
        """Whether the stream has not given a line yet that is newer than all that are known."""
        self._overlap = False
        self._reach = b""
        self.sure = True
        """Whether it is clear that nothing is missing before what this stream gives."""
        self._tail: int | None = None
        self._count = 0
        self._held: list[Line] = []
        self._held_bytes = 0

    @property
    def high(self) -> bytes:
        """The newest stamp of a line that was handed over; empty when none was."""
        return self._high

    @property
    def gap(self) -> bool:
        """As many lines came as were asked for, all of them new: there may be more before them."""
        return not self.sure and self._tail is not None and self._count >= self._tail

    @property
    def holds(self) -> bool:
        """Whether new lines are held back until it is known that none is missing before them."""
        return bool(self._held)

    def attach(self, tail: int | None, *, sure: bool = False, reach: bytes | None = None) -> None:
        """A stream begins that was asked for the last ``tail`` lines (None: all).

        Until a line as old as ``reach`` (the newest one that is known) was seen, new lines are held, for others may be missing
        before them; not when it is ``sure`` that there are none, or when all were asked for.
        """
        self.catching, self._overlap = True, False
        self._reach = self._high if reach is None else reach
        self.sure = sure or tail is None
        self._tail, self._count = tail, 0
        self._held, self._held_bytes = [], 0

    def take(self, lines: Iterable[Line], wall: float) -> bytes:
        """The new ones among these lines, to be handed over; ``wall`` is the Unix time now."""
        out: list[bytes] = []
        for stamp, text in lines:
            fine = len(stamp) == _LENGTH and stamp[-1:] == b"Z"
            if not fine:
                stamp = _sortable(stamp)  # noqa: PLW2901 - as Podman writes them
            key = hash(stamp) ^ hash(text)
            if self.catching:
                if not self._caught(stamp, text, key, wall):
                    continue
            elif stamp > self._high:
                self._high = stamp
            elif fine and (key in self._young or key in self._old or not self._late(stamp, wall)):
                continue
            self._remember(key, stamp, text)
            out.append(text)
        first = self.settle() if self._held and self.sure else b""
        return first + b"".join(out)

    def settle(self) -> bytes:
        """What was held, to be handed over: nothing before it is missing, or nothing can be done about it."""
        held, self._held, self._held_bytes, self.sure = self._held, [], 0, True
        for stamp, text in held:
            self._new(stamp)
            self._remember(hash(stamp) ^ hash(text), stamp, text)
        return b"".join(text for _, text in held)

    def unknown(self, lines: Iterable[Line]) -> bool:
        """Whether there is a line among the last ones of the log that was not handed over; nothing is remembered of it."""
        for stamp, text in lines:
            sortable = stamp if len(stamp) == _LENGTH and stamp[-1:] == b"Z" else _sortable(stamp)
            if not self._known(sortable, text, hash(sortable) ^ hash(text)) and not self._before(sortable, self._high):
                return True
        return False

    def mark(self) -> dict[str, Any]:
        """What a successor must know to go on from here, fit for JSON; holds no text of a line."""
        return {"high": self._high.decode("latin-1"), "lines": [[stamp.decode("latin-1"), _digest(text)] for stamp, text in self._recent]}

    def recall(self, mark: Mapping[str, Any]) -> None:
        """Go on from a predecessor's mark; one that cannot be read is as none."""
        try:
            high = str(mark["high"]).encode("ascii")
            marked = frozenset((str(stamp), int(digest)) for stamp, digest in mark["lines"])
            if _unix(high) is None:
                return
        except (KeyError, TypeError, ValueError):
            return
        self._high, self._oldest, self._marked = high, high, marked

    def _caught(self, stamp: bytes, text: bytes, key: int, wall: float) -> bool:
        """Whether a line of a stream that has just begun is new and may be handed over at once."""
        self._count += 1
        if self._known(stamp, text, key):
            if not self._overlap:  # what was held for a clock that was set back is older than what is known
                self._overlap, self._held = True, [line for line in self._held if line[0] > self._reach]
            self.sure = self.sure or stamp <= self._reach
            return False
        if not self._overlap and self._before(stamp, self._reach) and not self._set_back(wall):
            self.sure = True
            return False
        if self.sure or self._held_bytes > _HELD_BYTES:
            self._new(stamp)
            return True
        self._held.append((stamp, text))
        self._held_bytes += len(text)
        return False

    def _new(self, stamp: bytes) -> None:
        """A first new line: what comes next is told from known ones by its stamp alone."""
        if stamp > self._high:
            self._high = stamp
            self.catching = False

    def _known(self, stamp: bytes, text: bytes, key: int) -> bool:
        if key in self._young or key in self._old:
            return True
        return bool(self._marked) and (stamp.decode("latin-1"), _digest(text)) in self._marked

    def _before(self, stamp: bytes, reach: bytes) -> bool:
        """Whether a line that is not known is older than what counts."""
        if reach:
            return b"" < stamp <= reach
        when = _unix(stamp)
        return when is not None and when < (int(self._since) if when.is_integer() else self._since)

    def _late(self, stamp: bytes, wall: float) -> bool:
        """Whether a line with an older stamp than the newest one is new all the same."""
        if stamp > self._oldest:
            return True  # written by the other output, a moment late; what is remembered would have told a line that comes again
        if self._set_back(wall):
            self._high, self._oldest, self._next_oldest = stamp, b"", b""
            return True
        return False  # a file that is read once more, from further back than is remembered

    def _set_back(self, wall: float) -> bool:
        """Whether the clock was set back since the newest line (or since the beginning)."""
        newest = _unix(self._high) if self._high else self._since
        return newest is not None and wall < newest - _SET_BACK_S

    def _remember(self, key: int, stamp: bytes, text: bytes) -> None:
        self.given += 1
        self._young.add(key)
        self._recent.append((stamp, text[:_TOLD_APART]))
        if len(self._young) >= (_LONG_MEMORY if self.lagging else REMEMBERED):
            self._old, self._young = self._young, set()
            self._oldest, self._next_oldest = self._next_oldest, stamp


def _digest(text: bytes) -> int:
    return crc32(text[:_TOLD_APART])


def _unix(stamp: bytes) -> float | None:
    """The Unix time of a stamp as it is kept here."""
    return iso(stamp) if b"-" in stamp else float(stamp[:-1]) if stamp else None


def _sortable(stamp: bytes) -> bytes:
    """A stamp with another zone, as one of UTC that sorts among its like: seconds and nanoseconds since 1970."""
    whole = iso(stamp)
    return b"" if whole is None else b"%020.7fZ" % whole

"""A recorded log, from which only the moments that matter are taken: lines with a fingerprint, and lines that say the service is well.

Read in one pass with flat memory. Time stamps are read only from those lines and from the log's edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edgekeeper.host.archive import Archive
from edgekeeper.watch.envelope import Envelope, recognise
from edgekeeper.watch.fingerprint import Match, Matcher
from edgekeeper.watch.sources.lines import Cutter
from edgekeeper.watch.stamp import Calendar

_EDGE = 200
"""Lines at an edge of the log, or before a hit, that are looked at for a time stamp: a stack trace has none of its own."""

_RECOGNISED_BY = 20
"""Lines by which the envelope is recognised."""

_PART_LIMIT = 2**20
"""Bytes of a line that was recorded in parts; what is longer is cut."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One line that matters: when (Unix seconds), whether it says the service is well again, the match, and its number from 1."""

    at: float
    recovered: bool
    match: Match
    line: int


class Recorded:
    """One recorded log (``-``: standard input), gzip or xz too; MissingError or UsageError when it cannot be opened.

    Once ``moments`` is exhausted: ``first`` and ``last`` are the Unix times of its edges (None: no line says when it was written),
    ``lines`` and ``bytes`` its size, ``disordered`` how many moments are older than the one before them, ``undated`` how many were left
    out because nothing near them tells a time, ``envelope`` what its lines are wrapped in, ``damage`` why it could not be read to its end.
    """

    def __init__(self, path: str, matcher: Matcher, recovered: Matcher | None = None) -> None:
        self._archive = Archive(path)
        self._matchers = ((False, matcher),) if recovered is None else ((False, matcher), (True, recovered))
        self._calendar = Calendar(self._archive.zone_s, self._archive.changed)
        self._envelope: Envelope | None = None
        self._parts: dict[bytes, bytes] = {}
        self._before: float | None = None
        self._known: float | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.lines = 0
        self.bytes = 0
        self.disordered = 0
        self.undated = 0
        self.damage = ""

    @property
    def envelope(self) -> str:
        """What the lines are wrapped in; empty until the first of them was read."""
        return "" if self._envelope is None else self._envelope.name

    def moments(self, tell: Callable[[int], None] | None = None) -> Iterator[Moment]:
        """The moments in the log's order, which is that of time but for ``disordered``; ``tell`` is told now and then how many lines were read."""
        cutter = Cutter()
        for piece in self._archive.blocks():
            self.bytes += len(piece)
            block = cutter.feed(piece)
            if block:
                yield from self._block(block)
                if tell is not None:
                    tell(self.lines)
        if rest := cutter.end():
            yield from self._block(rest)
        self.damage = self._archive.damage

    def _block(self, block: bytes) -> Iterator[Moment]:
        if self._envelope is None:
            self._envelope = recognise([line for line in block.split(b"\n", _RECOGNISED_BY)[:_RECOGNISED_BY] if line])
        raw = block.split(b"\n")
        raw.pop()  # behind the last end
        text, owners = self._texts(self._envelope, block, raw)
        found = sorted(((index, well, match) for well, matcher in self._matchers for index, match in matcher.numbered(text)), key=lambda one: one[0])
        if self.first is None:
            self.first = next((at for line in raw[:_EDGE] if (at := self._envelope.stamp(line, self._calendar)) is not None), None)
        begun, self.lines = self.lines, self.lines + len(raw)
        for index, well, match in found:
            owner = index if owners is None else owners[index]
            at = self._stamp(self._envelope, raw, owner)
            if at is None:
                self.undated += 1
                continue
            self.disordered += self._before is not None and at < self._before
            self._before = at
            yield Moment(at, well, match, begun + owner + 1)
        self._known = next((at for line in reversed(raw[-_EDGE:]) if (at := self._envelope.stamp(line, self._calendar)) is not None), self._known)
        self.last = self._known

    def _stamp(self, envelope: Envelope, raw: list[bytes], index: int) -> float | None:
        """When a line was written: by itself, else by the nearest line before it that says so."""
        for line in reversed(raw[max(0, index - _EDGE) : index + 1]):
            if (at := envelope.stamp(line, self._calendar)) is not None:
                return at
        return self._known

    def _texts(self, envelope: Envelope, block: bytes, raw: list[bytes]) -> tuple[bytes, list[int] | None]:
        """The service's own lines, and the raw line that each of them ends with (None: one for one)."""
        if not self._parts and (text := envelope.bulk(block)) is not None:
            return text, None
        whole: list[bytes] = []
        owners: list[int] = []
        for index, line in enumerate(raw):
            part = envelope.part(line)
            text = self._parts.pop(part.stream, b"") + part.text if self._parts else part.text
            if part.ends:
                whole.append(text)
                owners.append(index)
            else:
                self._parts[part.stream] = text[:_PART_LIMIT]
        return b"".join(line + b"\n" for line in whole), owners

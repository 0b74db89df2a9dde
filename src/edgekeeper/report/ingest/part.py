"""One part of one file, read: lines out of their envelope, into requests, marks and samples, into a book."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from edgekeeper.host.archive import Archive
from edgekeeper.report.book import Source
from edgekeeper.report.cells_text import KIND, is_cells
from edgekeeper.report.cells_text import Reader as CellsReader
from edgekeeper.report.formats import by_name, recognise
from edgekeeper.report.formats.base import Context, Format
from edgekeeper.report.formats.envelope import ENVELOPES, NONE, Envelope, recognise_envelope
from edgekeeper.report.ingest.fast import FastTraefik
from edgekeeper.report.ingest.lines import BLOCK, Blocks
from edgekeeper.report.ingest.take import Read, Taker
from edgekeeper.report.ingest.zones import Local, zone_of
from edgekeeper.report.kinds import NOT_THIS_FORMAT, TOO_LONG, TORN_COMPRESSION, TRUNCATED, Request, Skip
from edgekeeper.report.rules import Rules

TRAEFIK = "traefik-json"
"""The format that has a fast way."""
_IN_ORDER = frozenset({"bird", "cnpg", "frr", "gobgp", "keepalived", "kubectl-drain", "netbird", "watchdog"})
"""Formats whose lines are dated by when they were written: their stamps go on, but for the reading of several threads."""
_DISORDER_S, _LONG_S = 2.0, 1800.0
"""How far a stamp may lie before the last one: in those, and in the others, where a request that took long is dated by its begin."""
_BACK_S = 60.0
"""Lines of several threads, buffers and replicas are in disorder by less."""
_SETTLE = 16
_LOOK = 2**22
"""Bytes at the beginning of a file in which a line of a known format must turn up."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file, or the lines of it that begin in [begin, end). ``envelope`` and ``format`` are names, "" where that is not known yet.

    ``first`` is its first line, where no line is there twice in logs of the format.
    ``probed`` is whether it can hold requests of probes whose record is read, too: then they tell how clocks differ.
    """

    path: str
    name: str
    node: str = ""
    zone: str = ""
    envelope: str = ""
    format: str = ""
    begin: int = 0
    end: int | None = None
    probed: bool = True
    first: bytes = b""


def look(lines: Sequence[bytes]) -> tuple[Envelope, Format | None]:
    """The envelope and the format of the first lines of a log."""
    envelope = recognise_envelope(lines)
    context = Context()
    inner = [line for line in (envelope.unwrap(line, context) for line in lines) if isinstance(line, bytes)]
    return envelope, recognise(inner, journal=envelope.name.startswith("journald"))


def first_lines(blocks: Iterable[bytes]) -> list[bytes]:
    """The lines of some blocks."""
    return [line.removesuffix(b"\r") for block in blocks for line in block.split(b"\n") if line.strip()]


class Reader:
    """Reads one part; ``read`` is called once."""

    def __init__(self, part: Part, rules: Rules, archive: Archive) -> None:
        self.part = part
        self.archive = archive
        self.local = Local(zone_of(part.zone), self._which)
        self.context = Context(local=self.local, until=archive.changed, node=part.node, source=part.name)
        self.source = Source(part.name, part.path, part.format, node=part.node)
        self.taker = Taker(self.source, rules)

    def read(self) -> Read:
        """All of the part."""
        if self.part.begin:
            self.archive.seek(self.part.begin - 1)
        blocks = Blocks(self.archive.fill, self.part.begin, self.part.end)
        stream = iter(blocks)
        envelope, kind, head = self._recognised(stream)
        if head and is_cells(head[0]):
            return self._read_cells(head, stream, blocks)
        self.source.format = kind.name if kind is not None else ""
        if kind is not None and kind.name == TRAEFIK:
            self._read_fast(kind, envelope, head, stream)
        else:
            self._read_lines(kind, envelope, head, stream)
        for left in envelope.end(self.context):
            self._line(left, kind)
        if any(getattr(kept, "under_way", False) is True for kept in self.context.state.values()):
            self.taker.skip(TRUNCATED)
            self.source.warnings.append("its document ends too early; what is whole of it is used")
        self.taker.settle()
        self._finish(blocks, kind)
        return self.taker.read

    def _recognised(self, stream: Iterable[memoryview]) -> tuple[Envelope, Format | None, list[bytes]]:
        forced = by_name(self.part.format) if self.part.format else None
        wrapped = next((e for e in (NONE, *ENVELOPES) if e.name == self.part.envelope), None)
        if forced is not None and wrapped is not None:
            return wrapped, forced, []
        head: list[bytes] = []
        kind: Format | None = None
        envelope: Envelope = NONE
        for block in stream:
            head.append(bytes(block))
            envelope, kind = look(first_lines(head[-1:]))
            if kind is not None or is_cells(head[0]) or len(head) * BLOCK >= _LOOK:
                break
        return wrapped or envelope, forced or kind, head

    def _read_cells(self, head: Iterable[bytes], stream: Iterable[memoryview], blocks: Blocks) -> Read:
        """What was counted before: its sources come with it, and the file itself is one only where something of it is missing."""
        book = self.taker.read.book
        reader = CellsReader(book)
        for block in chain(head, stream):
            for line in bytes(block).split(b"\n"):
                if line and not line.isspace():
                    self.source.lines += 1
                    if (reason := reader.read(line)) is not None:
                        self.taker.skip(reason)
        self.source.format = KIND
        self._finish(blocks, None, known=True)
        if (missing := reader.finish()) is not None:
            self.source.warnings.append(missing)
        elif not self.source.skipped:
            del book.sources[self.source.name]
        return self.taker.read

    def _read_fast(self, kind: Format, envelope: Envelope, head: Iterable[bytes], stream: Iterable[memoryview]) -> None:
        fast = FastTraefik(self.taker, kind, self.context, probed=self.part.probed)
        for block in head:
            fast.feed(block if envelope is NONE else self._unwrapped(block, envelope, kind))
        for view in stream:
            fast.feed(view if envelope is NONE else self._unwrapped(bytes(view), envelope, kind))
        fast.end()

    def _unwrapped(self, block: bytes, envelope: Envelope, kind: Format) -> bytes:
        """The lines of a block out of their envelope, as a block; but for those that need the time of the envelope: they are taken one by one."""
        found = []
        for wrapped in block.split(b"\n"):
            line = envelope.unwrap(wrapped, self.context) if wrapped and not wrapped.isspace() else None
            if isinstance(line, bytes) and b'"StartUTC"' in line:
                found.append(line)
            elif line:
                self.source.lines += 1
                self._line(line, kind)
        return b"\n".join(found)

    def _read_lines(self, kind: Format | None, envelope: Envelope, head: Iterable[bytes], stream: Iterable[memoryview]) -> None:
        for number, block in enumerate(chain(head, stream)):
            self._feed(bytes(block), envelope, kind)
            if number % _SETTLE == 0:
                self.taker.read.book.cells.settle()

    def _feed(self, block: bytes, envelope: Envelope, kind: Format | None) -> None:
        lines = [line for line in block.split(b"\n") if line and not line.isspace()]
        self.source.lines += len(lines)
        for line in lines:
            self._line(line if envelope is NONE else envelope.unwrap(line, self.context), kind)
        self.taker.settle()

    def _line(self, line: bytes | Skip | None, kind: Format | None) -> None:
        if line is None:
            return
        if isinstance(line, Skip):
            self.taker.skip(line.reason)
        elif kind is None:
            self.taker.skip(NOT_THIS_FORMAT)
        else:
            item = kind.parse(line.removesuffix(b"\r"), self.context)
            self.taker.take(item)
            if isinstance(item, Request):
                self.taker.written(item.start + item.took_s)

    def _which(self, first: float, second: float) -> float:
        """Of an hour that is there twice: the one that the envelope tells, else the first one unless lines would go back in time."""
        if self.context.envelope_at is not None:
            return min(first, second, key=lambda at: abs(at - (self.context.envelope_at or 0.0)))
        last = self.source.last if self.context.near is None else self.context.near
        return second if last is not None and last - first > (_DISORDER_S if self.source.format in _IN_ORDER else _LONG_S) else first

    def _finish(self, blocks: Blocks, kind: Format | None, *, known: bool = False) -> None:
        source = self.source
        source.lines += blocks.too_long
        if blocks.too_long:
            self.taker.skip(TOO_LONG, blocks.too_long)
        if self.archive.damage:
            self.taker.skip(TORN_COMPRESSION)
            source.warnings.append(self.archive.damage)
        if kind is None and source.lines and not known:
            source.warnings.append("its lines are of no format that is known; say its format in the config, or leave it out")
        source.node = source.node or self.context.node
        source.stamp_s = max(source.stamp_s, getattr(kind, "stamp_s", 0.0))
        if self.local.used:
            source.zone = self.part.zone or "UTC"
            if not self.part.zone:
                source.warnings.append("its stamps have no zone and were read as UTC; say its zone when that is wrong")
        if self.taker.back_s > _BACK_S:
            source.warnings.append(
                f"its lines go back in time by {self.taker.back_s:.0f} s or more: a clock that was set back, or several logs in one file; what is of the same second "
                "is counted together"
            )
        if self.local.twice:
            source.warnings.append("the clock was set back, so that an hour is there twice: which one was meant was told by the order of its lines")
        if self.taker.read.book.cells.refused:
            source.warnings.append("more routes than can be told apart; some are counted together")


def read_part(part: Part, rules: Rules) -> Read:
    """Open a part and read it; MissingError or UsageError when it cannot be opened."""
    archive = Archive(part.path)
    try:
        return Reader(part, rules, archive).read()
    finally:
        archive.close()

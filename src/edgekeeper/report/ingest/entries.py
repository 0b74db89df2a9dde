"""Entries of a log store into a book: a stream is a log of its own, with the format that its first lines show."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekeeper.report.book import Book, Source
from edgekeeper.report.formats.base import Context, Format
from edgekeeper.report.formats.envelope import Envelope
from edgekeeper.report.ingest.part import look
from edgekeeper.report.ingest.take import Taker
from edgekeeper.report.ingest.zones import Local, zone_of
from edgekeeper.report.kinds import NOT_THIS_FORMAT, Skip
from edgekeeper.report.loki_plan import NANO, Entry, node_of
from edgekeeper.report.rules import Rules

_LOOK = 50
"""Lines of a stream that are looked at together before its format is settled."""
_SETTLE = 1000


@dataclass(slots=True)
class _Stream:
    taker: Taker
    context: Context
    held: list[Entry] = field(default_factory=list)
    envelope: Envelope | None = None
    format: Format | None = None
    lines: int = 0


class Entries:
    """Takes entries in any order of streams. Those of one machine become one source, called ``name`` or ``name MACHINE``: it has one clock."""

    def __init__(self, name: str, path: str, rules: Rules, until: float, zone: str = "") -> None:
        self.name = name
        self.path = path
        self.rules = rules
        self.until = until
        self.zone = zone
        self.local = Local(zone_of(zone))
        self.lines = 0
        self._streams: dict[tuple[tuple[str, str], ...], _Stream] = {}
        self._takers: dict[str, Taker] = {}

    def take(self, entry: Entry) -> None:
        """One entry."""
        self.lines += 1
        stream = self._streams.get(entry.labels)
        if stream is None:
            stream = self._streams[entry.labels] = self._opened(entry)
        if stream.envelope is not None:
            self._line(stream, entry)
            return
        stream.held.append(entry)
        if len(stream.held) >= _LOOK:
            self._settle(stream)

    def book(self) -> Book:
        """All that was taken; call it once."""
        found = Book()
        for stream in self._streams.values():
            if stream.envelope is None:
                self._settle(stream)
            if stream.envelope is not None:
                for left in stream.envelope.end(stream.context):
                    self._parsed(stream, left)
            stream.taker.settle()
        for taker in self._takers.values():
            taker.source.numbers = taker.read.counters.numbers()
            if self.local.used:
                taker.source.zone = self.zone or "UTC"
            found.merge(taker.read.book)
        return found

    def _opened(self, entry: Entry) -> _Stream:
        node = node_of(dict(entry.labels))
        taker = self._takers.get(node)
        if taker is None:
            taker = self._takers[node] = Taker(Source(f"{self.name} {node}".strip(), self.path, "", node=node), self.rules)
        return _Stream(taker, Context(local=self.local, until=self.until, node=node, source=taker.source.name))

    def _settle(self, stream: _Stream) -> None:
        stream.envelope, stream.format = look([e.line.encode("utf-8", "surrogatepass") for e in stream.held])
        source = stream.taker.source
        known = stream.format.name if stream.format is not None else "unknown"
        if known not in source.format.split(", "):
            source.format = f"{source.format}, {known}".removeprefix(", ")
        held, stream.held = stream.held, []
        for entry in held:
            self._line(stream, entry)

    def _line(self, stream: _Stream, entry: Entry) -> None:
        stream.lines += 1
        stream.taker.source.lines += 1
        stream.context.envelope_at = entry.at_ns / NANO
        line = entry.line.encode("utf-8", "surrogatepass")
        self._parsed(stream, stream.envelope.unwrap(line, stream.context) if stream.envelope is not None else line)
        if stream.lines % _SETTLE == 0:
            stream.taker.settle()

    def _parsed(self, stream: _Stream, line: bytes | Skip | None) -> None:
        if line is None or (isinstance(line, bytes) and not line.strip()):
            return
        if isinstance(line, Skip):
            stream.taker.skip(line.reason)
        elif stream.format is None:
            stream.taker.skip(NOT_THIS_FORMAT)
        else:
            stream.taker.take(stream.format.parse(line.rstrip(b"\r\n"), stream.context))

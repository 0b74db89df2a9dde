"""Traefik's access log in JSON, a block of lines at a time: the way for logs of gigabytes.

It agrees with the exact parser (formats/traefik.py) on every line, and hands it each line that is not a plain good answer. What is good is
decoded by msgspec for a whole block at once and appended to the columns of its lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec

from edgekeeper.report.cells import Lane
from edgekeeper.report.columns import LATEST
from edgekeeper.report.formats.base import Context, Format
from edgekeeper.report.formats.traefik import LONGEST_NS, client_of, router_of
from edgekeeper.report.ingest.take import Taker
from edgekeeper.report.kinds import Mark
from edgekeeper.report.people import SILENCE_S, Person, Track
from edgekeeper.report.rules import Verdict

_REMEMBERED = 20_000
"""Pairs of a route and a client whose lane is known without looking for it."""
_SETTLE = 16_384
"""Lines after which full columns are looked for."""
_ONE_OF = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86400
_SILENCE = int(SILENCE_S)  # whole, as seconds are: to compare two whole numbers is twice as fast
_PROBE = "kp="
"""What our own probes put into the path; the exact parser makes a mark of it."""
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
Into = tuple[Callable[[int], None], Callable[[float], None]]
"""Where a good answer of a lane goes: its second, microsecond and status, and its duration."""


class Row(msgspec.Struct, gc=False):
    """The fields that are needed of a plain line. Strict: whatever has other types or values goes to the exact parser."""

    StartUTC: datetime
    Duration: Annotated[int, msgspec.Meta(ge=0, lt=LONGEST_NS)]
    DownstreamStatus: int
    RouterName: str = ""
    ClientAddr: str = ""
    RetryAttempts: int = 0
    RequestCount: int = -1


class PathRow(Row, gc=False):
    """The same with the path, in which our own probes leave a name. To read and look at it costs a twentieth."""

    RequestPath: str = ""


_ROWS = msgspec.json.Decoder(Row)
_PATH_ROWS = msgspec.json.Decoder(PathRow)


class FastTraefik:
    """Reads blocks of whole lines of one source into its taker. Nobody else may close the columns meanwhile.

    ``probed`` is whether requests of our own probes are looked for: the exact parser makes a mark of each.
    """

    def __init__(self, taker: Taker, exact: Format, context: Context, *, probed: bool) -> None:
        self.taker = taker
        self.exact = exact
        self.context = context
        self._probed = probed
        self._decode = (_PATH_ROWS if probed else _ROWS).decode_lines
        self._good = frozenset(s for s in range(100, 1000) if s != 101 and taker.rules.of_status(s) is Verdict.GOOD)
        # small on purpose: what the loop touches must fit into a processor's cache beside the block
        self._clients: dict[str, tuple[Track, dict[str, Into]]] = {}
        self._lanes: dict[str, dict[str, Into]] = {}
        self._day, self._base = datetime(1970, 1, 1, tzinfo=UTC), 0
        self._plain = True
        self._since = 0

    def feed(self, block: bytes | memoryview) -> None:
        """All lines of a block, each with its newline."""
        try:
            rows = self._decode(block)
        except _DAMAGE:
            self._one_by_one(bytes(block))
        else:
            self._take(rows, block)
            self._since += len(rows)
        self.taker.settle()
        if self._since >= _SETTLE:
            self._since = 0
            if self.taker.read.book.cells.settle():  # what was closed has new columns: they are looked for again
                for lanes in self._lanes.values():
                    lanes.clear()
            if len(self._clients) > _REMEMBERED:
                self._forget()

    def end(self) -> None:
        """No more lines: the first and last stamp are those of the columns."""
        for columns in self.taker.read.book.cells.columns.values():
            columns.close()
            for second in columns.edges():
                self.taker.seen(float(second))
        self._forget()

    def _forget(self) -> None:
        self._clients.clear()
        self._lanes.clear()

    def _one_by_one(self, block: bytes) -> None:
        """A line of the block is none of ours: each for itself, so that its neighbours are not lost."""
        for line in block.split(b"\n"):
            if not line or line.isspace():
                continue
            try:
                rows = self._decode(line)
            except _DAMAGE:
                self.taker.source.lines += 1
                self.taker.take(self.exact.parse(line.removesuffix(b"\r"), self.context))
            else:
                self._take(rows, line)

    def _take(self, rows: list[Any], block: bytes | memoryview) -> None:
        taker = self.taker
        taker.source.lines += len(rows)
        self._written(rows[::_ONE_OF])
        odd = self._good_ones(rows, _Lines(rows, block))
        if self._probed and (asked := [i for i, row in enumerate(rows) if _PROBE in row.RequestPath and i not in odd]):
            lines = _Lines(rows, block)
            for place in asked:
                said = self.exact.parse(lines.line(place), self.context)
                taker.take([one for one in said if isinstance(one, Mark)] if isinstance(said, list) else None)
        numbers = [row.RequestCount for row in rows]
        for place in reversed(odd):
            del numbers[place]
        taker.numbers += numbers if min(numbers, default=0) >= 0 else [n for n in numbers if n >= 0]

    def _written(self, rows: Sequence[Any]) -> None:
        """When some of the lines were written: often enough for a clock that was set back."""
        for row in rows:
            if row.StartUTC.tzinfo is not None and row.Duration >= 0:
                self.taker.written((row.StartUTC - _EPOCH).total_seconds() + row.Duration / 1e9)

    def _exact(self, line: bytes) -> None:
        self.taker.take(self.exact.parse(line, self.context))

    def _good_ones(self, rows: list[Any], lines: _Lines) -> list[int]:
        """Count what is plain and good, and hand each other one to the exact parser in its turn; the places of those come back."""
        clients, good, day, base = self._clients, self._good, self._day, self._base
        silence = _SILENCE
        odd: list[int] = []
        for place, row in enumerate(rows):
            status = row.DownstreamStatus
            if status not in good or row.RetryAttempts:
                odd.append(place)
                clients.pop(row.ClientAddr.rpartition(":")[0], None)  # hurt, it may be followed from now on: to be looked for anew
                self._exact(lines.line(place))
                continue
            try:
                into = row.StartUTC - day
            except TypeError:  # a stamp without a zone
                odd.append(place)
                self._exact(lines.line(place))
                continue
            if into.days:
                self._turn(row.StartUTC)
                day, base = self._day, self._base
                into = row.StartUTC - day
            second = base + into.seconds
            try:
                track, lanes = clients[row.ClientAddr.rpartition(":")[0]]
                append, append_took = lanes[row.RouterName]
            except KeyError:
                found = self._find(row, second)
                if found is None:
                    odd.append(place)
                    self._exact(lines.line(place))
                    continue
                track, (append, append_took) = found
            append(second)
            append(into.microseconds)
            append(status)
            append_took(row.Duration)
            if second <= track.limit:
                track.limit = second + silence
            else:
                track.seen(second + into.microseconds / 1e6, ok=True)
        return odd

    def _turn(self, stamp: datetime) -> None:
        """Another day. One in which a class of clients begins or ends, or that has no place in the columns, is for the exact parser."""
        try:
            stamp = stamp.astimezone(UTC)
        except OverflowError:  # the first hours of the year 1, or the last ones of 9999, of another zone
            stamp = datetime(1, 1, 2, tzinfo=UTC)
        self._day = stamp.replace(hour=0, minute=0, second=0, microsecond=0)
        self._base = (self._day - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
        era = self.taker.rules.era(self._base)
        self._plain = 0 <= self._base < LATEST - _DAY_S and era[1] >= self._base + _DAY_S
        self._forget()

    def _find(self, row: Row, second: int) -> tuple[Track, Into] | None:
        """Where the good answers of a route to a client go; None when the exact parser is to say that."""
        client = client_of(row.ClientAddr, "")
        if not self._plain or not client or ":" not in row.ClientAddr:
            return None
        name, rules, cells = self.taker.source.name, self.taker.rules, self.taker.read.book.cells
        group = rules.group_of(client, second)
        lanes = self._lanes.setdefault(group, {})
        into = lanes.get(row.RouterName)
        if into is None:
            columns = cells.lane(Lane(name, router_of(row.RouterName), group))
            into = lanes[row.RouterName] = columns.open.append, columns.tooks.append
        who = Person(name, group, client)
        track = cells.people.tracks.get(who) or cells.people.track(who, second, ok=True)
        self._clients[row.ClientAddr.rpartition(":")[0]] = track, lanes
        return track, into


class _Lines:
    """The lines that the rows of a block were decoded from, to be asked for in their order."""

    def __init__(self, rows: list[Any], block: bytes | memoryview) -> None:
        self.rows = rows
        self.block = block
        self.at = self.begin = 0

    def line(self, place: int) -> bytes:
        """Of one row. Where a line holds several objects, or none, what was decoded is written anew."""
        block = self.block = self.block if isinstance(self.block, bytes) else bytes(self.block)
        while self.at < place:
            self.begin = block.find(b"\n", self.begin) + 1
            self.at += 1
        end = block.find(b"\n", self.begin)
        line = block[self.begin : end if end >= 0 else None].removesuffix(b"\r")
        return line if _is(self.rows[place], line) else msgspec.json.encode(self.rows[place])


def _is(row: Any, line: bytes) -> bool:
    try:
        return bool((_PATH_ROWS if isinstance(row, PathRow) else _ROWS).decode(line) == row)
    except _DAMAGE:
        return False

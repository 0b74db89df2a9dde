"""Counts by the second, which can be added: what every figure is computed from. Pure.

A lane is one route for one class of clients as one source saw it. For each second in which a request began it keeps how many were
good, bad, and neither, and the earliest and latest begin and end of the good and the bad ones: enough to bound an outage as closely as
the lines themselves would, in a few bytes. For each minute it keeps statuses and how long answers took.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from edgekeeper.report.columns import FULL, LATEST, NANO, Columns, Uncommon
from edgekeeper.report.kinds import Request
from edgekeeper.report.minutes import BINS, EDGES_S
from edgekeeper.report.people import Client, People, Person
from edgekeeper.report.rules import Verdict

__all__ = ["BINS", "EDGES_S", "LANES", "OTHER", "Cell", "Cells", "Client", "Lane", "Minute", "Total"]

LANES = 4096
"""Lanes that are told apart: a route may be a name that a client made up."""
OTHER = "(other)"
"""The route of all that are not told apart."""


class Lane(NamedTuple):
    """Where cells belong: the source that told, the route, the class of the clients."""

    source: str
    router: str
    group: str


class Cell(NamedTuple):
    """What began within one second, on the clock of the source. Times are seconds since 1970; where there is none of a kind they are nan.

    ``bad`` are answers that hurt (by default 502, 503, 504 and sessions that were cut), ``gone`` those where the client gave up (499),
    ``other`` server errors that do not count as an outage (500 and the rest of 5xx), ``masked`` good answers after failed attempts.
    ``good`` are all the rest, the masked ones among them.
    """

    second: int
    good: int
    bad: int
    gone: int
    other: int
    masked: int
    good_first_start: float
    good_last_start: float
    good_first_end: float
    good_last_end: float
    bad_first_start: float
    bad_last_start: float
    bad_first_end: float
    bad_last_end: float


class Minute(NamedTuple):
    """A minute of a lane (``minute`` counts from 1970): requests by status (0: they have none), and how long good answers took.

    ``took[i]`` counts those that took less than ``EDGES_S[i]``, and not less than the edge before; the last bin all that took longer.
    """

    minute: int
    statuses: dict[int, int]
    took: list[int]


class Total(NamedTuple):
    """Counts of a lane; ``masked`` ones are also among the good."""

    good: int
    bad: int
    gone: int
    other: int
    masked: int


class Cells:
    """All lanes of a book, and what became of each client. Columns are kept in arrays; what is asked for is made on the way out."""

    __slots__ = ("columns", "people", "refused")

    def __init__(self) -> None:
        self.columns: dict[Lane, Columns] = {}
        self.people = People()
        self.refused = 0
        """How often a route beyond ``LANES`` was asked for; those are counted under ``(other)``."""

    def lane(self, lane: Lane) -> Columns:
        """The columns of a lane, to write to. A route beyond ``LANES`` shares those of ``(other)``: names come out of a log."""
        found = self.columns.get(lane)
        if found is None:
            if len(self.columns) >= LANES and lane.router != OTHER:
                self.refused += 1
                return self.lane(Lane(lane.source, OTHER, lane.group))
            found = self.columns[lane] = Columns()
        return found

    def add(self, lane: Lane, request: Request, verdict: Verdict) -> bool:
        """Count a request; False when its time is none (not between 1970 and 2106).

        A session without a status that was cut is filed where it ended: when it began proves nothing. Durations that are none count as 0.
        """
        took = request.took_s if 0 <= request.took_s < 1e9 else 0.0
        start = request.start
        session = request.status in {0, 101}
        if verdict is Verdict.BAD and request.status == 0:
            start, took = start + took, 0.0
        if not 0 <= start + took < LATEST or start < 0:
            return False
        columns = self.lane(lane)
        second, micro = divmod(round(start * 1e6), 1_000_000)
        if verdict is Verdict.GOOD:
            columns.good(second, micro, took * NANO, request.status if 0 <= request.status <= 999 else 0)
            if request.masked:
                columns.uncommon.add(second, verdict, 0.0, 0.0)
        else:
            columns.uncommon.add(second, verdict, micro / 1e6, micro / 1e6 + took)
            columns.uncommon_minutes.note(second // 60, request.status)
            if verdict is Verdict.BAD:
                columns.word(columns.causes, second // 60, request.cause)
        if session:
            columns.word(columns.ended, int(start + took) // 60, request.cause or ("WebSocket" if request.status == 101 else "ended"))
        if request.client:
            self.people.seen(Person(lane.source, lane.group, request.client), start, ok=verdict is not Verdict.BAD)
        return True

    def add_counts(self, lane: Lane, second: int, *, good: int = 0, bad: int = 0, gone: int = 0, other: int = 0, took_s: float = 0.0) -> None:
        """Add counts of what ended within one second, of which no more is known than that it began at most ``took_s`` before.

        All count as begun as early and ended as late as they can have been: then no bound that is made of them is too narrow. Statuses
        are for ``add_statuses``; how long answers took is not counted.
        """
        if not 0 <= second < LATEST - 1:
            return
        columns = self.lane(lane)
        if good:
            columns.settled.add(second, good, -took_s, -took_s, 1.0, 1.0)
        for verdict, count in ((Verdict.BAD, bad), (Verdict.GONE, gone), (Verdict.OTHER, other)):
            if count:
                columns.uncommon.add(second, verdict, -took_s, 1.0, count)

    def add_statuses(self, lane: Lane, minute: int, statuses: Mapping[int, int]) -> None:
        """Add how many requests of a minute (counted from 1970) had which status, beside what ``add_counts`` adds to its seconds."""
        if 0 <= minute * 60 < LATEST - 60:
            columns = self.lane(lane)
            for status, count in statuses.items():
                columns.uncommon_minutes.note(minute, status, count)

    def settle(self) -> bool:
        """Close the columns that are full; whether any was. To be called now and then while much is added."""
        full = [columns for columns in self.columns.values() if len(columns.tooks) >= FULL or len(columns.uncommon_minutes.open) >= FULL]
        for columns in full:
            columns.close()
        return bool(full)

    def merge(self, other: Cells) -> None:
        """Take in all of another one; it is not to be used any more."""
        for lane, columns in other.columns.items():
            mine = self.columns.get(lane)
            if mine is None and len(self.columns) < LANES:
                self.columns[lane] = columns
            else:
                self.lane(lane).merge(columns)
        self.people.merge(other.people)
        self.refused += other.refused

    def lanes(self) -> list[Lane]:
        """Every lane that something was counted in."""
        return sorted(self.columns)

    def cells(self, lane: Lane, begin: float | None = None, end: float | None = None) -> list[Cell]:
        """The cells of a lane whose second lies in [floor(begin), end), by time, one for each second in which anything began."""
        columns = self.columns.get(lane)
        if columns is None:
            return []
        found: dict[int, list[float]] = {}
        for second, count, first_start, last_start, first_end, last_end in columns.runs(begin, end):
            known = found.get(second)
            if known is None:
                found[second] = [count, first_start, last_start, first_end, last_end]
            else:
                known[0] += count
                known[1:] = min(known[1], first_start), max(known[2], last_start), min(known[3], first_end), max(known[4], last_end)
        rare = {columns.uncommon.seconds[i]: i for i in columns.uncommon.span(begin, end)}
        return [_cell(columns.uncommon, second, found.get(second), rare.get(second)) for second in sorted({*found, *rare} if rare else found)]

    def minutes(self, lane: Lane, begin: float | None = None, end: float | None = None) -> list[Minute]:
        """The minutes of a lane in which something began and that begin in [floor of begin, end), by time."""
        found: dict[int, Minute] = {}
        for minute, status, took, count in self._noted(lane, begin, end):
            one = found.get(minute)
            if one is None:
                one = found[minute] = Minute(minute, {}, [0] * BINS)
            one.statuses[status] = one.statuses.get(status, 0) + count
            if took < BINS:
                one.took[took] += count
        return [found[minute] for minute in sorted(found)]

    def statuses(self, lane: Lane, begin: float | None = None, end: float | None = None) -> Counter[int]:
        """How many requests had which status, of the minutes that begin in the span."""
        found: Counter[int] = Counter()
        if begin is None and end is None and lane in self.columns:
            for key, count in self.columns[lane].sums().items():
                found[key >> 6] += count
            return found
        for _minute, status, _took, count in self._noted(lane, begin, end):
            found[status] += count
        return found

    def minutes_of(self, lane: Lane, least: int) -> list[tuple[int, int]]:
        """Minutes with requests of a status of ``least`` and above, and how many there were; a minute may come more than once."""
        columns = self.columns.get(lane)
        return columns.above(least) if columns is not None else []

    def took(self, lane: Lane) -> list[int]:
        """How long good answers took by the bins of ``EDGES_S`` (and one more), of all that was read."""
        bins = [0] * (BINS + 1)
        if lane in self.columns:
            for key, count in self.columns[lane].sums().items():
                bins[key & 63] += count
        return bins[:BINS]

    def _noted(self, lane: Lane, begin: float | None, end: float | None) -> Iterator[tuple[int, int, int, int]]:
        columns = self.columns.get(lane)
        return columns.noted(begin, end) if columns is not None else iter(())

    def total(self, lane: Lane, begin: float | None = None, end: float | None = None) -> Total:
        """The counts of the seconds in [floor(begin), end)."""
        columns = self.columns.get(lane)
        if columns is None:
            return Total(0, 0, 0, 0, 0)
        rare, within = columns.uncommon, columns.uncommon.span(begin, end)
        few = (sum(column[within.start : within.stop]) for column in (rare.bads, rare.gones, rare.others, rare.masks))
        return Total(columns.goods(begin, end), *few)

    def causes(self, lane: Lane, begin: float | None = None, end: float | None = None) -> Counter[str]:
        """What the lines say of why an answer was bad, of the minutes that touch the span ("": they do not say)."""
        columns = self.columns.get(lane)
        return _words(columns.causes, begin, end) if columns is not None else Counter()

    def ended(self, lane: Lane, begin: float | None = None, end: float | None = None) -> Counter[str]:
        """Sessions (WebSockets, TCP) that ended in the minutes that touch the span, by how: "WebSocket", "ended", "killed: server down"..."""
        columns = self.columns.get(lane)
        return _words(columns.ended, begin, end) if columns is not None else Counter()

    def clients(self) -> list[Client]:
        """Every client that was followed, with its runs of good and bad answers."""
        return self.people.clients()

    @property
    def clients_lost(self) -> int:
        """Clients that were not followed to the end, because there were too many."""
        return self.people.lost


def _words(counter: Counter[tuple[int, str]], begin: float | None, end: float | None) -> Counter[str]:
    found: Counter[str] = Counter()
    for (minute, word), count in counter.items():
        if (begin is None or minute * 60 + 60 > begin) and (end is None or minute * 60 < end):
            found[word] += count
    return found


def _cell(uncommon: Uncommon, second: int, good: list[float] | None, at: int | None) -> Cell:
    nan = math.nan
    n, goods = 0, (nan, nan, nan, nan)
    if good is not None:
        count, *edges = good
        n, goods = int(count), (second + edges[0], second + edges[1], second + edges[2], second + edges[3])
    if at is None:
        return Cell(second, n, 0, 0, 0, 0, *goods, nan, nan, nan, nan)
    u = uncommon
    bads = second + u.first_start[at], second + u.last_start[at], second + u.first_end[at], second + u.last_end[at]
    return Cell(second, n, u.bads[at], u.gones[at], u.others[at], u.masks[at], *goods, *bads)

"""From counts by the second to outages of a route, each with the least and the most that it can have lasted. Pure.

A request that ended badly proves that the route was down at some moment between its start and its end; a good one that it was up at some
such moment. An island is a set of bad ones that no good one divides: none that began after one of them had ended, and ended before
another began. For one outage that such an island is the trace of::

    it began  after the start of every good one that ended before the island's last bad one began
    it began  before the first end of a bad one
    it ended  after the last start of a bad one
    it ended  before the end of every good one that began after the first end of a bad one

A cell keeps only the first and last start and end of its good and bad ones. Where that does not tell whether a good one lies between two
bad ones, the least is taken as if it did, and the most as if it did not: bounds become wider, never wrong. In simulations with refusals,
slow 502s, black holes, several clients and clocks of unknown shift the truth was inside in every case.

Where one server of several is dead, good and bad ones mix and islands fall apart into single requests: that is what ``impaired`` is for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

LEAST_REQUESTS = 3
LEAST_S = 1.0
"""An island is an outage from three requests or one second on; what is smaller are single errors."""

SHARE = 0.05
JOIN_S = 5.0
"""A second is impaired from a bad share of 5 % on; impaired ones that lie no more than 5 s apart belong together."""

SURE = 0.001
"""How likely it may be that an impaired route began to fail earlier than is said, at each end, when each request hits a server by chance."""


class Edges(Protocol):
    """What is known of the requests that began within one second of a lane: times in seconds, nan where there is none of a kind."""

    @property
    def second(self) -> int: ...  # noqa: D102
    @property
    def good(self) -> int: ...  # noqa: D102
    @property
    def bad(self) -> int: ...  # noqa: D102
    @property
    def good_first_start(self) -> float: ...  # noqa: D102
    @property
    def good_last_start(self) -> float: ...  # noqa: D102
    @property
    def good_first_end(self) -> float: ...  # noqa: D102
    @property
    def good_last_end(self) -> float: ...  # noqa: D102
    @property
    def bad_first_start(self) -> float: ...  # noqa: D102
    @property
    def bad_last_start(self) -> float: ...  # noqa: D102
    @property
    def bad_first_end(self) -> float: ...  # noqa: D102
    @property
    def bad_last_end(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Island:
    """One outage: it lasted at least ``min_s`` and at most ``max_s``, which is infinite where no good request was seen on one side.

    ``begin`` and ``end`` are the earliest begin and the latest end that it can have had, ``first_bad`` and ``last_bad`` when the first and
    the last bad request began, ``sure_begin`` when the first bad one had ended: from then to ``last_bad`` it surely was down.
    ``good`` are good requests in its midst: 0 for a full outage.
    """

    min_s: float
    max_s: float
    begin: float
    end: float
    first_bad: float
    last_bad: float
    sure_begin: float
    last_end: float
    requests: int
    good: int = 0

    @property
    def counts(self) -> bool:
        """Whether it is more than single errors."""
        return self.requests >= LEAST_REQUESTS or self.last_end - self.first_bad >= LEAST_S


class Second(NamedTuple):
    """A cell of our own: what several sources saw in one second, added up."""

    second: int
    good: int
    bad: int
    good_first_start: float
    good_last_start: float
    good_first_end: float
    good_last_end: float
    bad_first_start: float
    bad_last_start: float
    bad_first_end: float
    bad_last_end: float


class Seen(NamedTuple):
    """Cells of one source, whose stamps may be too late by ``late`` seconds and too early by ``early``."""

    cells: Iterable[Edges]
    late: float = 0.0
    early: float = 0.0


def added(sources: Iterable[Seen]) -> list[Second]:
    """What all sources saw of a route, by the second, those of one second as one.

    Each request reaches so much further to both sides as its stamps may be wrong, which keeps every bound true.
    """
    found: dict[int, list[float]] = {}
    for cells, late, early in sources:
        for cell in cells:
            sums = found.get(cell.second)
            if sums is None:
                sums = found[cell.second] = [0, 0, *_NOTHING, *_NOTHING]
            if cell.good:
                sums[0] += cell.good
                _widen(sums, 2, cell.good_first_start - late, cell.good_last_start - late, cell.good_first_end + early, cell.good_last_end + early)
            if cell.bad:
                sums[1] += cell.bad
                _widen(sums, 6, cell.bad_first_start - late, cell.bad_last_start - late, cell.bad_first_end + early, cell.bad_last_end + early)
    return [Second(second, int(found[second][0]), int(found[second][1]), *found[second][2:]) for second in sorted(found)]


_NOTHING = (math.inf, -math.inf, math.inf, -math.inf)


def _widen(sums: list[float], at: int, first_start: float, last_start: float, first_end: float, last_end: float) -> None:
    sums[at] = min(sums[at], first_start)
    sums[at + 1] = max(sums[at + 1], last_start)
    sums[at + 2] = min(sums[at + 2], first_end)
    sums[at + 3] = max(sums[at + 3], last_end)


class _Open:
    """An island that is still growing."""

    def __init__(self, first_start: float, first_end: float, last_start: float, last_end: float, count: int) -> None:
        self.first_start, self.first_end = first_start, first_end
        self.last_start, self.last_end = last_start, last_end
        self.count = count
        self.least = 0.0
        self.run_first_end, self.run_last_start, self.run_any_end = first_end, last_start, first_end
        self.after = math.inf  # the earliest end of a good one that surely began after a bad one had ended
        self.maybe = math.inf  # the same, of good ones that may have done so since the present run of bad ones began

    def good(self, cell: Second, slack: float) -> None:
        """Take note of good ones that began after a bad one had ended, surely or maybe."""
        self.after = min(self.after, _good_after(cell, self.first_end))
        if cell.good_last_start + slack >= self.run_any_end:
            self.maybe = min(self.maybe, cell.good_first_end - slack)

    def take(self, cell: Second, *, divided: bool) -> None:
        """Take in all bad ones of a cell; the run of those that no good one can divide goes on or begins anew."""
        if divided or self.maybe <= cell.bad_last_start:
            self._end_run()
            whole = not divided and self.maybe <= cell.bad_first_start
            self.run_any_end = cell.bad_first_end
            self.run_first_end, self.run_last_start = cell.bad_first_end if whole else cell.bad_last_end, cell.bad_last_start
            self.maybe = math.inf
        else:
            self.run_any_end = min(self.run_any_end, cell.bad_first_end)
            self.run_first_end = min(self.run_first_end, cell.bad_first_end)
            self.run_last_start = max(self.run_last_start, cell.bad_last_start)
        self.first_start = min(self.first_start, cell.bad_first_start)
        self.first_end = min(self.first_end, cell.bad_first_end)
        self.last_start = max(self.last_start, cell.bad_last_start)
        self.last_end = max(self.last_end, cell.bad_last_end)
        self.count += cell.bad

    def _end_run(self) -> None:
        self.least = max(self.least, self.run_last_start - self.run_first_end)

    def closed(self, cells: Sequence[Second], place: int) -> Island:
        """The island as it stands; ``place`` is that of the last cell with a bad one of it."""
        self._end_run()
        begin = _youngest_before(cells, place, self.last_start)
        most = max(0.0, self.after - begin)
        return Island(min(self.least, most), most, begin, self.after, self.first_start, self.last_start, self.first_end, self.last_end, self.count)


def _good_after(cell: Second, moment: float) -> float:
    """By when a good one of the cell that began at the moment or later had surely ended; infinite where none surely did."""
    if not cell.good:
        return math.inf
    if cell.good_first_start >= moment:
        return cell.good_first_end
    return cell.good_last_end if cell.good_last_start >= moment else math.inf


def _may_divide(good: Second, bad: Second, slack: float) -> bool:
    """Whether a good one of one cell may lie between two bad ones of another, or of the same."""
    return bool(good.good) and good.good_last_start + slack >= bad.bad_first_end and good.good_first_end - slack <= bad.bad_last_start


def _youngest_before(cells: Sequence[Second], place: int, moment: float) -> float:
    """When the youngest good one that had surely ended by the moment began, at the earliest; minus infinity where there is none."""
    found = -math.inf
    for at in range(place, -1, -1):
        cell = cells[at]
        if found >= cell.second + 2:
            break
        if not cell.good:
            continue
        if cell.good_last_end <= moment:
            found = max(found, cell.good_last_start)
        elif cell.good_first_end <= moment:
            found = max(found, cell.good_first_start)
    return found


def islands(cells: Sequence[Second], slack: float = 0.0) -> list[Island]:
    """The islands of one route, in order, of the seconds that ``added`` makes.

    Where stamps may be wrong, hand in as ``slack`` twice the largest sum of ``late`` and ``early``: so much a good request may lie elsewhere
    among the bad ones than it seems.
    """
    walk = _Walk(cells, slack)
    for place, cell in enumerate(cells):
        if cell.good and walk.island is not None:
            walk.island.good(cell, slack)
        if cell.bad:
            walk.bad(place, cell)
    walk.close()
    return walk.found


class _Walk:
    """From second to second; ``last`` is the place of the last one with a bad request of the present island."""

    def __init__(self, cells: Sequence[Second], slack: float) -> None:
        self.cells, self.slack = cells, slack
        self.found: list[Island] = []
        self.island: _Open | None = None
        self.last = 0

    def bad(self, place: int, cell: Second) -> None:
        """Bad ones: of the present island, of a new one, or some of each."""
        near = [c for c in self.cells[max(0, place - 1) : place + 2] if abs(c.second - cell.second) <= 1]  # a shifted clock mixes neighbours
        for neighbour in near:
            if self.island is not None:
                self.island.good(neighbour, self.slack)
        island = self._placed(place, cell, divided=any(_may_divide(good, cell, self.slack) for good in near))
        for neighbour in near:
            island.good(neighbour, self.slack)
        self.island, self.last = island, place

    def _placed(self, place: int, cell: Second, *, divided: bool) -> _Open:
        """The island that the last bad one of the second belongs to."""
        island = self.island
        if island is not None and island.after <= cell.bad_last_start:
            clean = island.after <= cell.bad_first_start
            self.close()
            return _whole(cell, divided=divided) if clean else _rest(cell, cell.bad)
        if (inner := _good_after(cell, cell.bad_first_end)) <= cell.bad_last_start:
            return self._split(place, cell, inner)
        if island is None:
            return _whole(cell, divided=divided)
        island.take(cell, divided=divided)
        return island

    def _split(self, place: int, cell: Second, inner: float) -> _Open:
        """A good one surely lies between two bad ones of one second: the first of them ends an island, the last begins another."""
        if self.island is None:
            self.island = _Open(cell.bad_first_start, cell.bad_first_end, cell.bad_first_start, cell.bad_first_end, 0)
            self.last = place
        before = self.island
        before.first_end, before.last_end = min(before.first_end, cell.bad_first_end), max(before.last_end, cell.bad_first_end)
        before.after, before.count = min(before.after, inner), before.count + 1
        self.close()
        return _rest(cell, cell.bad - 1)

    def close(self) -> None:
        """The present island is over."""
        if self.island is not None:
            self.found.append(self.island.closed(self.cells, self.last))
            self.island = None


def _whole(cell: Second, *, divided: bool) -> _Open:
    island = _Open(cell.bad_first_start, cell.bad_first_end, cell.bad_last_start, cell.bad_last_end, cell.bad)
    if divided:
        island.run_first_end = cell.bad_last_end
    return island


def _rest(cell: Second, count: int) -> _Open:
    """What of a second comes after a good one: surely its last bad one; of the others nothing is known."""
    return _Open(cell.bad_last_start, cell.bad_last_end, cell.bad_last_start, cell.bad_last_end, count)


def impaired(cells: Iterable[Second]) -> list[tuple[int, int]]:
    """Seconds of which a share of ``SHARE`` or more was bad, as (begin, end), joined where they lie no more than ``JOIN_S`` apart."""
    found: list[tuple[int, int]] = []
    for cell in cells:
        if cell.bad and cell.bad >= SHARE * (cell.bad + cell.good):
            if found and cell.second - found[-1][1] <= JOIN_S:
                found[-1] = (found[-1][0], cell.second + 1)
            else:
                found.append((cell.second, cell.second + 1))
    return found


@dataclass(frozen=True, slots=True)
class Trouble:
    """What hurt one route for a while: one island, or several close to each other with good requests in between (then not ``full``).

    ``whole`` has the bounds of all of it, ``longest`` is the longest full outage in it, ``impaired_s`` the seconds that were impaired.
    """

    whole: Island
    longest: Island
    full: bool
    impaired_s: int


def troubles(cells: Sequence[Second], slack: float = 0.0) -> tuple[list[Trouble], int]:
    """What is worth being called an outage, in order; and how many bad requests were only single errors.

    The bounds of one that is not full are those of what clients saw: where a server of several is dead, good answers of the others are no
    proof, so that as many of them are passed over as chance allows.
    """
    spans = impaired(cells)
    singles = 0
    clusters: list[list[Island]] = []
    for island in islands(cells, slack):
        if not (island.counts or any(begin - 1 <= island.first_bad < end + 1 for begin, end in spans)):
            singles += island.requests
        elif clusters and island.first_bad - clusters[-1][-1].last_bad <= JOIN_S:
            clusters[-1].append(island)
        else:
            clusters.append([island])
    found = []
    for cluster in clusters:
        if any(i.counts for i in cluster) or sum(i.requests for i in cluster) >= LEAST_REQUESTS:
            found.append(_trouble(cluster, cells, spans))
        else:
            singles += sum(i.requests for i in cluster)
    return found, singles


def _trouble(cluster: Sequence[Island], cells: Sequence[Second], spans: Sequence[tuple[int, int]]) -> Trouble:
    first, last = cluster[0], cluster[-1]
    longest = max(cluster, key=lambda i: (i.min_s, i.last_bad - i.first_bad))
    seconds = sum(end - begin for begin, end in spans if begin < last.last_bad + 1 and end > first.first_bad)
    if len(cluster) == 1:
        return Trouble(first, first, True, seconds)
    bad = sum(i.requests for i in cluster)
    good = sum(cell.good for cell in cells if first.first_bad <= cell.second + 1 and cell.second <= last.last_bad)
    passed = math.ceil(math.log(SURE) / math.log(good / (good + bad))) if good else 1
    begin = min(first.begin, _passed(reversed(cells), lambda c: c.good_last_end <= first.first_bad, lambda c: c.good_first_start, passed, -math.inf))
    end = max(last.end, _passed(cells, lambda c: c.good_first_start >= last.last_end, lambda c: c.good_last_end, passed, math.inf))
    least = max(0.0, last.last_bad - first.sure_begin)
    whole = Island(least, end - begin, begin, end, first.first_bad, last.last_bad, first.sure_begin, last.last_end, bad, good)
    return Trouble(whole, longest, False, seconds)


def blind_s(cells: Iterable[Second]) -> float:
    """The longest outage that can have lain between good requests unseen; infinite with fewer than two seconds that have any."""
    most, last = -math.inf, None
    for cell in cells:
        if cell.good:
            if last is not None:
                most = max(most, cell.good_first_end - last)
            last = cell.good_last_start
    return most if most > 0 else math.inf


def _passed(cells: Iterable[Second], beyond: Callable[[Second], bool], edge: Callable[[Second], float], count: int, otherwise: float) -> float:
    """The outer edge of so many good requests beyond the trouble; where there are not so many, no bound."""
    for cell in cells:
        if cell.good and beyond(cell):
            count -= cell.good
            if count <= 0:
                return edge(cell)
    return otherwise

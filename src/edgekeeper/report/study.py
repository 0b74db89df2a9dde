"""What figures are computed from: the book, the window, and clocks brought together. Pure.

Nothing in the book is changed: a study hands out times on the clock of reference, and says by how much each source's may be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edgekeeper.model.sample import Sample
from edgekeeper.report.book import Book
from edgekeeper.report.cells import Cell, Lane, Minute
from edgekeeper.report.document import Clock, Hurt, Window
from edgekeeper.report.kinds import Kind, Mark

ALL_READ = "all that was read"
"""Why a window is what it is where nobody asked for one, and no drain suggests one."""

AROUND_S = 600.0
"""Marks this long before and after the window are looked at too: what began before it may hurt in it."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A named pair of events: from a mark that ``begin`` finds to the next that ``end`` finds, with the same ``key``.

    The patterns are regular expressions (RE2) over "KIND OBJECT WHAT" of a mark; ``key`` is a group's name in both, or "" for none.
    """

    name: str
    begin: str
    end: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator says: objectives, named pairs, which workload feeds which route, where classes lie."""

    slo: float = 0.999
    slo_days: int = 28
    gaps: tuple[Gap, ...] = ()
    feeds: Mapping[str, str] = field(default_factory=dict)
    bad: frozenset[int] = frozenset({502, 503, 504})
    groups: tuple[str, ...] = ()
    periodic: Mapping[str, float] = field(default_factory=dict)
    """Classes whose clients ask on a schedule: requests a minute that are due."""


@dataclass(frozen=True, slots=True)
class Drain:
    """One node taken out and brought back, on the clock of reference; what is not known is None.

    ``begin`` is the cordon, which some set long before the first eviction (``evicting``). ``pods`` are those that were evicted or
    deleted, as namespace/pod, in their order; ``source`` told so.
    """

    node: str
    begin: float | None
    end: float | None
    drained: float | None = None
    pods: tuple[str, ...] = ()
    source: str = ""
    evicting: float | None = None


@dataclass(slots=True)
class Study:
    """All that a figure may ask. ``drains`` and ``outages`` are filled in by the figures that find them."""

    book: Book
    window: Window
    baseline: Window | None = None
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    drains: tuple[Drain, ...] = ()
    outages: tuple[Hurt, ...] = ()
    memo: dict[object, object] = field(default_factory=dict, repr=False, compare=False)
    """What several figures ask of the book, once it was counted; of no use when the book has changed."""

    def node_of(self, source: str) -> str:
        """The machine whose clock wrote a source; the source's own name where nobody says."""
        known = self.book.sources.get(source)
        return (known.node if known is not None else "") or source

    def shift(self, source: str) -> float:
        """Seconds to add to a source's stamps."""
        clock = self.clocks.get(self.node_of(source))
        return clock.shift_s if clock is not None else 0.0

    def width(self, source: str) -> float:
        """By how many seconds the corrected stamps of a source may be wrong, to either side; what is not known counts as nothing."""
        clock = self.clocks.get(self.node_of(source))
        if clock is None:
            return 0.0
        sides = [abs(bound - clock.shift_s) for bound in (clock.min_s, clock.max_s) if bound is not None]
        return max(sides, default=0.0)

    def read_window(self) -> Window:
        """The window; where it is all that was read, without the rest of the first and of the last minute, of which no source tells."""
        stamps = [(s.first + self.shift(s.name), s.last + self.shift(s.name)) for s in self.book.sources.values() if s.first is not None and s.last is not None]
        if self.window.why != ALL_READ or not stamps:
            return self.window
        begin, end = min(first for first, _ in stamps), max(last for _, last in stamps)
        return Window(max(self.window.begin, begin), min(self.window.end, end), self.window.why)

    def lanes(self, *, router: str | None = None, group: str | None = None) -> list[Lane]:
        """The lanes of a route, of a class, of both, or all."""
        by_router, by_group = self._lanes()
        if router is not None:
            found = by_router.get(router, [])
            return [lane for lane in found if lane.group == group] if group is not None else list(found)
        return list(by_group.get(group, [])) if group is not None else [lane for router in sorted(by_router) for lane in by_router[router]]

    def _lanes(self) -> tuple[dict[str, list[Lane]], dict[str, list[Lane]]]:
        """All lanes by their routes and by their classes; figures ask for them thousands of times."""
        known: Any = self.memo.get("lanes")
        if known is None or known[0] != len(self.book.cells.columns):
            by_router: dict[str, list[Lane]] = {}
            by_group: dict[str, list[Lane]] = {}
            for lane in self.book.cells.lanes():
                by_router.setdefault(lane.router, []).append(lane)
                by_group.setdefault(lane.group, []).append(lane)
            known = self.memo["lanes"] = (len(self.book.cells.columns), (by_router, by_group))
        return known[1]  # type: ignore[no-any-return]

    def routers(self) -> list[str]:
        """Every route that was asked for, by name."""
        return sorted(self._lanes()[0])

    def groups(self) -> list[str]:
        """Every class that was seen: those of the config in its order, then others by name."""
        seen = set(self._lanes()[1])
        named = [name for name in self.settings.groups if name in seen]
        return named + sorted(seen - set(named))

    def cells(self, lanes: Iterable[Lane], window: Window | None = None) -> list[Cell]:
        """The cells of several lanes on the clock of reference, by time; those of different sources are not added up."""
        found: list[Cell] = []
        for lane in lanes:
            shift = self.shift(lane.source)
            begin, end = (window.begin - shift, window.end - shift) if window is not None else (None, None)
            cells = self.book.cells.cells(lane, begin, end)
            found.extend(cells if shift == 0 else (shifted(cell, shift) for cell in cells))
        found.sort(key=lambda cell: cell.second)
        return found

    def minutes(self, lane: Lane, window: Window | None = None) -> list[tuple[float, Minute]]:
        """The minutes of a lane that begin in the window, each with its begin on the clock of reference."""
        shift = self.shift(lane.source)
        begin, end = (window.begin - shift - 60, window.end - shift) if window is not None else (None, None)
        dated = ((minute.minute * 60 + shift, minute) for minute in self.book.cells.minutes(lane, begin, end))
        return [(at, minute) for at, minute in dated if window is None or window.begin - 60 < at < window.end]

    def marks(self, *kinds: Kind, around_s: float = AROUND_S) -> list[Mark]:
        """Marks of these kinds (all when none is named) in the window and around it, by time; those without a time come last, in their order."""
        wanted = set(kinds)
        dated: list[Mark] = []
        undated: list[Mark] = []
        for mark in self.book.marks:
            if wanted and mark.kind not in wanted:
                continue
            if mark.at is None:
                undated.append(mark)
                continue
            at = mark.at + self.shift(mark.source)
            if self.window.begin - around_s <= at <= self.window.end + around_s:
                dated.append(mark if at == mark.at else replace(mark, at=at))
        return sorted(dated, key=lambda m: m.at or 0.0) + undated

    def covered(self, sources: Iterable[str]) -> list[tuple[float, float]]:
        """When any of these sources told of anything: from the first to the last stamp of each, on the clock of reference; none touches another."""
        spans = []
        for name in set(sources):
            known = self.book.sources.get(name)
            if known is not None and known.first is not None and known.last is not None:
                spans.append((known.first + self.shift(name), known.last + self.shift(name)))
        found: list[tuple[float, float]] = []
        for begin, end in sorted(spans):
            if found and begin <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            else:
                found.append((begin, end))
        return found

    def samples(self) -> dict[tuple[str, str, str], list[Sample]]:
        """Probes by (source, target, connection) that were sent in the window, on the clock of reference."""
        found: dict[tuple[str, str, str], list[Sample]] = {}
        for key, samples in self.book.samples.items():
            shift = self.shift(key[0])
            kept = [s for s in samples if self.window.begin <= s.sent + shift <= self.window.end]
            if kept:
                found[key] = [replace(s, ts=s.ts + shift, sent=s.sent + shift, done=s.done + shift) for s in kept] if shift else kept
        return found


def whole(window: Window) -> Window:
    """The whole seconds that a window touches: requests are counted by the second."""
    return Window(float(math.floor(window.begin)), float(math.ceil(window.end)), window.why)


def shifted(cell: Cell, shift: float) -> Cell:
    """The same cell on another clock."""
    return Cell(int((cell.second + shift) // 1), *cell[1:6], *(at + shift for at in cell[6:]))


def window_of(read: Sequence[tuple[float, float]], marks: Iterable[Mark]) -> Window:
    """The window that the inputs themselves suggest, in whole minutes: a roll's from a minute before it to five after; else all that was read.

    ``read`` are the first and the last stamp of each source on the clock of reference, as those of ``marks`` are.
    """
    steps = [m.at for m in marks if m.at is not None and m.kind in {Kind.CORDONED, Kind.EVICTING, Kind.DRAINED, Kind.UNCORDONED, Kind.ROLL}]
    if steps:
        return _minutes(min(steps) - 60.0, max(steps) + 300.0, "from a minute before the first step of the drains to five after the last")
    if not read:
        return Window(0.0, 0.0, "nothing that was read has a time")
    return _minutes(min(begin for begin, _ in read), max(end for _, end in read), ALL_READ)


def _minutes(begin: float, last: float, why: str) -> Window:
    """The whole minutes from that of the begin to that of the last moment."""
    return Window(begin // 60 * 60.0, last // 60 * 60.0 + 60.0, why)


def baseline_of(window: Window, first: float | None) -> Window | None:
    """As long a time right before the window; None where nothing that was read reaches back to a tenth of it."""
    length = window.end - window.begin
    if first is None or length <= 0 or first > window.begin - length / 10:
        return None
    begin = max(first, window.begin - length)
    why = "as long right before" if begin == window.begin - length else "what was read before the window, which is shorter than it"
    return Window(begin, window.begin, why)

"""What a report says, before it is a page: a verdict, figures, outages, charts. Pure.

A figure answers one question in one sentence and carries the table and the chart that show it; the pages (text, HTML, Markdown, JSON)
know nothing of what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from edgekeeper.model.time import Span

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Window:
    """From and until, in seconds since 1970 on the clock of reference, and how it was chosen."""

    begin: float
    end: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; a cell that begins with a digit or a minus is set to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A span on a row of the timeline. From ``begin`` to ``end`` it may have been, from ``sure_begin`` to ``sure_end`` it was.

    ``tone`` is work (a drain, a reboot), bad (an outage), warn (impaired, suppressed) or calm.
    """

    begin: float
    end: float
    label: str
    tone: str = "bad"
    sure_begin: float | None = None
    sure_end: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A moment on a row: ``shape`` is down, up, act, hold or note."""

    at: float
    label: str
    shape: str = "note"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the timeline, of one group (nodes, routes, edge, BGP, VRRP, watchdogs)."""

    group: str
    name: str
    bars: tuple[Bar, ...] = ()
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """All on one axis."""

    begin: float
    end: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """A class of clients by the minute: requests, and those that went badly; None where nothing was measured."""

    name: str
    minutes: tuple[tuple[float, int | None, int], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Smoke:
    """A probe over time: per slot its begin, median and p95 in seconds (None: nothing answered), and the share that failed."""

    name: str
    slots: tuple[tuple[float, float | None, float | None, float], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One answer. ``measured`` is False where the inputs cannot tell: then ``answer`` says what is missing."""

    id: str
    title: str
    answer: str
    measured: bool = True
    table: Table | None = None
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    multiples: tuple[Series, ...] = ()
    smoke: tuple[Smoke, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hurt:
    """One outage of one route (or probe target): how long at least and at most, who, by what.

    ``first_bad`` and ``last_bad`` are on the clock of reference; it began at ``earliest`` or later and was over at ``latest`` (None: not known).
    ``full`` is whether nothing was answered meanwhile; otherwise it was impaired, and ``longest`` is the longest full outage in it.
    ``impaired_s`` counts seconds in which a twentieth of the answers or more was bad; both are None where there are no such counts.
    """

    router: str
    group: str
    span: Span
    first_bad: float
    last_bad: float
    requests: int
    cause: str = ""
    full: bool = True
    source: str = ""
    earliest: float | None = None
    latest: float | None = None
    impaired_s: int | None = None
    longest: Span | None = None


def longest(outages: Iterable[Hurt]) -> Hurt | None:
    """The one that lasted longest for certain; of several, the one that may have lasted longest. One without an end does not win by that."""
    return max(outages, key=lambda hurt: (hurt.span.min_s, hurt.span.max_s if math.isfinite(hurt.span.max_s) else 0.0), default=None)


@dataclass(frozen=True, slots=True)
class Clock:
    """How far the clock of a node is from that of reference: what to add to its stamps, between ``min_s`` and ``max_s``.

    ``shift_s`` is what was used; None on a side: no bound there. ``moved`` is whether no single offset fits (a drift or a step).
    """

    node: str
    min_s: float | None
    max_s: float | None
    shift_s: float
    method: str
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says. ``can_judge`` is False when too much could not be read: the verdict then says so and the command exits 1."""

    verdict: str
    can_judge: bool
    window: Window
    baseline: Window | None
    figures: tuple[Figure, ...]
    outages: tuple[Hurt, ...]
    clocks: tuple[Clock, ...]
    skipped: dict[str, int]
    lines: int
    sources: tuple[dict[str, Any], ...]
    not_measured: tuple[str, ...] = ()
    title: str = "Report"
    routes: tuple[str, ...] = ()
    """Every route that was asked for, by its whole name."""

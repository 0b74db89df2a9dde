"""Everything that happened, on one axis: what was done to nodes, who was hurt, what routers, VIPs and watchdogs did. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from edgekeeper.report.document import Bar, Figure, Hurt, Point, Row, Timeline
from edgekeeper.report.figures.say import lasted, many
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Study

NOTES = 30
"""Notes of one thing that are shown."""

SAME_S = 1.5
"""Two marks of one transition, from a log in whole seconds and from a journal in milliseconds, lie no further apart."""


def timeline(study: Study) -> Figure:
    """The roll on one axis."""
    rows = [
        *_drains(study),
        *_outages(study),
        *_spans("BGP", study.marks(Kind.BGP_DOWN, Kind.BGP_UP), study, opens=Kind.BGP_DOWN, name=lambda m: f"{m.source}: {m.object}", label="down"),
        *_vrrp(study),
        *_watchdogs(study),
        *_spans("servers", study.marks(Kind.SERVER_DOWN, Kind.SERVER_UP), study, opens=Kind.SERVER_DOWN, name=lambda m: m.object, label="DOWN"),
        *_notes(study),
        *_points("databases", study.marks(Kind.DB_SWITCHOVER, Kind.DB_FAILOVER, Kind.DB_PROMOTED), lambda m: m.object, _database),
    ]
    shown = Timeline(study.window.begin, study.window.end, tuple(rows))
    if not rows:
        return Figure("TIME", "What happened when", "nothing that was read has a mark or an outage in the window", measured=False)
    bars = sum(len(row.bars) for row in rows)
    points = sum(len(row.points) for row in rows)
    return Figure("TIME", "What happened when", f"{many(bars, 'span')} and {many(points, 'event')} in {many(len(rows), 'row')}, on one axis", timeline=shown)


def _drains(study: Study) -> Iterable[Row]:
    for drain in study.drains:
        if drain.begin is None:
            continue
        end = drain.end if drain.end is not None else study.window.end
        label = f"{drain.node}: {many(len(drain.pods), 'pod')} moved"
        states = [m for m in study.marks(Kind.NODE_STATE) if m.object == drain.node and m.at is not None and drain.begin <= m.at <= end]
        points = tuple(Point(m.at or 0.0, str(m.data.get("state") or m.what), "up" if m.data.get("state") == "Ready" else "down") for m in states)
        yield Row("nodes", drain.node, (Bar(drain.begin, end, label, "work"),), points)


def _outages(study: Study) -> Iterable[Row]:
    probed = {key[0] for key in study.book.samples}
    found: dict[tuple[str, str], list[Bar]] = {}
    for hurt in sorted(study.outages, key=lambda h: h.first_bad):
        group = "edge" if hurt.source in probed and hurt.source else "routes"
        found.setdefault((group, hurt.router or "(no route told)"), []).append(_bar(hurt))
    for group in ("routes", "edge"):
        for (of, name), bars in found.items():
            if of == group:
                yield Row(group, name, tuple(bars))


def _bar(hurt: Hurt) -> Bar:
    early = hurt.earliest if hurt.earliest is not None else -math.inf if math.isinf(hurt.span.max_s) else hurt.first_bad
    late = hurt.latest if hurt.latest is not None else math.inf if math.isinf(hurt.span.max_s) else hurt.last_bad
    sure = hurt.last_bad - (hurt.span.min_s if hurt.full else hurt.last_bad - hurt.first_bad)
    return Bar(
        min(early, hurt.first_bad),
        max(late, hurt.last_bad),
        f"{lasted(hurt.span)}{f', {hurt.cause}' if hurt.cause else ''}",
        "bad" if hurt.full else "warn",
        max(sure, hurt.first_bad) if sure < hurt.last_bad else None,
        hurt.last_bad if sure < hurt.last_bad else None,
    )


@dataclass(slots=True)
class _Open:
    bars: list[Bar] = field(default_factory=list)
    since: float | None = None


def _spans(group: str, marks: Iterable[Mark], study: Study, *, opens: Kind, name: Callable[[Mark], str], label: str) -> Iterable[Row]:
    """Spans from each mark that opens to the next that closes; one that was never closed stays open."""
    rows: dict[str, _Open] = {}
    for mark in marks:
        if mark.at is None:
            continue
        row = rows.setdefault(name(mark), _Open())
        if mark.kind is opens:
            row.since = mark.at if row.since is None else row.since
        elif row.since is not None:
            row.bars.append(Bar(row.since, mark.at, f"{label} {mark.at - row.since:.1f} s", "warn", row.since, mark.at))
            row.since = None
    for title, row in rows.items():
        if row.since is not None:
            row.bars.append(Bar(row.since, math.inf, f"{label}, no end was seen", "warn", row.since, study.window.end))
        if row.bars:
            yield Row(group, title, tuple(row.bars))


def _vrrp(study: Study) -> Iterable[Row]:
    """Transitions of each VIP's instance on each node; where two sources tell the same one, the finer stamp stands."""
    kept: list[Mark] = []
    for mark in sorted(study.marks(Kind.VRRP_STATE), key=lambda m: m.stamp_s):
        same = (m for m in kept if (m.node, m.object, m.data.get("state")) == (mark.node, mark.object, mark.data.get("state")))
        if mark.at is not None and not any(abs((m.at or 0.0) - mark.at) <= SAME_S for m in same):
            kept.append(mark)
    shapes = {"MASTER": "up", "FAULT": "down", "STOP": "down"}
    return _points(
        "VRRP",
        sorted(kept, key=lambda m: m.at or 0.0),
        lambda m: f"{m.object} on {m.node or m.source}",
        lambda m: (str(m.data.get("state", "")), shapes.get(str(m.data.get("state")), "note")),
    )


def _watchdogs(study: Study) -> Iterable[Row]:
    kinds = {
        Kind.WATCH_ACTING: ("acts", "act"),
        Kind.WATCH_RESTARTED: ("restarted", "act"),
        Kind.WATCH_SUPPRESSED: ("held back", "hold"),
        Kind.WATCH_PROVEN: ("answers", "up"),
    }
    return _points("watchdogs", study.marks(*kinds), lambda m: f"{m.object} on {m.node or m.source}", lambda m: kinds[m.kind])


def _notes(study: Study) -> Iterable[Row]:
    """What else was noted, a row for each thing; one that says more than a row can hold is left to its own log."""
    rows = _points("notes", study.marks(Kind.NOTE, around_s=0.0), lambda m: m.object or m.source, lambda m: (m.what, "note"))
    return (row for row in rows if len(row.points) <= NOTES)


def _database(mark: Mark) -> tuple[str, str]:
    said = {Kind.DB_SWITCHOVER: "switchover", Kind.DB_FAILOVER: "failover", Kind.DB_PROMOTED: "promoted"}[mark.kind]
    to = mark.data.get("to")
    return (f"{said} to {to}" if to else said), "up" if mark.kind is Kind.DB_PROMOTED else "act"


def _points(group: str, marks: Iterable[Mark], name: Callable[[Mark], str], said: Callable[[Mark], tuple[str, str]]) -> Iterable[Row]:
    rows: dict[str, list[Point]] = {}
    for mark in marks:
        if mark.at is not None:
            rows.setdefault(name(mark), []).append(Point(mark.at, *said(mark)))
    for title, points in rows.items():
        yield Row(group, title, (), tuple(points))

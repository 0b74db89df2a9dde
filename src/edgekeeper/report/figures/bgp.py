"""F8: how long each BGP session was down, as each end saw it, and whether it carried traffic then. Pure.

The two ends of a session do not agree: one sees the link go, the other waits for its hold timer. The end that steers traffic (the
router) is the one whose gap counts; both are shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgekeeper.measure.pairs import Event, pairs
from edgekeeper.model.time import Span
from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.baseline import quiet
from edgekeeper.report.figures.counts import group_name
from edgekeeper.report.figures.drains import drain_of
from edgekeeper.report.figures.say import clock, many, seconds, span
from edgekeeper.report.figures.traffic import Count, by_group, rates, so_few
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Study

BEFORE_S = 600.0
"""A withdrawal counts as the one before a Down when it came at most this long before."""

UNLIKELY = 0.001
"""Fewer requests than this probability allows are called missing: with some ten gaps and classes, one of a hundred would come up by chance."""


@dataclass(frozen=True, slots=True)
class SessionGap:
    """One session down: who told, with whom, from when until when (None: not up again), how long within its stamps, and what clients lost.

    ``withdrawn`` is when its routes were taken back before, where a line says so.
    """

    observer: str
    peer: str
    down: float
    up: float | None
    span: Span
    reason: str
    host: str
    withdrawn: float | None
    lost: tuple[tuple[str, Count, float], ...]

    @property
    def hurt(self) -> list[str]:
        """What each class lost: failed requests, or far fewer than were due."""
        said = []
        for group, seen, due in self.lost:
            name = group_name(group)
            if seen.bad:
                said.append(f"{name}: {seen.bad} of {seen.asked} failed")
            elif due >= 3 and so_few(seen.asked, due) < UNLIKELY:
                said.append(f"{name}: {seen.asked} requests where {due:.0f} were due")
        return said


def observer_of(study: Study, mark: Mark) -> str:
    """Who told: the machine where it is known, else the source."""
    return mark.node or study.node_of(mark.source)


def gaps(study: Study) -> tuple[list[SessionGap], int]:
    """Every Down with the next Up of the same observer and peer; and how many sessions came up without having been seen to go down."""
    marks = [m for m in study.marks(Kind.BGP_DOWN, Kind.BGP_UP) if m.at is not None]
    events = [Event(m.at or 0.0, f"{observer_of(study, m)}\0{m.object}", m.kind == Kind.BGP_DOWN, m) for m in marks]
    found, lonely = pairs(events)
    back = [m for m in study.marks(Kind.BGP_WITHDRAWN) if m.at is not None]
    usual = rates(study)
    gaps_ = []
    for pair in found:
        mark, end = pair.begin.of, pair.end
        if mark.at is None or (end is not None and end.at < study.window.begin) or mark.at > study.window.end:
            continue
        observer, _, peer = pair.key.partition("\0")
        length = Span(max(0.0, study.window.end - mark.at), math.inf) if end is None else _span(mark, end.of)
        near = [
            w.at
            for w in back
            if w.at is not None and observer_of(study, w) == observer and w.object in {peer, ""} and 0 <= mark.at - w.at + mark.stamp_s <= BEFORE_S
        ]
        until = end.at if end is not None else study.window.end
        lost = tuple((g, c, usual.get(g, 0.0) * (until - mark.at)) for g, c in by_group(study, mark.at, until).items())
        gaps_.append(
            SessionGap(
                observer,
                peer,
                mark.at,
                None if end is None else end.at,
                length,
                str(mark.data.get("reason") or ""),
                str(mark.data.get("host") or ""),
                max(near, default=None),
                lost,
            )
        )
    return gaps_, len(lonely)


def _span(down: Mark, up: Mark) -> Span:
    """The distance of two stamps of one clock: each may be early by its resolution."""
    apart = (up.at or 0.0) - (down.at or 0.0)
    return Span(max(0.0, apart - down.stamp_s), apart + up.stamp_s)


def f8(study: Study) -> Figure:
    """How long sessions were down, and whether anybody lost anything by it."""
    title = "BGP sessions down"
    marks = study.marks(Kind.BGP_DOWN, Kind.BGP_UP)
    if not marks:
        return Figure("F8", title, "no source tells of BGP sessions", measured=False)
    undated = sum(m.at is None for m in marks)
    found, _ = gaps(study)
    notes = [f"{many(undated, 'line')} without a time could not be used; read them with the time of their envelope."] if undated else []
    if len({g.observer for g in found}) > 1:
        notes.append("The ends of a session see it go down at different times; what counts for traffic is the end that steers it, the router's.")
    if study.drains and any(gap.hurt for gap in found):
        notes.append("Requests that failed in a gap may have failed because of the pods that a drain moved, not of the session.")
    if quiet(study)[0] is None:
        notes.append("Without a quiet time before, missing requests cannot be told; only failed ones are counted.")
    columns = ("told by", "peer", "down", "up", "for", "why", "routes withdrawn before", "in the gap", "drain of")
    return Figure(
        "F8",
        title,
        _answer(study, found) if found else "sessions stayed up",
        table=Table(columns, tuple(_row(study, g) for g in found)) if found else None,
        notes=tuple(notes),
        data={"gaps": [_data(g) for g in found]},
    )


def _row(study: Study, gap: SessionGap) -> tuple[str, ...]:
    before = f"{seconds(gap.down - gap.withdrawn)} before" if gap.withdrawn is not None else "not told"
    drain = drain_of(study.drains, gap.down, gap.up if gap.up is not None else study.window.end)
    node = drain.node if drain is not None else ""
    lost = "; ".join(gap.hurt) or ("nothing lost" if gap.lost else "no requests were read")
    peer = f"{gap.peer} ({gap.host})" if gap.host else gap.peer
    return (gap.observer, peer, clock(gap.down), clock(gap.up) if gap.up is not None else "not seen", span(gap.span), gap.reason, before, lost, node)


def _answer(study: Study, found: list[SessionGap]) -> str:
    ended = [g for g in found if g.up is not None]
    observers = len({g.observer for g in found})
    parts = [many(len(found), "session") + " went down"]
    if observers > 1:
        parts = [f"{observers} machines tell {many(len(found), 'time')} of a session that went down (each end tells of its own)"]
    if ended:
        longest = max(ended, key=lambda g: g.span.max_s)
        shortest = min(ended, key=lambda g: g.span.min_s)
        parts[0] += f", each for {span(Span(shortest.span.min_s, longest.span.max_s))}" if len(ended) > 1 else f" for {span(longest.span)}"
    if len(ended) < len(found):
        parts.append(f"{len(found) - len(ended)} did not come up again")
    if not study.book.cells.lanes():
        parts.append("whether they carried traffic cannot be told without access logs")
    else:
        hurt = [g for g in found if g.hurt]
        parts.append(f"in {len(hurt)} of them clients lost requests" if hurt else "no class of clients lost requests in them")
    told = sum(g.withdrawn is not None for g in found)
    if told:
        parts.append(f"the routes had been withdrawn before {'all' if told == len(found) else f'{told} of {len(found)}'}")
    return "; ".join(parts)


def _data(gap: SessionGap) -> dict[str, object]:
    return {
        "observer": gap.observer,
        "peer": gap.peer,
        "down": gap.down,
        "up": gap.up,
        "min_s": gap.span.min_s,
        "max_s": None if math.isinf(gap.span.max_s) else gap.span.max_s,
        "reason": gap.reason,
        "withdrawn": gap.withdrawn,
        "hurt": gap.hurt,
    }

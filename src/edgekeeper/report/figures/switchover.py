"""F12: databases that handed their primary over, beside those that were stopped and started elsewhere: what it cost their routes. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from edgekeeper.model.time import Span
from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.drains import TAIL_S, drain_of, reach
from edgekeeper.report.figures.moves import feeding
from edgekeeper.report.figures.say import around, clock, lasted, many
from edgekeeper.report.figures.traffic import hurt_in, of_routes
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.owners import STORES, owner_of
from edgekeeper.report.study import Study

WITHIN_S: Final = 300.0
"""A promotion, or an outage of the route, belongs to the hand-over of at most so long before."""

SWITCHED, FAILED, RESTARTED = "switchover", "failover", "restart elsewhere"


@dataclass(frozen=True, slots=True)
class HandOver:
    """One database that moved: how, when, until promoted, and how long its routes were down; None where nothing tells."""

    cluster: str
    way: str
    at: float | None
    said: str
    promoted: Span | None
    routers: tuple[str, ...]
    dark: Span | None


def hand_overs(study: Study) -> list[HandOver]:
    """Every switchover and failover in the window, and every eviction of a database that had neither."""
    fed = feeding(study)
    found = [_told(study, mark, fed) for mark in _once(study)]
    clusters = {_bare(m.object) for m in study.marks(Kind.DB_SWITCHOVER, Kind.DB_FAILOVER, Kind.DB_PROMOTED)}
    for place, drain in enumerate(study.drains):
        for pod in drain.pods:
            owner = owner_of(pod)
            if owner.kind != "numbered" or not (owner.name in clusters or owner.name.rpartition("-")[2] in STORES):
                continue
            if any(_bare(one.cluster) == owner.name and _in_drain(study, one, place) for one in found if one.way != RESTARTED):
                continue
            routers = fed.get(owner.text, ())
            hurts = [h for h in of_routes(study) if h.router in routers and drain_of(study.drains, h.first_bad, h.last_bad) is drain]
            start = drain.evicting or drain.begin
            spans = [] if start is None else [(start, reach(study.drains, place))]
            found.append(
                HandOver(
                    owner.text,
                    RESTARTED,
                    drain.evicting,
                    f"{owner.same.rpartition('/')[2]} evicted from {drain.node}",
                    None,
                    routers,
                    hurt_in(study, routers, hurts, spans),
                )
            )
    return sorted(found, key=lambda h: (h.at is None, h.at or 0.0, h.cluster))


def _once(study: Study) -> list[Mark]:
    """Hand-overs, each once: the operator's log and the Event tell the same one."""
    found: list[Mark] = []
    for mark in study.marks(Kind.DB_SWITCHOVER, Kind.DB_FAILOVER):
        if mark.at is None or not study.window.begin <= mark.at <= study.window.end:
            continue
        same = next((o for o in found if _bare(o.object) == _bare(mark.object) and o.kind == mark.kind and abs((o.at or 0.0) - mark.at) < 30), None)
        if same is None:
            found.append(mark)
        elif not same.data.get("to") and mark.data.get("to"):
            found[found.index(same)] = mark
    return found


def _told(study: Study, mark: Mark, fed: dict[str, tuple[str, ...]]) -> HandOver:
    at = mark.at or 0.0
    cluster = _bare(mark.object)
    ends = [m for m in study.marks(Kind.DB_PROMOTED) if m.at is not None and _bare(m.object) == cluster and -1.0 <= m.at - at <= WITHIN_S]
    promoted = None
    if ends:
        end = ends[0]
        doubt = 0.0 if study.node_of(end.source) == study.node_of(mark.source) else study.width(end.source) + study.width(mark.source)
        apart = around((end.at or 0.0) - at, doubt)
        promoted = Span(max(0.0, apart.min_s - mark.stamp_s), apart.max_s + end.stamp_s)
    routers = fed.get(mark.object.lstrip("/"), fed.get(cluster, ()))
    hurts = [h for h in of_routes(study) if h.router in routers and at - 5 <= h.last_bad and h.first_bad <= at + WITHIN_S]
    way = SWITCHED if mark.kind == Kind.DB_SWITCHOVER else FAILED
    moved = " to ".join(str(mark.data[k]) for k in ("from", "to") if mark.data.get(k))
    return HandOver(mark.object.lstrip("/"), way, at, moved or mark.what, promoted, routers, hurt_in(study, routers, hurts, [(at, at + WITHIN_S)]))


def _in_drain(study: Study, one: HandOver, place: int) -> bool:
    drain = study.drains[place]
    if one.at is None or drain.begin is None:
        return True  # nothing tells that it was another time
    return drain.begin - TAIL_S <= one.at <= (drain.end or drain.drained or drain.begin + WITHIN_S)


def _bare(name: str) -> str:
    return name.rpartition("/")[2]


def f12(study: Study) -> Figure:
    """What a switchover cost, and what a restart elsewhere."""
    title = "Databases: switchover or restart"
    found = hand_overs(study)
    if not found:
        return Figure("F12", title, "no source tells of a database that moved", measured=False)
    rows = tuple(
        (
            one.cluster,
            one.way,
            clock(one.at),
            one.said,
            lasted(one.promoted) if one.promoted else "not told",
            ", ".join(one.routers) or "not known",
            _down(one),
        )
        for one in found
    )
    parts = [_part(found, way) for way in (SWITCHED, FAILED, RESTARTED) if any(one.way == way for one in found)]
    unfed = sorted({one.cluster for one in found if not one.routers})
    notes = (f"No route is known for {', '.join(unfed[:6])}; say it under report.feeds and its outage is counted.",) if unfed else ()
    return Figure(
        "F12",
        title,
        "; ".join(parts),
        table=Table(("database", "how", "at", "what", "promoted after", "routes", "routes down"), rows),
        notes=notes,
        data={
            "hand_overs": [
                {
                    "cluster": one.cluster,
                    "way": one.way,
                    "at": one.at,
                    "dark_min_s": one.dark.min_s if one.dark else None,
                    "dark_max_s": one.dark.max_s if one.dark and math.isfinite(one.dark.max_s) else None,
                }
                for one in found
            ]
        },
    )


def _down(one: HandOver) -> str:
    if one.dark is None:
        return "not known" if not one.routers else "not measured: nobody asked"
    return lasted(one.dark) if one.dark.max_s else "no outage seen"


def _part(found: list[HandOver], way: str) -> str:
    several = [one for one in found if one.way == way]
    known = [one.dark for one in several if one.dark is not None]
    said = many(len(several), way, f"{way}s" if way != RESTARTED else "restarts elsewhere")
    if not known:
        return f"{said}, of which no route is known" if not any(one.routers for one in several) else f"{said}, whose routes nobody asked for"
    worst = max(known, key=lambda s: (s.max_s, s.min_s))
    return f"{said}, the longest with {lasted(worst)} of outage on its route" if worst.max_s else f"{said}, without an outage on a route that is known"

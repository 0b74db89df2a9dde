"""F6: pods that were moved more than once in one roll, and what the further moves cost. Pure.

A pod that is evicted from the first node and lands on the second, which is drained next, is stopped again. A numbered pod (StatefulSet,
database instance) keeps its name, so that two drains which evict the name moved the same one twice. The pod of a Deployment gets a new
name: two evictions may as well be two replicas. That is told apart by Events where they were read, and by the count in a single drain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgekeeper.model.time import Span
from edgekeeper.report.document import Figure, Hurt, Table
from edgekeeper.report.figures.drains import drain_of, reach
from edgekeeper.report.figures.say import lasted, many, some
from edgekeeper.report.figures.traffic import hurt_in, of_routes
from edgekeeper.report.kinds import Kind
from edgekeeper.report.owners import Owner, feeds, owner_of
from edgekeeper.report.study import Drain, Study


@dataclass(frozen=True, slots=True)
class Moved:
    """What was evicted in more than one drain. ``places`` are positions in ``study.drains``; ``sure`` is whether it was the same pod again.

    ``cost`` is how long its routes were down in all drains but the first; None where no route is known that it feeds.
    """

    owner: Owner
    places: tuple[int, ...]
    sure: bool
    why: str
    routers: tuple[str, ...]
    cost: Span | None

    @property
    def extra(self) -> int:
        """How many of the moves a better order would have saved."""
        return len(self.places) - 1


def moved_again(study: Study) -> tuple[Moved, ...]:
    """Every workload that more than one drain moved and may have been the same pod, by name."""
    seen: dict[tuple[str, str], dict[int, list[str]]] = {}
    owners: dict[tuple[str, str], Owner] = {}
    for place, drain in enumerate(study.drains):
        for pod in drain.pods:
            owner = owner_of(pod)
            key = (owner.same.rpartition("/")[2], owner.kind)
            if key in owners and owners[key].namespace and owner.namespace and owners[key].namespace != owner.namespace:
                key = (owner.same, owner.kind)
            owners[key] = owner if key not in owners or owner.namespace else owners[key]
            seen.setdefault(key, {}).setdefault(place, []).append(pod)
    fed = feeding(study)
    started = _scheduled(study)
    found = []
    for key, by_drain in seen.items():
        if len(by_drain) < 2 or (owners[key].kind != "numbered" and any(len(pods) > 1 for pods in by_drain.values())):
            continue  # several of one name in a single drain: replicas, of which each may have moved once
        owner = owners[key]
        places = tuple(sorted(by_drain))
        sure, why = _sure(owner, places, by_drain, study.drains, started)
        routers = fed.get(owner.text, ())
        found.append(Moved(owner, places, sure, why, routers, _cost(study, routers, places)))
    return tuple(sorted(found, key=lambda m: (not m.sure, m.owner.same)))


def feeding(study: Study) -> dict[str, tuple[str, ...]]:
    """For each workload that was moved or told to feed a route, the routes; made once for the drains that are known."""
    known: Any = study.memo.get("feeding")
    if known is not None and known[0] is study.drains:
        return dict(known[1])
    workloads = {owner_of(pod).text for drain in study.drains for pod in drain.pods}
    workloads.update(study.settings.feeds.values())
    workloads.update(mark.object for mark in study.marks(Kind.DB_SWITCHOVER, Kind.DB_FAILOVER, Kind.DB_PROMOTED))
    turned: dict[str, list[str]] = {}
    for router, several in feeds(study.routers(), sorted(workloads), study.settings.feeds).items():
        for workload in several:
            turned.setdefault(workload, []).append(router)
    bare = {name.rpartition("/")[2]: tuple(routers) for name, routers in turned.items()}
    made = {**bare, **{name: tuple(routers) for name, routers in turned.items()}}
    study.memo["feeding"] = (study.drains, made)
    return dict(made)


def _scheduled(study: Study) -> dict[str, float]:
    """When each pod was placed on a node, by its bare name."""
    placed: dict[str, float] = {}
    for mark in study.marks(Kind.POD, around_s=86400.0):
        if mark.at is not None and mark.data.get("reason") in {"Scheduled", "Created", "Started"}:
            placed.setdefault(mark.object.rpartition("/")[2], mark.at)
    return placed


def _sure(owner: Owner, places: tuple[int, ...], pods: Mapping[int, list[str]], drains: tuple[Drain, ...], started: Mapping[str, float]) -> tuple[bool, str]:
    if owner.kind == "numbered":
        return True, "the same name"
    first = drains[places[0]].evicting or drains[places[0]].begin
    starts = [started.get(pod.rpartition("/")[2]) for place in places[1:] for pod in pods[place]]
    if first is not None and starts and all(start is not None and start >= first for start in starts):
        return True, "placed anew during the roll"
    return False, "the same workload: the same pod, or another replica"


def _cost(study: Study, routers: tuple[str, ...], places: tuple[int, ...]) -> Span | None:
    """Seconds without an answer in the second and later drains that moved it; of several routes that which suffered most.

    None where no route is known, a drain has no time, or nobody asked for the routes in those drains.
    """
    if not routers or any(study.drains[place].begin is None for place in places[1:]):
        return None
    later = set(places[1:])
    spans = [(d.evicting or d.begin or 0.0, reach(study.drains, place)) for place in later for d in (study.drains[place],)]
    return hurt_in(study, routers, (h for h in of_routes(study) if _place(study, h) in later), spans)


def _place(study: Study, hurt: Hurt) -> int | None:
    drain = drain_of(study.drains, hurt.first_bad, hurt.last_bad)
    return next((place for place, one in enumerate(study.drains) if one is drain), None)


def f6(study: Study) -> Figure:
    """Which workloads were moved in more than one drain, and what it cost."""
    title = "Moved more than once"
    if not any(drain.pods for drain in study.drains):
        return Figure("F6", title, "no source tells which pods were evicted", measured=False)
    if len(study.drains) < 2:
        return Figure("F6", title, "one node was drained: nothing can have moved twice", data={"extra": 0, "workloads": []})
    found = moved_again(study)
    names = [d.node for d in study.drains]
    rows = tuple(
        (
            m.owner.same,
            " then ".join(names[place] for place in m.places),
            str(m.extra),
            m.why,
            ", ".join(m.routers) or "not known",
            _down(m),
        )
        for m in found
    )
    columns = ("pod or workload", "drains", "extra moves", "by", "routes", "its routes were down in the later drains")
    data = {
        "extra": sum(m.extra for m in found),
        "workloads": [
            {
                "name": m.owner.same,
                "drains": [names[p] for p in m.places],
                "sure": m.sure,
                "cost_min_s": m.cost.min_s if m.cost else None,
                "cost_max_s": m.cost.max_s if m.cost else None,
            }
            for m in found
        ],
    }
    return Figure("F6", title, _answer(found), table=Table(columns, rows) if rows else None, notes=_notes(found), data=data)


def _answer(found: tuple[Moved, ...]) -> str:
    if not found:
        return "nothing was moved in more than one drain, as far as names tell"
    unsure = sum(not m.sure for m in found)
    extra = sum(m.extra for m in found)
    least = sum(m.extra for m in found if m.sure)
    moves = many(extra, "extra move") if least == extra else f"{least} to {extra} extra moves"
    doubt = f"; of {unsure} only the workload's name is known, so that it may have been another replica" if unsure else ""
    costs = [m.cost for m in found if m.cost is not None]
    cost = ""
    if costs:
        of = "" if len(costs) == len(found) else f" of {len(costs)} of them, which alone can be measured,"
        cost = f"; the routes{of} were down for {lasted(Span(sum(c.min_s for c in costs), sum(c.max_s for c in costs)))} in the later drains"
    return f"{many(len(found), 'pod or workload', 'pods or workloads')} moved in more than one drain, {moves}{cost}{doubt}"


def _down(moved: Moved) -> str:
    if moved.cost is None:
        return "not known" if not moved.routers else "not measured: nobody asked"
    return lasted(moved.cost) if moved.cost.max_s else "no outage seen"


def _notes(found: tuple[Moved, ...]) -> tuple[str, ...]:
    unknown = [m.owner.text for m in found if not m.routers]
    if not unknown:
        return ()
    return (f"No route is known that is fed by {some(unknown)}; say it under report.feeds and the cost is counted.",)

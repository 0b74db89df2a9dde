"""Which nodes were taken out, when, and which pods each one lost: from whatever tells of it. Pure.

The journal of a roll and Kubernetes Events are dated; the output of ``kubectl drain`` is not, so that it tells who was moved and in
which order, and the times come from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.say import clock, many, seconds, some
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Drain, Study

TAIL_S = 60.0
"""So long after a node is back, an outage still counts as its drain's (pods that are moved back, sessions that are cut late)."""

OPEN_S = 900.0
"""So long a drain lasts at most for attribution, when nothing tells of its end."""

_STEPS = {Kind.CORDONED, Kind.UNCORDONED, Kind.DRAINED, Kind.EVICTING, Kind.EVICTED, Kind.DELETED, Kind.EVICTION_BLOCKED, Kind.NODE_STATE, Kind.ROLL}
_PODS = {Kind.EVICTING, Kind.EVICTED, Kind.DELETED, Kind.EVICTION_BLOCKED}
_CORDONS = frozenset({"nodenotschedulable", "notschedulable", "cordoned"})
_UNCORDONS = frozenset({"nodeschedulable", "schedulable", "uncordoned"})


@dataclass(slots=True)
class _Work:
    """One drain while it is being put together."""

    node: str
    source: str
    cordoned: float | None = None
    evicting: float | None = None
    drained: float | None = None
    uncordoned: float | None = None
    last: float | None = None
    closed: bool = False
    pods: dict[str, None] = field(default_factory=dict)

    def drain(self) -> Drain:
        begin = min((t for t in (self.cordoned, self.evicting, self.drained) if t is not None), default=None)
        return Drain(self.node, begin, self.uncordoned, self.drained, tuple(self.pods), self.source, self.evicting)


def drains(study: Study) -> tuple[Drain, ...]:
    """Every drain that the marks tell of, in the order of their first eviction; those without a time keep the order in which they were read."""
    marks = [told for mark in study.marks(*_STEPS) if (told := step(mark)) is not None]
    by_source: dict[str, list[Mark]] = {}
    for mark in marks:
        by_source.setdefault(mark.source, []).append(mark)
    found = [work for told in by_source.values() for work in _of_one_source(told)]
    merged = _merged([work for work in found if work.pods or work.evicting is not None or work.cordoned is not None or work.drained is not None])
    dated = sorted((w for w in merged if _start(w) is not None), key=lambda w: _start(w) or 0.0)
    return tuple(work.drain() for work in [*dated, *(w for w in merged if _start(w) is None)])


def _start(work: _Work) -> float | None:
    return next((t for t in (work.evicting, work.drained, work.cordoned) if t is not None), None)


def step(mark: Mark) -> Mark | None:
    """Steps of a roll and states of a node, told in the words of a drain; None for what says nothing of one."""
    if mark.kind not in {Kind.NODE_STATE, Kind.ROLL}:
        return mark
    told = str(mark.data.get("state") or mark.data.get("step") or "").lower().replace(" ", "")
    if told in _CORDONS:
        return replace(mark, kind=Kind.CORDONED)
    return replace(mark, kind=Kind.UNCORDONED) if told in _UNCORDONS else None


def _of_one_source(marks: Sequence[Mark]) -> list[_Work]:
    """The drains of one source. Where a pod's line does not name the node, it is the one whose "drained" comes next, else the one that was cordoned first."""
    works: list[_Work] = []
    open_now: dict[str, _Work] = {}
    ahead = _next_drained(marks)
    for place, mark in enumerate(marks):
        node = _node(mark, ahead[place], open_now)
        work = open_now.get(node)
        if work is None or (work.closed and mark.kind in {Kind.CORDONED, *_PODS}):
            if mark.kind == Kind.UNCORDONED:
                continue
            work = open_now[node] = _Work(node, mark.source)
            works.append(work)
        _take(work, mark)
    return works


def _next_drained(marks: Sequence[Mark]) -> list[str]:
    node, ahead = "", [""] * len(marks)
    for place in range(len(marks) - 1, -1, -1):
        if marks[place].kind == Kind.DRAINED:
            node = marks[place].object
        ahead[place] = node
    return ahead


def _node(mark: Mark, ahead: str, open_now: dict[str, _Work]) -> str:
    if mark.kind not in _PODS:
        return mark.object
    told = mark.data.get("node")
    if told:
        return str(told)
    waiting = [node for node, work in open_now.items() if work.drained is None and not work.closed]
    if ahead in waiting or (ahead and not waiting):
        return ahead
    return waiting[0] if waiting else next(reversed(open_now), mark.node or "?")


def _take(work: _Work, mark: Mark) -> None:
    at = mark.at
    match mark.kind:
        case Kind.CORDONED:
            work.cordoned = at if work.cordoned is None else work.cordoned
        case Kind.UNCORDONED:
            work.uncordoned, work.closed = at, True
        case Kind.DRAINED:
            work.drained = at
        case _:
            work.evicting = at if work.evicting is None else work.evicting
            if mark.kind in {Kind.EVICTED, Kind.DELETED}:
                work.pods[mark.object] = None


def _merged(works: Iterable[_Work]) -> list[_Work]:
    """What several sources tell of the same drain, as one: the same node, and times that overlap, or one of them has none."""
    kept: list[_Work] = []
    for work in sorted(works, key=lambda w: _start(w) is None):
        same = [other for other in kept if other.node == work.node and _together(other, work)]
        if len(same) != 1:
            kept.append(work)
            continue
        mine = same[0]
        mine.cordoned = _least(mine.cordoned, work.cordoned)
        mine.evicting = _least(mine.evicting, work.evicting)
        mine.drained = mine.drained if mine.drained is not None else work.drained
        mine.uncordoned = mine.uncordoned if mine.uncordoned is not None else work.uncordoned
        known = {name.rpartition("/")[2] for name in mine.pods}
        mine.pods.update({pod: None for pod in work.pods if pod.rpartition("/")[2] not in known})
        if work.pods and work.source not in mine.source:
            mine.source = f"{mine.source}, {work.source}"
    return kept


def _together(one: _Work, two: _Work) -> bool:
    if one.source == two.source:
        return False
    ours, theirs = _extent(one), _extent(two)
    return ours is None or theirs is None or (ours[0] <= theirs[1] and theirs[0] <= ours[1])


def _extent(work: _Work) -> tuple[float, float] | None:
    known = [t for t in (work.cordoned, work.evicting, work.drained, work.uncordoned) if t is not None]
    if not known:
        return None
    return min(known), max(known) if work.uncordoned is not None else max(known) + OPEN_S


def _least(one: float | None, two: float | None) -> float | None:
    return min((t for t in (one, two) if t is not None), default=None)


def drain_of(found: Sequence[Drain], begin: float, end: float) -> Drain | None:
    """The drain that an outage from ``begin`` to ``end`` belongs to: of those it overlaps, the one whose evictions began last before its end.

    A drain reaches from its first eviction (its cordon, where none was told) to a minute after the node was given back. Cordons alone
    decide nothing: some operators cordon the next node while this one is drained.
    """
    best: Drain | None = None
    best_start = 0.0
    for place, drain in enumerate(found):
        start = drain.evicting if drain.evicting is not None else drain.begin
        if start is None or end < start or begin > reach(found, place):
            continue
        if best is None or (start >= best_start and start <= begin + TAIL_S):
            best, best_start = drain, start
    return best


def reach(found: Sequence[Drain], place: int) -> float:
    """Until when what happens may belong to a drain."""
    drain = found[place]
    if drain.end is not None:
        return drain.end + TAIL_S
    start = drain.evicting if drain.evicting is not None else drain.begin
    last = max((t for t in (start, drain.drained) if t is not None), default=0.0)
    later = [d.evicting for d in found[place + 1 :] if d.evicting is not None and start is not None and d.evicting > start]
    return min([last + OPEN_S, *(t + TAIL_S for t in later)])


def fdrains(study: Study) -> Figure:
    """The drains: who, from when until when, how many pods."""
    found = study.drains
    if not found:
        return Figure("D", "Drains", "no source tells of a drain: neither a drain's output, nor a roll's journal, nor Events of nodes", measured=False)
    undated = [d.node for d in found if d.begin is None]
    rows = tuple(
        (
            d.node,
            clock(d.begin),
            clock(d.evicting),
            clock(d.drained),
            clock(d.end),
            seconds(d.end - d.begin if d.begin is not None and d.end is not None else None),
            str(len(d.pods)),
            d.source,
        )
        for d in found
    )
    notes = [f"No time is known for the drain of {some(undated)}: its source tells only who was moved, not when."] if undated else []
    order = " then ".join(d.node for d in found)
    pods = sum(len(d.pods) for d in found)
    return Figure(
        "D",
        "Drains",
        f"{many(len(found), 'node')} drained, {order}; {many(pods, 'pod')} moved",
        table=Table(("node", "cordoned", "first eviction", "drained", "given back", "took", "pods", "told by"), rows),
        notes=tuple(notes),
        data={"drains": [_data(d) for d in found]},
    )


def _data(drain: Drain) -> dict[str, object]:
    return {"node": drain.node, "begin": drain.begin, "evicting": drain.evicting, "drained": drain.drained, "end": drain.end, "pods": list(drain.pods)}

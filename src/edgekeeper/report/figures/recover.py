"""Time to recover: from the eviction of a pod to the first good answer of its route, split into what was waited for. Pure.

Where Events were read, the sentence that an operator acts on comes out: "31 of 56 s were the volume".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from edgekeeper.model.time import Span
from edgekeeper.report.document import Figure, Hurt, Table
from edgekeeper.report.figures.drains import drain_of
from edgekeeper.report.figures.moves import feeding
from edgekeeper.report.figures.say import clock, lasted, many, seconds
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.owners import owner_of
from edgekeeper.report.study import Drain, Study

_MILESTONES: Final = (
    ("scheduling", frozenset({"Scheduled"})),
    ("the volume", frozenset({"SuccessfulAttachVolume"})),
    ("the image", frozenset({"Pulled"})),
    ("the start", frozenset({"Started"})),
    ("readiness", frozenset({"Ready", "Healthy"})),
)
"""What is waited for until which Event comes; phases whose Event was not seen are in the next one."""

_TROUBLE: Final = frozenset({"FailedAttachVolume", "FailedMount", "FailedScheduling", "Failed", "BackOff", "Unhealthy", "ErrImagePull"})
_MOST_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the time to recover, in seconds by the stamps."""

    name: str
    took_s: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """One route in one drain: which pod, when it was evicted, the whole time, and its phases in order (only the first where no Event tells)."""

    router: str
    drain: Drain
    pod: str
    evicted: float
    first_bad: float
    whole: Span
    phases: tuple[Phase, ...]
    trouble: tuple[str, ...]

    @property
    def longest(self) -> Phase:
        """The phase that took longest."""
        return max(self.phases, key=lambda p: p.took_s)


def recoveries(study: Study) -> list[Recovery]:
    """Every outage of a route whose pod's eviction has a time, longest first."""
    gone = _gone(study)
    events = [m for m in study.marks(Kind.POD) if m.at is not None]
    routes: dict[str, set[str]] = {}
    for workload, routers in feeding(study).items():
        for router in routers:
            routes.setdefault(router, set()).add(workload.rpartition("/")[2])
    found = []
    for hurt in study.outages:
        drain = drain_of(study.drains, hurt.first_bad, hurt.last_bad)
        if drain is None or hurt.router not in routes:
            continue
        pods = [
            (at, pod, doubt)
            for pod, at, doubt in gone
            if owner_of(pod).name in routes[hurt.router] and pod in drain.pods and hurt.first_bad - _MOST_S <= at <= hurt.last_bad
        ]
        if pods:
            found.append(_recovery(study, hurt, drain, max(pods), events))
    return sorted(found, key=lambda r: (-r.whole.max_s, r.router))


def _gone(study: Study) -> list[tuple[str, float, tuple[float, float]]]:
    """When each pod was asked to go (evicted or deleted), as the drain says, else as the kubelet's Killing; by how much sooner or later it may be."""
    found: dict[tuple[str, int], tuple[float, tuple[float, float]]] = {}
    full = {pod.rpartition("/")[2]: pod for drain in study.drains for pod in drain.pods}
    for mark in study.marks(Kind.EVICTING, Kind.EVICTED, Kind.DELETED, Kind.POD):
        if mark.at is None or (mark.kind == Kind.POD and mark.data.get("reason") != "Killing"):
            continue
        pod = full.get(mark.object.rpartition("/")[2])
        if pod is not None:
            width = study.width(mark.source)
            key, told = (pod, _drain_place(study, pod, mark.at)), (mark.at, (width, width + mark.stamp_s))
            if mark.kind == Kind.EVICTING:
                found[key] = told  # asked again: the one before was refused
            else:
                found.setdefault(key, told)
    return [(pod, *told) for (pod, _), told in found.items()]


def _drain_place(study: Study, pod: str, at: float) -> int:
    """In which drain of those that evicted it a pod went at a moment: that which began last before."""
    starts = [d.evicting if d.evicting is not None else d.begin for d in study.drains]
    places = [i for i, d in enumerate(study.drains) if pod in d.pods and (start := starts[i]) is not None and start <= at + 1]
    return places[-1] if places else -1


def _recovery(study: Study, hurt: Hurt, drain: Drain, gone: tuple[float, str, tuple[float, float]], events: list[Mark]) -> Recovery:
    evicted, pod, (sooner, later) = gone
    end = hurt.latest if hurt.latest is not None else hurt.last_bad
    mine = [m for m in events if _new(m.object, pod) and evicted - m.stamp_s <= (m.at or 0.0) <= end + m.stamp_s]
    now = max(evicted, hurt.first_bad)
    phases = [Phase("the old pod's grace", now - evicted)]
    for name, reasons in _MILESTONES:
        at = max((m.at for m in mine if m.at is not None and m.data.get("reason") in reasons), default=None)
        if at is not None:
            phases.append(Phase(name, max(0.0, at - now)))
            now = max(now, at)
    phases.append(Phase("the route" if len(phases) > 1 else "the new pod", max(0.0, end - now)))
    trouble = tuple(dict.fromkeys(str(m.data.get("reason")) for m in mine if m.data.get("reason") in _TROUBLE))
    doubt = study.width(hurt.source)
    least = max(0.0, hurt.last_bad - evicted - doubt - later)
    most = math.inf if hurt.latest is None else hurt.latest - evicted + sooner
    return Recovery(hurt.router, drain, pod, evicted, hurt.first_bad, Span(least, max(least, most)), tuple(phases), trouble)


def _new(name: str, old: str) -> bool:
    """Whether a pod is the one that came after ``old``: of the same workload, by the same name only where pods keep theirs."""
    owner, before = owner_of(name), owner_of(old)
    if owner.namespace and before.namespace and owner.namespace != before.namespace:
        return False
    bare, was = name.rpartition("/")[2], old.rpartition("/")[2]
    return bare == was if before.kind in {"numbered", "bare"} else owner.name == before.name and bare != was


def recover(study: Study) -> Figure:
    """How long each application took to come back, and what of it was what."""
    title = "Time to recover"
    if not study.drains or not study.outages:
        return Figure("TTR", title, "there is no drain, or no outage, to recover from", measured=False)
    found = recoveries(study)
    if not found:
        why = "no outage can be told to be of a pod whose eviction has a time; drains that stamp their lines, and report.feeds, would tell"
        return Figure("TTR", title, why, measured=False)
    names = [name for name, _ in _MILESTONES]
    split = [r for r in found if len(r.phases) > 2]
    rows = tuple(
        (
            r.router,
            r.drain.node,
            r.pod,
            clock(r.evicted),
            lasted(r.whole),
            ", ".join(f"{p.name} {p.took_s:.0f} s" for p in r.phases if p.took_s >= 0.5),
            " ".join(r.trouble),
        )
        for r in found
    )
    first = next((r for r in found if r in split), found[0])
    total = sum(p.took_s for p in first.phases)
    answer = f"{first.router} took longest, {lasted(first.whole)} after {first.pod} was evicted from {first.drain.node}"
    if first in split:
        answer = f"{first.router}: {first.longest.took_s:.0f} of {total:.0f} s were {first.longest.name}, after {first.pod} was evicted from {first.drain.node}"
    notes = [] if split else ["No Events of the new pods were read (they are kept for an hour only): what was waited for cannot be told."]
    if split:
        shares = {name: sum(p.took_s for r in split for p in r.phases if p.name == name) for name in ("the old pod's grace", *names, "the route")}
        notes.append("All together: " + ", ".join(f"{name} {seconds(took)}" for name, took in sorted(shares.items(), key=lambda s: -s[1]) if took >= 0.5) + ".")
    return Figure(
        "TTR",
        title,
        f"{answer}; {many(len(found), 'recovery', 'recoveries')}",
        table=Table(("route", "drain of", "pod", "evicted", "to the first good answer", "phases", "trouble"), rows),
        notes=tuple(notes),
        data={
            "recoveries": [
                {
                    "router": r.router,
                    "node": r.drain.node,
                    "pod": r.pod,
                    "min_s": r.whole.min_s,
                    "max_s": r.whole.max_s if math.isfinite(r.whole.max_s) else None,
                    "phases": {p.name: p.took_s for p in r.phases},
                }
                for r in found
            ]
        },
    )

"""F7: evictions that a disruption budget blocked, and those that went around it. Pure.

``kubectl drain`` asks again every 5 s and says so each time, so that the count of refusals tells the time even where lines have none.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.say import clock, many, seconds, some
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.owners import owner_of
from edgekeeper.report.study import Study

AGAIN_S = 5.0
"""How long ``kubectl drain`` waits before it asks again (kubectl ``pkg/drain``, and its message says so)."""


@dataclass(slots=True)
class Stall:
    """One pod that could not be evicted at once: how often it was refused, and for how long by count and, where lines are dated, by the clock."""

    pod: str
    refused: int = 0
    again_s: float = 0.0
    first: float | None = None
    gone: float | None = None
    evicted: bool = False

    @property
    def measured_s(self) -> float | None:
        """From the first refusal to the eviction; None where either has no time."""
        return None if self.first is None or self.gone is None else max(0.0, self.gone - self.first)


def stalls(marks: list[Mark]) -> tuple[list[Stall], list[str]]:
    """The pods that were refused, longest first, and those that were deleted instead of evicted, each once."""
    found: dict[str, Stall] = {}
    bypassed: dict[str, None] = {}
    for mark in marks:
        if mark.kind == Kind.EVICTION_BLOCKED:
            stall = found.setdefault(mark.object, Stall(mark.object))
            stall.refused += 1
            again = mark.data.get("again_s")
            stall.again_s += float(again) if isinstance(again, int | float) else AGAIN_S
            stall.first = mark.at if stall.first is None else stall.first
        elif mark.kind == Kind.DELETED:
            bypassed[mark.object] = None
        if mark.kind in {Kind.EVICTED, Kind.DELETED} and mark.object in found and not found[mark.object].evicted:
            found[mark.object].gone, found[mark.object].evicted = mark.at, True
    return sorted(found.values(), key=lambda s: (-s.again_s, s.pod)), list(bypassed)


def _end(stall: Stall, bypassed: list[str]) -> str:
    if stall.pod in bypassed:
        return "deleted past its budget"
    return "evicted" if stall.evicted else "not seen to go"


def f7(study: Study) -> Figure:
    """Which budgets held drains up, for how long, and which pods were deleted past them."""
    title = "Disruption budgets that block"
    marks = study.marks(Kind.EVICTING, Kind.EVICTED, Kind.DELETED, Kind.EVICTION_BLOCKED)
    if not marks:
        return Figure("F7", title, "no source tells of evictions", measured=False)
    found, bypassed = stalls(marks)
    known = {s.pod for s in found}
    rows = [(s.pod, str(s.refused), seconds(s.again_s), seconds(s.measured_s), clock(s.first), _end(s, bypassed)) for s in found] + [
        (pod, "", "", "", "", "deleted past its budget") for pod in bypassed if pod not in known
    ]
    parts = []
    if found:
        total = sum(s.again_s for s in found)
        together = " if added up (they wait side by side)" if len(found) > 1 else ""
        parts.append(
            f"{many(len(found), 'pod')} refused {many(sum(s.refused for s in found), 'time')}, about {seconds(total)} of waiting{together}: "
            f"{some([s.pod for s in found], 3)}"
        )
    if bypassed:
        of = len({owner_of(pod).same for pod in bypassed})
        workloads = f" of {many(of, 'workload')}" if of < len(bypassed) else ""
        parts.append(f"{many(len(bypassed), 'pod')}{workloads} deleted instead of evicted, past any budget")
    return Figure(
        "F7",
        title,
        "; ".join(parts) or "no eviction was refused, and none went around a budget",
        table=Table(("pod", "refused", "by count", "by the clock", "first", "in the end"), tuple(rows)) if rows else None,
        notes=("The time by count is refusals times the pause before the next try; pods wait side by side, so that a drain is held up by the longest.",)
        if found
        else (),
        data={
            "stalled": [{"pod": s.pod, "refused": s.refused, "by_count_s": s.again_s, "measured_s": s.measured_s} for s in found],
            "bypassed": bypassed,
        },
    )

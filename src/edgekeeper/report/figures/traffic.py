"""How many requests there were in a while, how many of them failed, and how many were due. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from edgekeeper.model.time import Span
from edgekeeper.report.cells import Lane
from edgekeeper.report.document import Hurt, Window
from edgekeeper.report.figures.baseline import quiet
from edgekeeper.report.figures.counts import asked, total
from edgekeeper.report.figures.outages import PROBE, TOLD, WARM
from edgekeeper.report.study import Study


@dataclass(frozen=True, slots=True)
class Count:
    """Requests that began in a while, and how many of them ended badly."""

    asked: int
    bad: int


def count(study: Study, lanes: Iterable[Lane], begin: float, end: float) -> Count:
    """The requests of several lanes that began from ``begin`` to before ``end``, by whole seconds."""
    found = total(study, lanes, Window(begin, end))
    return Count(asked(found), found.bad)


def by_group(study: Study, begin: float, end: float) -> dict[str, Count]:
    """The same for each class of clients."""
    return {group: count(study, study.lanes(group=group), begin, end) for group in study.groups()}


def rates(study: Study) -> dict[str, float]:
    """Requests a second of each class in the quiet time before; {} where there is none."""
    before, _ = quiet(study)
    if before is None or before.end <= before.begin:
        return {}
    length = before.end - before.begin
    return {group: c.asked / length for group, c in by_group(study, before.begin, before.end).items()}


def of_routes(study: Study) -> list[Hurt]:
    """The outages that clients of a route had; not those of probes, and not what other programs told."""
    return [hurt for hurt in study.outages if hurt.group not in {PROBE, WARM, TOLD}]


def down(hurts: Iterable[Hurt]) -> Span:
    """For how long together nothing was answered. Of an impaired route at least its longest full outage, at most the whole time."""
    least = most = 0.0
    for hurt in hurts:
        least += hurt.span.min_s if hurt.full else hurt.longest.min_s if hurt.longest is not None else 0.0
        most += hurt.span.max_s
    return Span(least, most)


def hurt_in(study: Study, routers: Iterable[str], hurts: Iterable[Hurt], spans: Iterable[tuple[float, float]]) -> Span | None:
    """How long the route that suffered most was down by these outages; None where there are none and nobody asked any of the routes in the spans."""
    kept, several = list(hurts), list(routers)
    each = [down(h for h in kept if h.router == router) for router in several if any(h.router == router for h in kept)]
    if each:
        return max(each, key=lambda s: (s.max_s, s.min_s))
    windows = list(spans)
    seen = any(count(study, study.lanes(router=router), begin, end).asked for router in several for begin, end in windows)
    return Span(0.0, 0.0) if seen else None


def so_few(asked: int, due: float) -> float:
    """How likely it is to see at most ``asked`` requests where ``due`` are expected, when clients ask independently (Poisson)."""
    if due <= 0:
        return 1.0
    if due > 1e4:  # far beyond any doubt a normal distribution is the same
        return 0.5 * math.erfc((due - asked) / math.sqrt(2 * due))
    logs = (n * math.log(due) - due - math.lgamma(n + 1) for n in range(min(asked, 100_000) + 1))
    return min(1.0, math.fsum(math.exp(log) for log in logs))

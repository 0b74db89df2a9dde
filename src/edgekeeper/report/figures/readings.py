"""One outage of the edge, told by several methods: their intervals side by side, and whether all of them can be true. Pure.

Minutes in which a class on a schedule asked too seldom, the journals of watchdogs, probes, and what other programs measured: each sees an
outage with its own grain. Two minutes of the one and forty seconds of the other need not contradict each other; here it is worked out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgekeeper.model.time import Span
from edgekeeper.report.cells import Total
from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.counts import asked
from edgekeeper.report.figures.edge import Way, ways
from edgekeeper.report.figures.minutes import Group, groups
from edgekeeper.report.figures.outages import TOLD
from edgekeeper.report.figures.say import clock, lasted, many, some
from edgekeeper.report.figures.triggers import triggers
from edgekeeper.report.study import Study

NEAR_S = 60.0
"""Readings whose times lie no further apart are taken to be of one outage: minutes are no finer."""

MINUTES = "minutes with too few requests"
JOURNALS = "watchdogs' journals"
PROBES = "probes"
OTHERS = "told by another program"


@dataclass(frozen=True, slots=True)
class Reading:
    """An outage as one method has it: it may have been from ``begin`` to ``end``, and lasted within ``span``. ``naive`` is how it reads at first."""

    method: str
    who: str
    begin: float
    end: float
    span: Span
    naive: str


def readings(study: Study) -> list[Reading]:
    """What every method tells, by time."""
    found = [reading for group in groups(study) if group.due is not None for reading in _of_minutes(group, group.due)]
    found += _of_journals(study)
    found += [reading for way in ways(study) for reading in _of_probe(way)]
    found += [
        Reading(OTHERS, h.source, h.first_bad, h.last_bad, h.span, f"{h.requests} bad answers")
        for h in study.outages
        if h.group == TOLD and math.isfinite(h.first_bad)
    ]
    return sorted(found, key=lambda r: (r.begin, r.method, r.who))


def _of_minutes(group: Group, due: float) -> list[Reading]:
    """Runs of whole minutes with fewer requests than are due."""
    runs: list[list[tuple[float, float]]] = []
    for at, counts in group.whole:
        missing = _missing(counts, due)
        if missing <= 0:
            continue
        if runs and runs[-1][-1][0] == at - 60:
            runs[-1].append((at, missing))
        else:
            runs.append([(at, missing)])
    return [_of_run(group, due, run) for run in runs]


def _missing(counts: Total, due: float) -> float:
    return due - asked(counts)


def _of_run(group: Group, due: float, run: Sequence[tuple[float, float]]) -> Reading:
    """The least: of requests that come once a minute, more are missing in two minutes than there are in one, so one of them was missed twice.

    The most: all minutes of the run, and where nothing came in the first or the last one, what lies before or after it to the next request.
    """
    least = max((later - at for i, (at, few) in enumerate(run) for later, more in run[i:] if few + more > due), default=0.0)
    begin = run[0][0] - (60.0 if run[0][1] >= due else 0.0)
    end = run[-1][0] + (120.0 if run[-1][1] >= due else 60.0)
    missing = sum(few for _, few in run)
    return Reading(
        MINUTES, group.title, begin, end, Span(least, end - begin), f"{missing:g} of {due * len(run):g} requests missing in {many(len(run), 'minute')}"
    )


def _of_journals(study: Study) -> list[Reading]:
    """From a watchdog's trigger to the first sign that it answers again; the outage may have begun a little before the trigger."""
    found = []
    for host, told in triggers(study).items():
        for trigger in told:
            end = trigger.answered if trigger.answered is not None else trigger.restarted
            if end is None:
                span, naive = Span(0.0, math.inf), "no end is told"
            else:
                length = max(0.0, end - trigger.at)
                grain = 1.0  # journals are in whole seconds
                span = Span(max(0.0, length - grain), length + grain if trigger.answered is not None else math.inf)
                naive = f"{length:.1f} s from the trigger to {'an answer' if trigger.answered is not None else 'the restart'}"
            found.append(Reading(JOURNALS, host, trigger.at, end if end is not None else trigger.at, span, naive))
    return found


def _of_probe(way: Way) -> list[Reading]:
    pairs = zip(way.found, way.dark, strict=True)
    return [
        Reading(PROBES, way.name, _sure(d.begin, o.first_bad), _sure(d.end, o.last_bad), Span(o.min_s, o.max_s), f"{o.bad} failed in a row") for o, d in pairs
    ]


def _sure(moment: float, otherwise: float) -> float:
    return moment if math.isfinite(moment) else otherwise


def episodes(found: Sequence[Reading]) -> list[list[Reading]]:
    """Readings that are of one outage, by their times."""
    kept: list[list[Reading]] = []
    until = -math.inf
    for reading in found:
        if kept and reading.begin <= until + NEAR_S:
            kept[-1].append(reading)
        else:
            kept.append([reading])
            until = -math.inf
        until = max(until, reading.end)
    return kept


def _judged(group: Group, episode: Sequence[Reading]) -> bool:
    """Whether every minute in which it may have been is one that can be judged."""
    begin, end = min(reading.begin for reading in episode), max(reading.end for reading in episode)
    inside = {at for at, _ in group.whole}
    return all(minute * 60.0 in inside for minute in range(math.floor(begin / 60), math.ceil(end / 60)))


def by_method(episode: Sequence[Reading]) -> dict[str, Span]:
    """What each method says of an episode: the least and the most that any of the ways in which it looked was dark."""
    found: dict[str, Span] = {}
    for reading in episode:
        known = found.get(reading.method)
        span = reading.span
        found[reading.method] = span if known is None else Span(min(known.min_s, span.min_s), max(known.max_s, span.max_s))
    return found


def agreed(spans: Sequence[Span]) -> Span | None:
    """What all of them allow; None when they contradict each other."""
    low, high = max(span.min_s for span in spans), min(span.max_s for span in spans)
    return Span(low, high) if low <= high else None


def _together(spans: Mapping[str, Span], both: Span | None) -> str:
    if both is not None:
        return "can all be true"
    others = [span for method, span in spans.items() if method != JOURNALS]
    late = JOURNALS in spans and agreed(others) is not None and spans[JOURNALS].max_s < max(span.min_s for span in others)
    return "can only be true if it began well before the watchdog's trigger" if late else "cannot all be true of one outage"


def told_twice(study: Study) -> Figure:
    """Each outage of the edge as every method has it."""
    found = readings(study)
    scheduled = [group for group in groups(study) if group.due is not None]
    rows, contradictions, twice, data = [], 0, 0, []
    for episode in episodes(found):
        spans = by_method(episode)
        if len(spans) < 2 and MINUTES not in spans and any(_judged(group, episode) for group in scheduled):
            spans[MINUTES] = Span(0.0, 60.0)  # every request that was due came: none was missed twice
        if len(spans) < 2:
            continue
        twice += 1
        both = agreed(list(spans.values()))
        contradictions += both is None
        begin = min(reading.begin for reading in episode)
        for method in spans:
            several = [reading for reading in episode if reading.method == method]
            naive = some([f"{r.who}: {r.naive}" for r in several], 2) if several else "none is missing: shorter than a minute"
            rows.append((clock(begin), method, naive, lasted(spans[method]), ""))
        rows.append((clock(begin), "together", "", lasted(both) if both is not None else "-", _together(spans, both)))
        data.append(
            {"begin": begin, "methods": {m: [s.min_s, s.max_s if math.isfinite(s.max_s) else None] for m, s in spans.items()}, "agree": both is not None}
        )
    if not twice:
        return Figure("TWO", "Outages that are told twice", "no outage of the edge is told by two methods", measured=False)
    said = f"{many(twice, 'outage')} of the edge told by two methods or more: "
    said += "all readings can be true at once" if not contradictions else f"of {contradictions} they cannot all be true"
    return Figure(
        "TWO",
        "Outages that are told twice",
        said,
        table=Table(("from", "method", "as it reads", "so it lasted", "together"), tuple(rows)),
        notes=(
            "Readings of one method are put together as the least and the most that any way in was dark; journals count from the trigger, before which it may have begun.",
        ),
        data={"episodes": data},
    )

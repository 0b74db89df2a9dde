"""F5: the edge dark, as probes saw it: each way in, any of them, all of them. Pure.

Ways in are what answers the same question: targets that differ only in their host, asked by one source; or one target asked from several
places. "Any dark" is what a client suffers that was sent to the dead one, "all dark" what nobody could escape.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from edgekeeper.measure import outages as probed
from edgekeeper.model.sample import Sample
from edgekeeper.model.time import Span
from edgekeeper.report.document import Bar, Figure, Row, Table, Timeline
from edgekeeper.report.figures.outages import Edges
from edgekeeper.report.figures.say import clock, lasted, many, some
from edgekeeper.report.study import Study

_URL = re.compile(r"([a-z0-9+]+)://(?:\[[^\]]*\]|[^/:?#]*)(.*)", re.DOTALL)
_SPEED = 0.9
"""Seconds from which a good answer is slow: a black hole shorter than the retransmission of a SYN (1 s) hides in such answers."""


@dataclass(frozen=True, slots=True)
class Dark:
    """A way in that was dark: not before ``begin`` and not after ``end``; surely from ``sure_begin`` to ``sure_end`` (reversed: never surely)."""

    begin: float
    end: float
    sure_begin: float
    sure_end: float


@dataclass(frozen=True, slots=True)
class Way:
    """One way in: who asked whom, with which kind of connection, and what was seen; by how much its clock may be wrong to either side."""

    source: str
    target: str
    conn: str
    summary: probed.Summary
    dark: tuple[Dark, ...]
    found: tuple[probed.Outage, ...]
    width: float = 0.0

    @property
    def name(self) -> str:
        """As figures call it."""
        return f"{self.target} ({self.conn}) from {self.source}"


def ways(study: Study) -> list[Way]:
    """Every target that was probed in the window, on the clock of reference."""
    known: Any = study.memo.get("ways")
    if known is None or known[0] is not study.clocks:
        known = study.memo["ways"] = (study.clocks, [_way(study, key, samples) for key, samples in sorted(study.samples().items())])
    return list(known[1])


def _way(study: Study, key: tuple[str, str, str], samples: Sequence[Sample]) -> Way:
    """Questions are counted in the window; an outage that reaches over its edge is bounded by what lies beyond."""
    shift = study.shift(key[0])
    everything = [replace(s, ts=s.ts + shift, sent=s.sent + shift, done=s.done + shift) if shift else s for s in study.book.samples[key]]
    ordered = sorted(everything, key=lambda s: (s.sent, s.done))
    lies = Edges(ordered)
    hole_s = probed.hole_of(ordered)
    found, strict = (_touching(study, probed.outages(ordered, strict=strict, hole_s=hole_s)) for strict in (False, True))
    dark = [Dark(lies.begin(o), lies.end(o), lies.sure(o), o.last_bad) for o in found]
    summary = replace(probed.summarize(samples), lenient=found, strict=strict)
    return Way(*key, summary, tuple(dark), found, study.width(key[0]))


def _touching(study: Study, found: Iterable[probed.Outage]) -> tuple[probed.Outage, ...]:
    return tuple(o for o in found if o.last_bad >= study.window.begin and o.first_bad <= study.window.end)


def united(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same spans as such that do not touch, in order; reversed ones count as nothing."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(span for span in spans if span[1] > span[0]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def common(one: Sequence[tuple[float, float]], two: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans that lie in one of each; both as ``united`` makes them."""
    found = []
    i = j = 0
    while i < len(one) and j < len(two):
        begin, end = max(one[i][0], two[j][0]), min(one[i][1], two[j][1])
        if end > begin:
            found.append((begin, end))
        if one[i][1] < two[j][1]:
            i += 1
        else:
            j += 1
    return found


def length(spans: Iterable[tuple[float, float]]) -> float:
    """How long they last together."""
    return sum(end - begin for begin, end in spans)


def any_dark(group: Sequence[Way]) -> Span:
    """How long at least one way in was dark."""
    sure, maybe = _sides(group)
    least = length(united(span for spans in sure for span in spans))
    return Span(least, max(least, length(united(span for spans in maybe for span in spans))))


def all_dark(group: Sequence[Way]) -> Span:
    """How long all ways in were dark at once."""
    sure, maybe = _sides(group)
    least = length(_in_all(sure))
    return Span(least, max(least, length(_in_all(maybe))))


def _sides(group: Sequence[Way]) -> tuple[list[list[tuple[float, float]]], list[list[tuple[float, float]]]]:
    """Per way in, when it surely was dark, and when it may have been. A clock's error counts only where several clocks are compared."""
    alone = len({way.source for way in group}) == 1
    sure, maybe = [], []
    for way in group:
        width = 0.0 if alone else way.width
        sure.append(united((d.sure_begin + width, d.sure_end - width) for d in way.dark))
        maybe.append(united((d.begin - width, d.end + width) for d in way.dark))
    return sure, maybe


def _in_all(several: Sequence[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    kept = several[0]
    for spans in several[1:]:
        kept = common(kept, spans)
    return kept


def alike(found: Iterable[Way]) -> dict[str, list[Way]]:
    """Ways in that answer the same question: one scheme, port and path whatever the host, of one kind of connection; only those of two or more."""
    groups: dict[str, list[Way]] = defaultdict(list)
    for way in found:
        match = _URL.fullmatch(way.target)
        key = f"{match[1]}://*{match[2]}" if match else way.target
        groups[f"{key} ({way.conn})"].append(way)
    return {key: group for key, group in groups.items() if len(group) > 1}


def f5(study: Study) -> Figure:
    """Per way in and for ways that are alike: how long dark, within bounds."""
    found = ways(study)
    if not found:
        return Figure("F5", "The edge, as probes saw it", "no probe asked in the window", measured=False)
    groups = alike(found)
    rows = [_row(way) for way in found]
    for key, group in groups.items():
        rows += [
            (f"{key}, any", f"{len(group)} ways", "", "", _said(any_dark(group)), "", ""),
            (f"{key}, all", f"{len(group)} ways", "", "", _said(all_dark(group)), "", ""),
        ]
    return Figure(
        "F5",
        "The edge, as probes saw it",
        _answer(found, groups),
        table=Table(("target", "asked from", "questions", "unanswered", "dark in all", "longest", "counting slow ones as dark"), tuple(rows)),
        notes=tuple(_notes(found)),
        timeline=_timeline(study, found),
        data={
            "ways": [_data(way) for way in found],
            "alike": [{"ways": key, "any": _pair(any_dark(group)), "all": _pair(all_dark(group))} for key, group in groups.items()],
        },
    )


def _row(way: Way) -> tuple[str, ...]:
    summary = way.summary
    strict = probed.longest(summary.strict)
    total = any_dark([way])
    return (
        f"{way.target} ({way.conn})",
        way.source,
        str(summary.asked),
        str(summary.unanswered),
        f"{_said(total)}, {many(len(way.found), 'time')}" if way.found else f"never seen; blind below {_seconds(summary.blind_s)}",
        lasted(_of(summary.worst)) if summary.worst else "-",
        f"{lasted(_of(strict))} ({summary.slow} slow)" if summary.slow and strict else "-",
    )


def _of(outage: probed.Outage) -> Span:
    return Span(outage.min_s, outage.max_s)


def _said(span: Span) -> str:
    return "never" if span.max_s == 0 else lasted(span)


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if math.isfinite(value) else "any length"


def _answer(found: Sequence[Way], groups: dict[str, list[Way]]) -> str:
    worst = max((w for w in found if w.found), key=lambda w: any_dark([w]).max_s, default=None)
    asked = sum(w.summary.asked for w in found)
    if worst is None:
        blind = max(w.summary.blind_s for w in found)
        return f"no probe failed in {asked:,} questions; what was shorter than {_seconds(blind)} would not have been seen"
    said = f"the worst way in, {worst.name}, was dark for {lasted(any_dark([worst]))}"
    together = [all_dark(group) for group in groups.values()]
    if together:
        most = max(together, key=lambda span: span.max_s)
        if most.max_s == 0:
            said += "; ways that are alike were never all dark at once"
        elif most.min_s == 0:
            said += f"; ways that are alike may all have been dark at once, for {_said(most)}"
        else:
            said += f"; ways that are alike were all dark at once for {_said(most)}"
    return said


def _notes(found: Sequence[Way]) -> list[str]:
    notes = []
    slow = [w.name for w in found if w.summary.slow]
    if slow:
        notes.append(f"Good answers that took more than {_SPEED:g} s may hide a black hole that was shorter than the retransmission of a SYN: {some(slow, 4)}.")
    lone = [w.name for w in found if w.summary.asked == w.summary.unanswered]
    if lone:
        notes.append(f"Never answered at all, so that nothing bounds it: {some(lone, 4)}.")
    return notes


def _timeline(study: Study, found: Sequence[Way]) -> Timeline | None:
    rows = []
    for way in found:
        bars = tuple(
            Bar(
                d.begin - way.width,
                d.end + way.width,
                f"{lasted(_of(outage))}, first failed {clock(outage.first_bad)}",
                "bad",
                d.sure_begin + way.width if _surely(d, way.width) else None,
                d.sure_end - way.width if _surely(d, way.width) else None,
            )
            for d, outage in zip(way.dark, way.found, strict=True)
        )
        if bars:
            rows.append(Row("edge", way.name, bars))
    return Timeline(study.window.begin, study.window.end, tuple(rows)) if rows else None


def _surely(dark: Dark, width: float) -> bool:
    return dark.sure_end - width > dark.sure_begin + width


def _pair(span: Span) -> list[float | None]:
    return [round(span.min_s, 3), round(span.max_s, 3) if math.isfinite(span.max_s) else None]


def _data(way: Way) -> dict[str, object]:
    outages = [{"min_s": o.min_s, "max_s": o.max_s if math.isfinite(o.max_s) else None, "first_bad": o.first_bad, "bad": o.bad} for o in way.found]
    return {"source": way.source, "target": way.target, "conn": way.conn, "asked": way.summary.asked, "unanswered": way.summary.unanswered, "outages": outages}

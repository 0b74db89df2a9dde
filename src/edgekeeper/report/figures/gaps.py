"""F11: named pairs of events, as the operator defines them: a peer that left and came back, a store that was sealed. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from edgekeeper.measure.pairs import Event, Pair, pairs
from edgekeeper.model.time import Span
from edgekeeper.report.document import Bar, Figure, Row, Table, Timeline
from edgekeeper.report.figures.say import clock, lasted, many
from edgekeeper.report.kinds import Mark
from edgekeeper.report.study import Gap, Study

AROUND_S: Final = 86400.0
"""An end that comes so long after the window is still found: what a roll broke may be mended hours later."""


@dataclass(frozen=True, slots=True)
class Found:
    """One interval of a named pair, on the clock of reference; ``span`` has the stamps' resolution and the clocks' doubt in it."""

    name: str
    key: str
    begin: Mark
    end: Mark | None
    span: Span


def line_of(mark: Mark) -> str:
    """What patterns are searched in: the mark's kind, object and sentence."""
    return f"{mark.kind} {mark.object} {mark.what}"


def find(study: Study, gap: Gap) -> tuple[list[Found], int]:
    """The intervals of one pair in the window, and how many ends had no begin. ValueError says which pattern is no expression."""
    begin, end = _compiled(gap.name, gap.begin), _compiled(gap.name, gap.end)
    events: list[Event[Mark]] = []
    for mark in study.marks(around_s=AROUND_S):
        if mark.at is None:
            continue
        text = line_of(mark)
        for begins, pattern in ((False, end), (True, begin)):
            if match := pattern.search(text):
                events.append(Event(mark.at, _key(match, gap.key), begins, mark))
    found, lonely = pairs(events)
    return [Found(gap.name, p.key, p.begin.of, p.end.of if p.end else None, _span(study, p)) for p in found if _in(study, p)], len(lonely)


def _compiled(name: str, pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as err:
        why = err.args[0].decode(errors="replace") if err.args and isinstance(err.args[0], bytes) else err
        msg = f"the pair {name}: {pattern[:80]!a} is no RE2 expression ({why}); correct it under report.gaps"
        raise ValueError(msg) from None


def _key(match: Any, group: str) -> str:
    if not group:
        return ""
    return str(match.groupdict().get(group) or "")


def _in(study: Study, pair: Pair[Mark]) -> bool:
    return pair.begin.at <= study.window.end and (pair.end is None or pair.end.at >= study.window.begin)


def _span(study: Study, pair: Pair[Mark]) -> Span:
    begin, end = pair.begin.of, pair.end.of if pair.end is not None else None
    if end is None:
        return Span(max(0.0, study.window.end - pair.begin.at), math.inf)
    apart = (end.at or 0.0) - pair.begin.at
    doubt = 0.0 if study.node_of(begin.source) == study.node_of(end.source) else study.width(begin.source) + study.width(end.source)
    return Span(max(0.0, apart - begin.stamp_s - doubt), max(0.0, apart + end.stamp_s + doubt))


def f11(study: Study) -> Figure:
    """How long each named pair took."""
    title = "Named pairs of events"
    if not study.settings.gaps:
        return Figure("F11", title, "no pairs are named; report.gaps in the config names them", measured=False)
    found: list[Found] = []
    silent: list[str] = []
    for gap in study.settings.gaps:
        try:
            several, lonely = find(study, gap)
        except ValueError as err:
            silent.append(str(err))
            continue
        found.extend(several)
        if not several:
            silent.append(f"{gap.name}: no begin was found" + (f", but {many(lonely, 'end')}" if lonely else ""))
    rows = tuple((f.name, f.key, clock(f.begin.at), clock(f.end.at) if f.end else "not seen", lasted(f.span), f.begin.what or f.begin.object) for f in found)
    longest = max(found, key=lambda f: (f.span.max_s, f.span.min_s), default=None)
    answer = f"{many(len(found), 'interval')}; the longest is {_named(longest)}, {lasted(longest.span)}" if longest else "none of the named pairs was found"
    return Figure(
        "F11",
        title,
        answer,
        table=Table(("pair", "key", "from", "until", "took", "began with"), rows) if rows else None,
        notes=tuple(silent),
        timeline=_timeline(study, found),
        data={
            "gaps": [
                {
                    "name": f.name,
                    "key": f.key,
                    "begin": f.begin.at,
                    "end": f.end.at if f.end else None,
                    "min_s": f.span.min_s,
                    "max_s": None if math.isinf(f.span.max_s) else f.span.max_s,
                }
                for f in found
            ]
        },
    )


def _named(found: Found) -> str:
    return f"{found.name} ({found.key})" if found.key else found.name


def _timeline(study: Study, found: list[Found]) -> Timeline | None:
    rows: dict[str, list[Bar]] = {}
    for one in found:
        begin, end = one.begin.at or 0.0, (one.end.at if one.end else None) or study.window.end
        rows.setdefault(one.name, []).append(Bar(begin, end, _named(one), "calm", begin, end))
    return Timeline(study.window.begin, study.window.end, tuple(Row("named pairs", name, tuple(bars)) for name, bars in rows.items())) if rows else None

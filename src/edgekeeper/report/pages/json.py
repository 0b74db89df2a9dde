"""A report for machines: schema 1. Pure.

Times are ISO 8601 in UTC, with seconds since 1970 beside them (``*_s``) where a program computes with them; what is not known or has no
bound is null. A reader must bear keys that it does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from edgekeeper.report.document import Clock, Figure, Hurt, Report, Timeline, Window
from edgekeeper.report.pages.when import iso, known


def document(report: Report) -> dict[str, Any]:
    """The report as one JSON object; whoever prints it puts ``schema`` (``document.SCHEMA``) first."""
    made = {
        "title": report.title,
        "verdict": report.verdict,
        "can_judge": report.can_judge,
        "window": _window(report.window),
        "baseline": _window(report.baseline) if report.baseline else None,
        "outages": [_outage(hurt) for hurt in report.outages],
        "clocks": [_clock(clock) for clock in report.clocks],
        "lines": report.lines,
        "skipped_lines": dict(report.skipped),
        "not_measured": list(report.not_measured),
        "figures": [_figure(figure) for figure in report.figures],
        "sources": list(report.sources),
    }
    return {key: plain(value) for key, value in made.items()}


def plain(value: Any) -> Any:
    """The same of what JSON has: keys are strings, no infinity, nothing that is no number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def _window(window: Window) -> dict[str, Any]:
    return {"begin": iso(window.begin), "end": iso(window.end), "begin_s": window.begin, "end_s": window.end, "why": window.why}


def _outage(hurt: Hurt) -> dict[str, Any]:
    return {
        "router": hurt.router,
        "class": hurt.group,
        "min_s": _second(hurt.span.min_s),
        "max_s": _second(hurt.span.max_s),
        "first_bad": iso(hurt.first_bad),
        "last_bad": iso(hurt.last_bad),
        "first_bad_s": _second(hurt.first_bad),
        "last_bad_s": _second(hurt.last_bad),
        "earliest": iso(hurt.earliest),
        "latest": iso(hurt.latest),
        "requests": hurt.requests,
        "cause": hurt.cause,
        "full": hurt.full,
        "source": hurt.source,
    }


def _clock(clock: Clock) -> dict[str, Any]:
    return {
        "node": clock.node,
        "min_s": clock.min_s,
        "max_s": clock.max_s,
        "shift_s": clock.shift_s,
        "method": clock.method,
        "moved": clock.moved,
    }


def _figure(figure: Figure) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": figure.id,
        "title": figure.title,
        "answer": figure.answer,
        "measured": figure.measured,
        "notes": list(figure.notes),
        "table": {"columns": list(figure.table.columns), "rows": [list(row) for row in figure.table.rows]} if figure.table else None,
        "data": figure.data,
    }
    if figure.timeline:
        made["timeline"] = _timeline(figure.timeline)
    if figure.multiples:
        made["multiples"] = [{"name": s.name, "note": s.note, "minutes": [[iso(at), n, bad] for at, n, bad in s.minutes]} for s in figure.multiples]
    if figure.smoke:
        made["smoke"] = [{"name": s.name, "slots": [[iso(at), median, p95, failed] for at, median, p95, failed in s.slots]} for s in figure.smoke]
    return made


def _timeline(timeline: Timeline) -> dict[str, Any]:
    return {
        "begin": iso(timeline.begin),
        "end": iso(timeline.end),
        "rows": [
            {
                "group": row.group,
                "name": row.name,
                "bars": [
                    {
                        "label": bar.label,
                        "tone": bar.tone,
                        "begin": iso(bar.begin),
                        "end": iso(bar.end),
                        "sure_begin": iso(bar.sure_begin),
                        "sure_end": iso(bar.sure_end),
                    }
                    for bar in row.bars
                ],
                "points": [{"label": point.label, "shape": point.shape, "at": iso(point.at)} for point in row.points],
            }
            for row in timeline.rows
        ],
    }


def _second(value: float) -> float | None:
    """To the microsecond: a stamp has no more, and 0.30000000000000004 helps nobody."""
    return round(value, 6) if known(value) else None

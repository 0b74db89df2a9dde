"""Results of drills (``edgekeeper drill run --json``): what was promised, what was measured, and the timeline. Pure.

A drill counts from the begin of its load: it names no date. Its marks have an order and seconds of their own (``at_s``), but no time.
"""

from __future__ import annotations

import re
from typing import Any

from edgekeeper.report.formats.base import Context, Item, Parsed, name, text
from edgekeeper.report.formats.documents import Collector
from edgekeeper.report.kinds import MISSING_FIELD, NOT_THIS_FORMAT, TRUNCATED, Kind, Mark, Skip

SCHEMA = 1
_LIKES = re.compile(rb'(?:\{ ?)?"drill": ?"[^"]{1,100}",$|[\[{](?=.*"schema": ?1\b)(?=.*"drill": ?").*"cases": ?\[', re.DOTALL)
_CASES_MOST = 1000


class Drill:
    """``drill``: one result, or a list of them, on one line or on many."""

    name = "drill"

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The marks of the results that this line completes."""
        collector: Collector = context.state.setdefault("drill", Collector())
        before = collector.lost
        out: list[Item] = []
        for one in collector.feed(text(line)):
            out.extend(_of(one, context))
        out.extend([Skip(TRUNCATED)] * (collector.lost - before))
        return out or None

    def likes(self, line: bytes) -> bool:
        """Whether the line is certainly of a result."""
        return _LIKES.match(line.strip()) is not None


def _of(one: dict[str, Any], context: Context) -> list[Item]:
    if one.get("schema") != SCHEMA:
        return [Skip(NOT_THIS_FORMAT)]
    drill, cases = one.get("drill"), one.get("cases")
    if not isinstance(drill, str) or not isinstance(cases, list):
        return [Skip(MISSING_FIELD)]
    return [mark for case in cases[:_CASES_MOST] if isinstance(case, dict) for mark in _case(drill, case, context)]


def _case(drill: str, case: dict[str, Any], context: Context) -> list[Item]:
    engines = case.get("engines")
    engine = " ".join(f"{key} {value}" for key, value in engines.items()) if isinstance(engines, dict) else ""
    about = name(" ".join(word for word in (f"{drill}/{case.get('case')}", engine) if word))
    outage = case.get("outage")
    bounds = outage if isinstance(outage, dict) else {}
    data: dict[str, str | float | bool | None] = {
        "kept": case.get("kept") is True,
        "min_s": _number(bounds.get("min_s")),
        "max_s": _number(bounds.get("max_s")),
        "asked": _number(case.get("asked")),
        "unanswered": _number(case.get("unanswered")),
        "state": "result",
    }
    why = case.get("why")
    out: list[Item] = [Mark(None, Kind.NOTE, about, name(why if isinstance(why, str) else "a drill"), context.source, "", 0.0, data)]
    if data["min_s"] is not None and data["max_s"] != 0:
        lost: dict[str, str | float | bool | None] = {key: data[key] for key in ("min_s", "max_s", "asked")} | {"bad": data["unanswered"]}
        out.append(Mark(None, Kind.OUTAGE, about, "the longest outage that its clients saw", context.source, "", 0.0, lost))
    timeline = case.get("timeline")
    for step in timeline[:_CASES_MOST] if isinstance(timeline, list) else []:
        at_s, what = (_number(step.get("at_s")), step.get("what")) if isinstance(step, dict) else (None, None)
        if at_s is not None and isinstance(what, str):
            out.append(Mark(None, Kind.NOTE, about, name(f"{at_s:+.3f} s: {what}"), context.source, "", 0.0, {"at_s": at_s, "state": "step"}))
    return out


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else None


DRILL = Drill()

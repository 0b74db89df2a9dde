"""Routes in a form that people can read: without what all of their names begin and end with. Pure.

A proxy in a cluster calls a route ``websecure-git-gitea-git-example@kubernetes``; in a report on one cluster all begin with ``websecure-`` and
end with ``-example@kubernetes``. Pages for people leave that out and say so once; what programs read keeps the whole names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from edgekeeper.report.document import Report

_EDGE = re.compile(r"[-@./:_]")
_WORTH = 6
"""Characters that must be saved before names are changed at all."""
_WHOLE = frozenset({"data", "routes", "skipped", "sources"})
"""Fields that are for programs, or hold no route."""
_MOST = 500
"""Routes beyond which nothing is with_short_routes: every text of the report is searched for them."""


def ends(routes: Sequence[str]) -> tuple[str, str]:
    """What all routes begin and end with, up to a mark between words; empty where that is too little, or would leave nothing of one."""
    if len(routes) < 2:
        return "", ""
    begin, end = routes[0], routes[0]
    for route in routes[1:]:
        begin = begin[: _alike(begin, route)]
        end = end[len(end) - _alike(end[::-1], route[::-1]) :]
    cut = max((m.end() for m in _EDGE.finditer(begin)), default=0)
    first = next((m.start() for m in _EDGE.finditer(end)), len(end))
    begin, end = begin[:cut], end[first:]
    if len(begin) + len(end) < _WORTH or any(len(route) <= len(begin) + len(end) for route in routes):
        return "", ""
    return begin, end


def _alike(one: str, two: str) -> int:
    """How many characters two texts have in common from the left."""
    return next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def left_out(report: Report) -> str:
    """What pages say of it: "websecure- before and -example@kubernetes behind"; "" where names are whole."""
    begin, end = ends(report.routes) if len(report.routes) <= _MOST else ("", "")
    return " and ".join(part for part in (f"{begin} before" if begin else "", f"{end} behind" if end else "") if part)


def with_short_routes(report: Report) -> Report:
    """The report with short routes in all of its texts; the same one where that would not help. ``routes`` stay whole."""
    if not left_out(report):
        return report
    begin, end = ends(report.routes)
    short = {route: route[len(begin) : len(route) - len(end)] for route in report.routes}
    found = re.compile("|".join(re.escape(route) for route in sorted(short, key=len, reverse=True)))
    changed: Report = _within(report, lambda text: found.sub(lambda match: short[match[0]], text))
    return changed


def _within(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_within(one, change) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        told = {field.name: _within(getattr(value, field.name), change) for field in fields(value) if field.name not in _WHOLE}
        return replace(value, **told)
    return value

"""Objects of Kubernetes out of what ``kubectl -o json`` prints: one a line, a list on one line or over many, a watch. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgekeeper.report.formats.base import Context, text
from edgekeeper.report.formats.documents import Collector
from edgekeeper.report.formats.fields import json_object

Change = tuple[str, dict[str, Any]]
"""What a watch says became of an object (ADDED, MODIFIED, DELETED; "" where no watch says anything), and the object."""


def objects(line: bytes, context: Context, name: str) -> tuple[list[Change], int]:
    """The objects that the line completes, and how many could not be read. ``name`` is of the format, whose state is kept in the context."""
    bare = line.strip()
    collector: Collector | None = context.state.get(name)
    if collector is None:
        if bare.startswith(b"{") and bare.endswith(b"}") and len(bare) > 2:
            one = json_object(bare)
            return ([], 1) if one is None else (list(_unwrapped("", one)), 0)
        if not bare.startswith((b"{", b"[")):
            return [], 0
        collector = context.state[name] = Collector(inner=True)
    before = collector.lost
    found = [change for one in collector.feed(text(line)) for change in _unwrapped("", one)]
    if not collector.under_way:
        del context.state[name]
    return found, collector.lost - before


def _unwrapped(change: str, one: dict[str, Any], depth: int = 0) -> Iterator[Change]:
    """An object itself, the items of a list, what a watch wraps."""
    items, inside = one.get("items"), one.get("object")
    if isinstance(items, list) and depth < 3:
        for item in items:
            if isinstance(item, dict):
                yield from _unwrapped(change, item, depth + 1)
    elif isinstance(inside, dict) and isinstance(one.get("type"), str) and depth < 3:
        yield from _unwrapped(one["type"], inside, depth + 1)
    else:
        yield change, one

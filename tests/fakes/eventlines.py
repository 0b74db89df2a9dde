"""Lines of a log through a format: what tests of the formats of events have in common."""

from __future__ import annotations

from typing import Any

from edgekeeper.report.formats.base import Context, Format, Item
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Mark

NOON = utc(2026, 9, 7, 12, 0, 0)
"""The last change of a log that tests read."""


def context(**more: Any) -> Context:
    return Context(**{"until": NOON, "source": "a.log", **more})


def items(form: Format, lines: str | bytes, around: Context | None = None) -> list[Item]:
    """All that the lines say."""
    around = around or context()
    whole = lines if isinstance(lines, bytes) else lines.encode()
    out: list[Item] = []
    for line in whole.splitlines():
        found = form.parse(line, around)
        out.extend(found if isinstance(found, list) else [] if found is None else [found])
    return out


def marks(form: Format, lines: str, around: Context | None = None) -> list[Mark]:
    """The marks, where nothing else may come out."""
    out = items(form, lines, around)
    assert all(isinstance(one, Mark) for one in out), out
    return [one for one in out if isinstance(one, Mark)]


def told(form: Format, lines: str, around: Context | None = None) -> list[tuple[str, str]]:
    """Kind and object of each mark."""
    return [(str(mark.kind), mark.object) for mark in marks(form, lines, around)]

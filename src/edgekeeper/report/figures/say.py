"""How figures write moments, spans and lists of names. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgekeeper.model.time import Span
from edgekeeper.report.pages import when


def clock(at: float | None) -> str:
    """``04:55:10`` in UTC; ``?`` where no time is known."""
    return when.clock(at) if at is not None and when.known(at) else "?"


def seconds(value: float | None) -> str:
    """``47.3 s``, ``2 min 5 s``; ``?`` where it is not known."""
    if value is None or math.isnan(value):
        return "?"
    if math.isinf(value):
        return "open"
    if abs(value) < 120:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def around(value: float, width: float, *, least: float = 0.0) -> Span:
    """What a difference of two stamps can have been, when together they may be wrong by ``width`` to either side."""
    return Span(max(least, value - width), max(least, value + width))


def span(of: Span) -> str:
    """As ``Span.text``, and a length that is known to the hundredth of a second as one number."""
    text = of.text()
    low, _, high = text.partition(" to ")
    return low if low == high else text


def lasted(span: Span) -> str:
    """A duration as a person reads it: in whole seconds, rounded outwards, where it is long."""
    return when.lasted(span)


def some(names: Sequence[str], most: int = 6) -> str:
    """``a, b and 3 more``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def many(count: int, one: str, several: str = "") -> str:
    """``1 drain``, ``2 drains``."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"

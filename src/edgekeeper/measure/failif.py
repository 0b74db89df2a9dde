"""``--fail-if``: when a measurement is to count as failed. Pure.

``outage > 2s``, ``outage.min >= 500ms``, ``outages > 0``, ``unanswered > 0``, ``loss > 0.4%``, ``slow > 3``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from edgekeeper.errors import UsageError
from edgekeeper.measure.outages import Summary
from edgekeeper.model.time import parse_duration

_FORM = re.compile(r"\s*([a-z.]+)\s*(>=|<=|>|<|==)\s*(\S+)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_SECONDS = ("outage", "outage.max", "outage.min")
_COUNTS = ("outages", "unanswered", "slow", "asked")
_SHARES = ("loss",)


@dataclass(frozen=True, slots=True)
class FailIf:
    """One condition; ``text`` is as the user wrote it."""

    text: str
    figure: str
    compare: str
    value: float


def parse(text: str) -> FailIf:
    """Read a condition; UsageError says how to write it."""
    match = _FORM.fullmatch(text)
    figures = (*_SECONDS, *_COUNTS, *_SHARES)
    if match is None or match[1] not in figures:
        msg = f"{text[:60]!a} is not a condition; write one of {', '.join(figures)}, then > or <, then a value: outage > 2s, loss > 0.4%"
        raise UsageError(msg)
    figure, compare, value = match.groups()
    try:
        return FailIf(text.strip(), figure, compare, _value(figure, value))
    except ValueError as err:
        msg = f"{text[:60]!a}: {err}"
        raise UsageError(msg) from None


def _value(figure: str, text: str) -> float:
    if figure in _SECONDS:
        return parse_duration(text)
    if figure in _SHARES:
        if not text.endswith("%"):
            msg = f"{figure} is a share; write it with %: 0.4%"
            raise ValueError(msg)
        return float(text.removesuffix("%")) / 100
    if not text.isascii() or not text.isdigit():
        msg = f"{figure} is a count; write a whole number"
        raise ValueError(msg)
    return int(text)


def true_of(condition: FailIf, summary: Summary) -> bool:
    """Whether the condition holds. ``outage`` is the longest by its upper bound: what may have been is what fails."""
    return _COMPARE[condition.compare](_figure(condition.figure, summary), condition.value)


def _figure(figure: str, summary: Summary) -> float:
    worst = summary.worst
    match figure:
        case "outage" | "outage.max":
            return worst.max_s if worst else 0.0
        case "outage.min":
            return max((o.min_s for o in summary.lenient), default=0.0)
        case "outages":
            return len(summary.lenient)
        case "unanswered":
            return summary.unanswered
        case "slow":
            return summary.slow
        case "asked":
            return summary.asked
        case _:
            return summary.unanswered / summary.asked if summary.asked else 1.0

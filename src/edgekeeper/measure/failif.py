"""``--fail-if``: when a measurement is to count as failed. Pure.

``outage > 2s``, ``outage.min >= 500ms``, ``outages > 0``, ``unanswered > 0``, ``loss > 0.4%``, ``slow > 3``; of a report also ``bad > 0.1%``
and ``budget > 10%``. ``outage`` is the longest by its upper bound: what may have been is what fails.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

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
_SECONDS = frozenset({"outage", "outage.max", "outage.min"})
_SHARES = frozenset({"loss", "bad", "budget"})
PROBE: Final = ("outage", "outage.max", "outage.min", "outages", "unanswered", "slow", "asked", "loss")
"""What can be asked of one target of a probe."""
REPORT: Final = ("outage", "outage.max", "outage.min", "outages", "bad", "budget")
"""What can be asked of a report: the outages of all routes and targets, the share of requests that went badly, the share of the budget spent."""


@dataclass(frozen=True, slots=True)
class FailIf:
    """One condition; ``text`` is as the user wrote it."""

    text: str
    figure: str
    compare: str
    value: float


def parse(text: str, figures: tuple[str, ...] = PROBE) -> FailIf:
    """Read a condition on one of ``figures``; UsageError says how to write it."""
    match = _FORM.fullmatch(text)
    if match is None or match[1] not in figures:
        share = next(name for name in figures if name in _SHARES)
        msg = f"{text[:60]!a} is not a condition; write one of {', '.join(figures)}, then > or <, then a value: outage > 2s, {share} > 0.4%"
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


def holds(condition: FailIf, values: Mapping[str, float]) -> bool:
    """Whether the condition is true of these figures; one that was not measured counts as the worst that it can be."""
    return _COMPARE[condition.compare](values.get(condition.figure, float("inf")), condition.value)


def true_of(condition: FailIf, summary: Summary) -> bool:
    """Whether the condition is true of what one target's samples say."""
    return holds(condition, values_of(summary))


def values_of(summary: Summary) -> dict[str, float]:
    """The figures of ``PROBE`` for one target; with nothing asked, all of it is lost."""
    longest = summary.worst.max_s if summary.worst else 0.0
    return {
        "outage": longest,
        "outage.max": longest,
        "outage.min": max((o.min_s for o in summary.lenient), default=0.0),
        "outages": len(summary.lenient),
        "unanswered": summary.unanswered,
        "slow": summary.slow,
        "asked": summary.asked,
        "loss": summary.unanswered / summary.asked if summary.asked else 1.0,
    }

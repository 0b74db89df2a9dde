"""Measured figures against promises: kept or broken, each with a sentence. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Unit = Literal[
    "s",
    "queries",
    "requests",
    "cuts",
    "clients",
    "restarts",
    "handshakes",
    "processes",
    "members",
    "errors",
    "moves",
    "VIPs",
    "objects",
    "hosts",
    "writes",
    "deletes",
]


@dataclass(frozen=True, slots=True)
class Promise:
    """``figure`` names what is measured; at most ``limit`` of it, or ``limit`` of every ``share_of``.

    ``over`` says how several runs count: the median (where one unlucky hash decides a run), or the worst.
    ``since`` is the engine version from which on it is promised; ``until`` the one before which it is.
    """

    figure: str
    what: str
    limit: float
    unit: Unit = "queries"
    share_of: str | None = None
    over: Literal["median", "worst"] = "worst"
    since: tuple[int, ...] = ()
    until: tuple[int, ...] | None = None

    def applies(self, version: tuple[int, ...]) -> bool:
        """Whether it is promised for this engine version."""
        return version >= self.since and (self.until is None or version < self.until)


@dataclass(frozen=True, slots=True)
class Ruling:
    """One promise judged: ``allowed`` is the limit as a number of units, ``measured`` None when there is no figure."""

    promise: Promise
    allowed: float
    measured: float | None
    kept: bool
    why: str


def judge(promises: Sequence[Promise], runs: Sequence[Mapping[str, float]]) -> tuple[Ruling, ...]:
    """Every promise against the figures of all runs, in the order of the promises."""
    return tuple(_judge(promise, runs) for promise in promises)


def _judge(promise: Promise, runs: Sequence[Mapping[str, float]]) -> Ruling:
    seen = [run[promise.figure] for run in runs if promise.figure in run]
    if len(seen) < len(runs) or not seen:
        return Ruling(promise, promise.limit, None, kept=False, why=f"{promise.what}: not measured in {len(runs) - len(seen) or 'any'} of {len(runs)} runs")
    measured = statistics.median(seen) if promise.over == "median" else max(seen)
    allowed = promise.limit
    if promise.share_of is not None:
        bases = [run.get(promise.share_of, 0.0) for run in runs]
        allowed = promise.limit * (statistics.median(bases) if promise.over == "median" else min(bases))
    kept = measured <= allowed
    of_runs = f" ({'median' if promise.over == 'median' else 'worst'} of {len(runs)} runs)" if len(runs) > 1 else ""
    why = f"{promise.what}: {number(measured)} {promise.unit}{of_runs}, promised at most {number(allowed)}"
    return Ruling(promise, allowed, measured, kept, why)


def number(value: float) -> str:
    """A figure as people read it: whole numbers whole, others with three digits."""
    return str(int(value)) if float(value).is_integer() else f"{value:.3g}"


def sentence(rulings: Sequence[Ruling]) -> str:
    """The verdict in one sentence: what broke, or the first thing that was kept."""
    broken = [r for r in rulings if not r.kept]
    if broken:
        return "broken: " + "; ".join(r.why for r in broken)
    return "kept: " + rulings[0].why if rulings else "nothing was promised for this engine version"


def ratio(product: float, plain: float, unit: str = "queries") -> str:
    """How much better the product did than the plain engine, in words that hold at zero."""
    less, more = ("shorter", "longer") if unit == "s" else ("fewer", "more")
    if plain == product:
        return "no difference"
    if product == 0:
        return f"0 instead of {number(plain)}"
    if plain == 0:
        return f"{number(product)} instead of 0"
    return f"{plain / product:.1f} times {less}" if plain > product else f"{product / plain:.1f} times {more}"

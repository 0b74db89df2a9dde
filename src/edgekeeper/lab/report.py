"""Results of drills as values: what was measured, what was promised, and their JSON. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgekeeper.lab.referee import Ruling, number, ratio, sentence
from edgekeeper.measure.outages import Outage, longest

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a script: figures, the outage that the client saw, the timeline as (seconds, what)."""

    figures: Mapping[str, float]
    outage: Outage | None
    timeline: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case on one engine version: its runs, the rulings, and the plain engine's runs beside them.

    ``error`` is set when the case could not be run to its end, ``missing`` when something is not installed.
    """

    drill: str
    case: str
    suite: str
    version: str
    headline: str
    runs: tuple[Run, ...] = ()
    plain: tuple[Run, ...] = ()
    rulings: tuple[Ruling, ...] = ()
    error: str = ""
    missing: bool = False
    skipped: str = ""
    engine: str = "dnsdist"
    unit: str = "queries"

    @property
    def kept(self) -> bool:
        """Whether every promise was kept (a case that this version cannot do breaks none)."""
        return not self.error and all(r.kept for r in self.rulings)

    @property
    def why(self) -> str:
        """The verdict in one sentence."""
        if self.skipped:
            return self.skipped
        return f"broken: {self.error}" if self.error else sentence(self.rulings)


@dataclass(frozen=True, slots=True)
class DrillResult:
    """All cases of a drill on one engine version."""

    drill: str
    version: str
    suite: str
    cases: tuple[CaseResult, ...] = field(default=())

    @property
    def kept(self) -> bool:
        """Whether every case kept its promises."""
        return all(c.kept for c in self.cases)

    @property
    def leading(self) -> CaseResult | None:
        """The case that speaks for the drill: the first broken one, else the first that ran."""
        ran = [c for c in self.cases if not c.skipped]
        return next((c for c in ran if not c.kept), ran[0] if ran else None)


def middle(runs: Sequence[Run], figure: str) -> float | None:
    """The median of a figure over runs; None when one lacks it."""
    seen = [r.figures[figure] for r in runs if figure in r.figures]
    return statistics.median(seen) if seen else None


def worst_outage(runs: Sequence[Run]) -> Outage | None:
    """The outage that may have been the longest of all runs."""
    return longest(r.outage for r in runs if r.outage is not None)


def outage_json(outage: Outage | None) -> dict[str, float | None]:
    """Bounds in seconds; 0 and 0 when no question failed, max null when the end was not seen."""
    if outage is None:
        return {"min_s": 0.0, "max_s": 0.0}
    return {"min_s": round(outage.min_s, 3), "max_s": None if math.isinf(outage.max_s) else round(outage.max_s, 3)}


def _side_json(runs: Sequence[Run]) -> dict[str, Any]:
    return {
        "asked": middle(runs, "asked"),
        "unanswered": middle(runs, "unanswered" if runs and "unanswered" in runs[0].figures else "unanswered_3s"),
        "outage": outage_json(worst_outage(runs)),
        "figures": [dict(r.figures) for r in runs],
    }


def case_json(case: CaseResult) -> dict[str, Any]:
    """One case; ``promises`` holds all of them, ``promise`` the first broken or the first."""
    promises = [
        {
            "what": r.promise.what,
            "limit": r.allowed,
            "unit": r.promise.unit,
            "measured": r.measured,
            "kept": r.kept,
            "over": r.promise.over,
            "figure": r.promise.figure,
        }
        for r in case.rulings
    ]
    first = next((p for p in promises if not p["kept"]), promises[0] if promises else None)
    return {
        "case": case.case,
        "kept": case.kept,
        "skipped": case.skipped or None,
        "promise": {k: first[k] for k in ("what", "limit", "unit")} if first else None,
        "promises": promises,
        "engines": {case.engine: case.version},
        "suite": case.suite,
        "runs": len(case.runs),
        **_side_json(case.runs),
        "baseline": _side_json(case.plain) if case.plain else None,
        "headline": _headline_json(case),
        "timeline": [{"at_s": round(at, 3), "what": what} for at, what in (case.runs[-1].timeline if case.runs else ())],
        "why": case.why,
    }


def _headline_json(case: CaseResult) -> dict[str, Any]:
    plain = middle(case.plain, case.headline) if case.plain else None
    return {"figure": case.headline, "unit": case.unit, "product": middle(case.runs, case.headline), "plain": plain}


def drill_json(result: DrillResult) -> dict[str, Any]:
    """The drill in the shape that is kept (schema 1); the figures are those of the leading case."""
    lead = result.leading
    shown = case_json(lead) if lead else {}
    keys = ("case", "promise", "engines", "asked", "unanswered", "outage", "baseline", "timeline", "why")
    return {
        "schema": SCHEMA,
        "drill": result.drill,
        "kept": result.kept,
        **{key: shown.get(key) for key in keys},
        "cases": [case_json(c) for c in result.cases],
    }


def case_row(case: CaseResult) -> tuple[str, ...]:
    """A row for the table: drill, case, engine, verdict, asked, figure, plain, gain, outage."""
    product, plain = middle(case.runs, case.headline), middle(case.plain, case.headline) if case.plain else None
    outage = worst_outage(case.runs)
    verdict = "not here" if case.skipped else "missing" if case.missing else "kept" if case.kept else "BROKEN"
    return (
        case.drill,
        case.case,
        f"{case.engine} {case.version}",
        verdict,
        _shown(middle(case.runs, "asked")),
        _shown(product, case.unit),
        _shown(plain, case.unit),
        ratio(product, plain, case.unit) if product is not None and plain is not None else "-",
        outage.text() if outage else ("none seen" if case.runs else "-"),
    )


HEAD = ("DRILL", "CASE", "ENGINE", "PROMISE", "ASKED", "HURT", "PLAIN HURT", "GAIN", "LONGEST OUTAGE")


def _shown(value: float | None, unit: str = "queries") -> str:
    if value is None:
        return "-"
    return number(value) if unit == "queries" else f"{number(value)} {unit}"

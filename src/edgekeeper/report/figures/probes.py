"""How long probes waited, over time: the median and how far it spreads, and what failed. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgekeeper.model.sample import Sample
from edgekeeper.report.document import Figure, Smoke, Table
from edgekeeper.report.figures.counts import share
from edgekeeper.report.figures.say import many
from edgekeeper.report.study import Study

SLOTS = 180
"""Slots across the window: as many as a line on a page can show."""

LEAST_SLOT_S = 1.0
MOST_TARGETS = 24


def smoke(study: Study) -> Figure:
    """Per probed target and slot of time: the median and the 95th percentile of good answers, and the share of questions that failed."""
    samples = study.samples()
    if not samples:
        return Figure("SMOKE", "How long probes waited", "no probe asked in the window", measured=False)
    slot_s = max(LEAST_SLOT_S, (study.window.end - study.window.begin) / SLOTS)
    ranked = sorted(samples.items(), key=lambda item: (-sum(not s.ok for s in item[1]), item[0]))
    rows = []
    for (source, target, conn), asked in ranked:
        failed = sum(not s.ok for s in asked)
        times = sorted(s.done - s.sent for s in asked if s.ok)
        rows.append((f"{target} ({conn}) from {source}", str(len(asked)), share(failed, len(asked)), *(_milli(quantile(times, q)) for q in (0.5, 0.95, 1.0))))
    fails = sum(not s.ok for asked in samples.values() for s in asked)
    n = sum(map(len, samples.values()))
    return Figure(
        "SMOKE",
        "How long probes waited",
        f"{fails:,} of {n:,} questions to {many(len(samples), 'target')} failed ({share(fails, n)})",
        table=Table(("probe", "asked", "failed", "half within", "95 % within", "slowest good one"), tuple(rows)),
        notes=(f"One slot of the chart is {slot_s:.3g} s.",) + ((f"Drawn are the {MOST_TARGETS} of which most failed.",) if len(ranked) > MOST_TARGETS else ()),
        smoke=tuple(Smoke(f"{key[1]} ({key[2]}) from {key[0]}", slots(asked, study.window.begin, slot_s)) for key, asked in ranked[:MOST_TARGETS]),
        data={"asked": n, "failed": fails},
    )


def slots(samples: Sequence[Sample], begin: float, slot_s: float) -> tuple[tuple[float, float | None, float | None, float], ...]:
    """By the slot in which they were sent; slots in which nothing was asked are left out."""
    found: dict[int, list[Sample]] = {}
    for sample in samples:
        found.setdefault(math.floor((sample.sent - begin) / slot_s), []).append(sample)
    out = []
    for place, asked in sorted(found.items()):
        times = sorted(s.done - s.sent for s in asked if s.ok)
        out.append((begin + place * slot_s, quantile(times, 0.5), quantile(times, 0.95), sum(not s.ok for s in asked) / len(asked)))
    return tuple(out)


def quantile(times: Sequence[float], part: float) -> float | None:
    """The time within which so great a part of the sorted times lies; None without any."""
    return times[max(0, math.ceil(part * len(times)) - 1)] if times else None


def _milli(value: float | None) -> str:
    return "-" if value is None else f"{1000 * value:.1f} ms"

"""Whether the truth is inside the interval that the meter prints: 2,000 outages a setting, refusals and black holes, simulated with their TCP.

``script/bench`` runs it with the others; ``python benchmarks/bounds.py [OUTAGES]`` alone. Nothing is asked; the seed is fixed.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import sys
from dataclasses import dataclass

from edgekeeper.measure.running import Running
from edgekeeper.model.sample import Sample

PERIODS_S, TIMEOUTS_S = (0.25, 1.0, 2.0, 60.0), (1.0, 5.0)
SYN_AGAIN_S = (0.0, 1.0, 3.0, 7.0)
"""When a SYN that nobody answers is sent, after the first."""
SLOW_S = 0.9
Row = tuple[str, str, str, bool]


@dataclass(frozen=True)
class Case:
    """A service that is down from ``began`` for ``lasted`` seconds, and how it is asked."""

    period_s: float
    timeout_s: float
    refuses: bool
    began: float
    lasted: float

    def ask(self, sent: float, rng: random.Random) -> Sample:
        """One question: packets take up to 20 ms each way and may be lost with the service, never in between."""
        for after in SYN_AGAIN_S:
            if after >= self.timeout_s:
                break
            arrives = sent + after + rng.uniform(0.0, 0.02)
            up = not self.began <= arrives < self.began + self.lasted
            done = arrives + rng.uniform(0.0, 0.02)
            if done > sent + self.timeout_s:
                break
            if up:
                return Sample(sent, "t", "fresh", sent, done, ok=True, slow=done - sent > SLOW_S)
            if self.refuses:
                return Sample(sent, "t", "fresh", sent, done, ok=False)
        return Sample(sent, "t", "fresh", sent, sent + self.timeout_s + rng.uniform(0.0, 0.005), ok=False)


def judged(case: Case, rng: random.Random) -> Running:
    """What the meter keeps of it: answers come in the order in which they arrive, and wait for what is under way."""
    samples, until = [], case.began + case.lasted + 3 * case.period_s + case.timeout_s
    for number in itertools.count():
        sent = (number + rng.uniform(-0.05, 0.05)) * case.period_s
        if sent > until:
            break
        samples.append(case.ask(sent, rng))
    samples.sort(key=lambda s: s.done)
    rests = list(itertools.accumulate((s.sent for s in reversed(samples)), min))[::-1]
    kept = Running()
    for sample, rest in zip(samples, [*rests[1:], math.inf], strict=True):
        kept.add(sample)
        kept.settle(min(rest, sample.done))
    kept.settle()
    return kept


def setting(period_s: float, timeout_s: float, outages: int, *, refuses: bool) -> tuple[int, int, float]:
    """Outages of a tenth of a period to forty, evenly on a scale of powers: those inside, those that left no failure, the median width in periods."""
    rng = random.Random(f"{period_s} {timeout_s} {refuses}")  # noqa: S311 - no secret
    inside = unseen = 0
    widths = []
    for _ in range(outages):
        began = (3 + rng.random()) * period_s + timeout_s
        case = Case(period_s, timeout_s, refuses, began, period_s * 0.1 * 400 ** rng.random())
        said = judged(case, rng).summary()
        if not said.lenient:
            unseen += 1
            inside += case.lasted <= said.blind_s
            continue
        worst = max(said.lenient, key=lambda o: o.max_s)
        inside += worst.min_s <= case.lasted <= worst.max_s
        widths.append(worst.max_s - worst.min_s)
    return inside, unseen, statistics.median(widths) / period_s


def rows(outages: int = 2000) -> list[Row]:
    """All settings, those of one period in a line."""
    return [_row(period_s, outages) for period_s in PERIODS_S]


def _row(period_s: float, outages: int) -> Row:
    all_inside, told = 0, []
    for timeout_s, refuses in itertools.product(TIMEOUTS_S, (True, False)):
        inside, unseen, width = setting(period_s, timeout_s, outages, refuses=refuses)
        all_inside += inside
        told.append(f"{'refusals' if refuses else 'black holes'}, timeout {timeout_s:g} s: {unseen / outages:.0%} left no failure, width {width:.1f} periods")
    total = outages * len(told)
    measured = f"{all_inside:,} of {total:,} outages inside their interval; {'; '.join(told)}"
    return (f"bounds of outages, asked each {period_s:g} s (simulated)", measured, "all inside", all_inside == total)


if __name__ == "__main__":
    found = rows(*map(int, sys.argv[1:]))
    for row in found:
        print(" | ".join(map(str, row)))
    sys.exit(0 if all(good for *_, good in found) else 1)

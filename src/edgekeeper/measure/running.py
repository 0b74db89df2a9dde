"""The same as ``measure.outages``, sample by sample, in a memory that does not grow: for a meter that runs all day. Pure.

Samples come in the order in which answers arrive, but an outage is judged in the order in which questions were sent. So a sample waits
until nothing that was sent before it is still under way; whoever asks says when that is (``settle``).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from edgekeeper.measure.outages import Outage, Summary
from edgekeeper.model.sample import Sample
from edgekeeper.model.time import Span

KEPT: Final = 1000
"""So many outages are kept one by one; of older ones what is counted stays, and the longest."""
_FIRST_S, _RATIO = 20e-6, 1.04
EDGES_S: Final = tuple(_FIRST_S * _RATIO**i for i in range(400))
"""Upper edges of the bins in which times of answers are counted: from 20 us to over two minutes, each 4 % wider than the one before."""


@dataclass(slots=True)
class Times:
    """How long answers took, in bins: a quantile is right to 4 %."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(EDGES_S) + 1))
    total: int = 0

    def add(self, took_s: float) -> None:
        """Count one."""
        self.counts[bisect_left(EDGES_S, took_s)] += 1
        self.total += 1

    def quantile(self, share: float) -> float | None:
        """The time within which this share of the answers came; None before the first."""
        if not self.total:
            return None
        wanted, seen = max(1, math.ceil(share * self.total)), 0
        for edge, number in zip((*EDGES_S, math.inf), self.counts, strict=True):
            seen += number
            if seen >= wanted:
                return edge
        return None


@dataclass(slots=True)
class _Runs:
    """Runs of bad samples, in the order in which they were sent."""

    strict: bool
    hole_s: float = math.inf
    first: Sample | None = None
    begun: Sample | None = None
    """The first bad sample since nobody asked for longer than ``hole_s``."""
    sure_s: float = 0.0
    """What the parts of the run before that lasted at least."""
    last: Sample | None = None
    bad: int = 0
    least_before: float = -math.inf
    before: float = -math.inf
    began: float | None = None
    """When the first question was sent: what was before is not counted in totals."""
    arriving: list[tuple[float, float]] = field(default_factory=list)
    """Good ones that were not done yet when the youngest sample was sent: (done, sent)."""
    closed: list[Outage] = field(default_factory=list)
    closed_count: int = 0
    worst: Outage | None = None
    least_s: float = 0.0
    most_s: float = 0.0

    def take(self, sample: Sample) -> Outage | None:
        """Take the next sample in; the outage that it ends, if it does."""
        self.began = sample.sent if self.began is None else self.began
        while self.arriving and self.arriving[0][0] <= sample.sent:
            self.before = max(self.before, heapq.heappop(self.arriving)[1])
        if not sample.ok or (self.strict and sample.slow):
            if self.first is None or self.begun is None or self.last is None:
                self.first, self.begun, self.bad, self.sure_s, self.least_before = sample, sample, 0, 0.0, self.before
            elif sample.sent - self.last.sent > self.hole_s:
                self.sure_s += max(0.0, self.last.sent - self.begun.done)
                self.begun = sample
            self.last, self.bad = sample, self.bad + 1
            return None
        ended = self.outage(sample.done)
        heapq.heappush(self.arriving, (sample.done, sample.sent))
        if ended is not None:
            self.first = self.last = self.begun = None
            self._keep(ended, sample.done)
        return ended

    def outage(self, after: float = math.inf) -> Outage | None:
        """The run that is under way, as it would be if a good question were answered at ``after``."""
        if self.first is None or self.last is None or self.begun is None:
            return None
        least = self.sure_s + max(0.0, self.last.sent - self.begun.done)
        return Outage(least, max(after - self.least_before, least), self.first.sent, self.last.sent, self.bad)

    def within(self, outage: Outage, until: float) -> float:
        """The most that an outage took of the time since the first question."""
        return min(outage.max_s, max(outage.min_s, until - (self.began if self.began is not None else until)))

    def _keep(self, outage: Outage, ended: float) -> None:
        self.closed_count += 1
        self.least_s += outage.min_s
        self.most_s += self.within(outage, ended)
        self.closed.append(outage)
        if self.worst is None or (outage.max_s, outage.min_s) > (self.worst.max_s, self.worst.min_s):
            self.worst = outage
        if len(self.closed) > KEPT:
            del self.closed[0]

    def kept(self) -> tuple[Outage, ...]:
        """The outages that are kept one by one, the longest among them, and the one under way."""
        under_way = self.outage()
        found = [*self.closed, *([under_way] if under_way is not None else [])]
        if self.worst is not None and self.worst not in self.closed:
            found.insert(0, self.worst)
        return tuple(found)


class Running:
    """One target and one kind of connection, as it is asked; when nothing was asked for longer than ``hole_s``, nothing is known of that time."""

    def __init__(self, hole_s: float = math.inf) -> None:
        self.asked = 0
        self.unanswered = 0
        self.slow = 0
        self.times = Times()
        self.last: Sample | None = None
        """The sample that arrived last."""
        self.last_bad: Sample | None = None
        self._waiting: list[tuple[float, float, int, Sample]] = []
        self._serial = count()
        self._lenient = _Runs(strict=False, hole_s=hole_s)
        self._strict = _Runs(strict=True, hole_s=hole_s)
        self._good: Sample | None = None
        self._goods = 0
        self._blind_s = 0.0

    def add(self, sample: Sample) -> None:
        """Take in a sample that has just arrived."""
        self.asked += 1
        self.last = sample
        if sample.ok:
            self.slow += sample.slow
            self.times.add(sample.done - sample.sent)
        else:
            self.unanswered += 1
            self.last_bad = sample
        heapq.heappush(self._waiting, (sample.sent, sample.done, next(self._serial), sample))

    def settle(self, until: float = math.inf) -> list[Outage]:
        """Everything that was sent before ``until`` has arrived: judge it. The outages that ended."""
        ended = []
        while self._waiting and self._waiting[0][0] < until:
            sample = heapq.heappop(self._waiting)[3]
            outage = self._lenient.take(sample)
            self._strict.take(sample)
            if outage is not None:
                ended.append(outage)
            if sample.ok:
                if self._good is not None:
                    self._blind_s = max(self._blind_s, sample.done - self._good.sent)
                self._good = sample
                self._goods += 1
        return ended

    def current(self) -> Outage | None:
        """The outage that is under way; its upper bound is open."""
        return self._lenient.outage()

    @property
    def outages(self) -> int:
        """How many outages there were, the one under way included."""
        return self._lenient.closed_count + (self._lenient.first is not None)

    def total(self, now: float) -> Span:
        """How long all outages lasted together since the first question, the one under way up to ``now`` (on the clock of the samples)."""
        under_way = self._lenient.outage(now)
        if under_way is None:
            return Span(self._lenient.least_s, self._lenient.most_s)
        return Span(self._lenient.least_s + under_way.min_s, self._lenient.most_s + self._lenient.within(under_way, now))

    def summary(self) -> Summary:
        """What is said of everything that was settled: as ``measure.outages.summarize`` says it, but for outages beyond ``KEPT``."""
        return Summary(
            asked=self.asked,
            unanswered=self.unanswered,
            slow=self.slow,
            lenient=self._lenient.kept(),
            strict=self._strict.kept(),
            blind_s=self._blind_s if self._goods > 1 else math.inf,
        )

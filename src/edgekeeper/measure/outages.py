"""Samples to outages, each with the least and the most that it can have lasted. Pure.

A bad sample proves that the service was down at some moment between its ``sent`` and its
``done``; a good one that it was up at some such moment. So for a run of bad samples i to j::

    max = done of the next good one - sent of the last good one that was done before i was sent
    min = sent of j - done of i, and never below 0

(A good one that was still under way when i was sent proves nothing about before: a SYN that was
lost in the outage and sent again after it looks just like that.)

Simulated with refusals and black holes: the truth was inside in every case, and ``N x period``
is only an estimate of the middle. An outage between two good samples leaves no trace at all,
so "no failure seen" is itself a bound: ``blind_s``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from edgekeeper.model.sample import Sample
from edgekeeper.model.time import Span


@dataclass(frozen=True, slots=True)
class Outage:
    """One outage. ``max_s`` is infinite when it began before the first sample or had not ended at the last.

    ``first_bad`` and ``last_bad`` are when the first and the last bad question were sent, on the
    clock of the samples; ``bad`` counts bad questions, ``good`` the good ones in between (an
    outage of one server of several hurts only some).
    """

    min_s: float
    max_s: float
    first_bad: float
    last_bad: float
    bad: int
    good: int = 0

    def text(self) -> str:
        """``0.80 s to 1.30 s``, ``less than 0.50 s``, ``at least 2.00 s``."""
        return Span(self.min_s, self.max_s).text()


@dataclass(frozen=True, slots=True)
class Summary:
    """What one target's samples say: counts, outages strict and lenient, and the bound when none was seen."""

    asked: int
    unanswered: int
    slow: int
    lenient: tuple[Outage, ...]
    strict: tuple[Outage, ...]
    blind_s: float

    @property
    def worst(self) -> Outage | None:
        """The outage that may have been the longest."""
        return longest(self.lenient)

    def text(self) -> str:
        """One sentence with its interval; "no failure seen" comes with its bound."""
        if self.asked == 0:
            return "nothing asked"
        if not self.lenient:
            bound = "" if math.isinf(self.blind_s) else f"; an outage shorter than {self.blind_s:.2f} s would not have been seen"
            return f"no failure seen in {self.asked} questions{bound}"
        worst = self.worst
        longest_text = f", the longest {worst.text()}" if worst else ""
        many = "1 outage" if len(self.lenient) == 1 else f"{len(self.lenient)} outages"
        return f"{self.unanswered} of {self.asked} questions unanswered in {many}{longest_text}"


def outages(samples: Iterable[Sample], *, strict: bool = False, quiet_s: float = 0.0, hole_s: float = math.inf) -> tuple[Outage, ...]:
    """The outages in the samples of one target, in order.

    ``strict`` counts slow good answers as bad: a black hole shorter than the retransmission of a
    SYN hides in them. ``quiet_s`` joins bad samples that lie less than that apart although good
    ones lie between: one dead server of three hurts every third client, and that is one outage. Its
    bounds are then those of what clients saw: the server itself may be dead for some questions longer.
    Between two bad samples that were sent more than ``hole_s`` apart nobody asked (a machine slept, a
    recording was interrupted): that time does not count for the least that the outage lasted.
    """
    ordered = sorted(samples, key=lambda s: (s.sent, s.done))
    bad = [not s.ok or (strict and s.slow) for s in ordered]
    runs: list[tuple[int, int]] = []
    for i in (i for i, wrong in enumerate(bad) if wrong):
        if runs and (i == runs[-1][1] + 1 or ordered[i].sent - ordered[runs[-1][1]].sent < quiet_s):
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    before = _LastGood([s for s, wrong in zip(ordered, bad, strict=True) if not wrong])
    return tuple(_outage(ordered, bad, run, before, hole_s) for run in runs)


class _LastGood:
    """Of the good samples that were done by a moment, when the youngest was sent."""

    def __init__(self, good: Sequence[Sample]) -> None:
        by_done = sorted(good, key=lambda s: s.done)
        self._done = [s.done for s in by_done]
        self._sent = list(accumulate((s.sent for s in by_done), max))

    def __call__(self, moment: float) -> float:
        at = bisect_right(self._done, moment)
        return self._sent[at - 1] if at else -math.inf


def _outage(ordered: Sequence[Sample], bad: Sequence[bool], run: tuple[int, int], before: _LastGood, hole_s: float) -> Outage:
    first, last = run
    after = ordered[last + 1].done if last + 1 < len(ordered) else math.inf
    least, begun = 0.0, ordered[first]
    for one, two in pairwise(ordered[first : last + 1]):
        if two.sent - one.sent > hole_s:
            least += max(0.0, one.sent - begun.done)
            begun = two
    least += max(0.0, ordered[last].sent - begun.done)
    inside = sum(bad[first : last + 1])
    most = max(after - before(ordered[first].sent), least)
    return Outage(least, most, ordered[first].sent, ordered[last].sent, inside, last - first + 1 - inside)


def hole_of(samples: Sequence[Sample]) -> float:
    """Above how many seconds without a question nobody asked: five times the usual distance, and the longest wait for an answer."""
    gaps = sorted(b.sent - a.sent for a, b in pairwise(sorted(samples, key=lambda s: s.sent)))
    return 5 * gaps[len(gaps) // 2] + max(s.done - s.sent for s in samples) if gaps else math.inf


def longest(found: Iterable[Outage]) -> Outage | None:
    """The one that may have lasted longest; None when there is none."""
    return max(found, key=lambda o: (o.max_s, o.min_s), default=None)


def blind_s(samples: Iterable[Sample]) -> float:
    """The longest outage that can have happened between two good samples unseen; infinite with fewer than two."""
    good = sorted((s for s in samples if s.ok), key=lambda s: (s.sent, s.done))
    return max((b.done - a.sent for a, b in pairwise(good)), default=math.inf)


def summarize(samples: Iterable[Sample]) -> Summary:
    """Everything that is said about the samples of one target and one kind of connection."""
    kept = list(samples)
    return Summary(
        asked=len(kept),
        unanswered=sum(not s.ok for s in kept),
        slow=sum(s.ok and s.slow for s in kept),
        lenient=outages(kept),
        strict=outages(kept, strict=True),
        blind_s=blind_s(kept),
    )

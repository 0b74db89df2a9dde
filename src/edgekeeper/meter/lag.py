"""Whether a question was lost by whom it asked, or by this process, which was held up. Pure.

Measured on two busy cores: 200 targets asked by HTTPS four times a second need all of one. With less, every answer is read too late, and
nearly all questions "time out" while all servers answer at once. A process that is stopped for ten seconds sees the same.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from edgekeeper.model.sample import Sample

LAG_EVERY_S: Final = 0.1
"""How often one looks by how much the loop of events is late."""
_LEAST_S: Final = 0.01
"""Lateness below this is forgotten: it is what every machine has."""
HELD_S: Final = 0.5
"""A question that ended so much later than its deadline was not ended by the server."""


class Lag:
    """By how much the loop was late in the recent past; times are monotonic seconds."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._seen: deque[tuple[float, float]] = deque()
        self._latest_s = 0.0

    def seen(self, now: float, late_s: float) -> None:
        """The loop was late by so much just now."""
        self._latest_s = late_s
        while self._seen and self._seen[0][0] < now - self._timeout_s - 2 * HELD_S:
            self._seen.popleft()
        if late_s > _LEAST_S:
            self._seen.append((now, late_s))

    def most(self, since: float) -> float:
        """The most that it was late by since a moment that is not longer ago than a question can be."""
        return max((late for at, late in self._seen if at >= since), default=0.0)

    def refuses(self, turns: int) -> bool:
        """Whether a question that is asked now would not count if it timed out: asking it only holds up those that are under way."""
        return turns * self._latest_s > self._timeout_s / 2

    def void(self, sample: Sample, turns: int, *, timed_out: bool) -> bool:
        """Whether nothing can be said of this sample, because this process was held up.

        ``turns`` is how often a question waits for the loop before its answer is read: being late takes that many times its part of the
        timeout. A question that timed out counts while that is less than half.
        """
        if sample.done - sample.sent > self._timeout_s + HELD_S:
            return True
        return timed_out and turns * self.most(sample.sent) > self._timeout_s / 2

"""A service that answers now and then: no verdict of its own, since a cure needs failures in a row, but nothing to be silent about. Pure."""

from __future__ import annotations

from collections import deque

WINDOW_S = 60.0
FEWEST = 10
"""Rounds in the window below which nothing is said."""
SHARE = 0.2
"""Failed rounds beyond this share, though never enough of them in a row, are told."""


class Pulse:
    """The answers of the last minute."""

    def __init__(self) -> None:
        self._answers: deque[tuple[float, bool]] = deque()

    def beat(self, asked: float, *, well: bool) -> str | None:
        """One more answer; the sentence that an alarm says, or None. What fails altogether is another matter."""
        self._answers.append((asked, well))
        while self._answers[0][0] < asked - WINDOW_S:
            self._answers.popleft()
        failed = sum(not good for _, good in self._answers)
        total = len(self._answers)
        if total < FEWEST or failed < SHARE * total or failed == total:
            return None
        return f"more than a fifth of the probe's rounds failed within {WINDOW_S:g} s, never enough in a row to confirm: the service answers now and then"

"""When the next pass is made: soon after a change, when the time is over, and after a failure not before a pause that grows. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from edgekeeper.supervise.debounce import Debounce, acted, due_in, noticed

FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0
"""A mesh that cannot be seen is asked again after a pause that doubles from the one to the other; changes wait for it."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Times are monotonic seconds. ``due``: the next pass that nothing asks for; ``not_before``: no pass sooner, whatever asks; ``fails``: failures in a row."""

    every_s: float
    gather: Debounce
    due: float
    not_before: float
    fails: int = 0

    def wait_s(self, now: float) -> float:
        """Seconds until the next pass."""
        soon = due_in(self.gather, now)
        at = self.due if soon is None else min(self.due, now + soon)
        return max(0.0, max(at, self.not_before) - now)

    def noticed(self, now: float) -> Pace:
        """Something has changed."""
        return replace(self, gather=noticed(self.gather, now))

    def later(self, now: float, seconds: float) -> Pace:
        """There is nothing to make a pass of yet; look again after so long."""
        return replace(self, gather=acted(self.gather, now), due=now + seconds)

    def passed(self, begun: float, now: float, *, saw: bool, again_s: float | None) -> Pace:
        """A pass is over. ``saw``: it saw the mesh; ``again_s``: the mesh takes calls again after so long. What changed since ``begun`` still waits."""
        gather = acted(self.gather, now) if self.gather.waiting is None or self.gather.waiting <= begun else replace(self.gather, acted=now)
        fails = 0 if saw else self.fails + 1
        pause = 0.0 if saw else min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(fails - 1, 10))
        pause = max(pause, again_s or 0.0)
        due = now + (pause if not saw or again_s is not None else self.every_s)
        return replace(self, gather=gather, due=due, not_before=now + pause, fails=fails)


def begin(every_s: float, debounce_s: float, now: float) -> Pace:
    """The first pass is due at once."""
    return Pace(every_s, noticed(Debounce(debounce_s), now), now, now)

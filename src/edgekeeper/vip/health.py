"""From single looks at a service to whether the node may hold its VIP: counts in a row, and samples that do not count. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

LATE = 0.5
"""A look whose own timer was late by more than this share of its period says more about this machine than about the service: it is blind."""


@dataclass(frozen=True, slots=True)
class Counts:
    """``bad``: whether the node yields now; ``row`` looks in a row that say otherwise."""

    bad: bool = False
    row: int = 0


WINDOW_S = 600.0
"""A service that has failed more than once in so long is one that flaps."""
MOST = 32
"""It must be good at most so many times longer than another one."""


def needed(rise: int, falls: int) -> int:
    """Good looks in a row until a node may hold its VIP again: twice as many for each further fall within ``WINDOW_S``, so that a flapping service does not move it back and forth."""
    return rise * min(1 << max(0, falls - 1), MOST)


def counted(counts: Counts, *, fails: bool | None, fall: int, rise: int) -> Counts:
    """The counts after a look; ``fails`` is None for one that is blind and counts for nothing."""
    if fails is None:
        return counts
    if fails == counts.bad:
        return replace(counts, row=0)
    row = counts.row + 1
    if row >= (rise if counts.bad else fall):
        return Counts(fails, 0)
    return replace(counts, row=row)


def blind(*, due: float, began: float, period_s: float) -> bool:
    """Whether a look that was due then and began now was late by more than half its period."""
    return began - due > LATE * period_s

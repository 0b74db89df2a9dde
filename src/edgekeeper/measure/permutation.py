"""Are two sets of paired durations different? A test that asks nothing of their distribution. Pure.

Under "nothing changed" each pair might as well have been the other way round. So every choice of signs of the differences is as likely
as the one that was seen, and p is the share of choices whose sum is at least as far from zero. Comparing counts of failed requests
instead called two equal rolls different in 44 % of simulations, because requests of one outage are not independent; this one in 5 %.

Chance comes from a seeded generator, so that a report is the same whenever it is made.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

EXACT: Final = 24
"""Up to so many pairs every choice of signs is counted (by halves: 2 x 4,096 sums)."""

DRAWS: Final = 10_000
_RESAMPLES: Final = 2_000
_MILLI: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Change:
    """What changed between pairs: the median of the differences in seconds, within ``low`` and ``high`` with a confidence of 95 %, and p.

    ``least_p`` is the smallest p that so many pairs can give: above 0.05 no difference can be shown, however large. ``sum_s`` is what p tests.
    """

    pairs: int
    median_s: float
    low_s: float
    high_s: float
    p: float
    least_p: float
    exact: bool
    sum_s: float = 0.0


def change(differences: Sequence[float], seed: int = 1) -> Change:
    """The change that paired differences (seconds, new less old) tell of. No pairs: 0 with p = 1."""
    whole = [round(d * _MILLI) for d in differences]
    if not whole:
        return Change(0, 0.0, 0.0, 0.0, 1.0, 1.0, exact=True)
    exact = len(whole) <= EXACT
    p = flip_exact(whole) if exact else flip_drawn(whole, seed)
    low, high = median_interval(differences, seed)
    return Change(len(whole), median(differences), low, high, p, min(1.0, 2.0 / 2 ** len(whole)), exact=exact, sum_s=sum(whole) / _MILLI)


def flip_exact(differences: Sequence[int]) -> float:
    """The share of all choices of signs whose sum is at least as far from zero as the seen one; differences are whole numbers, so that equal is equal."""
    far = abs(sum(differences))
    middle = len(differences) // 2
    left, right = _sums(differences[:middle]), sorted(_sums(differences[middle:]))
    if far == 0:
        return 1.0
    hits = sum(len(right) - bisect_left(right, far - one) + bisect_right(right, -far - one) for one in left)
    return hits / (len(left) * len(right))


def flip_drawn(differences: Sequence[int], seed: int = 1, draws: int = DRAWS) -> float:
    """The same from ``draws`` choices at random; the seen one counts as one of them, so that p is never 0."""
    far = abs(sum(differences))
    chance = Chance(seed)
    hits = 0
    for _ in range(draws):
        total = signs = left = 0
        for difference in differences:
            if left == 0:
                signs, left = chance.bits(), 32
            total += difference if signs & 1 else -difference
            signs >>= 1
            left -= 1
        hits += abs(total) >= far
    return (hits + 1) / (draws + 1)


def median_interval(values: Sequence[float], seed: int = 1, resamples: int = _RESAMPLES) -> tuple[float, float]:
    """Between which values the median lies with a confidence of 95 %: medians of samples drawn anew from the values."""
    if len(values) < 2:
        return (values[0], values[0]) if values else (0.0, 0.0)
    chance = Chance(seed)
    middles = sorted(median(values[chance.below(len(values))] for _ in values) for _ in range(resamples))
    return middles[int(resamples * 0.025)], middles[int(resamples * 0.975)]


def _sums(differences: Sequence[int]) -> list[int]:
    sums = [0]
    for difference in differences:
        sums = [s + d for s in sums for d in (difference, -difference)]
    return sums


class Chance:
    """Numbers that look like chance and are the same each time: a linear congruential generator (Knuth's MMIX), of which the high half is used."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * 2 + 1) & 0xFFFF_FFFF_FFFF_FFFF
        for _ in range(4):  # small seeds are alike at first
            self.bits()

    def bits(self) -> int:
        """32 random bits."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFF_FFFF_FFFF_FFFF
        return self._state >> 32

    def below(self, limit: int) -> int:
        """A whole number from 0 to below ``limit``, which must be far below 2**32."""
        return self.bits() * limit >> 32

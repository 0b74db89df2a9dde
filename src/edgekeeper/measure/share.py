"""How often something happens, told from few cases: a share with its interval. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

Z95: Final = 1.959964
"""Within so many standard deviations lie 95 % of a normal distribution."""


def wilson(hits: int, cases: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a share, ``hits`` of ``cases``: right for few cases too, and never outside 0 to 1. No cases: 0 to 1.

    ValueError when there are more hits than cases, or fewer than none.
    """
    if not 0 <= hits <= cases:
        msg = f"{hits} of {cases} is no share"
        raise ValueError(msg)
    if not cases:
        return 0.0, 1.0
    share, square = hits / cases, z * z / cases
    middle = (share + square / 2) / (1 + square)
    reach = z * math.sqrt(share * (1 - share) / cases + square / (4 * cases)) / (1 + square)
    return (0.0 if hits == 0 else max(0.0, middle - reach)), (1.0 if hits == cases else min(1.0, middle + reach))


def clopper_pearson(hits: int, cases: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share: it holds the truth at least as often as ``confidence`` says, so it is wider than Wilson's.

    Its ends are the shares under which so many hits, or so few, have half of what is left as their probability. No cases: 0 to 1.
    ValueError when there are more hits than cases, or fewer than none.
    """
    if not 0 <= hits <= cases:
        msg = f"{hits} of {cases} is no share"
        raise ValueError(msg)
    if not cases:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _rising(lambda share: 1 - at_most(hits - 1, cases, share), tail)
    high = 1.0 if hits == cases else _rising(lambda share: -at_most(hits, cases, share), -tail)
    return low, high


def at_most(hits: int, cases: int, share: float) -> float:
    """The probability of at most ``hits`` of ``cases``, when each is one with the probability ``share``."""
    if share <= 0 or hits >= cases:
        return 1.0
    if share >= 1:
        return 0.0
    yes, no = math.log(share), math.log1p(-share)
    ways = math.lgamma(cases + 1)
    logs = (ways - math.lgamma(n + 1) - math.lgamma(cases - n + 1) + n * yes + (cases - n) * no for n in range(hits + 1))
    return min(1.0, math.fsum(map(math.exp, logs)))


def _rising(value: Callable[[float], float], target: float) -> float:
    """Where between 0 and 1 a function that rises reaches the target, to 1e-9."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if value(middle) < target else (low, middle)
    return (low + high) / 2


def share_text(hits: int, cases: int) -> str:
    """``2 of 12 (5 % to 45 %)``: the count, and between which shares it lies with a confidence of 95 %."""
    low, high = wilson(hits, cases)
    return f"{hits} of {cases} ({100 * low:.0f} % to {100 * high:.0f} %)"

"""How often something happens, told from few cases: a share with its interval. Pure."""

from __future__ import annotations

import math
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


def share_text(hits: int, cases: int) -> str:
    """``2 of 12 (5 % to 45 %)``: the count, and between which shares it lies with a confidence of 95 %."""
    low, high = wilson(hits, cases)
    return f"{hits} of {cases} ({100 * low:.0f} % to {100 * high:.0f} %)"

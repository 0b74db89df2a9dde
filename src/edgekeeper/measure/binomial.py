"""What nothing proves: none seen in few cases, and silence where somebody was expected. Pure."""

from __future__ import annotations

import math

RISK = 0.05
"""How likely a bound may be wrong: 95 % confidence."""


def never_seen(cases: int, risk: float = RISK) -> float:
    """The share that something may still have when it was seen in none of the cases: 3 cases 63 %, 10 26 %, 59 5 %, 3,400 0.09 %. No cases: 1."""
    return 1.0 if cases <= 0 else -math.expm1(math.log(risk) / cases)


def silent(expected: float) -> float:
    """How likely it is that nobody asks by chance, when so many questions are expected and they come independently."""
    return math.exp(-max(0.0, expected))

"""Several answers of one round to one verdict with its sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Need = Literal["any", "all"]
_SHOWN = 3
"""Failures that are named; of more there is the number."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one target said: ``error`` is None for a good answer, ``took_s`` the seconds it took; ``asked`` is False where it could not be asked at all."""

    target: str
    error: str | None
    took_s: float
    asked: bool = True


def decided(replies: Sequence[Reply], need: Need) -> bool:
    """Whether the answers so far decide the round, whatever the others will be."""
    return any(reply.asked and (reply.error is None) == (need == "any") for reply in replies)


def known(replies: Sequence[Reply]) -> bool:
    """Whether the round says anything of the service: a bad one in which nobody could be asked does not."""
    return any(reply.asked for reply in replies) or not replies


def combined(replies: Sequence[Reply], of: int, need: Need) -> tuple[bool, str]:
    """Whether the service is well, and why: from all answers, or from those that decided. ``of`` is how many targets were asked."""
    if not of:
        return False, "there is nothing to ask"
    good = [reply for reply in replies if reply.error is None]
    bad = [reply for reply in replies if reply.error is not None]
    well = bool(good) if need == "any" else not bad
    if well:
        slowest = max(good, key=lambda reply: reply.took_s)
        who = slowest.target if of == 1 or need == "any" else f"all {of}"
        return True, f"{who} answered within {max(slowest.took_s * 1000, 1):.0f} ms"
    told = "; ".join(f"{reply.target}: {reply.error}" for reply in bad[:_SHOWN])
    more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    return False, f"{told}{more}" if of == 1 else f"{told}{more} ({'none' if need == 'any' else 'not all'} of {of} answered well)"

"""Descriptors: while nobody answers, every question that is under way holds one."""

from __future__ import annotations

import math
import resource

from edgekeeper.meter.meter import Pace

_OWN = 64
"""What the process holds beside them."""


def make_room(connections: int, pace: Pace) -> str | None:
    """Raise this process's own limit as far as is needed and allowed; what there is to say when that is not far enough."""
    needed = connections * (math.ceil(pace.timeout_s / pace.every_s) + 1) + _OWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return None
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if most > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):
            most = soft
    if most >= needed:
        return None
    return (
        f"while no target answers, {needed} descriptors are needed and this process may have {most}: questions beyond that are not counted; raise LimitNOFILE"
    )

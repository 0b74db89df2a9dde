"""Where the meter stands: by which way each target is reached from here, and what asking costs this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from edgekeeper.meter.live import cost
from edgekeeper.meter.meter import Pace
from edgekeeper.probe.path import ways_to
from edgekeeper.probe.target import Target

TOLD_FROM = 0.1
"""A share of one core: asking that takes less is not worth a word."""

COST_MS = {"udp": 0.12, "icmp": 0.10, "tcp": 0.16, "tls": 0.85}
"""Processor time of one question over a fresh connection, by transport, in milliseconds (benchmarks/probe.py, Python 3.11, one core of a virtual machine)."""


def standing(aims: Sequence[Target]) -> list[str]:
    """One sentence a way; targets that are reached alike share one, and a target that is this machine is warned of."""
    out: list[str] = []
    together: Counter[str] = Counter()
    ways = ways_to(aim.host for aim in aims)
    for aim in aims:
        way = ways.get(aim.host)
        if way is None:
            out.append(f"{aim.url}: no way there is known yet")
        elif way.own:
            out.append(f"{aim.url}: {way.address} is this machine: what is measured is not what clients see")
        elif len(aims) <= 5:
            out.append(f"{aim.url}: asked from {way.source} over {way.interface}")
        else:
            together[f"asked from {way.source} over {way.interface}"] += 1
    return out + [f"{number} targets: {how}" for how, number in together.items()]


def plan(aims: Sequence[Target], pace: Pace) -> str | None:
    """What asking takes of this machine, where that is worth a word."""
    spent = sum(COST_MS[aim.transport] for aim in aims)
    if spent / 1000 / pace.every_s < TOLD_FROM:
        return None
    told = cost(len(aims), pace.every_s, spent / len(aims))
    shaken = sum(aim.transport == "tls" for aim in aims)
    return f"{told}; a fresh TLS handshake costs about {COST_MS['tls']:g} ms here, ask less often where that is too much" if shaken else told

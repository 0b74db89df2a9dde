"""The probe section of a config, judged: can its targets be asked from here, and do they tell what clients see."""

from __future__ import annotations

import asyncio

from edgekeeper.config.root import Root
from edgekeeper.errors import UsageError
from edgekeeper.meter.meter import Pace
from edgekeeper.meter.ways import plan
from edgekeeper.model.verdict import EngineVerdict
from edgekeeper.probe.path import ways_to
from edgekeeper.probe.target import parse


async def verdict(root: Root, node: str) -> EngineVerdict:  # noqa: ARG001 - every role's check has the node
    """Read every target; nothing is asked."""
    assert root.probe is not None  # noqa: S101 - the caller has looked
    try:
        aims = [parse(url) for url in root.probe.targets]
    except UsageError as err:
        return EngineVerdict("a target cannot be asked", str(err), (), ())
    notes = [f"probe: {url} stands there twice; it is asked as one" for url in dict.fromkeys(root.probe.targets) if root.probe.targets.count(url) > 1]
    doubts = []
    ways = await asyncio.to_thread(ways_to, [aim.host for aim in aims])
    for aim in aims:
        way = ways.get(aim.host)
        if way is not None and way.own:
            doubts.append(
                f"probe: {aim.url} is this machine ({way.address}): what is measured is not what clients see; where it is a VIP, only its owner asks itself"
            )
    if root.probe.timeout > 1.0:
        notes.append(
            f"probe: with a timeout of {root.probe.timeout:g} s a black hole that is shorter than the retransmission of a SYN (1 s, then 3 s) leaves no failure, only slow answers"
        )
    told = plan(aims, Pace(root.probe.every, root.probe.timeout, warm=root.probe.warm))
    return EngineVerdict("", None, (*notes, *([f"probe: {told}"] if told else [])), tuple(doubts))

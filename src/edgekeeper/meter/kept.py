"""What a meter keeps of each target: everything that bounds an outage, in a memory that does not grow. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgekeeper.measure.outages import Outage
from edgekeeper.measure.running import Running
from edgekeeper.model.sample import Sample

Key = tuple[str, str]
"""A target's URL, and whether it is asked over fresh connections or a warm one."""


@dataclass(frozen=True, slots=True)
class Told:
    """A target went down (``ended`` False; the outage's upper bound is open), or answers again."""

    key: Key
    outage: Outage
    ended: bool
    why: str = ""


class Kept:
    """All targets of a meter; a time longer than ``hole_s`` without a question to a target is one in which nothing was measured."""

    def __init__(self, keys: Iterable[Key], hole_s: float = math.inf) -> None:
        self.running: Mapping[Key, Running] = {key: Running(hole_s) for key in keys}
        self._down: set[Key] = set()

    def take(self, sample: Sample, until: float) -> list[Told]:
        """Take a sample in; nothing of its target that was sent before ``until`` is still under way. What there is to tell."""
        key = (sample.target, sample.conn)
        running = self.running[key]
        running.add(sample)
        return self._told(key, running.settle(until))

    def finish(self) -> list[Told]:
        """Nothing is under way any more."""
        return [told for key, running in self.running.items() for told in self._told(key, running.settle())]

    def _told(self, key: Key, ended: list[Outage]) -> list[Told]:
        running = self.running[key]
        told = [Told(key, outage, ended=True) for outage in ended]
        if ended:
            self._down.discard(key)
        current = running.current()
        if current is not None and key not in self._down:
            self._down.add(key)
            told.append(Told(key, current, ended=False, why=(running.last_bad.error or "") if running.last_bad is not None else ""))
        return told

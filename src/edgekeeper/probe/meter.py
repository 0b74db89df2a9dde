"""The outage meter: asks on schedule, whatever became of the question before.

Waiting for a late answer before asking again would hide the outage that made it late. So every
question is a task of its own, stamped when it was due, and the period is jittered by a tenth so
that it cannot fall into step with what it measures.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgekeeper.model.sample import Sample
from edgekeeper.probe.once import Asker
from edgekeeper.probe.target import Target

JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between questions and until one counts as unanswered; ``count`` or ``duration_s`` end it (None: never)."""

    every_s: float = 1.0
    timeout_s: float = 1.0
    count: int | None = None
    duration_s: float | None = None
    warm: bool = False


class Meter:
    """Asks every target at the given pace and hands each Sample to ``sink``."""

    def __init__(self, targets: Sequence[Target], pace: Pace, sink: Callable[[Sample], None]) -> None:
        self._pace = pace
        self._sink = sink
        self._askers = [Asker(target, keep=keep) for target in targets for keep in ((False, True) if pace.warm else (False,))]
        self._random = random.Random()  # noqa: S311 - jitter

    async def run(self) -> None:
        """Ask until the count or the duration is over; when cancelled, answers under way are still waited for."""
        started = time.monotonic()
        under_way: set[asyncio.Task[None]] = set()
        loops = [asyncio.create_task(self._schedule(asker, started, under_way)) for asker in self._askers]
        try:
            await asyncio.gather(*loops)
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            if under_way:
                await asyncio.wait(under_way, timeout=self._pace.timeout_s + 0.5)
            for asker in self._askers:
                await asker.close()

    async def _schedule(self, asker: Asker, started: float, under_way: set[asyncio.Task[None]]) -> None:
        pace = self._pace
        phase = self._random.random() * min(pace.every_s, 0.1)
        number = 0
        while pace.count is None or number < pace.count:
            due = started + phase + (number + self._random.uniform(-JITTER, JITTER) / 2) * pace.every_s
            if pace.duration_s is not None and due - started >= pace.duration_s:
                return
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            task = asyncio.create_task(self._one(asker))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            number += 1

    async def _one(self, asker: Asker) -> None:
        self._sink(await asker.ask(self._pace.timeout_s))

"""The outage meter: asks on schedule, whatever became of the question before.

Waiting for a late answer before asking again would hide the outage that made it late. So every
question is a task of its own, stamped when it was due, and the period is jittered by a tenth so
that it cannot fall into step with what it measures.

A meter that is held up (a busy machine, a stopped process) must not blame those whom it asks: see ``lag``.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgekeeper.measure.running import Times
from edgekeeper.meter.lag import LAG_EVERY_S, Lag
from edgekeeper.model.sample import Sample
from edgekeeper.probe.once import Asker
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import from_here, tls_context

JITTER = 0.1
END_S = 2.0
"""Seconds that an end waits for answers: of a question that takes longer nothing is said."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between questions and until one counts as unanswered; ``count`` or ``duration_s`` end it (None: never).

    With ``mark`` each request by HTTP carries an id of its own in its query (``kp=...``), which the server's log then shows.
    """

    every_s: float = 1.0
    timeout_s: float = 1.0
    count: int | None = None
    duration_s: float | None = None
    warm: bool = False
    mark: bool = False

    @property
    def hole_s(self) -> float:
        """Above how many seconds between two questions to a target nobody asked: five periods and a timeout."""
        return 5 * self.every_s + self.timeout_s


Sink = Callable[[Sample, float], None]
"""Takes each sample, and the moment (monotonic) before which nothing that was sent to its target is still under way."""


class Meter:
    """Asks every target at the given pace and hands each Sample to ``sink``.

    ``late`` is how long after it was due each question was begun; ``void`` counts questions of which nothing can be said because this
    process was held up or had no descriptor left, ``why`` is the last reason; ``missed`` counts those that were never asked because of it.
    """

    def __init__(self, targets: Sequence[Target], pace: Pace, sink: Sink) -> None:
        self._pace = pace
        self._sink = sink
        contexts = {verify: tls_context(one) for verify, one in {t.verify: t for t in targets if t.transport == "tls"}.items()}
        mark = f"{secrets.token_hex(4)}-" if pace.mark else ""
        self._askers = [
            Asker(target, keep=keep, context=contexts[target.verify] if target.transport == "tls" else None, mark=mark)
            for target in targets
            for keep in ((False, True) if pace.warm else (False,))
        ]
        self._random = random.Random()  # noqa: S311 - jitter
        self._lag = Lag(pace.timeout_s)
        self.late = Times()
        self.void = 0
        self.missed = 0
        self.why = ""

    def held_up(self) -> str | None:
        """What there is to say of questions that do not count; None when there are none."""
        if not self.void and not self.missed:
            return None
        return f"{self.void} questions are not counted and {self.missed} were not asked ({self.why or 'this process was held up'}): nothing is said of those moments"

    async def run(self) -> None:
        """Ask until the count or the duration is over. Then, or when cancelled, answers under way are waited for, though not for ever."""
        started = time.monotonic()
        under_way: set[asyncio.Task[None]] = set()
        # Spread over the period, a second at most: a hundred targets that are asked in the same instant would make each other late.
        step = min(self._pace.every_s, 1.0) / max(1, len(self._askers))
        loops = [asyncio.create_task(self._schedule(asker, started + index * step, under_way)) for index, asker in enumerate(self._askers)]
        lag = asyncio.create_task(self._watch_lag())
        try:
            await asyncio.gather(*loops)
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            if under_way:
                _, late = await asyncio.wait(under_way, timeout=min(self._pace.timeout_s, END_S) + 0.5)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)
            lag.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await lag
            for asker in self._askers:
                await asker.close()

    async def _schedule(self, asker: Asker, started: float, under_way: set[asyncio.Task[None]]) -> None:
        pace = self._pace
        number = asked = 0
        waiting: dict[int, float] = {}
        while pace.count is None or asked < pace.count:
            due = started + (number + self._random.uniform(-JITTER, JITTER) / 2) * pace.every_s
            if pace.duration_s is not None and due - started >= pace.duration_s:
                return
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            now = time.monotonic()
            if self._lag.refuses(asker.turns):
                self.missed, number = self.missed + 1, number + 1
                continue
            waiting[number] = now
            self.late.add(max(0.0, now - due))
            task = asyncio.create_task(self._one(asker, number, waiting))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            # What was due while this process was held up is not made up for: all of it at once would hold it up again.
            missed = max(0, int((now - due) / pace.every_s))
            self.missed += missed
            number, asked = number + 1 + missed, asked + 1

    async def _one(self, asker: Asker, number: int, waiting: dict[int, float]) -> None:
        try:
            sample = await asker.ask(self._pace.timeout_s)
        finally:
            del waiting[number]
        error = sample.error or ""
        if from_here(error):
            self.void, self.why = self.void + 1, f"{error} in this process"
        elif self._lag.void(sample, asker.turns, timed_out=error.startswith("timed out")):
            self.void, self.why = self.void + 1, "this process was held up"
        else:
            self._sink(sample, min(waiting.values(), default=time.monotonic()))

    async def _watch_lag(self) -> None:
        while True:
            due = time.monotonic() + LAG_EVERY_S
            await asyncio.sleep(LAG_EVERY_S)
            now = time.monotonic()
            self._lag.seen(now, now - due)

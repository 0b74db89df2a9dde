"""The outage meter: asks on schedule, whatever became of the question before.

Waiting for a late answer before asking again would hide the outage that made it late. So every
question is a task of its own, stamped when it was due, and the period is jittered by a tenth so
that it cannot fall into step with what it measures.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgekeeper.model.sample import Sample
from edgekeeper.probe import dns, http, tcp
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import AnswerError, Wire, open_wire, plain_words, tls_context

SLOW_S = 0.9
"""A good answer after this long is slow: a lost SYN is sent again after 1 s, and a black hole shorter than that hides in it."""
JITTER = 0.1
_ASK = {"dns": dns.ask, "tcp": tcp.ask, "http": http.ask}


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
        self._askers = [_Asker(target, keep=keep) for target in targets for keep in ((False, True) if pace.warm else (False,))]
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

    async def _schedule(self, asker: _Asker, started: float, under_way: set[asyncio.Task[None]]) -> None:
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

    async def _one(self, asker: _Asker) -> None:
        self._sink(await asker.ask(self._pace.timeout_s))


def _cancelled() -> bool:
    """Whether somebody wants this task itself to end (a question on a kept connection is cancelled when too many wait)."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _Asker:
    """Asks one target, over a fresh connection each time or over one that is kept."""

    def __init__(self, target: Target, *, keep: bool) -> None:
        self._target = target
        self._keep = keep
        self._context: ssl.SSLContext | None = tls_context(target)
        self._kept: asyncio.Task[Wire] | None = None

    async def ask(self, timeout_s: float) -> Sample:
        """One question, one Sample; never raises."""
        ts, sent = time.time(), time.monotonic()
        error: str | None = None
        said: str | None = None
        wire: Wire | None = None
        try:
            async with asyncio.timeout(timeout_s):
                if self._target.transport == "udp":
                    said = await self._datagram()
                else:
                    wire = await self._wire()
                    said = await _ASK[self._target.kind](self._target, wire)
        except AnswerError as err:
            error = str(err)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError, UnicodeError, asyncio.CancelledError) as err:
            if isinstance(err, asyncio.CancelledError) and _cancelled():
                raise
            error = plain_words(err)
        done = time.monotonic()
        if wire is not None and not self._keep:
            await wire.close()
        ok = error is None
        fresh = wire is not None and not self._keep
        return Sample(
            ts=ts,
            target=self._target.url,
            conn="warm" if self._keep else "fresh",
            sent=sent,
            done=done,
            ok=ok,
            slow=ok and done - sent > SLOW_S,
            error=error,
            connect_ms=round(wire.connect_ms, 3) if wire is not None and fresh else None,
            tls_ms=round(wire.tls_ms, 3) if wire is not None and fresh and wire.tls_ms is not None else None,
            first_byte_ms=round((done - sent) * 1000, 3) if ok and self._target.kind != "tcp" else None,
            answered_by=said,
        )

    async def _datagram(self) -> str | None:
        sock: socket.socket = await dns.open_datagram(self._target)
        try:
            return await dns.ask_datagram(self._target, sock)
        finally:
            sock.close()

    async def _wire(self) -> Wire:
        if not self._keep:
            return await open_wire(self._target, self._context)
        if self._kept is None or (self._kept.done() and self._broken(self._kept)):
            self._kept = asyncio.create_task(open_wire(self._target, self._context))
        # Several questions may wait for the same connection; a deadline of one must not end it for the others.
        return await asyncio.shield(self._kept)

    @staticmethod
    def _broken(task: asyncio.Task[Wire]) -> bool:
        return task.cancelled() or task.exception() is not None or task.result().closed

    async def close(self) -> None:
        """Close the kept connection."""
        if self._kept is not None:
            self._kept.cancel()
            with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError):
                await (await self._kept).close()

"""The log of a container: the same service over restarts, recreations, rotations and restarts of dockerd.

What can be lost: lines that Docker itself threw away (its rotation, a removed container) while no stream was open, and what was written
before this process ran (with a mark: before its predecessor). Nothing is given out twice but by a successor without a mark.

A stream of ``logs?follow=1`` ends when its container stops and gives no sign when it is dead (moby#37646, moby#39235). So one that is
silent is compared with the log's last lines; one that lags, because this process or dockerd stood still, is checked for lines that
were rotated past it as soon as it has caught up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.docker import ASK_S, Container, Docker, Which
from edgekeeper.ports import Clock
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.entries import Entries, Line
from edgekeeper.watch.sources.mark import Mark
from edgekeeper.watch.sources.progress import Progress
from edgekeeper.watch.stamp import iso

SILENT_S: Final = (1.0, 10.0)
"""A stream without a line for so long is compared with the log, then after twice as long each time, up to the second. Docker 20.10 leaves a follower
without a word in half of its rotations of a file that is written quickly (measured 2026-11-30)."""
_LATE_S = 0.5
"""A line that is in the log and has not come after this much more: the stream is dead. A false alarm costs a new stream and loses nothing."""
_LAGS_S, _CAUGHT_UP_S = 2.0, 0.5
"""A line that arrives so long after its stamp: the stream lags behind. Docker's own way takes 1 ms, some 50 ms on a loaded machine."""
_TAILS: Final = ((1_000, 0.3), (100_000, 3.0), (None, 0.0))
"""How many last lines a stream is asked for, and how long new ones are held until it is clear whether others are missing before them.
dockerd gives about 150,000 lines a second; all of a log of 500 MB takes it 20 s, so that is what is asked for last."""
_BACKOFF_S = (0.1, 5.0)
_SETTLE_S = 0.05
"""Between two looks at the container, however much happens to the others on the machine."""
_MARK_S = 0.6


class DockerSource:
    """A container's log as lines, for ever (``seams.Source``); ``mark`` is where a successor finds how far this one came."""

    def __init__(self, docker: Docker, which: Which, clock: Clock | None = None, mark: Path | None = None) -> None:
        self._docker = docker
        self._which = which
        self._clock = clock or SystemClock()
        self._mark = Mark(mark, self._clock)

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        """As ``seams.Source`` says. Lines are handed over as Docker gives them, both outputs together."""
        await _Follower(self._docker, self._which, self._clock, self._mark, arrived, state).run()


class _Follower:
    """One run of ``follow``."""

    def __init__(self, docker: Docker, which: Which, clock: Clock, mark: Mark, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        self._docker, self._which, self._clock, self._mark = docker, which, clock, mark
        self._arrived, self._state = arrived, state
        self._said = mark.load()
        self._since = float(self._said["at"]) if self._said is not None else clock.wall()
        self._wake = asyncio.Event()
        self._changed = False
        self._sight: Sight | None = None
        self._ident = ""
        self._progress = Progress(self._since)
        self._read_out = ("", "")
        self._depth = 0
        self._reach: bytes | None = None
        self._auditing = self._caught_up = False
        self._last = 0.0
        self._left: tuple[bytes, ...] = ()
        self._marking: asyncio.TimerHandle | None = None
        self._waiting: list[Line] = []
        self._failed: Exception | None = None

    async def run(self) -> None:
        bell = asyncio.create_task(self._bell())
        pause = _BACKOFF_S[0]
        try:
            while True:
                try:
                    again = await self._attend(await self._find())
                except EdgekeeperError as err:
                    self._tell(Sight(seeing=False, why=str(err)))
                    again = False
                if again:
                    pause = _BACKOFF_S[0]
                    continue
                await self._woken(pause)
                await asyncio.sleep(_SETTLE_S)
                pause = min(pause * 2, _BACKOFF_S[1])
        finally:
            bell.cancel()
            await asyncio.gather(bell, return_exceptions=True)
            self._marked()

    async def _find(self) -> Container:
        self._changed = False
        return await self._docker.find(self._which)

    async def _attend(self, container: Container) -> bool:
        """Follow one stream to its end; whether the next one is due at once."""
        if container.status not in ("running", "paused"):
            self._tell(_sight(container))
            if container.status == "created" or (container.id, container.started) == self._read_out:
                return False
        if container.id != self._ident:
            self._begin(container)
        tail, hold_s = _TAILS[self._depth]
        progress, given = self._progress, self._progress.given
        progress.attach(tail, sure=not progress.high, reach=self._reach)
        self._auditing, self._caught_up = self._reach is not None, False
        async with self._docker.logs(container.id, tail, follow=True) as chunks:
            self._tell(_sight(container))
            began = self._last = self._clock.monotonic()
            reader = asyncio.create_task(self._reading(chunks, Entries(terminal=container.tty, left=self._left)))
            reader.add_done_callback(lambda _: self._wake.set())
            try:
                if await self._oversee(container, reader, began + hold_s):
                    return True
            finally:
                reader.cancel()
                await asyncio.wait([reader])
                self._flush()
        self._hand(progress.settle())
        reader.result()
        if progress.given == given and container.status not in ("running", "paused"):
            self._read_out = (container.id, container.started)
        return progress.given != given or self._clock.monotonic() - began > 1.0

    def _begin(self, container: Container) -> None:
        """Another container than before: all of its log counts when it was made since we look, else what comes from then on."""
        self._progress = Progress(self._since)
        self._depth, self._reach, self._left = 0, None, ()
        if self._said is not None and self._said.get("id") == container.id:
            self._progress.recall(self._said)
        elif (iso(container.created.encode()) or 0.0) >= self._since:
            self._depth = len(_TAILS) - 1
        self._ident, self._said = container.id, None

    async def _reading(self, chunks: AsyncIterator[bytes], entries: Entries) -> None:
        loop = asyncio.get_running_loop()
        try:
            async for chunk in chunks:
                if lines := entries.feed(chunk):
                    if not self._waiting:
                        loop.call_soon(self._flush_later)  # what one read of the socket brings is handed over as one
                    self._waiting += lines
        except ValueError as err:
            msg = f"{err}; the log is read anew"
            raise StepFailedError(msg) from err
        self._waiting += entries.end()  # not when it breaks off: the next stream gives the line as a whole
        self._left = entries.left

    def _flush_later(self) -> None:
        try:
            self._flush()
        except Exception as err:  # noqa: BLE001 - whose fault it is, whoever awaits ``follow`` must hear of it
            self._failed = err
            self._wake.set()

    def _flush(self) -> None:
        """Hand over what the reader has found."""
        lines, self._waiting = self._waiting, []
        if not lines:
            return
        wall, progress, high = self._clock.wall(), self._progress, self._progress.high
        self._last = self._clock.monotonic()
        if fresh := progress.take(lines, wall):
            self._hand(fresh)
            self._lag(lines[-1][0], wall, high)
        if progress.holds:
            self._wake.set()

    def _hand(self, fresh: bytes) -> None:
        if fresh:
            self._arrived(fresh, self._clock.monotonic())
            self._keep()

    def _lag(self, stamp: bytes, wall: float, high: bytes) -> None:
        """Notice that the stream lags behind, and that it has caught up: then lines may have been rotated past it."""
        lag, progress = wall - (iso(stamp) or wall), self._progress
        if lag > _LAGS_S and not progress.lagging:
            progress.lagging, self._reach = True, high
        elif progress.lagging and lag < _CAUGHT_UP_S and not progress.catching:
            self._caught_up = True
            self._wake.set()

    async def _oversee(self, container: Container, reader: asyncio.Task[None], hold_until: float) -> bool:
        """Watch over a stream until it ends; True when another one is due before that."""
        checked = 0.0
        while not reader.done():
            if self._failed is not None:
                raise self._failed
            if self._outdone(hold_until):
                return True
            if self._changed:
                found = await self._find()
                if found.id != container.id:
                    return True
                self._tell(_sight(found))
            silent = _next_look(self._last, checked)
            if self._clock.monotonic() >= silent:
                if await self._dead(container):
                    return True
                checked = self._clock.monotonic()
                silent = _next_look(self._last, checked)
                self._ring()  # an event may have been missed as well
            until = min(silent, hold_until) if self._progress.holds else silent
            await self._woken(max(0.0, until - self._clock.monotonic()))
        return False

    def _outdone(self, hold_until: float) -> bool:
        """Whether another stream would tell more: this one was asked for too few lines, or has lagged behind and caught up."""
        progress = self._progress
        if progress.gap and self._depth < len(_TAILS) - 1:
            self._depth += 1
            return True
        if progress.holds and self._clock.monotonic() >= hold_until:
            self._hand(progress.settle())
        if progress.sure:
            self._depth = 0
            if self._auditing and not progress.catching:
                self._auditing, self._caught_up, self._reach, progress.lagging = False, False, None, False
        return progress.sure and self._caught_up

    async def _dead(self, container: Container) -> bool:
        """Whether the log has a line that the stream does not give."""
        entries = Entries(terminal=container.tty)
        lines: list[Line] = []
        try:
            async with asyncio.timeout(ASK_S), self._docker.logs(container.id, 5, follow=False) as chunks:
                async for chunk in chunks:
                    lines += entries.feed(chunk)
        except (TimeoutError, ValueError) as err:
            msg = f"dockerd does not give the log of container {container.name}; it is asked again"
            raise StepFailedError(msg) from err
        if not self._progress.unknown(lines):
            return False
        await asyncio.sleep(_LATE_S)
        return self._progress.unknown(lines)

    async def _bell(self) -> None:
        """Wake whenever something happens to a container; without events it is looked now and then."""
        pause = _BACKOFF_S[0]
        while True:
            began = self._clock.monotonic()
            with contextlib.suppress(EdgekeeperError):
                async with self._docker.changes() as events:
                    self._ring()  # for what happened while nobody listened
                    async for _ in events:
                        self._ring()
                self._ring()
            if self._clock.monotonic() - began > _BACKOFF_S[1]:
                pause = _BACKOFF_S[0]
            await asyncio.sleep(pause)
            pause = min(pause * 2, _BACKOFF_S[1])

    def _ring(self) -> None:
        self._changed = True
        self._wake.set()

    async def _woken(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    def _tell(self, sight: Sight) -> None:
        if sight != self._sight:
            self._sight = sight
            self._state(sight)

    def _keep(self) -> None:
        """Leave the mark, now or in a moment."""
        self._mark.keep(lambda: {"id": self._ident, **self._progress.mark()})
        if self._marking is None:
            self._marking = asyncio.get_running_loop().call_later(_MARK_S, self._marked)

    def _marked(self) -> None:
        if self._marking is not None:
            self._marking.cancel()
            self._marking = None
        self._mark.flush()


def _next_look(last: float, checked: float) -> float:
    """When a stream whose last line came at ``last`` is compared with the log, which was done before at ``checked``."""
    return max(last, checked) + min(max(checked - last, SILENT_S[0]), SILENT_S[1])


def _sight(container: Container) -> Sight:
    started = iso(container.started.encode()) or 0.0
    seeing = container.status == "running"
    return Sight(
        seeing,
        f"the log of container {container.name} is followed" if seeing else f"container {container.name} is {container.status}",
        started if started > 0 else None,
    )

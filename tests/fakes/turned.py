"""Time in tests: a loop that is at once as late as its next timer where nothing is left to do, and clocks that a test moves."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from edgekeeper.model.moment import Moment

WALL_S = 1_796_000_000.0
"""Unix time at the time 0 of a loop."""


class _Now(selectors.EpollSelector):
    """Never waits: the time to wait for has come."""

    loop: Turned

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        assert timeout is not None, "everybody waits for something that will never happen"
        self.loop.now += timeout
        return []


class _Here(ThreadPoolExecutor):
    """What is handed to a thread is done at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as err:  # noqa: BLE001 - it belongs to who asked
            done.set_exception(err)
        return done


class Turned(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        selector = _Now()
        super().__init__(selector)
        selector.loop = self
        self.now = 1000.0
        self.set_default_executor(_Here())

    def time(self) -> float:
        return self.now


class TurnedClock:
    """The running loop's time, by all clocks."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return WALL_S + self.monotonic()

    def moment(self) -> Moment:
        return Moment(self.wall(), self.monotonic(), "boot", self.monotonic())


def turned(story: Coroutine[Any, Any, Any]) -> Any:
    """Run a story in such a loop; how long it takes by the loop's time costs nothing."""
    with asyncio.Runner(loop_factory=Turned) as runner:
        return runner.run(story)


class Still:
    """A clock that only the test moves; all of its times are one. ``sleep`` moves it too, and takes no time."""

    def __init__(self, now: float = 1000.0, *, wall_ahead: float = 0.0) -> None:
        self.now = now
        self._ahead = wall_ahead

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self._ahead + self.now

    def moment(self) -> Moment:
        return Moment(self.wall(), self.now, "boot", self.now)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

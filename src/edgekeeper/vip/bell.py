"""Rings whenever something about the VIPs has changed; who waits looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Bell:
    """Any number may wait; a ring wakes all of them."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake who waits."""
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def until(self, true: Callable[[], bool], deadline_s: float, every_s: float = 0.25) -> bool:
        """Wait until something is so; whether it was within the deadline. It is looked at each ring, and now and then."""
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline_s
        while not true():
            rest = end - loop.time()
            if rest <= 0:
                return False
            try:
                async with asyncio.timeout(min(rest, every_s)):
                    await self._rung.wait()
            except TimeoutError:
                continue
        return True

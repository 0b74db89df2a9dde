"""The pace of reading: the loop is never held up, and many small writes are read at once."""

from __future__ import annotations

import asyncio
from typing import Final

from edgekeeper.ports import Clock

_STEADY_S: Final = 0.005
_REST_S: Final = 0.002
"""Read at each write, 20,000 lines/s are 20,000 rounds of the loop; every 2 ms they are 500, and a line waits 2 ms at most."""


class Pace:
    """How long to wait between two pieces."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = float("-inf")

    async def rest(self, *, more: bool) -> None:
        """After a piece: let others run; when pieces come one after the other and nothing more is there to read (not ``more``), wait for it to become more."""
        now = self._clock.monotonic()
        steady = now - self._last < _STEADY_S
        self._last = now
        await asyncio.sleep(_REST_S if steady and not more else 0)

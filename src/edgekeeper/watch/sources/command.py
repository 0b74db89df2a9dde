"""The lines that a program writes, on its output and on its errors.

A program that ends is started again, for ever; lines of the time between are lost, and the sight says so meanwhile. One that
writes faster than the lines can be looked at is held up by its pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgekeeper.ports import Clock
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.child import run_for_ever
from edgekeeper.watch.sources.lines import Cutter


class CommandSource:
    """Follows the output of a program; ``argv`` is run as it is, by no shell."""

    def __init__(self, argv: Sequence[str], clock: Clock) -> None:
        self._argv = list(argv)
        self._clock = clock

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        """See ``seams.Source``."""
        cutter = Cutter()
        told: Sight | None = None

        def hand_on(lines: bytes) -> bool:
            if lines:
                arrived(lines, self._clock.monotonic())
            return bool(lines)

        def tell(wrong: str) -> None:
            nonlocal told
            sight = Sight(seeing=not wrong, why=wrong or f"{self._argv[0]} is read")
            if sight != told:
                told = sight
                state(sight)

        def ended() -> str:
            hand_on(cutter.end())
            return ""

        tell(f"{self._argv[0]} is being started")
        await run_for_ever(lambda: self._argv, self._clock, lambda raw: hand_on(cutter.feed(raw)), tell, ended)

"""A member's place in its group, without a network: what siblings say is put into the views by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from edgekeeper.config.ops import Ops, Peer
from edgekeeper.watch.seams import Answer
from edgekeeper.watch.siblings import PATIENCE_S, Place, Siblings
from edgekeeper.watch.siblingsay import SiblingView, SiblingWatch

NODES = {name: Peer(address="192.0.2.1", ops="http://127.0.0.1:1") for name in ("edge-a", "edge-b", "edge-z")}  # type: ignore[call-arg]


class Clock:
    """Stands still; ``now`` is set by the test."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    def passes(self) -> None:
        """As much time as anybody waits for siblings."""
        self.now += PATIENCE_S


class Scripted:
    """An asker that gives what it is told to."""

    def __init__(self, clock: Clock, *, well: bool = True) -> None:
        self.clock, self.well, self.asked = clock, well, 0

    async def ask(self) -> Answer:
        self.asked += 1
        return Answer(self.well, "it answers" if self.well else "refused", self.clock.now)


def grouped(node: str = "edge-b") -> tuple[Clock, Siblings, Place]:
    clock = Clock()
    siblings = Siblings(node, NODES, Ops(), clock, {"edge-a", "edge-b"})  # type: ignore[call-arg, arg-type]
    return clock, siblings, siblings.place("proxy", "mesh", ("edge-a", "edge-b"))


def says(siblings: Siblings, clock: Clock, watch: SiblingWatch, *, ago: float = 0.0) -> None:
    """Every sibling has said this of its watch, so long ago."""
    for name in siblings.views:
        siblings.views[name] = SiblingView(name, 0.0, clock.now - ago, clock.now - ago, clock.now - ago, "", watches={"proxy": watch})  # type: ignore[index]


async def meanwhile(waiting: Awaitable[str | None], happens: Callable[[], None], siblings: Siblings) -> str | None:
    """What is waited for, with something that happens while it waits; and the news of it."""
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    assert not task.done()
    happens()
    siblings._polling.asked.set()
    return await task

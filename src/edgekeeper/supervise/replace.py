"""Exchange the running engine for one with the current generation, hurting as few clients as possible.

Three manners, in the order of what they cost (dnsdist 2.1.3, 500 queries/s, 200 source ports):

* ``steer``: traffic is held on the old process until the new one is proven on its private port, then
  steered to it: 0 of 2,500 lost. Needs ptrace rights over the engine.
* ``overlap``: both share the port while the new one is proven: 1 of 2,500 lost (0 to 3), in the old
  one's last milliseconds: the kernel frees an ending process's memory before it closes its sockets, and
  what they are given in between is lost. The less memory, the fewer (4 with 34 MB a member).
* ``plain``: stop, then start: about 100 of 2,500 lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import steer
from edgekeeper.supervise.crew import Crew, Hand

SETTLE_S = 0.3
"""From steering to the new process until the old one is stopped: what it has in hand is answered
within this time (0 of 2,500 lost at 500 queries/s, dnsdist 2.1.3; measured with 0.3 s)."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """How it went: why the new process was refused (None: it serves), and how the exchange was done."""

    refusal: str | None
    manner: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What an exchange needs: who starts and proves the new one, the shared addresses, the patience."""

    start: Callable[[bool], Hand]
    prove: Callable[[Hand], Awaitable[str | None]]
    shared: Sequence[str]
    stop_timeout_s: float
    drain: Callable[[], Awaitable[None]]


async def exchange(crew: Crew, plan: Exchange, manner: str) -> Exchanged:
    """Exchange the serving process in the given manner; a refused new one leaves the old one serving."""
    old = crew.serving
    if crew.beside is not None:  # what an exchange that failed in the middle has left
        await crew.stop(crew.beside, plan.stop_timeout_s)
    if old is None or manner == "plain":
        return await _plain(crew, plan, old)
    note = ""
    if manner == "steer":
        note = _hold(crew, old, plan.shared)
        manner = "overlap" if note else "steer"
    try:
        new = plan.start(True)
    except EdgekeeperError:
        release(crew, old)
        raise
    refusal = await plan.prove(new)
    if refusal is not None:
        await crew.stop(new, plan.stop_timeout_s)
        return Exchanged(refusal, manner, note or release(crew, old))
    crew.promote()
    if manner == "steer":
        note = await steer_to(crew, new, old)
    await crew.stop(old, plan.stop_timeout_s)
    return Exchanged(None, manner, release(crew, new) or note)


async def _plain(crew: Crew, plan: Exchange, old: Hand | None) -> Exchanged:
    if old is not None:
        await plan.drain()
        await crew.stop(old, plan.stop_timeout_s)
    new = plan.start(False)
    refusal = await plan.prove(new)
    if refusal is not None:
        await crew.stop(new, plan.stop_timeout_s)
    return Exchanged(refusal, "plain")


def _hold(crew: Crew, old: Hand, shared: Sequence[str]) -> str:
    """Keep all traffic on the old process; says why not, where it cannot be done."""
    try:
        crew.steering = tuple(shared)
        crew.save()
        pid = old.process.pid
        counts = {listen: len(steer.sockets(pid, listen)) for listen in shared}
        steer.attach(pid, shared, counts, dict.fromkeys(shared, 0))
    except (EdgekeeperError, OSError) as err:
        release(crew, old)
        return f"traffic cannot be steered ({err}); overlapping instead"
    return ""


async def steer_to(crew: Crew, hand: Hand, other: Hand) -> str:
    """Send all traffic to ``hand`` and wait until ``other`` has answered what it holds."""
    shared = crew.steering
    try:
        first = {listen: _index(hand, other, listen) for listen in shared}
        counts = {listen: len(steer.sockets(hand.process.pid, listen)) for listen in shared}
        steer.attach(hand.process.pid, shared, counts, first)
    except (EdgekeeperError, OSError) as err:
        return f"traffic could not be steered to pid {hand.process.pid} ({err}); both share it until the other ends"
    await asyncio.sleep(SETTLE_S)
    return ""


def _index(hand: Hand, other: Hand, listen: str) -> int:
    """Place of ``hand``'s first socket in the group: the older process bound first."""
    return len(steer.sockets(other.process.pid, listen)) if other.process.started <= hand.process.started else 0


def release(crew: Crew, hand: Hand) -> str:
    """Take every steering program away and forget that there was one; says what could not be done."""
    if not crew.steering:
        return ""
    try:
        steer.detach(hand.process.pid, crew.steering)
    except (EdgekeeperError, OSError) as err:
        return f"a steering program may still be attached to pid {hand.process.pid} ({err}); the next restart tries again"
    crew.steering = ()
    crew.note()
    return ""

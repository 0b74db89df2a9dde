"""What moves VIPs, seen alike: keepalived on this machine, kube-vip or MetalLB in a cluster.

The kinds are ``provider_keepalived`` and ``provider_kube``. All of them live in one event loop; nothing here is safe for threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, Self

from edgekeeper.errors import RefusedError, UsageError
from edgekeeper.log import WARNING, Event, emit
from edgekeeper.model.text import printable
from edgekeeper.vip.owner import Owner
from edgekeeper.vip.weight import Weight

UNREAD: Final = 64
"""So many changes wait for a subscriber; the oldest goes when one more comes. More than the moves of 20 VIPs in a hand-over of them all."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A VIP has another owner than before, or its owner is known or unknown since now."""

    vip: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class Context:
    """In what situation a weight is asked for. ``lameduck``: this node drains itself, and is not broken."""

    lameduck: bool = False


NORMAL: Final = Context()


class Provider(Protocol):
    """One kind of thing that moves VIPs. UsageError for a VIP that it does not know."""

    name: str

    async def owner(self, vip: str) -> Owner:
        """Who owns it now. What cannot be read is an unknown owner, with the reason; never an error."""

    async def weigh(self, vip: str, weight: Weight, context: Context = NORMAL) -> None:
        """Say how much this node is for it. RefusedError where it must not be said, or cannot; StepFailedError when it could not be written."""

    def events(self) -> Subscription:
        """The changes from now on, for one reader."""


class Subscription:
    """Changes for one reader: ``async for changed in subscription``. Whoever tells never waits; what is not read in time is dropped."""

    def __init__(self, feed: Feed, reader: str, most: int) -> None:
        self._feed = feed
        self._reader = reader
        self._most = most
        self._unread: deque[Changed] = deque()
        self._woken = asyncio.Event()
        self._late = False
        self.dropped = 0

    def put(self, changed: Changed) -> None:
        """Keep it for the reader; the oldest goes when there are too many: what is newest is what is so."""
        self._unread.append(changed)
        if len(self._unread) > self._most:
            gone = self._unread.popleft()
            self.dropped += 1
            if not self._late:  # once for each time that the reader falls behind, however far
                self._late = True
                why = f"{self._reader} does not read its changes of VIPs; the oldest are dropped (first: {gone.vip}) until it does"
                emit(Event.VIP_EVENT_DROPPED, why, level=WARNING, vip=gone.vip, reader=self._reader)
        self._woken.set()

    def close(self) -> None:
        """No more of them; a waiting reader ends after what it has not read yet."""
        self._feed.drop(self)
        self._woken.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Changed:
        while not self._unread:
            self._late = False
            if self not in self._feed:
                raise StopAsyncIteration
            self._woken.clear()
            await self._woken.wait()
        return self._unread.popleft()


class Feed:
    """Tells any number of readers; nobody is waited for."""

    def __init__(self, name: str, most: int = UNREAD) -> None:
        self._name = name
        self._most = most
        self._made = 0
        self._readers: list[Subscription] = []
        self._told: dict[str, Owner] = {}

    def __contains__(self, reader: object) -> bool:
        return any(reader is one for one in self._readers)

    def subscribe(self) -> Subscription:
        """One more reader; close it when it is done."""
        self._made += 1
        self._readers.append(Subscription(self, f"reader {self._made} of {self._name}", self._most))
        return self._readers[-1]

    def drop(self, reader: Subscription) -> None:
        """This reader no more."""
        self._readers = [one for one in self._readers if one is not reader]

    def tell(self, owners: Mapping[str, Owner]) -> None:
        """Who owns each VIP now; readers are told of those that differ from the time before. Another reason alone is no change."""
        for vip, owner in owners.items():
            before = self._told.get(vip)
            if before is None or (before.node, before.since) != (owner.node, owner.since):
                for reader in self._readers:
                    reader.put(Changed(vip, owner))
        self._told = dict(owners)


def known(vip: str, vips: Collection[str], provider: str) -> str:
    """The VIP; UsageError when it is none of these."""
    if vip not in vips:
        msg = f"{provider} has no VIP {printable(vip, 60)!r}; there are {', '.join(vips) or 'none'}"
        raise UsageError(msg)
    return vip


def weighed(weight: int, context: Context) -> Weight:
    """The weight; UsageError for a number that is none, RefusedError for FAULT from a node that drains itself: it serves until its clients are gone."""
    try:
        chosen = Weight(weight)
    except ValueError:
        told = ", ".join(f"{one.value} ({one.name.lower()})" for one in Weight)
        msg = f"{weight} is no weight of a VIP; give one of {told}; nothing was changed"
        raise UsageError(msg) from None
    if context.lameduck and chosen is Weight.FAULT:
        msg = "a node that drains itself does not fault its VIPs; it prefers not to have them (60), or hands them over with `edgekeeper vip drain`"
        raise RefusedError(msg)
    return chosen

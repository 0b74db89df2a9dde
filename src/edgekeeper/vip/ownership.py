"""Owning a VIP among others: settle when all agree, name a second owner, tell the network when a contest ends, step aside after a freeze."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.neighbour import announce
from edgekeeper.log import WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.model.vrrp import master_down_s
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ports import Clock, Journal
from edgekeeper.vip.bell import Bell
from edgekeeper.vip.book import Book, Page
from edgekeeper.vip.decide import Peering, contest, settled, settled_weight, two_owners, yields
from edgekeeper.vip.drained import Drained
from edgekeeper.vip.handover import Handover
from edgekeeper.vip.weight import TrackFile, Weight

LOOK_EVERY = 10
"""Looks at the VIPs between two at a track file that should say what it says."""
ANNOUNCED, ANNOUNCE_EVERY_S = 4, 0.25
"""How often, and how far apart, an owner that stays tells the network that it does; for each contest that ends, once."""
THAW_S = 0.05
"""An advert that arrived so long after the thaw is of after it."""


class Ownership:
    """What this node does as one of several that could own a VIP.

    ``peering`` says what the peers of a VIP can and claim, ``heard_since`` whether each was heard since a moment (None: it cannot be asked),
    ``unheard`` whether one that could be is silent now, ``lowest`` the lowest configured priority of a VIP's nodes, ``names`` nodes by address.
    """

    def __init__(
        self, book: Book, handover: Handover, weights: TrackFile, drained: Drained, bell: Bell, clock: Clock, journal: Journal, alarms: Alarms,
        *, peering: Callable[[str], Peering], heard_since: Callable[[float], Sequence[bool | None]], unheard: Callable[[], bool],
        lowest: Callable[[Page], int], names: Callable[[], Mapping[str, str]],
    ) -> None:  # fmt: skip
        self._book = book
        self._handover = handover
        self._weights = weights
        self._drained = drained
        self._bell = bell
        self._clock = clock
        self._journal = journal
        self._alarms = alarms
        self._peering = peering
        self._heard_since = heard_since
        self._unheard = unheard
        self._lowest = lowest
        self._names = names
        self._claims: dict[str, float] = {}
        self._contested: set[str] = set()
        self._announcing: set[asyncio.Task[None]] = set()
        self._looks = 0
        self.yielding: dict[str, asyncio.Task[None]] = {}

    def look(self) -> None:
        """Look at every VIP: now and then, and whenever a peer says something new."""
        now, unheard = self._clock.monotonic(), self._unheard()
        self._looks += 1
        for page in self._book.pages.values():
            peers = self._peering(page.instance.name)
            self._follow_contest(page, unheard=unheard, claimed=bool(peers.holders))
            self._keep_low(page, now)
            self._name_owners(page, peers, now)

    def thawed(self, gap_s: float) -> None:
        """This process did not run for so long; perhaps the whole node did not."""
        at = self._clock.monotonic()
        for name, page in self._book.pages.items():
            if page.held and name not in self.yielding:
                self.yielding[name] = asyncio.create_task(self._thaw(page, gap_s, at))

    def weigh(self, name: str, weight: int) -> None:
        """Tell keepalived; an alarm says when it cannot be told."""
        try:
            self._weights.write(name, weight)
            self._alarms.set(f"{name} weight", None)
        except EdgekeeperError as err:
            self._alarms.set(f"{name} weight", f"keepalived cannot be told about {name}: {err}")

    def end(self) -> None:
        """Let the tasks go."""
        for task in (*self.yielding.values(), *self._announcing):
            task.cancel()

    # a contest ----------------------------------------------------------------------------

    def _follow_contest(self, page: Page, *, unheard: bool, claimed: bool) -> None:
        name = page.instance.name
        after, ended = contest(held=page.held, before=name in self._contested, unheard=unheard, claimed=claimed)
        (self._contested.add if after else self._contested.discard)(name)
        if ended:
            task = asyncio.create_task(self._announce(page))
            self._announcing.add(task)
            task.add_done_callback(self._announcing.discard)

    async def _announce(self, page: Page) -> None:
        """keepalived does so each 30 s only, or 5 s after a lower advert: clients that had moved were lost for 5.1 s."""
        name = page.instance.name
        why = f"{name} was claimed by another node, or one could not be heard; this node stays the owner and tells the network so"
        emit(Event.VIP_ANNOUNCED, why)
        self._journal.write(Entry("vip", Event.VIP_ANNOUNCED, name, "act", why))
        for _ in range(ANNOUNCED):
            if not page.held:
                return
            try:
                await asyncio.to_thread(announce, page.instance.interface, page.instance.ip)
            except EdgekeeperError as err:
                emit(Event.VIP_ANNOUNCED, f"{name}: {err}; keepalived announces it within 30 s", level=WARNING)
                return
            await asyncio.sleep(ANNOUNCE_EVERY_S)

    def _name_owners(self, page: Page, peers: Peering, now: float) -> None:
        name, since = page.instance.name, page.held_since if page.held_since is not None else now
        claims = peers.holders if page.held else ()
        claimed = self._claims.setdefault(name, now) if claims else self._claims.pop(name, now)
        recent = page.rival_adverts(now)
        why = two_owners(
            held=page.held, held_s=now - since, adverts=len(recent), advert_span_s=now - recent[0][0] if recent else 0.0, claims=claims, claims_s=now - claimed
        )
        if why is None or page.busy:
            self._alarms.set(f"{name} owners", None)
            return
        who = ", ".join(dict.fromkeys([*claims, *(self._names().get(source, source) for _, source, _ in recent)]))
        self._alarms.set(f"{name} owners", f"VIP {name} ({page.instance.ip}) has two owners, this node and {who}: {why}")

    # settling -----------------------------------------------------------------------------

    def _keep_low(self, page: Page, now: float) -> None:
        """A settled owner announces a lower priority than the others have; one that is none any more has its own again."""
        name, instance = page.instance.name, page.instance
        if page.busy or name in self.yielding or name in self._drained.names:
            return
        since = page.held_since if page.held_since is not None else now
        low = settled_weight(instance.priority, self._lowest(page), nopreempt=instance.preempt is False)
        agreed = settled(
            held=page.held, held_s=now - since, advert_s=instance.advert_s, contested=name in self._contested, heard_since=self._heard_since(since)
        )  # fmt: skip
        wanted = low if agreed else Weight.SERVING
        if wanted == page.low and self._looks % LOOK_EVERY:
            return
        said = self._weights.read(name)
        if said in (Weight.SERVING, low, page.low):  # anything else is somebody else's word
            if said != wanted:
                self.weigh(name, wanted)
            page.low = wanted

    # stepping aside -----------------------------------------------------------------------

    async def _thaw(self, page: Page, gap_s: float, at: float) -> None:
        """Wait until a peer that owns the VIP would have said so again; then decide whether to give it up."""
        name = page.instance.name
        try:
            await asyncio.sleep(1.5 * page.instance.advert_s + 0.3)
            since = bool(page.adverts) and page.adverts[-1][0] > at + THAW_S
            why = yields(gap_s=gap_s, held=page.held and not page.busy, heard_since=since, peer_holds=bool(self._peering(name).holders))
            if why is not None:
                await self._yield(page, why)
        finally:
            self.yielding.pop(name, None)

    async def _yield(self, page: Page, why: str) -> None:
        """Give a VIP up, covered, until a peer owns it alone, or nobody wants it; what a person drained stays drained."""
        name = page.instance.name
        emit(Event.VIP_YIELDED, f"{name}: {why}", level=WARNING)
        self._journal.write(Entry("vip", Event.VIP_YIELDED, name, "act", why))
        self._handover.cover(page)
        try:
            began = self._clock.monotonic()
            self.weigh(name, Weight.FAULT)
            patience = 2 * master_down_s(1, page.instance.advert_s) + 1
            await self._bell.until(lambda: not page.held and bool(page.adverts) and page.adverts[-1][0] > began, patience)
            page.busy = False  # the lookout ends the cover when the peer has told the network
            await asyncio.sleep(2 * page.instance.advert_s)
        finally:
            page.busy = False
            if name not in self._drained.names:
                self.weigh(name, Weight.SERVING)

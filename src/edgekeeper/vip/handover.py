"""Handing a VIP over: cover it, let go, wait until a peer has told the network, take the cover away. 0 lost of 500/s."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from edgekeeper.errors import EdgekeeperError
from edgekeeper.log import Event
from edgekeeper.model.entry import Entry
from edgekeeper.model.vrrp import master_down_s
from edgekeeper.ports import Clock, Journal
from edgekeeper.vip.bell import Bell
from edgekeeper.vip.book import Book, Page
from edgekeeper.vip.cover import Covers
from edgekeeper.vip.decide import BOTH_S, SETTLE_S, Peering, may_let_go
from edgekeeper.vip.drained import Drained
from edgekeeper.vip.weight import TrackFile, Weight

SPARE_S = 0.5
"""A peer that lives takes over within three adverts and its skew; one that has not after so much more never will. Waiting on is no kindness: a cover
answers no ARP, and clients ask again for their neighbour after 4 to 5 s (6 s of outage measured with 10 s of waiting, 0 with 4.5 s)."""
STOP_WAIT_S = 4.0
"""How long a stopping node answers for VIPs that no peer has taken yet: a peer without our last advert needs three intervals."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it: whether, the exit code of the command, and a sentence."""

    ok: bool
    why: str
    code: int = 0


class Handover:
    """All planned hand-overs of one node, one VIP at a time. ``claimant`` is the peer that has said since a moment that it owns a VIP."""

    def __init__(
        self, book: Book, covers: Covers, weights: TrackFile, drained: Drained, bell: Bell, clock: Clock, journal: Journal,
        *, peering: Callable[[str], Peering], dead: Callable[[str], bool], names: Callable[[], Mapping[str, str]],
        claimant: Callable[[str, float], str | None], deadline_s: float,
    ) -> None:  # fmt: skip
        self._book = book
        self._covers = covers
        self._weights = weights
        self._drained = drained
        self._bell = bell
        self._clock = clock
        self._journal = journal
        self._peering = peering
        self._dead = dead
        self._names = names
        self._claimant = claimant
        self.deadline_s = deadline_s
        self._one = asyncio.Lock()

    async def drain(self, name: str, *, force: bool) -> Done:
        """Hand a VIP over and do not take it again until ``undrain``."""
        async with self._one:
            page = self._book.pages.get(name)
            if page is None:
                return self._unknown(name)
            refusal = may_let_go(name, self._peering(name), force=force)
            if refusal is not None:
                return Done(False, refusal, 3)
            try:
                if not page.held:
                    self._weights.write(name, Weight.FAULT)
                    self._drained.set(name, drained=True)
                    return self._told(name, Done(True, f"{name} is not held here, and will not be taken until it is undrained"))
                return self._told(name, await self._let_go(page, keep=True))
            except EdgekeeperError as err:
                with contextlib.suppress(EdgekeeperError):
                    self._weights.write(name, Weight.SERVING)  # what is not remembered must not last
                with contextlib.suppress(EdgekeeperError):
                    self._drained.set(name, drained=False)
                return self._told(name, Done(False, f"{name} was not drained: {err}", 5))

    def undrain(self, name: str) -> Done:
        """The node may hold a VIP again. It takes it back by itself only where preempt is on, or the owner lets go."""
        if name not in self._book.pages:
            return self._unknown(name)
        try:
            self._weights.write(name, Weight.SERVING)
            self._drained.set(name, drained=False)
        except EdgekeeperError as err:
            return self._told(name, Done(False, f"{name} was not undrained: {err}", 5))
        return self._told(name, Done(True, f"{name} may be held here again"))

    async def rebalance(self, name: str) -> Done:
        """Hand a VIP to the peer and be its backup."""
        async with self._one:
            page = self._book.pages.get(name)
            if page is None:
                return self._unknown(name)
            if not page.held:
                return Done(True, f"{name} is not held here; nothing to do")
            refusal = may_let_go(name, self._peering(name), force=False)
            if refusal is not None:
                return Done(False, refusal, 3)
            try:
                return self._told(name, await self._let_go(page, keep=False))
            except EdgekeeperError as err:
                try:
                    self._weights.write(name, Weight.SERVING)
                    why = f"{name} was not handed over: {err}"
                except EdgekeeperError:
                    why = f"{name} may be kept from being held here by what its track file says: {err}; once it can be written again: edgekeeper vip undrain {name}"
                return self._told(name, Done(False, why, 5))

    async def _let_go(self, page: Page, *, keep: bool) -> Done:
        """Cover, FAULT, wait for the peer, uncover. When nobody takes it, the weight goes back before the cover does."""
        name, began = page.instance.name, self._clock.monotonic()
        covered = self.cover(page)
        try:
            self._weights.write(name, Weight.FAULT)
            if keep:  # after the weight: one that is killed in between finds a hand-over to be undone, never one to be done without a cover
                self._drained.set(name, drained=True)
            patience = min(self.deadline_s, master_down_s(1, page.instance.advert_s) + SPARE_S)
            taken = await self._bell.until(lambda: self._taken(page, began), patience)
            if not taken:
                self._weights.write(name, Weight.SERVING)
                if keep:
                    self._drained.set(name, drained=False)
                again = 2 * master_down_s(page.instance.priority, page.instance.advert_s) + 1
                back = await self._bell.until(lambda: page.held, again)
                where = "this node holds it again" if back else "nobody has it now"
                return Done(False, f"nobody took {name} within {patience:.3g} s; {where}", 5)
            took, left = self._clock.monotonic() - began, page.left_at
            # One that owned it already, and whose adverts are cut off, tells the network only when it learns that it is alone.
            await asyncio.sleep(SETTLE_S if self._announced(page, began) else BOTH_S)
        finally:
            self.uncover(page)
        if not keep:
            self._weights.write(name, Weight.SERVING)
        peer = self._owner(page)
        gap = max(0.0, page.owned_since - left) if page.owned_since is not None and left is not None else 0.0
        how = (
            f"covered for {took + SETTLE_S:.2f} s, nobody's for {gap * 1000:.0f} ms of it"
            if covered is None
            else f"uncovered ({covered}): {gap * 1000:.0f} ms without an owner"
        )
        return Done(True, f"{name} moved to {peer} after {took:.2f} s; clients were {how}")

    def cover(self, page: Page) -> str | None:
        """Put a cover up that the hand-over itself takes away; why not, when it cannot be."""
        page.busy = True
        if self._dead(page.instance.name):
            return "the local service is dead"
        refusal = self._covers.put(page.instance.ip, page.instance.interface)
        if refusal is None:
            page.covered_at = self._clock.monotonic()
        return refusal

    def uncover(self, page: Page) -> None:
        """Take it away."""
        page.busy = False
        page.left_at = None  # it has been covered: the lookout need not do it once more
        if page.covered_at is not None:
            page.covered_at = None
            self._covers.take(page.instance.ip)

    async def settle(self, pages: Iterable[Page], began: float, deadline_s: float) -> None:
        """Wait until peers have taken these VIPs, then take their covers away: the end of a stop."""
        waiting = list(pages)
        try:
            await self._bell.until(lambda: all(self._taken(page, began) or self._hopeless(page) for page in waiting), deadline_s)
            await asyncio.sleep(SETTLE_S)
        finally:
            for page in waiting:
                self.uncover(page)

    def _hopeless(self, page: Page) -> bool:
        """Whether waiting for a peer is of no use: it is held here again, the service is dead, or no peer could take it."""
        peers = self._peering(page.instance.name)
        return page.held or self._dead(page.instance.name) or not (peers.able or peers.unknown)

    def _taken(self, page: Page, since: float) -> bool:
        """Whether we let go, and a peer has announced itself as the owner since then, or has said in its status that it is."""
        return not page.held and (self._announced(page, since) or self._claimant(page.instance.name, since) is not None)

    def _announced(self, page: Page, since: float) -> bool:
        return bool(page.adverts) and page.adverts[-1][0] >= since

    def _owner(self, page: Page) -> str:
        if not page.adverts:
            return self._claimant(page.instance.name, 0.0) or "?"
        source = page.adverts[-1][1]
        name = self._names().get(source)
        return f"{name} ({source})" if name else source

    def _told(self, name: str, done: Done) -> Done:
        self._journal.write(Entry("vip", Event.VIP_HANDED_OVER, name, "act" if done.ok else "refuse", done.why))
        return done

    def _unknown(self, name: str) -> Done:
        return Done(False, f"there is no VIP {name!r}; there are {', '.join(self._book.pages) or 'none'}", 2)

"""Everything about the VIPs of one node except keepalived itself: who looks, who judges, who hands over, wired together."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping

from edgekeeper.config.root import Root
from edgekeeper.engines.keepalived.topology import Topology
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.neighbour import announce
from edgekeeper.host.process import feed
from edgekeeper.log import WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.model.vrrp import master_down_s
from edgekeeper.ops.alarms import Alarms
from edgekeeper.runtime import Ground
from edgekeeper.vip.bell import Bell
from edgekeeper.vip.book import Book, Page
from edgekeeper.vip.cover import Covers
from edgekeeper.vip.decide import Peering, settled_weight, two_owners, yields
from edgekeeper.vip.desired import can_take
from edgekeeper.vip.drained import Drained
from edgekeeper.vip.evidence import Says
from edgekeeper.vip.handover import Handover
from edgekeeper.vip.lookout import Lookout
from edgekeeper.vip.peers import Peers, PeerView, write_peers
from edgekeeper.vip.peersay import UNHEARD_S
from edgekeeper.vip.prober import Prober
from edgekeeper.vip.weight import TrackFile, Weight

TICK_S = 0.5
LOOK_EVERY = 10
"""Ticks between two looks at a track file that should say what it says."""
GAP_S = 1.5
"""A timer of our own that was late by so much means that this node, or this process, was frozen."""
EVENT_DEADLINE_S = 10.0
ANNOUNCED, ANNOUNCE_EVERY_S = 4, 0.25
"""How often, and how far apart, an owner that stays tells the network that it does."""


class Scene:
    """The VIPs of this node. ``running`` says whether keepalived runs; ``doubt`` has it reloaded."""

    def __init__(
        self, root: Root, ground: Ground, alarms: Alarms, *, running: Callable[[], bool], doubt: Callable[[str], None], elsewhere: Callable[[], None]
    ) -> None:
        assert root.vip is not None  # noqa: S101 - the command has checked it
        self.root, self.vips = root, root.vip
        self.node, self.folder, self.clock, self.journal, self.metrics = ground.node, ground.run_dir, ground.clock, ground.journal, ground.metrics
        self.alarms = alarms
        self.running = running
        self.doubt = doubt
        self.bell = Bell()
        self.book = Book()
        self.covers = Covers(self.folder)
        self.weights = TrackFile(self.folder, "weight")
        self.drained = Drained(self.folder)
        self.prober = Prober(TrackFile(self.folder, "health"), self.clock, self.says, lambda _: self.bell.ring())
        self.peers = Peers(self.node, root.nodes, root.ops, self.clock, self._peers_changed)
        self.handover = Handover(
            self.book, self.covers, self.weights, self.drained, self.bell, self.clock, self.journal,
            peering=self.peering, dead=self.dead, names=self.names, claimant=self.claimant, deadline_s=self.vips.handover,
        )  # fmt: skip
        self.lookout = Lookout(
            self.node, self.book, self.covers, self.bell, self.folder, self.clock, self.journal, alarms,
            dead=self.dead, running=running, elsewhere=elsewhere, doubt=doubt, changed=self._transition, deadline_s=self.vips.handover,
        )  # fmt: skip
        self._claims: dict[str, float] = {}
        self._yielding: dict[str, asyncio.Task[None]] = {}
        self._events: set[asyncio.Task[None]] = set()
        self._contested: set[str] = set()
        self._ticks = 0

    # the role's side ----------------------------------------------------------------------

    def begin(self) -> None:
        """Put right what a former supervisor left: weights of interrupted hand-overs, covers."""
        for vip in self.vips.vips:
            if self.weights.read(vip.name) != Weight.SERVING and vip.name not in self.drained.names:
                self.journal.write(Entry("vip", Event.VIP_HANDED_OVER, vip.name, "act", "an interrupted hand-over is undone: the node may hold it again"))
        self.restore()

    def restore(self) -> None:
        """Write every file anew that stood in a folder that was wiped."""
        for vip in self.vips.vips:
            self._weigh(vip.name, Weight.FAULT if vip.name in self.drained.names or vip.name in self._yielding else Weight.SERVING)
            if vip.name in self.drained.names:
                self.drained.set(vip.name, drained=True)
        self.prober.rewrite(self.vips.vips, self.vips.prober)

    def rewrite(self, topology: Topology) -> None:
        """These are the VIPs now."""
        first, before = not self.book.pages, {n: p.instance for n, p in self.book.pages.items()}
        if before == {i.name: i for i in topology.instances}:
            return
        kept = {(i.ip, i.interface) for i in topology.instances}
        for page in self.book.pages.values():
            if page.held and (page.instance.ip, page.instance.interface) not in kept:
                self.lookout.forget(page)
            if page.covered_at is not None and (page.instance.ip, page.instance.interface) not in kept:
                self.covers.take(page.instance.ip)  # nobody will look after it any more
        self.book.rewrite(topology.instances)
        self.prober.keep_only({i.name for i in topology.instances} | {v.name for v in self.vips.vips})
        now = self.clock.monotonic()
        if first:
            for ip in self.covers.found([i.ip for i in topology.instances]):
                covered = self.book.by_address(ip)
                if covered is not None:
                    covered.covered_at = now
        self.lookout.rewritten()

    def reload(self, root: Root) -> None:
        """Another config."""
        assert root.vip is not None  # noqa: S101 - the caller has checked it
        gone = {v.name for v in self.vips.vips} - {v.name for v in root.vip.vips}
        new = {v.name for v in root.vip.vips}
        held = tuple(v for v in self.vips.vips if v.name in self.book.pages and v.name not in new)  # until keepalived has them no more
        self.root, self.vips = root, root.vip
        self.prober.rewrite((*root.vip.vips, *held), root.vip.prober)
        self.peers.rewrite(root.nodes, root.ops)
        self.handover.deadline_s = self.lookout.deadline_s = root.vip.handover
        for name in gone:
            for what in ("owners", "cover", "left behind", "unheard"):
                self.alarms.set(f"{name} {what}", None)

    def works(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What goes on all the time, by name."""
        return {
            "the kernel's addresses": self.lookout.watch_kernel,
            "the wire": self.lookout.watch_wire,
            "the FIFO's state": self.lookout.watch_fifo,
            "the prober": self.prober.run,
            "the peers": self.peers.follow,
            "the VIPs": self.lookout.tick,
            "the timer": self._watch_time,
        }

    def end(self) -> None:
        """Let threads and tasks go."""
        self.prober.close()
        for task in [*self._yielding.values(), *self._events]:
            task.cancel()

    # what others ask ----------------------------------------------------------------------

    def dead(self, name: str) -> bool:
        """Whether the service of a VIP is dead or silent beyond doubt."""
        patient = self.prober.patients.get(name)
        return patient is not None and patient.dead

    def can_take(self, page: Page) -> bool:
        """Whether this node would take a VIP now."""
        name = page.instance.name
        patient = self.prober.patients.get(name)
        bad = patient is not None and (patient.counts.bad or patient.dead)
        link = self.lookout.links.get(page.instance.interface, True)
        return can_take(running=self.running(), drained=name in self.drained.names or name in self._yielding, bad=bad, told=page.state, link=link)

    def says(self, name: str) -> list[Says]:
        """What the peers say of a VIP."""
        now, out = self.clock.monotonic(), []
        for view in self.peers.views.values():
            vip = view.vips.get(name)
            age = now - view.answered if view.answered is not None else None
            out.append(Says(view.name, age, vip.health if vip else "unknown", vip.usable if vip else None, bool(vip and vip.can_take)))
        return out

    def peering(self, name: str) -> Peering:
        """Which peers could take a VIP."""
        now = self.clock.monotonic()
        able: list[str] = []
        unable: list[str] = []
        unknown: list[str] = []
        holders: list[str] = []
        whys: list[str] = []
        for view in self.peers.views.values():
            vip = view.vips.get(name)
            if not self.heard(view, now) or vip is None:
                unknown.append(view.name)
                continue
            (able if vip.can_take else unable).append(view.name)
            if not vip.can_take:
                whys.append("drained there" if vip.drained else f"{vip.state} there, its service is {vip.health}")
            if vip.held:
                holders.append(view.name)
        return Peering(tuple(able), tuple(unable), tuple(unknown), "; ".join(whys), tuple(holders))

    def claimant(self, name: str, since: float) -> str | None:
        """The peer that has said since then that it holds a VIP."""
        for view in self.peers.views.values():
            vip = view.vips.get(name)
            if vip is not None and vip.held and view.answered is not None and view.answered >= since:
                return view.name
        return None

    def heard(self, view: PeerView, now: float) -> bool:
        """Whether a peer answered lately."""
        return view.answered is not None and now - view.answered < UNHEARD_S

    def names(self) -> Mapping[str, str]:
        """Node names by their addresses."""
        return {a: name for name, peer in self.root.nodes.items() for a in (peer.address, peer.address6) if a}

    # what goes on -------------------------------------------------------------------------

    async def _watch_time(self) -> None:
        """Each tick: alarms, and whether we were frozen since the last one."""
        loop = asyncio.get_running_loop()
        before = loop.time()
        while True:
            await asyncio.sleep(TICK_S)
            now = loop.time()
            gap = now - before - TICK_S
            before = now
            self._ticks += 1
            if gap >= GAP_S:
                self._after_gap(gap)
            self._alarm(self.clock.monotonic())

    def _after_gap(self, gap_s: float) -> None:
        thawed = self.clock.monotonic()
        for name, page in self.book.pages.items():
            if page.held and name not in self._yielding:
                self._yielding[name] = asyncio.create_task(self._thaw(page, gap_s, thawed))

    async def _thaw(self, page: Page, gap_s: float, thawed: float) -> None:
        """Wait until a peer that owns the VIP would have said so again; then decide whether to give it up."""
        name = page.instance.name
        try:
            await asyncio.sleep(1.5 * page.instance.advert_s + 0.3)
            since = bool(page.adverts) and page.adverts[-1][0] > thawed + 0.05
            why = yields(gap_s=gap_s, held=page.held, heard_since=since, peer_holds=bool(self.peering(name).holders))
            if why is not None:
                await self._yield(page, why)
        finally:
            self._yielding.pop(name, None)

    async def _yield(self, page: Page, why: str) -> None:
        """Give a VIP up, covered, until a peer owns it alone, or nobody wants it; what a person drained stays drained."""
        name = page.instance.name
        emit(Event.VIP_YIELDED, f"{name}: {why}", level=WARNING)
        self.journal.write(Entry("vip", Event.VIP_YIELDED, name, "act", why))
        self.handover.cover(page)
        try:
            began = self.clock.monotonic()
            self._weigh(name, Weight.FAULT)
            patience = 2 * master_down_s(1, page.instance.advert_s) + 1
            await self.bell.until(lambda: not page.held and bool(page.adverts) and page.adverts[-1][0] > began, patience)
            page.busy = False  # the lookout ends the cover when the peer has told the network
            await asyncio.sleep(2 * page.instance.advert_s)
        finally:
            page.busy = False
            if name not in self.drained.names:
                self._weigh(name, Weight.SERVING)

    def _keep_low(self, page: Page, now: float) -> None:
        """A settled owner announces a lower priority than the others have; one that is none any more has its own again."""
        name, instance = page.instance.name, page.instance
        if page.busy or name in self._yielding or name in self.drained.names:
            return
        count = max(len(self.root.nodes), len(instance.peers) + 1)
        low = settled_weight(instance.priority, self.vips.base - self.vips.step * (count - 1), nopreempt=instance.preempt is False)
        settled = page.held and name not in self._contested and self._agreed(page, now)
        wanted = low if settled else Weight.SERVING
        if wanted == page.low and self._ticks % LOOK_EVERY:
            return
        said = self.weights.read(name)
        if said in (Weight.SERVING, low, page.low):  # anything else is somebody else's word
            if said != wanted:
                self._weigh(name, wanted)
            page.low = wanted

    def _agreed(self, page: Page, now: float) -> bool:
        """Whether every peer has been heard since this node became the owner; of those that cannot be asked, whether three adverts have passed."""
        since = page.held_since if page.held_since is not None else now
        deaf = any(self.root.nodes[name].ops is None for name in self.peers.views)
        if (deaf or not self.peers.views) and now - since <= 3 * page.instance.advert_s:
            return False
        asked = [view for name, view in self.peers.views.items() if self.root.nodes[name].ops is not None]
        return all(view.answered is not None and view.answered > since and self.heard(view, now) for view in asked)

    def _weigh(self, name: str, weight: int) -> None:
        try:
            self.weights.write(name, weight)
            self.alarms.set(f"{name} weight", None)
        except EdgekeeperError as err:
            self.alarms.set(f"{name} weight", f"keepalived cannot be told about {name}: {err}")

    def _peers_changed(self) -> None:
        with contextlib.suppress(EdgekeeperError):
            write_peers(self.folder, self.peers.views, self.clock.monotonic())
        self._alarm(self.clock.monotonic())  # two owners must be named within 2 s
        self.bell.ring()

    def _alarm(self, now: float) -> None:
        unheard = [v for v in self.peers.views.values() if not self.heard(v, now) and self.root.nodes[v.name].ops is not None]
        told = f"{', '.join(v.name for v in unheard)} cannot be heard and may own any VIP too; `edgekeeper vip owner` says why" if unheard else None
        self.alarms.set("unheard", told)
        for name, page in self.book.pages.items():
            self._settle(page, contested=bool(unheard))
            self._keep_low(page, now)
            claims = self.peering(name).holders if page.held else ()
            since = self._claims.setdefault(name, now) if claims else self._claims.pop(name, now)
            recent = [at for at, _, _ in page.adverts if at >= (page.held_since or now) and now - at < 2 * page.instance.advert_s + 1]
            heard = page.heard_ago(now)
            live = heard is not None and heard < 1.5 * page.instance.advert_s + 0.2
            why = two_owners(
                held=page.held, held_s=now - (page.held_since if page.held_since is not None else now), adverts=len(recent) if live else 0,
                advert_span_s=now - recent[0] if recent else 0.0, claims=claims, claims_s=now - since,
            )  # fmt: skip
            if why is not None and not page.busy:
                who = ", ".join(dict.fromkeys([*claims, *(self.names().get(s, s) for at, s, _ in page.adverts if at in recent)]))
                why = f"VIP {name} ({page.instance.ip}) has two owners, this node and {who}: {why}"
            self.alarms.set(f"{name} owners", why if not page.busy else None)

    def _settle(self, page: Page, *, contested: bool) -> None:
        """An owner that stays tells the network when a peer that claimed the VIP too, or may have, claims it no more: keepalived does so each 30 s only."""
        name = page.instance.name
        if not page.held:
            self._contested.discard(name)
        elif contested or self.peering(name).holders:
            self._contested.add(name)
        elif name in self._contested:
            self._contested.discard(name)
            task = asyncio.create_task(self._announce(page))
            self._events.add(task)
            task.add_done_callback(self._events.discard)

    async def _announce(self, page: Page) -> None:
        for _ in range(ANNOUNCED):
            if not page.held:
                return
            try:
                await asyncio.to_thread(announce, page.instance.interface, page.instance.ip)
            except EdgekeeperError as err:
                emit(Event.VIP_UNCOVERED, str(err), level=WARNING)
                return
            await asyncio.sleep(ANNOUNCE_EVERY_S)

    def _transition(self, name: str, before: str, state: str) -> None:
        page = self.book.pages[name]
        why = f"{name} ({page.instance.ip}) is {state} on {self.node}, was {before}"
        emit(Event.VIP_MASTER_CHANGED, why, vip=name, to=state)
        data = {"vip": name, "address": page.instance.ip, "from": before, "to": state, "audit": True}
        self.journal.write(Entry("vip", Event.VIP_MASTER_CHANGED, name, "act", why, data))
        self.metrics.count("edgekeeper_vip_transitions", {"vip": name, "to": state})
        if self.vips.on_event:
            told = {"schema": 1, "event": "vip.master_changed", "ts": time.time(), "node": self.node, **data}
            task = asyncio.create_task(self._run_hook(json.dumps(told)))
            self._events.add(task)
            task.add_done_callback(self._events.discard)

    async def _run_hook(self, text: str) -> None:
        try:
            code = await feed(self.vips.on_event, text, EVENT_DEADLINE_S)
            why = f"on_event {self.vips.on_event[0]} exited with {code}" if code else None
        except EdgekeeperError as err:
            why = f"on_event failed: {err}"
        self.alarms.set("on_event", why)

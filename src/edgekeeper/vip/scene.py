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
from edgekeeper.host.process import feed
from edgekeeper.log import Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ops.alarms import Alarms
from edgekeeper.runtime import Ground
from edgekeeper.vip.bell import Bell
from edgekeeper.vip.book import Book, Page
from edgekeeper.vip.cover import Covers
from edgekeeper.vip.decide import Peering
from edgekeeper.vip.desired import can_take
from edgekeeper.vip.drained import Drained
from edgekeeper.vip.evidence import Says
from edgekeeper.vip.handover import Handover
from edgekeeper.vip.lookout import Lookout
from edgekeeper.vip.ownership import Ownership
from edgekeeper.vip.peers import Peers, PeerView, write_peers
from edgekeeper.vip.peersay import UNHEARD_S
from edgekeeper.vip.prober import Prober
from edgekeeper.vip.weight import TrackFile, Weight

TICK_S = 0.5
GAP_S = 1.5
"""A timer of our own that was late by so much means that this node, or this process, was frozen."""
EVENT_DEADLINE_S = 10.0
DOUBT_EVERY_S = 30.0
"""Each reload begins a backup's wait for a silent owner anew (2.2.7 to 2.4.3), so none may follow the other for ever."""


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
        self._reload = doubt
        self._doubted: dict[str, float] = {}
        self.bell = Bell()
        self.book = Book()
        self.covers = Covers(self.folder)
        self.weights = TrackFile(self.folder, "weight")
        self.drained = Drained(self.folder)
        self.prober = Prober(TrackFile(self.folder, "health"), self.clock, self.journal, self.says, lambda _: self.bell.ring())
        self.peers = Peers(self.node, root.nodes, root.ops, self.clock, self._peers_changed)
        self.handover = Handover(
            self.book, self.covers, self.weights, self.drained, self.bell, self.clock, self.journal,
            peering=self.peering, dead=self.dead, names=self.names, claimant=self.claimant, deadline_s=self.vips.handover,
        )  # fmt: skip
        self.lookout = Lookout(
            self.node, self.book, self.covers, self.bell, self.folder, self.clock, self.journal, alarms,
            dead=self.dead, running=running, elsewhere=elsewhere, doubt=self.doubt, changed=self._transition, deadline_s=self.vips.handover,
        )  # fmt: skip
        self.ownership = Ownership(
            self.book, self.handover, self.weights, self.drained, self.bell, self.clock, self.journal, alarms,
            peering=self.peering, heard_since=self._heard_since, unheard=lambda: bool(self._unheard()), lowest=self._lowest, names=self.names,
        )  # fmt: skip
        self._events: set[asyncio.Task[None]] = set()

    # the role's side ----------------------------------------------------------------------

    def begin(self) -> None:
        """Put right what a former supervisor left: weights of interrupted hand-overs, covers."""
        for vip in self.vips.vips:
            if self.weights.read(vip.name) >= Weight.FAULT and vip.name not in self.drained.names:
                self.journal.write(Entry("vip", Event.VIP_HANDED_OVER, vip.name, "act", "an interrupted hand-over is undone: the node may hold it again"))
        self.restore()

    def restore(self) -> None:
        """Write every file anew that stood in a folder that was wiped."""
        for vip in self.vips.vips:
            self.ownership.weigh(vip.name, Weight.FAULT if vip.name in self.drained.names or vip.name in self.ownership.yielding else Weight.SERVING)
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
        self.ownership.end()
        for task in self._events:
            task.cancel()

    def doubt(self, why: str) -> bool:
        """Have keepalived reloaded because it misses something; not again for the same reason within ``DOUBT_EVERY_S``: False, then it is to be asked later."""
        now = self.clock.monotonic()
        if now < self._doubted.get(why, 0.0):
            return False
        self._doubted[why] = now + DOUBT_EVERY_S
        self._reload(why)
        return True

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
        return can_take(running=self.running(), drained=name in self.drained.names or name in self.ownership.yielding, bad=bad, told=page.state, link=link)

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
            if gap >= GAP_S:
                self.ownership.thawed(gap)
            self._look()

    def _peers_changed(self) -> None:
        with contextlib.suppress(EdgekeeperError):
            write_peers(self.folder, self.peers.views, self.clock.monotonic())
        self._look()  # two owners must be named within 2 s
        self.bell.ring()

    def _look(self) -> None:
        unheard = self._unheard()
        told = f"{', '.join(unheard)} cannot be heard and may own any VIP too; `edgekeeper vip owner` says why" if unheard else None
        self.alarms.set("unheard", told)
        self.ownership.look()

    def _unheard(self) -> list[str]:
        now = self.clock.monotonic()
        return [v.name for v in self.peers.views.values() if not self.heard(v, now) and self.root.nodes[v.name].ops is not None]

    def _heard_since(self, since: float) -> list[bool | None]:
        now = self.clock.monotonic()
        return [
            view.answered is not None and view.answered > since and self.heard(view, now) if self.root.nodes[name].ops is not None else None
            for name, view in self.peers.views.items()
        ]

    def _lowest(self, page: Page) -> int:
        count = max(len(self.root.nodes), len(page.instance.peers) + 1)
        return self.vips.base - self.vips.step * (count - 1)

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

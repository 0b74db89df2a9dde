"""Watches each VIP: the kernel's addresses, the wire, what keepalived told; and does at once what ``decide`` says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from edgekeeper.engines.keepalived import packet
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import addresses, rawip
from edgekeeper.host.files import read_text
from edgekeeper.host.watch import changes
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ports import Clock, Journal
from edgekeeper.vip.bell import Bell
from edgekeeper.vip.book import Book, Page
from edgekeeper.vip.cover import LOOPBACK, Covers
from edgekeeper.vip.decide import SETTLE_S, Act, decide
from edgekeeper.vip.reader import correct, reads

TICK_S = 0.5
UNREAD_S = 1.0
"""keepalived is reloaded when nobody has read its FIFO for so long; a reload itself leaves it unread for 10 to 80 ms."""
ALARM_S = 5.0
STRANGER_S = 60.0
"""A stranger that has been silent for so long is gone."""
LEFT_S = 3.0
"""An address of a VIP that is configured no more is keepalived's to remove; after so long nobody will."""
VRRP = 112


class Lookout:
    """``changed`` is called with a VIP's name when its state is another one; ``dead`` says whether a VIP's service is dead beyond doubt."""

    def __init__(
        self, node: str, book: Book, covers: Covers, bell: Bell, folder: Path, clock: Clock, journal: Journal, alarms: Alarms,
        *, dead: Callable[[str], bool], running: Callable[[], bool], elsewhere: Callable[[], None], doubt: Callable[[str], object], changed: Callable[[str, str, str], None], deadline_s: float,
    ) -> None:  # fmt: skip
        self._book = book
        self._node = node
        self._covers = covers
        self._bell = bell
        self._state_file = folder / "fifo" / "vip-state.json"
        self._fifo = folder / "fifo" / "vrrp.fifo"
        self._unread = 0.0
        self._reader_seen = False
        self._left: dict[str, tuple[str, int, float]] = {}
        self._skipped = 0
        self._strangers: dict[str, float] = {}
        self.stale = False
        self._clock = clock
        self._journal = journal
        self._alarms = alarms
        self._dead = dead
        self._running = running
        self._changed = changed
        self._elsewhere = elsewhere
        self._doubt = doubt
        self._rewritten = asyncio.Event()
        self.deadline_s = deadline_s
        self.links: Mapping[str, bool] = {}
        self._said: dict[str, str] = {}

    async def watch_kernel(self) -> None:
        """Follow the kernel's addresses and links for ever."""
        async with addresses.Watch(self._address, self._linked, self.reread):
            self.reread()
            await asyncio.Event().wait()

    async def watch_wire(self) -> None:
        """Hear what peers announce, for ever; MissingError without the right to (then only their status tells)."""
        while True:
            self._rewritten.clear()
            families = {6 if ":" in page.instance.ip else 4 for page in self._book.pages.values()}
            async with rawip.RawListener(VRRP, families, self._heard):
                await self._rewritten.wait()

    async def watch_fifo(self) -> None:
        """Follow the state file that keepalived's FIFO reader keeps."""
        looks = changes([self._state_file], 1.0)
        self._read_state()
        async for _ in looks:
            self._read_state()

    def rewritten(self) -> None:
        """The book has other VIPs: look anew."""
        self._rewritten.set()
        self.reread()

    def reread(self) -> None:
        """Ask the kernel for all addresses: at the start, and when events were lost."""
        held = {(a.address, a.interface) for a in addresses.held()}
        self.links = addresses.interfaces()
        now = self._clock.monotonic()
        for page in self._book.pages.values():
            self._hold(page, (page.instance.ip, page.instance.interface) in held, now)

    def evaluate(self, page: Page) -> None:
        """Decide about a VIP and do it."""
        now = self._clock.monotonic()
        name = page.instance.name
        decision = decide(page.sight(now, dead=self._dead(name), running=self._running(), deadline_s=self.deadline_s))
        match decision.act:
            case Act.NOTHING:
                return
            case Act.COVER:
                refusal = self._covers.put(page.instance.ip, page.instance.interface)
                if refusal is not None:
                    page.left_at = None  # not tried again for this one
                    self._alarms.set(f"{name} cover", refusal)
                    return
                page.covered_at = now
                self._alarms.set(f"{name} cover", None)
            case Act.UNCOVER:
                page.covered_at = None
                page.left_at = None
                self._covers.take(page.instance.ip)
            case Act.REMOVE:
                # Before it goes, not when the kernel tells that it has: clients asked in vain for 10 ms (3 of 200/s, 2.2.7 and 2.3.4).
                if not self._dead(name) and self._covers.put(page.instance.ip, page.instance.interface) is None:
                    page.covered_at = now
                try:
                    addresses.remove(page.instance.interface, page.instance.ip, page.instance.prefix)
                except EdgekeeperError as err:
                    self._alarms.set(f"{name} left behind", f"{decision.why}, but: {err}")
                    return
                self._alarms.set(f"{name} left behind", None)
        emit(Event.VIP_COVERED if decision.act is Act.COVER else Event.VIP_UNCOVERED, f"{name}: {decision.why}", level=INFO)
        self._journal.write(Entry("vip", Event.VIP_COVERED if decision.act is Act.COVER else Event.VIP_UNCOVERED, name, "act", decision.why))

    # what is heard ------------------------------------------------------------------------

    def _address(self, address: addresses.Address, present: bool, mono: float) -> None:  # noqa: FBT001 - the watch's shape
        page = self._book.by_address(address.address)
        if page is None:
            self._elsewhere()
            return
        if address.interface == page.instance.interface:
            self._hold(page, present, mono)
        elif address.interface == LOOPBACK and not present and page.covered_at is not None:
            page.covered_at = None  # somebody took it away
            self.evaluate(page)

    def _hold(self, page: Page, held: bool, now: float) -> None:  # noqa: FBT001 - a state
        if held == page.held:
            return
        page.held = held
        if held:
            self._alarms.set(f"{page.instance.name} cover", None)
            page.held_since, page.left_at = now, None
        else:
            page.held_since, page.left_at = None, now
        self.evaluate(page)
        if reads(self._fifo) is not True:
            self.write_down()
        self._tell(page)
        self._bell.ring()

    def write_down(self) -> None:
        """Nobody reads the FIFO: the file says what the kernel says."""
        try:
            correct(self._state_file, self._node, {name: page.held for name, page in self._book.pages.items()})
            self._alarms.set("state file", None)
        except EdgekeeperError as err:
            self._alarms.set("state file", f"who holds what is not written down: {err}")

    def _look_at_reader(self) -> None:
        """keepalived does not start its reader again by itself; a reload does."""
        running = self._running()
        if not running or reads(self._fifo) is True:
            self._reader_seen = running
            self._unread = 0.0
            self._alarms.set("FIFO reader", None)
            self._alarms.set("state file", None)
            return
        self.write_down()
        self.stale = True  # what was told meanwhile is lost
        if self._unread >= ALARM_S:
            self._alarms.set("FIFO reader", f"nobody reads keepalived's FIFO {self._fifo}; who holds what is known from the kernel alone")
        self._unread += TICK_S
        patience = UNREAD_S if self._reader_seen else ALARM_S  # after a start it is still on its way
        if self._unread >= patience:
            self._doubt("nobody reads keepalived's FIFO any more; a reload starts the reader anew")

    def _linked(self, interface: str, up: bool) -> None:  # noqa: FBT001 - the watch's shape
        self.links = {**self.links, interface: up}
        self._elsewhere()
        self._bell.ring()

    def _heard(self, source: str, payload: bytes, mono: float) -> None:
        advert = packet.parse(payload)
        if advert is None:
            return
        page = self._book.by_vrid(advert.vrid, 6 if ":" in source else 4)
        if page is None:
            return
        if source not in page.instance.peers:
            self._stranger(page, source, advert.priority)
            return
        new = page.advert(mono, source, advert.priority)
        if new:
            asyncio.get_running_loop().call_later(SETTLE_S + 0.005, self.evaluate, page)
            self._tell(page)
        elif page.covered_at is not None or not self._running():
            self.evaluate(page)
        self._bell.ring()

    def _stranger(self, page: Page, source: str, priority: int) -> None:
        """Somebody else uses the VRID: two VIPs that share one by accident, mostly."""
        name, vrid = page.instance.name, page.instance.vrid
        self._strangers[name] = self._clock.monotonic()
        told = f"{source} announces VRID {vrid} (priority {priority}) and is no peer of {name}: two VIPs share a VRID in this segment, or a node is missing in nodes:"
        self._alarms.set(f"{name} stranger", f"{told}; give one of them another VRID, on all its nodes at once")

    def _read_state(self) -> None:
        try:
            record = json.loads(read_text(self._state_file, tolerant=True))
            told = dict(record["vips"].items())
        except (EdgekeeperError, ValueError, KeyError, TypeError, AttributeError):
            return
        self._count_skipped(record.get("skipped"))
        for name, said in told.items():
            page = self._book.pages.get(name)
            if page is None or not isinstance(said, dict):
                continue
            page.told = str(said.get("state", page.told))
            page.told_priority = int(said.get("priority") or 0)
            since = said.get("since")
            page.told_since = float(since) if isinstance(since, int | float) else page.told_since
            self._tell(page)
        self._bell.ring()

    def _count_skipped(self, skipped: object) -> None:
        """The reader's own output goes nowhere (keepalived gives it /dev/null), so what it could not understand is told here."""
        before, self._skipped = self._skipped, skipped if isinstance(skipped, int) else 0
        if self._skipped > before:
            emit(Event.VIP_FIFO_LINE_SKIPPED, f"{self._skipped - before} lines of keepalived's FIFO were not understood and are skipped", level=WARNING)

    def fill_in(self, states: Mapping[str, tuple[str, int]]) -> None:
        """State and priority of instances that keepalived has told nothing about, as it holds them."""
        for name, (state, priority) in states.items():
            page = self._book.pages.get(name)
            if page is not None and (self.stale or page.told == "UNKNOWN") and state in ("MASTER", "BACKUP", "FAULT"):
                page.told, page.told_priority = state, priority
                self._tell(page)
        self.stale = False

    def _tell(self, page: Page) -> None:
        """A transition is news once."""
        name, state = page.instance.name, page.state
        before = self._said.get(name)
        if state in (before, "UNKNOWN"):
            return
        self._said[name] = state
        self._changed(name, before or "UNKNOWN", state)

    def forget(self, page: Page) -> None:
        """A VIP that is configured no more: what keepalived does not take away (it was killed before) is taken away here."""
        self._left[page.instance.ip] = (page.instance.interface, page.instance.prefix, self._clock.monotonic())

    def _clear_left(self) -> None:
        for ip, (interface, prefix, since) in list(self._left.items()):
            if self._book.by_address(ip) is not None:
                del self._left[ip]
            elif self._clock.monotonic() - since >= LEFT_S:
                del self._left[ip]
                try:
                    if addresses.remove(interface, ip, prefix):
                        why = f"{ip} belongs to no VIP any more and was left on {interface}; it was taken away"
                        emit(Event.VIP_UNCOVERED, why)
                        self._journal.write(Entry("vip", Event.VIP_UNCOVERED, ip, "act", why))
                except EdgekeeperError as err:
                    emit(Event.VIP_COVER_STUCK, f"{ip} was left on {interface}: {err}", level=WARNING)

    async def tick(self) -> None:
        """Look at all VIPs now and then: deadlines pass without an event."""
        while True:
            for page in list(self._book.pages.values()):
                if page.covered_at is not None or not self._running() or page.left_at is not None:
                    self.evaluate(page)
            self._look_at_reader()
            for name, at in list(self._strangers.items()):
                if self._clock.monotonic() - at > STRANGER_S:
                    del self._strangers[name]
                    self._alarms.set(f"{name} stranger", None)
            self._clear_left()
            await asyncio.sleep(TICK_S)

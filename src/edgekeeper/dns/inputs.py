"""Full snapshots of everything that the wanted topology depends on, each kept while it cannot be read.

Every watcher is a loop that reads, keeps what it read, and tells that something changed. None of
them decides what follows; ``desired``, ``membership.select`` and the engine's ``topology`` do.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from edgekeeper.config.dns import Dns
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.dns import desired, drained
from edgekeeper.dns.certificates import CertificateStore
from edgekeeper.dns.observe import observe
from edgekeeper.dns.zones import ZoneReader, changed_serials, merge
from edgekeeper.engines.dnsdist.topology import Certificate, question
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.host.watch import changes
from edgekeeper.log import Event, emit
from edgekeeper.membership.follow import Follower
from edgekeeper.membership.local import as_members
from edgekeeper.model.backend import Member
from edgekeeper.model.entry import Entry
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ports import Clock, Journal

MEMORY = "membership.json"
ZONES = "zones.json"
RESTING = "resting.json"
CALENDAR_S = 3600.0
"""How often that is looked at while the certificate's files stay as they are."""


class Inputs:
    """What is known right now. ``changed`` is called after anything that may matter is another than before."""

    def __init__(
        self, dns: Dns, state: Path, clock: Clock, journal: Journal, alarms: Alarms, changed: Callable[[], None], *, cluster: Kubernetes | None = None
    ) -> None:
        self.dns = dns
        self.follower = Follower(
            dns.members, state / MEMORY, clock, journal,
            role="dns", alarm=alarms.set, changed=changed, slice_port=dns.members.slice_port, cluster=cluster,
            beside={zone: as_members(entries) for zone, entries in dns.forward.items()},
        )  # fmt: skip
        self.drained = drained.Drained()
        self.heard = desired.Heard({})
        self.seen: Mapping[str, desired.Observation] = {}
        self.judgement = desired.Judgement(False, True, {}, {})
        self.zones: Mapping[str, int | None] = dict.fromkeys(dns.zones.static)
        self.certificate: Certificate | None = None
        self.flush: Callable[[tuple[str, ...]], None] = lambda _: None
        self._state = state
        self._clock = clock
        self._journal = journal
        self._alarms = alarms
        self._changed = changed
        self._store = CertificateStore(state / "tls")
        self._answered: set[str] = set()
        self._reader = ZoneReader(dns.zones, dns.proxy_protocol not in (None, "off"))
        self._zone_memory = ""

    # members ------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[Member, ...]:
        """Who may answer: the last full set, by address."""
        return self.follower.members

    @property
    def forward(self) -> dict[str, tuple[Member, ...]]:
        """Who answers for each zone of ``forward``, by address."""
        return self.follower.beside

    def remember(self) -> None:
        """Start from what an earlier run knew last: members, zones, and who said that it drains.

        So an empty source is noticed, and the running engine is not changed twice (out and in again)
        before everybody has been asked.
        """
        self.follower.remember()
        with contextlib.suppress(EdgekeeperError, ValueError, KeyError, TypeError):
            resting = frozenset(str(a) for a in json.loads(read_text(self._state / RESTING))["addresses"])
            self.heard = desired.Heard(dict.fromkeys(resting, desired.TWICE), resting)
        self._recall_names()
        zones = self.dns.zones
        sources = {f"catalog {c.zone}" for c in zones.catalog}
        with contextlib.suppress(EdgekeeperError, ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(read_text(self._state / ZONES))
            known = {str(k): dict(v) for k, v in record["known"].items() if k in sources or (zones.poll and str(k).startswith("member "))}
            self._reader.known, self._reader.serials = known, {str(k): int(v) for k, v in record["serials"].items()}
        self.zones = {zone: self._reader.serials.get(zone) for zone in merge(zones.static, self._reader.known.values())}

    def go_on_from(self, before: Inputs) -> None:
        """After a reload: what was learnt stays known (a member that drains stays out); what the config names is read again."""
        self.certificate, self.judgement, self.seen = before.certificate, before.judgement, before.seen
        self.heard, self.drained = before.heard, before.drained
        self._answered = before._answered

    # what members say ---------------------------------------------------------------------

    def question(self) -> tuple[str, str]:
        """The question that tells health."""
        return question(self.dns, tuple(self.zones))

    async def look(self, *, first: bool = False) -> None:
        """One round of asking every member, judged."""
        asked = self.question()
        proxy = self.dns.proxy_protocol not in (None, "off")
        members = self.members
        self.seen = await observe(members, asked, proxy=proxy, deadline_s=self.dns.health.timeout)
        before, resting = self.judgement, self.heard.resting
        self.judgement = desired.judge(members, self.seen, was_forgiving=before.forgiving, first=first, question=" ".join(asked), identity=self.dns.identity)
        self.heard = desired.listen_to(self.heard, members, self.seen)
        named = {m.name for m in members if self.judgement.identity.get(m.address) == "same"}
        if not named <= self._answered:
            self._answered |= named
            self.remember_names()
        for name in ("health question", "identity"):
            self._alarms.set(name, self.judgement.alarms.get(name))
        for address in (self.heard.resting ^ resting) & {m.address for m in members}:
            gone = address in self.heard.resting
            why = f"{address} {'says that it drains; it is taken out of service' if gone else 'no longer drains; it is back in service'}"
            emit(Event.MEMBER_DRAINED if gone else Event.MEMBER_UNDRAINED, why)
            self._journal.write(Entry("dns", Event.MEMBER_DRAINED if gone else Event.MEMBER_UNDRAINED, address, "act", why))
        if self.heard.resting != resting:
            with contextlib.suppress(EdgekeeperError):
                write_text(self._state / RESTING, json.dumps({"schema": 1, "addresses": sorted(self.heard.resting)}))
        if (before.forgiving, before.enforce_identity, resting) != (self.judgement.forgiving, self.judgement.enforce_identity, self.heard.resting):
            self._changed()

    def unnamed(self) -> tuple[str, ...]:
        """Named members that have never answered their name, in this run or an earlier one."""
        self._recall_names()
        return tuple(sorted(m.name for m in self.members if m.name and m.name not in self._answered))

    def _recall_names(self) -> None:
        with contextlib.suppress(EdgekeeperError, ValueError, KeyError, TypeError):
            self._answered |= {str(name) for name in json.loads(read_text(self._state / "answered.json"))["names"]}

    def remember_names(self) -> None:
        """Keep who has answered its name."""
        with contextlib.suppress(EdgekeeperError):
            write_text(self._state / "answered.json", json.dumps({"schema": 1, "names": sorted(self._answered)}))

    async def watch_what_members_say(self) -> None:
        """Ask all the time, as often as dnsdist does."""
        while True:
            await asyncio.sleep(self.dns.health.interval)
            if self.members:
                await self.look()

    # drained, zones, certificate ----------------------------------------------------------

    def read_drained(self) -> None:
        """Who is drained by a person."""
        try:
            found = drained.read(self._state)
        except EdgekeeperError as err:
            self._alarms.set("drained", str(err))
            if not self.drained.names:  # at a start
                self.drained = drained.recall(self._state)
            return
        self._alarms.set("drained", None)
        if found != self.drained:
            for name in found.names ^ self.drained.names:
                gone = name in found.names
                why = f"{name} is {'drained' if gone else 'back in service'} by a person"
                emit(Event.MEMBER_DRAINED if gone else Event.MEMBER_UNDRAINED, why)
                self._journal.write(Entry("dns", Event.MEMBER_DRAINED if gone else Event.MEMBER_UNDRAINED, name, "act", why))
            self.drained = found
            self._changed()

    async def watch_drained(self) -> None:
        """Follow the file that ``dns drain`` writes."""
        changed = changes([self._state / drained.NAME])
        self.read_drained()
        async for _ in changed:
            self.read_drained()

    async def watch_zones(self) -> None:
        """Read the zones again and again; a changed serial flushes, a changed set routes."""
        zones = self.dns.zones
        if not (zones.poll or zones.soa or zones.catalog):
            return
        reader = self._reader
        every = min(([zones.poll.every] if zones.poll else []) + ([zones.every] if zones.soa or zones.catalog else []))
        told: set[str] = set()
        while True:
            found = await reader.read(self.members)
            self._alarms.set("zones", "; ".join(found.notes) or None)
            for address in reader.silent - told:
                emit(Event.ZONES_CHANGED, f"{address} has no zones endpoint (404); the static list remains")
            told |= reader.silent
            self.take_zones(found.serials)
            await asyncio.sleep(every)

    def take_zones(self, found: Mapping[str, int | None]) -> None:
        """These are the zones now: what is cached of changed ones is flushed, another set is routed, and both are remembered."""
        before, self.zones = self.zones, found
        stale = changed_serials(before, found)
        if stale:
            self.flush(stale)
        if set(found) != set(before):
            why = f"{len(set(found) - set(before))} zones are new, {len(set(before) - set(found))} are gone, {len(found)} in all"
            emit(Event.ZONES_CHANGED, why)
            self._journal.write(Entry("dns", Event.ZONES_CHANGED, "zones", "act", why))
            self._changed()
        memory = json.dumps({"schema": 1, "known": self._reader.known, "serials": self._reader.serials})
        if memory != self._zone_memory:
            with contextlib.suppress(EdgekeeperError):
                write_text(self._state / ZONES, memory)
                self._zone_memory = memory

    def read_certificate(self) -> None:
        """Check the pair in the config's folder; a good one is used, a bad one keeps the one before."""
        tls = self.dns.tls
        if tls.dir is None:
            return
        try:
            taken = self._store.take(tls, self._clock.wall())
        except EdgekeeperError as err:
            self.certificate = self.certificate or self._store.last()
            kept = "the one before stays in use" if self.certificate else "there is none to use, so the engine is not started"
            if f"{err}; {kept}" != self._alarms.raised.get("certificate"):
                self._journal.write(Entry("dns", Event.CERTIFICATE_REFUSED, str(tls.dir), "refuse", f"{err}; {kept}"))
            self._alarms.set("certificate", f"{err}; {kept}")
            return
        self._alarms.set("certificate", desired.ending(taken.subject, taken.ends - self._clock.wall()))
        if self.certificate is None or taken.certificate.digest != self.certificate.digest:
            known = self.certificate is not None
            self.certificate = taken.certificate
            why = f"{taken.subject} is checked and in use from now on"
            emit(Event.CERTIFICATE_CHANGED, why)
            if known:
                self._journal.write(Entry("dns", Event.CERTIFICATE_CHANGED, str(tls.dir), "act", why))
            self._changed()

    async def watch_certificate(self) -> None:
        """Follow the certificate's files, and the calendar."""
        tls = self.dns.tls
        if tls.dir is None:
            return
        folder = Path(tls.dir)
        changed = changes([folder / tls.certificate, folder / tls.key, folder / "..data"], remind_s=CALENDAR_S)
        self.read_certificate()
        async for _ in changed:
            await asyncio.sleep(0.05)  # chain and key are two files: a moment, so that both are there
            self.read_certificate()

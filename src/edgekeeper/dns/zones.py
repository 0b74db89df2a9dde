"""Which zones the members serve, and their serials: from the config, the members' own endpoint, SOA and catalog zones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dns.asyncquery
import dns.exception
import dns.rdatatype
import dns.zone

from edgekeeper.config.dns import Catalog, ZonePoll, Zones
from edgekeeper.config.kinds import check_domain, split_host_port
from edgekeeper.dns.observe import serial
from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.host import http, secrets
from edgekeeper.model.backend import Member
from edgekeeper.model.text import printable

DEADLINE_S = 4.0
NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class ZoneSet:
    """Zones with their serials (None: not known), and what could not be read, as sentences."""

    serials: Mapping[str, int | None]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ZoneReader:
    """Reads all sources; each keeps its last full answer while it cannot be read.

    ``known`` (source to its last answer) and ``serials`` (each zone's last number) may come from an
    earlier run: else a source that is away at a restart would lose its zones, and a zone that changed
    meanwhile would keep stale answers in the cache of the engine that ran on.
    """

    zones: Zones
    proxy: bool
    known: dict[str, dict[str, int | None]] = field(default_factory=dict)
    serials: dict[str, int] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    async def read(self, members: tuple[Member, ...]) -> ZoneSet:
        """One full set: the union over all sources, with the highest serial that anybody tells."""
        notes: list[str] = []
        await asyncio.gather(*(self._poll(m, notes) for m in members if self.zones.poll), *(self._catalog(c, notes) for c in self.zones.catalog))
        if members:  # none are known yet at a start whose source is away
            current = {f"member {m.address}" for m in members} | {f"catalog {c.zone}" for c in self.zones.catalog}
            for gone in set(self.known) - current:
                del self.known[gone]
        merged = merge(self.zones.static, self.known.values())
        if self.zones.soa and merged:
            found = await asyncio.gather(*(serial(members, zone, proxy=self.proxy, deadline_s=1.0) for zone in merged))
            merged = {zone: told if told is not None else merged[zone] for zone, told in zip(merged, found, strict=True)}
        # A serial that nobody tells just now stays what it was, or its next change would not be seen as one.
        merged = {zone: number if number is not None else self.serials.get(zone) for zone, number in merged.items()}
        self.serials = {zone: number for zone, number in merged.items() if number is not None}
        return ZoneSet(merged, tuple(sorted(notes)))

    async def _poll(self, member: Member, notes: list[str]) -> None:
        await self._keep(f"member {member.address}", lambda: self._ask_member(member), notes)

    async def _catalog(self, catalog: Catalog, notes: list[str]) -> None:
        await self._keep(f"catalog {catalog.zone}", lambda: _transfer(catalog), notes)

    async def _keep(self, source: str, read: Callable[[], Awaitable[dict[str, int | None]]], notes: list[str]) -> None:
        try:
            found = await read()
        except (EdgekeeperError, ValueError) as err:
            kept = len(self.known.get(source, {}))
            notes.append(f"zones of {source} cannot be read ({err}); its last {kept} stay")
            return
        if not found and self.known.get(source):
            notes.append(f"{source} names no zones any more; its last {len(self.known[source])} stay")
            return
        self.known[source] = found

    async def _ask_member(self, member: Member) -> dict[str, int | None]:
        poll = self.zones.poll or ZonePoll()  # type: ignore[call-arg]
        host = f"[{member.host}]" if ":" in member.host else member.host
        headers = {"Authorization": f"Bearer {secrets.read(poll.token_file)}"} if poll.token_file else {}
        answer = await http.get(poll.url.replace("{member}", host), deadline_s=DEADLINE_S, headers=headers, trust=http.Trust(poll.ca_file))
        if answer.status == NOT_FOUND:
            self.silent.add(member.address)
            return {}
        if answer.status != 200:
            msg = f"it answered {answer.status}"
            raise MissingError(msg)
        return parse_zones(answer.text)


def merge(static: Iterable[str], told: Iterable[Mapping[str, int | None]]) -> dict[str, int | None]:
    """The union of all zones, sorted, each with the highest serial told."""
    out: dict[str, int | None] = dict.fromkeys(static)
    for zones in told:
        for zone, number in zones.items():
            before = out.get(zone)
            out[zone] = number if before is None or (number is not None and number > before) else before
    return dict(sorted(out.items()))


def parse_zones(text: str) -> dict[str, int | None]:
    """Zones of ``{"node", "zones": [{"name", "serial", "type"}]}``; ValueError when it has another shape."""
    try:
        return dict(_entry(entry) for entry in json.loads(text)["zones"])
    except (KeyError, TypeError, AttributeError, RecursionError) as err:
        msg = f"the answer is not {{zones: [{{name, serial}}]}}: {type(err).__name__} {printable(str(err), 80)}"
        raise ValueError(msg) from err


def _entry(entry: Any) -> tuple[str, int | None]:
    name, number = entry["name"], entry.get("serial")
    if not isinstance(name, str):
        msg = f"a zone's name is {type(name).__name__}, not text"
        raise TypeError(msg)
    if number is None:
        return check_domain(name), None
    if isinstance(number, bool) or not isinstance(number, int | str) or not 0 <= int(number) < 2**32:
        msg = f"the serial of {printable(name, 80)} is not a number below 2**32"
        raise TypeError(msg)
    return check_domain(name), int(number)


def changed_serials(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> tuple[str, ...]:
    """Zones whose cached answers are stale: the serial is another one than before (a first one is none)."""
    return tuple(zone for zone, number in after.items() if zone in before and before[zone] is not None and number is not None and number != before[zone])


async def _transfer(catalog: Catalog) -> dict[str, int | None]:
    """The member zones of a catalog (RFC 9432), by AXFR."""
    host, port = split_host_port(catalog.server)
    zone = dns.zone.Zone(catalog.zone)
    try:
        async with asyncio.timeout(DEADLINE_S * 2):
            await dns.asyncquery.inbound_xfr(host, zone, port=port, timeout=DEADLINE_S, lifetime=DEADLINE_S * 2)
    except (dns.exception.DNSException, OSError, TimeoutError, EOFError) as err:
        msg = f"the transfer from {catalog.server} failed: {type(err).__name__} {err}".rstrip()
        raise MissingError(msg) from err
    return read_catalog(zone)


def read_catalog(zone: dns.zone.Zone) -> dict[str, int | None]:
    """Zones of a transferred catalog: the PTR records under ``<id>.zones``; other schema versions are a MissingError."""
    version = zone.get_rdataset("version", dns.rdatatype.TXT)
    told = [b"".join(record.strings).decode("ascii", "replace") for record in version] if version is not None else []
    if told != ["2"]:
        msg = f"its version is {told or 'missing'}, not 2"
        raise MissingError(msg)
    out: dict[str, int | None] = {}
    for name, node in zone.nodes.items():
        labels = [label.decode("ascii", "replace").lower() for label in name.labels]
        found = node.get_rdataset(zone.rdclass, dns.rdatatype.PTR)
        if found is not None and len(found) == 1 and len(labels) == 2 and labels[1] == "zones":
            out[check_domain(found[0].target.derelativize(zone.origin).to_text())] = None
    return out

"""Members from DNS: SRV records, or addresses with a fixed port."""

from __future__ import annotations

import asyncio
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.nameserver
import dns.resolver

from edgekeeper.config.kinds import check_node, split_host_port
from edgekeeper.config.members import DnsSource as Wanted
from edgekeeper.errors import MissingError
from edgekeeper.model.backend import Member, Membership
from edgekeeper.ports import Clock

DEADLINE_S = 4.0


def resolver(servers: tuple[str, ...] = ()) -> dns.asyncresolver.Resolver:
    """A resolver with a deadline; the system's name servers when none are given."""
    found = dns.asyncresolver.Resolver(configure=not servers)
    if servers:
        found.nameservers = [dns.nameserver.Do53Nameserver(*split_host_port(server)) for server in servers]
    found.lifetime = DEADLINE_S
    found.timeout = DEADLINE_S / 2
    return found


async def ask(name: str, kind: str, servers: tuple[str, ...] = ()) -> list[Any]:
    """All records of one type; none is an empty list, everything else that goes wrong a MissingError."""
    try:
        answer = await resolver(servers).resolve(name, kind, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    except (dns.exception.DNSException, OSError) as err:
        msg = f"{name} {kind} cannot be resolved: {err}"
        raise MissingError(msg) from err
    return list(answer)


async def addresses(name: str, kinds: tuple[str, ...] = ("A", "AAAA"), servers: tuple[str, ...] = ()) -> list[str]:
    """Addresses of a name, sorted. One family may be missing, not both families in error."""
    answers = await asyncio.gather(*(ask(name, kind, servers) for kind in kinds), return_exceptions=True)
    failures = [a for a in answers if isinstance(a, BaseException)]
    if failures:  # a partial view is no view: the other family's servers would vanish
        raise failures[0]
    return sorted(record.address for answer in answers if not isinstance(answer, BaseException) for record in answer)


class DnsSource:
    """``ports.Source`` over SRV or address records; asked again every ``every`` seconds."""

    def __init__(self, wanted: Wanted, clock: Clock) -> None:
        self._wanted = wanted
        self._clock = clock

    async def read(self) -> Membership:
        """One full snapshot: every name of the SRV set resolved, or none."""
        wanted = self._wanted
        if wanted.type == "SRV":
            members = await self._from_srv()
        else:
            kinds = ("A", "AAAA") if wanted.type == "A+AAAA" else (wanted.type,)
            found = await addresses(wanted.name, kinds, wanted.servers)
            members = [Member("", address, wanted.port or 53) for address in found]
        return Membership(tuple(sorted(members)), f"DNS {wanted.name} {wanted.type}", self._clock.wall(), by_person=False)

    async def _from_srv(self) -> list[Member]:
        records = await ask(self._wanted.name, "SRV", self._wanted.servers)
        targets = [(str(r.target).lower(), int(r.port)) for r in records if str(r.target) != "."]
        answers = await asyncio.gather(*(addresses(target, servers=self._wanted.servers) for target, _ in targets))
        members = []
        for (target, port), found in zip(targets, answers, strict=True):
            if not found:  # left out, it would be a partial view: a healthy server gone because of one late record
                msg = f"{self._wanted.name} SRV names {target}, which has no addresses; the set is not used before all have some"
                raise MissingError(msg)
            name = _node(target) if len(found) == 1 else ""
            members += [Member(name, address, port) for address in found]
        names = [m.name for m in members]
        return [m if names.count(m.name) == 1 else Member("", m.host, m.port) for m in members]

    async def changed(self) -> None:
        """When the period is over."""
        await asyncio.sleep(self._wanted.every)

    async def aclose(self) -> None:
        """It holds nothing between two questions."""


def _node(target: str) -> str:
    """The first label as a node's name; empty where it cannot be one (names of DNS may hold anything)."""
    try:
        return check_node(target.split(".", maxsplit=1)[0])
    except ValueError:
        return ""

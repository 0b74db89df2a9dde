from __future__ import annotations

import asyncio
from typing import Any

import dns.asyncresolver
import dns.rdata
import dns.resolver
import pytest

from edgekeeper.config.members import DnsSource as Wanted
from edgekeeper.errors import MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership.dns import DEADLINE_S, DnsSource, resolver
from edgekeeper.model.backend import Member, Membership

SERVERS = ("192.0.2.53:5300", "192.0.2.53:5301", "[2001:db8::53]:53")


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Any]:
    """What the resolver finds: (name, type) to texts; what is missing is NXDOMAIN, an exception is raised."""
    records: dict[tuple[str, str], Any] = {}

    async def resolve(self: object, name: str, kind: str, *, search: bool) -> list[dns.rdata.Rdata]:
        assert not search
        found = records.get((name, kind))
        if found is None:
            raise dns.resolver.NXDOMAIN(qnames=[dns.name.from_text(name)])
        if isinstance(found, Exception):
            raise found
        return [dns.rdata.from_text("IN", kind, text) for text in found]

    monkeypatch.setattr(dns.asyncresolver.Resolver, "resolve", resolve)
    return records


def read(kind: str = "SRV", port: int | None = None) -> Membership:
    wanted = Wanted(name="_dns._udp.example.", type=kind, port=port, servers=SERVERS)  # type: ignore[arg-type]
    return asyncio.run(DnsSource(wanted, SystemClock()).read())


def test_srv_names_become_members_with_their_own_ports(zone: dict[tuple[str, str], Any]) -> None:
    zone["_dns._udp.example.", "SRV"] = ["0 0 53 NS-a.example.", "10 5 5353 ns-b.example."]
    zone["ns-a.example.", "A"] = ["192.0.2.1"]
    zone["ns-b.example.", "AAAA"] = ["2001:db8::2"]
    found = read()
    assert found.members == (Member("ns-a", "192.0.2.1", 53), Member("ns-b", "2001:db8::2", 5353))
    assert not found.by_person
    assert found.source == "DNS _dns._udp.example. SRV"


def test_addresses_with_a_fixed_port(zone: dict[tuple[str, str], Any]) -> None:
    zone["_dns._udp.example.", "A"] = ["192.0.2.2", "192.0.2.1"]
    zone["_dns._udp.example.", "AAAA"] = ["2001:db8::1"]
    assert read("A", 5353).members == (Member("", "192.0.2.1", 5353), Member("", "192.0.2.2", 5353))
    assert len(read("A+AAAA", 5353).members) == 3
    assert read("AAAA", 53).members == (Member("", "2001:db8::1", 53),)


def test_a_name_without_records_is_an_empty_snapshot_and_not_an_error(zone: dict[tuple[str, str], Any]) -> None:
    assert read().members == ()
    zone["_dns._udp.example.", "SRV"] = ["0 0 0 ."]
    assert read().members == ()


@pytest.mark.parametrize(
    "failure", [dns.resolver.LifetimeTimeout(timeout=4, errors=[]), dns.resolver.NoNameservers(), OSError("no route")], ids=["timeout", "servfail", "os"]
)
def test_what_fails_is_never_a_short_list(zone: dict[tuple[str, str], Any], failure: Exception) -> None:
    zone["_dns._udp.example.", "SRV"] = failure
    with pytest.raises(MissingError, match="cannot be resolved"):
        read()
    zone["_dns._udp.example.", "SRV"] = ["0 0 53 ns-a.example.", "0 0 53 ns-b.example."]
    zone["ns-a.example.", "A"] = ["192.0.2.1"]
    zone["ns-b.example.", "A"] = ["192.0.2.2"]
    zone["ns-b.example.", "AAAA"] = failure
    with pytest.raises(MissingError, match=r"ns-b.example. AAAA cannot be resolved"):
        read()


def test_a_target_without_addresses_makes_no_partial_set(zone: dict[tuple[str, str], Any]) -> None:
    zone["_dns._udp.example.", "SRV"] = ["0 0 53 ns-a.example.", "0 0 53 ns-b.example."]
    zone["ns-a.example.", "A"] = ["192.0.2.1"]
    with pytest.raises(MissingError, match=r"ns-b.example., which has no addresses"):
        read()


def test_a_name_belongs_to_one_address_only(zone: dict[tuple[str, str], Any]) -> None:
    zone["_dns._udp.example.", "SRV"] = ["0 0 53 ns.a.example.", "0 0 53 ns.b.example.", "0 0 53 two.example."]
    zone["ns.a.example.", "A"] = ["192.0.2.1"]
    zone["ns.b.example.", "A"] = ["192.0.2.2"]
    zone["two.example.", "A"] = ["192.0.2.3", "192.0.2.4"]
    assert [m.name for m in read().members] == [""] * 4


@pytest.mark.parametrize("target", [r"x\"\ os.exit\(\)--.example.", "_x.example.", r"a\010b.example."], ids=["lua", "underscore", "newline"])
def test_a_target_whose_name_is_no_nodes_name_is_anonymous(zone: dict[tuple[str, str], Any], target: str) -> None:
    zone["_dns._udp.example.", "SRV"] = [f"0 0 53 {target}"]
    asked = str(dns.rdata.from_text("IN", "SRV", f"0 0 53 {target}").target).lower()  # type: ignore[attr-defined]
    zone[asked, "A"] = ["192.0.2.1"]
    assert read().members == (Member("", "192.0.2.1", 53),)


def test_every_server_is_asked_on_its_own_port_and_within_a_deadline() -> None:
    made = resolver(SERVERS)
    assert [str(server) for server in made.nameservers] == ["Do53:192.0.2.53@5300", "Do53:192.0.2.53@5301", "Do53:2001:db8::53@53"]
    assert made.lifetime == DEADLINE_S

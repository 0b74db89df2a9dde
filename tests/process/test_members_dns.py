"""Members from DNS: a real resolver against a real name server, and dnsdist following it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekeeper.config.members import DnsSource as Wanted
from edgekeeper.errors import MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership import dns as unit
from edgekeeper.membership.dns import DnsSource
from edgekeeper.model.backend import Member

from .edge import Edge, edge, until
from .nameserver import NameServer

SRV = "_dns._udp.example."


@pytest.fixture
def server() -> Iterator[NameServer]:
    made = NameServer()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "DEADLINE_S", 0.5)


def read(server: NameServer, **said: object) -> tuple[Member, ...]:
    wanted = Wanted.model_validate({"name": SRV, "servers": [server.listen], **said})
    return asyncio.run(DnsSource(wanted, SystemClock()).read()).members


def test_srv_and_addresses(server: NameServer) -> None:
    server.records = {
        (SRV, "SRV"): ["0 0 5301 ns-a.example.", "0 0 5302 ns-b.example."],
        ("ns-a.example.", "A"): ["192.0.2.1"],
        ("ns-b.example.", "AAAA"): ["2001:db8::2"],
        (SRV, "A"): ["192.0.2.8", "192.0.2.7"],
    }
    assert read(server) == (Member("ns-a", "192.0.2.1", 5301), Member("ns-b", "2001:db8::2", 5302))
    assert read(server, type="A", port=5353) == (Member("", "192.0.2.7", 5353), Member("", "192.0.2.8", 5353))


def test_an_empty_name_is_empty_and_everything_else_is_an_error_within_the_deadline(server: NameServer) -> None:
    assert read(server) == ()
    server.records = {(SRV, "TXT"): ['"x"']}
    assert read(server) == ()
    for mode in ("servfail", "silent"):
        server.mode = mode
        begun = time.monotonic()
        with pytest.raises(MissingError, match="cannot be resolved"):
            read(server)
        assert time.monotonic() - begun < 2


def test_one_address_that_cannot_be_had_makes_no_partial_set(server: NameServer) -> None:
    server.records = {
        (SRV, "SRV"): ["0 0 5301 ns-a.example.", "0 0 5302 ns-b.example."],
        ("ns-a.example.", "A"): ["192.0.2.1"],
        ("ns-b.example.", "A"): ["192.0.2.2"],
    }
    server.broken = {("ns-b.example.", "AAAA")}
    with pytest.raises(MissingError, match="ns-b"):
        read(server)


@pytest.fixture
def made(tmp_path: Path, server: NameServer) -> Iterator[Edge]:
    with edge(tmp_path) as found:
        source = f"{{dns: {{name: {SRV}, servers: ['{server.listen}'], every: 1s}}}}"
        found.config.write_text(found.config.read_text().replace(f"{{file: {found.members}}}", source))
        name(server, found, *found.names)
        yield found


def name(server: NameServer, made: Edge, *names: str) -> None:
    """These are the members now."""
    ports = dict(zip(made.names, made.member_ports, strict=True))
    server.records = {
        (SRV, "SRV"): [f"0 0 {ports[each]} {each}.example." for each in names],
        **{(f"{each}.example.", "A"): ["127.0.0.1"] for each in made.names},
    }


def test_dnsdist_follows_the_names_and_a_dead_or_empty_dns_changes_nothing(made: Edge, server: NameServer) -> None:
    made.run()
    pid = made.wait_ready()["engine"]["pid"]
    assert made.held() == {"ns-a", "ns-b", "ns-c"}
    name(server, made, "ns-a", "ns-b")
    until(lambda: made.held() == {"ns-a", "ns-b"}, "one is gone")
    for mode in ("silent", "servfail"):
        server.mode = mode
        until(lambda: "cannot be read" in made.status()["alarms"].get("membership", ""), f"an alarm about {mode}")
        assert made.held() == {"ns-a", "ns-b"}
    server.mode = "normal"
    server.records = {}
    until(lambda: "names no members" in made.status()["alarms"].get("membership", ""), "an alarm about nobody")
    assert made.held() == {"ns-a", "ns-b"}
    name(server, made, *made.names)
    until(lambda: made.held() == {"ns-a", "ns-b", "ns-c"} and not made.status()["alarms"], "all are back")
    assert made.status()["engine"]["pid"] == pid


def test_a_loss_of_more_than_half_waits_for_one_confirmation(made: Edge, server: NameServer) -> None:
    made.run()
    made.wait_ready()
    name(server, made, "ns-a")
    until(lambda: "held until" in made.status()["alarms"].get("membership", ""), "the loss is held")
    assert len(made.held()) == 3
    until(lambda: made.held() == {"ns-a"}, "and then believed")
    held = [line for line in made.said().splitlines() if "members.held" in line]
    assert len(held) == 1

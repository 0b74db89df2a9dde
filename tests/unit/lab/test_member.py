"""The small DNS server: what it answers, and how it misbehaves."""

from __future__ import annotations

import pytest

from edgekeeper.lab.member import Manner, answer, strip_proxy, transfer
from edgekeeper.probe import packet


def ask(manner: Manner, name: str = "q1.example.", qtype: str = "A", qclass: str = "IN") -> packet.Reply | None:
    reply, _ = answer(packet.question(7, name, qtype, qclass), manner)
    return packet.parse(reply) if reply is not None else None


def test_it_answers_with_its_address_its_name_and_a_serial() -> None:
    manner = Manner("ns-a", answer="192.0.2.21", serial=9)
    assert ask(manner).addresses == ("192.0.2.21",)  # type: ignore[union-attr]
    assert ask(manner, "health.example.", "TXT").texts == ("ns-a",)  # type: ignore[union-attr]
    assert ask(manner, "id.server.", "TXT", "CH").texts == ("ns-a",)  # type: ignore[union-attr]
    assert ask(manner, "zone.example.", "SOA").serial == 9  # type: ignore[union-attr]
    assert ask(manner, "x.example.", "MX").addresses == ()  # type: ignore[union-attr]
    assert manner.command("asked") == "5"


@pytest.mark.parametrize(("mode", "rcode"), [("refused", 5), ("servfail", 2), ("nxdomain", 3), ("notimp", 4)])
def test_modes(mode: str, rcode: int) -> None:
    manner = Manner("ns-a")
    assert manner.command(f"mode {mode}") == "ok"
    assert ask(manner).rcode == rcode  # type: ignore[union-attr]


def test_silence_truncation_delay_and_draining() -> None:
    manner = Manner("ns-a")
    manner.command("mode drop")
    assert ask(manner) is None
    manner.command("mode truncated")
    assert ask(manner).truncated  # type: ignore[union-attr]
    manner.command("mode normal")
    manner.command("delay 1.6")
    assert answer(packet.question(1, "q.example."), manner)[1] == 1.6
    manner.command("draining on")
    assert ask(manner, "health.example.", "TXT").texts == ("ns-a draining",)  # type: ignore[union-attr]
    manner.command("identity ns-x")
    manner.command("draining off")
    assert ask(manner, "health.example.", "TXT").texts == ("ns-x",)  # type: ignore[union-attr]


def test_a_dead_upstream_hurts_clients_but_not_what_it_knows_itself() -> None:
    manner = Manner("ns-a")
    manner.command("mode servfail clients")
    assert ask(manner).rcode == 2  # type: ignore[union-attr]
    assert ask(manner, "health.example.", "TXT").rcode == 0  # type: ignore[union-attr]
    assert ask(manner, "id.server.", "TXT", "CH").rcode == 0  # type: ignore[union-attr]
    manner.command("mode servfail health")
    assert ask(manner).rcode == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("line", ["mode nope", "mode servfail everybody", "draining maybe", "what", "delay"])
def test_what_it_does_not_understand(line: str) -> None:
    assert "is not a command" in Manner("ns-a").command(line)


def test_a_catalog_is_transferred_and_other_zones_are_refused() -> None:
    manner = Manner("ns-a", zones=["a.example.", "b.example."])
    (zone,) = transfer(packet.question(1, "catalog.example.", "AXFR"), manner)
    assert zone[6:8] == b"\0\5", "SOA, version, two zones, SOA"
    (refused,) = transfer(packet.question(1, "other.example.", "AXFR"), manner)
    assert packet.parse(refused).rcode == 5


def test_a_proxy_header_is_taken_off() -> None:
    header = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x12\x00\x0c" + bytes(12)
    assert strip_proxy(header + b"rest") == (b"rest", 28)
    assert strip_proxy(b"rest") == (b"rest", 0)

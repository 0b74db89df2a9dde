"""What preflight refuses without touching the machine."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest

from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.hands import DnsdistHands
from edgekeeper.engines.dnsdist.seat import make
from edgekeeper.engines.dnsdist.topology import build
from edgekeeper.model.backend import Member

NEW = Features((2, 1, 3), yaml=True, protocols=("do53", "dot"), ebpf=True)
DNS = Root.model_validate({"dns": {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}}}).dns
GOOD = build(DNS, (Member("ns-a", "127.0.0.1", 5353), Member("ns-b", "127.0.0.1", 5354)), (), NEW)
TWINS = tuple(replace(item, id=GOOD.backends[0].id) for item in GOOD.backends)
BARE = replace(GOOD.listeners[0], protocol="dot")
SEAT = make((1, 2, 3), bytes(range(128)))


@pytest.mark.parametrize(
    ("topology", "seat", "said"),
    [
        (replace(GOOD, listeners=()), SEAT, "there is no listener; dnsdist would serve nobody"),
        (replace(GOOD, backends=()), SEAT, "there is no member; dnsdist would answer SERVFAIL to everybody"),
        (replace(GOOD, backends=TWINS), SEAT, "two members have the id of ns-a; dnsdist accepts that and then mixes them up"),
        (replace(GOOD, pools=GOOD.pools[1:]), SEAT, "the rule resolver sends to the pool resolver, which does not exist"),
        (GOOD, replace(SEAT, console_key="x"), "the console key is not base64 of 32 bytes; dnsdist would run without a console"),
        (replace(GOOD, listeners=(BARE,)), SEAT, "127.0.0.1:53 has no certificate"),
    ],
)
def test_what_dnsdists_check_passes_and_nobody_wants(topology, seat, said):
    assert asyncio.run(DnsdistHands(NEW).preflight(topology, seat, None)) == said


def test_beside_a_sibling_no_udp_socket_joins_its_group(monkeypatch):
    """A socket that is bound to share the port, if only to try, is given a share of the queries and answers none."""
    tried = []

    def bindable(host, port, kind, *, reuse):
        tried.append((kind, reuse))

    monkeypatch.setattr("edgekeeper.engines.dnsdist.hands._bindable", bindable)
    hands = DnsdistHands(NEW)
    assert asyncio.run(hands.preflight(GOOD, SEAT, replace(SEAT, api_port=9))) is None
    assert (socket.SOCK_STREAM, True) in tried
    assert (socket.SOCK_DGRAM, True) not in tried
    tried.clear()
    assert asyncio.run(hands.preflight(GOOD, SEAT, SEAT)) is None
    assert tried == [], "a live change binds nothing"

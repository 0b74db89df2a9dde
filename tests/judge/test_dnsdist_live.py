"""A running engine that is changed, and one that is started on the changed config, are told apart by nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import replace

import pytest

from edgekeeper.engines.dnsdist import api, live
from edgekeeper.engines.dnsdist.console import Console
from edgekeeper.engines.dnsdist.topology import Topology
from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.model.backend import Member
from edgekeeper.ports import Cost

pytestmark = pytest.mark.engine

A, B, C = (Member(name, "127.0.0.1", port) for name, port in (("ns-a", 15991), ("ns-b", 15992), ("ns-c", 15993)))
NAMELESS = Member("", "127.0.0.1", 15994)
LAN = Member("", "127.0.0.1", 15995)


def state(engine, topology, seat):
    """What the API says without counters, places in lists and up or down."""
    tree = json.loads(asyncio.run(api.get(seat.api_port, "/api/v1/servers/localhost", seat.api_key)))
    held = asyncio.run(engine.hands.read(seat))
    servers = [{key: item.get(key) for key in ("name", "address", "pools", "order", "weight", "protocol", "qpsLimit")} for item in tree["servers"]]
    empty = {pool["name"] for pool in tree["pools"] if not pool["serversCount"]}  # dnsdist cannot forget a pool
    return {
        "servers": sorted(servers, key=lambda item: item["name"]),
        "ids": sorted((server.name, server.id) for server in held.servers),
        "rules": [{key: item.get(key) for key in ("name", "uuid", "rule", "action")} for item in tree["rules"]],
        "pools": sorted((pool["name"], pool["cacheSize"], pool["serversCount"]) for pool in tree["pools"] if pool["name"] not in empty),
        "acl": sorted(tree["acl"].split(", ")),
        "frontends": sorted((item["address"], item["type"]) for item in tree["frontends"]),
    }


CHANGES = {
    "added": ((A, B), ("example.",), {}, (A, B, C, NAMELESS), ("example.",), {}),
    "removed": ((A, B, NAMELESS), (), {}, (A,), (), {}),
    "moved": ((A, B), (), {}, (A, replace(B, port=15999)), (), {}),
    "pools": ((A, B), (), {}, (A, replace(B, pools=("authoritative",))), (), {}),
    "zones": ((A,), ("example.", "gone.example."), {}, (A,), ("example.", "new.example.", "deep.lan."), {}),
    "forward": ((A,), ("deep.lan.",), {"lan.": (LAN,)}, (A,), ("deep.lan.",), {"lan.": (LAN, C), "home.arpa.": (LAN,)}),
    "no forward": ((A,), (), {"lan.": (LAN,)}, (A,), (), {}),
    "all": ((A, NAMELESS), ("a.example.",), {"lan.": (LAN,)}, (B, C), ("b.example.",), {"home.arpa.": (A,)}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_live_change_ends_where_a_fresh_start_begins(dnsdist, change):
    members, zones, forward, later, new_zones, new_forward = CHANGES[change]
    said = {"transfer_sources": ["192.0.2.11/32"], "health": {"name": "health.example.", "type": "TXT"}}
    dns = {"listen": dnsdist.dns().listen, **said}
    old = dnsdist.topology(members, zones, forward=forward, **dns)
    new = dnsdist.topology(later, new_zones, forward=new_forward, **dns)
    assert dnsdist.engine.change(old, new).cost is Cost.LIVE
    seat, _ = dnsdist.start(old)
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None
    changed = state(dnsdist, new, seat)
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None, "sending it twice changes nothing"
    assert state(dnsdist, new, seat) == changed
    dnsdist.stop()
    seat, _ = dnsdist.start(new, seat)
    assert state(dnsdist, new, seat) == changed


def test_acl_and_transfer_sources_change_live(dnsdist):
    listen = dnsdist.dns().listen
    old = dnsdist.topology((A,), listen=listen, acl=["192.0.2.0/24"], transfer_sources=["192.0.2.1/32"])
    new = dnsdist.topology((A,), listen=listen, acl=["198.51.100.0/24", "2001:db8::/32"], transfer_sources=[])
    seat, _ = dnsdist.start(old)
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None
    changed = state(dnsdist, new, seat)
    dnsdist.stop()
    seat, _ = dnsdist.start(new, seat)
    assert state(dnsdist, new, seat) == changed
    assert "198.51.100.0/24" in changed["acl"]


def test_an_engine_that_is_not_what_was_wanted_is_told(dnsdist):
    """Somebody with the console key took a member out: the next live change does not pass over that."""
    old = dnsdist.topology((A, B, C), listen=dnsdist.dns().listen)
    new = replace(old, acl=(*old.acl, "192.0.2.0/24"))
    seat, _ = dnsdist.start(old)

    async def meddle():
        async with Console(seat.console_port, seat.console_key) as console:
            await console.run(f'rmServer("{old.backends[0].id}")')

    asyncio.run(meddle())
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) == "after the live change the engine does not hold ns-a"


def server_states(engine, seat):
    return {server.name: server.up for server in asyncio.run(engine.hands.status(seat)).servers}


def until(engine, seat, wanted, within_s=8.0):
    end = time.monotonic() + within_s
    while (found := server_states(engine, seat)) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_where_all_are_replaced_at_once_the_new_ones_serve_at_once(dnsdist, answerer):
    first, second = (tuple(Member(f"{name}{i}", "127.0.0.1", answerer(f"{name}{i}").port) for i in (1, 2)) for name in ("old-", "new-"))
    said = {"listen": dnsdist.dns().listen, "health": {"name": "health.example.", "type": "TXT", "rise": 9}}  # more than the seconds that the change may take
    old, new = dnsdist.topology(first, **said), dnsdist.topology(second, **said)
    seat, _ = dnsdist.start(old)
    assert until(dnsdist, seat, {"old-1": True, "old-2": True}) == {"old-1": True, "old-2": True}
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None
    assert server_states(dnsdist, seat) == {"new-1": True, "new-2": True}


def test_a_member_keeps_its_status_when_its_options_change_and_a_new_one_must_earn_it(dnsdist, answerer):
    up = tuple(Member(name, "127.0.0.1", answerer(name).port) for name in ("ns-a", "ns-b"))
    dead, fresh = Member("ns-c", "127.0.0.1", 15993), Member("ns-d", "127.0.0.1", answerer("ns-d").port)
    said = {"listen": dnsdist.dns().listen, "health": {"name": "health.example.", "type": "TXT", "rise": 9}}  # more than the seconds that the change may take
    old = dnsdist.topology((*up, dead), **said)
    seat, _ = dnsdist.start(old)
    before = {"ns-a": True, "ns-b": True, "ns-c": False}
    assert until(dnsdist, seat, before) == before
    new = dnsdist.topology((*up, dead, fresh), forgiving=True, **said)
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None
    at_once = server_states(dnsdist, seat)
    assert {name: at_once[name] for name in before} == before, "a pool must not lose a member that is well"
    assert not at_once["ns-d"], "with others up, it waits for its health"


def test_a_member_that_joins_when_nobody_is_up_serves_at_once(dnsdist, answerer):
    well = answerer("ns-b")
    listen = dnsdist.dns().listen
    old = dnsdist.topology((Member("ns-a", "127.0.0.1", 15991),), listen=listen)
    seat, _ = dnsdist.start(old)
    assert until(dnsdist, seat, {"ns-a": False}) == {"ns-a": False}
    new = dnsdist.topology((Member("ns-b", "127.0.0.1", well.port),), listen=listen)
    assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None
    assert server_states(dnsdist, seat) == {"ns-b": True}


@pytest.mark.parametrize("how", ["leaves", "is changed"])
def test_a_member_that_goes_still_answers_what_it_was_asked(dnsdist, answerer, how):
    slow, other = answerer("ns-a"), answerer("ns-b")
    slow.slow_s = 1.2
    members = (Member("ns-a", "127.0.0.1", slow.port), Member("ns-b", "127.0.0.1", other.port))
    said = {"listen": dnsdist.dns().listen, "health": {"name": "health.example.", "type": "TXT"}, "retry": "off"}
    old = dnsdist.topology(members, **said)
    new = dnsdist.topology(members[1:], **said) if how == "leaves" else dnsdist.topology(members, forgiving=True, **said)
    seat, _ = dnsdist.start(old)
    host, _, port = old.listeners[0].address.rpartition(":")
    asked = [bytes([0x12, number]) + bytes.fromhex("0100000100000000000002") + b"n%d" % number + bytes.fromhex("0000100001") for number in range(10)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((host, int(port)))
        client.settimeout(3)
        for packet in asked:
            client.send(packet)
        time.sleep(0.2)
        assert any(b"health" not in packet for packet in slow.heard), "the slow one was asked nothing: the test says nothing"
        began = time.monotonic()
        assert asyncio.run(dnsdist.hands.live(old, new, seat)) is None
        assert time.monotonic() - began < 6
        assert {client.recv(512)[1] for _ in asked} == set(range(10))


def test_commands_that_fail_and_keys_that_are_anothers_are_errors(dnsdist):
    topology = dnsdist.topology((A,))
    seat, _ = dnsdist.start(topology)

    async def say(text, key=seat.console_key):
        async with Console(seat.console_port, key, timeout_s=2) as console:
            return await console.run(text)

    assert asyncio.run(say("return 'x' .. 'y'")).strip() == "xy"
    for wrong in ("nosuch()", "syntax error(", 'rmServer("nope")'):
        with pytest.raises(StepFailedError, match="refused a command: Error"):
            asyncio.run(say(wrong))
    with pytest.raises(MissingError, match="another's"):
        asyncio.run(say("return 1", "A" * 43 + "="))
    with pytest.raises(StepFailedError, match="401"):
        asyncio.run(api.get(seat.api_port, "/api/v1/servers/localhost", "wrong"))
    with pytest.raises(MissingError):
        asyncio.run(api.get(1, "/", "x", timeout_s=1))


def test_caches_are_flushed_by_name_and_whole_and_a_pool_without_one_is_no_error(dnsdist, answerer):
    topology = dnsdist.topology((Member("ns-a", "127.0.0.1", answerer("ns-a").port),))
    seat, _ = dnsdist.start(topology)
    asyncio.run(dnsdist.hands.flush(seat, 'quo"te.example.'))
    asyncio.run(dnsdist.hands.flush(seat))


def test_nothing_is_sent_when_nothing_changed(dnsdist):
    topology: Topology = dnsdist.topology((A,))
    assert live.commands(topology, topology, dnsdist.features) == ()

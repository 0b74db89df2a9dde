"""A running HAProxy that is changed or reloaded: nobody is hurt, what it lists is what was asked, and what failed is undone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.engines.haproxy import hands, state, stats
from edgekeeper.engines.haproxy.seat import Seat
from edgekeeper.engines.haproxy.topology import Topology
from edgekeeper.lab.certs import Authority
from edgekeeper.model.backend import Member
from edgekeeper.ports import Cost

from .haproxies import Answerer, Client, Haproxy, answers, free_port, until

pytestmark = pytest.mark.engine

QUICK = {"type": "http", "path": "/healthz", "interval": "200ms", "fast_interval": "100ms", "timeout": "300ms", "fall": 2, "rise": 1}
Maker = Callable[[str], Answerer]


def wanted(haproxy: Haproxy, kind: str, members: tuple[Member, ...], port: int, **said: Any) -> Topology:
    return haproxy.topology({"kind": kind, "listen": f"127.0.0.1:{port}", "health": QUICK, **said}, members=members)


def changed(haproxy: Haproxy, old: Topology, new: Topology, seat: Seat) -> None:
    """Bring the difference in live, twice: the second time changes nothing."""
    assert haproxy.engine.change(old, new).cost is Cost.LIVE
    assert asyncio.run(haproxy.hands.live(old, new, seat)) is None
    assert asyncio.run(haproxy.hands.live(old, new, seat)) is None
    assert state.difference(new, stats.parse_servers_state(haproxy.ask(seat, "show servers state"))) is None


def up(haproxy: Haproxy, seat: Seat, *names: str) -> None:
    until(lambda: all(haproxy.servers(seat)[f"web0/{name}"].status.startswith("UP") for name in names), f"{names} are UP")


def who(port: int, times: int = 12) -> set[str]:
    return {answers(port) for _ in range(times)}


@contextlib.contextmanager
def on_each(port: int, count: int) -> Iterator[dict[str, Client]]:
    """A kept client on each of so many servers."""
    every: list[Client] = []
    clients: dict[str, Client] = {}
    while len(clients) < count:
        every.append(Client(port))
        clients.setdefault(every[-1].ask(), every[-1])
    yield clients
    for each in every:
        each.close()


@pytest.mark.parametrize("kind", ["tcp", "http"])
def test_weights_addresses_drains_newcomers_and_leavers_change_live(haproxy: Haproxy, server: Maker, kind: str) -> None:
    a, b, c, d = (server(name) for name in ("web-a", "web-b", "web-c", "web-d"))
    port = free_port()
    old = wanted(haproxy, kind, (a.member, b.member), port, balance="roundrobin")
    seat, _ = haproxy.start(old)
    worker = haproxy.workers(seat)
    up(haproxy, seat, "web-a", "web-b")
    assert who(port) == {"web-a", "web-b"}
    steps = [
        ((a.member, b.member, c.member), {"web-a", "web-b", "web-c"}),  # a newcomer
        ((a.member, replace(b.member, drain=True), c.member), {"web-a", "web-c"}),  # drained
        ((a.member, b.member, replace(c.member, port=d.port)), {"web-a", "web-b", "web-d"}),  # undrained, and another address
        ((replace(a.member, weight=1), replace(b.member, weight=256)), {"web-b"}),  # weights, and one that leaves
        ((replace(a.member, weight=1), Member("six", "127.0.0.1", c.port)), None),
    ]
    for members, answering in steps:
        new = wanted(haproxy, kind, members, port, balance="roundrobin")
        changed(haproxy, old, new, seat)
        up(haproxy, seat, *(m.name for m in members))
        if answering is not None:
            assert who(port) >= answering
            assert who(port, 4) <= answering | ({"web-a"} if len(answering) == 1 else set())
        old = new
    assert haproxy.workers(seat) == worker, "nothing of that was a reload"


def test_all_three_backends_of_a_service_change_together(haproxy: Haproxy, server: Maker) -> None:
    a, b, other = server("web-a"), server("web-b"), server("web-other")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member, b.member), port, fail_open=True)
    seat, pid = haproxy.start(old)
    up(haproxy, seat, "web-a", "web-b")
    new = wanted(haproxy, "tcp", (replace(a.member, weight=7), replace(b.member, port=other.port)), port, fail_open=True)
    changed(haproxy, old, new, seat)
    up(haproxy, seat, "web-a", "web-b")
    assert {name: row.weight for name, row in haproxy.servers(seat).items()} == {
        f"{backend}/{name}": weight for backend in ("web0", "web0-patient", "web0-open") for name, weight in (("web-a", 7), ("web-b", 100))
    }
    assert haproxy.reload(new, seat, pid) is None
    up(haproxy, seat, "web-a", "web-b")
    assert who(port) <= {"web-a", "web-other"}


def test_when_all_hang_new_clients_are_let_through_and_when_one_is_well_they_go_there(haproxy: Haproxy, server: Maker) -> None:
    a, b = server("web-a"), server("web-b")
    port = free_port()
    seat, _ = haproxy.start(wanted(haproxy, "tcp", (a.member, b.member), port, fail_open=True, patience="500ms"))
    up(haproxy, seat, "web-a", "web-b")
    a.hangs = b.hangs = True
    until(lambda: all(haproxy.servers(seat)[f"{backend}/web-{x}"].down for backend in ("web0", "web0-patient") for x in "ab"), "all are DOWN")
    begun = a.seen + b.seen
    with contextlib.closing(Client(port)) as client:
        client.sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        until(lambda: a.seen + b.seen > begun, "a new client reaches one of them all the same")
    b.hangs = False
    up(haproxy, seat, "web-b")
    assert who(port) == {"web-b"}, "the patient backend sends nobody to the one that still hangs"


def test_a_server_moves_to_ipv6_and_one_comes_there(haproxy: Haproxy) -> None:
    old = wanted(haproxy, "tcp", (Member("web-a", "127.0.0.1", 9), Member("", "127.0.0.1", 9)), free_port())
    port = int(old.services[0].binds[0].address.rpartition(":")[2])
    seat, pid = haproxy.start(old)
    new = wanted(haproxy, "tcp", (Member("web-a", "::1", 9), Member("", "2001:db8::9", 9)), port)
    changed(haproxy, old, new, seat)
    assert haproxy.reload(new, seat, pid) is None


@pytest.mark.root
def test_workers_that_become_another_user_reload_and_change_as_others_do(haproxy: Haproxy, server: Maker) -> None:
    a = server("web-a")
    port = free_port()
    service = {"listen": f"127.0.0.1:{port}", "health": QUICK}
    old = haproxy.topology(service, members=(a.member,), engine={"user": "nobody", "group": "nogroup"})
    seat, pid = haproxy.start(old)
    up(haproxy, seat, "web-a")
    changed(haproxy, old, new := haproxy.topology(service, members=(replace(a.member, weight=7),), engine={"user": "nobody", "group": "nogroup"}), seat)
    assert haproxy.reload(replace(new, hard_stop_s=77.0), seat, pid) is None
    assert Path(f"/proc/{haproxy.workers(seat)[0]}").stat().st_uid != 0
    until(lambda: answers(port) == "web-a", "it serves")


def test_what_was_added_live_is_checked_and_its_clients_are_cut_when_it_hangs(haproxy: Haproxy, server: Maker) -> None:
    a, b = server("web-a"), server("web-b")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member,), port, balance="roundrobin")
    seat, _ = haproxy.start(old)
    changed(haproxy, old, wanted(haproxy, "tcp", (a.member, b.member), port, balance="roundrobin"), seat)
    up(haproxy, seat, "web-a", "web-b")
    with on_each(port, 2) as clients:
        b.hangs = True
        begun = time.monotonic()
        until(clients["web-b"].cut, "the client of the hung one is cut")
        assert time.monotonic() - begun < 2
        assert clients["web-a"].ask() == "web-a"
    b.hangs = False
    up(haproxy, seat, "web-b")


def test_what_leaves_may_finish_what_it_has(haproxy: Haproxy, server: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "LEAVE_S", 1.0)
    a, b = server("web-a"), server("web-b")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member, b.member), port, balance="roundrobin")
    seat, _ = haproxy.start(old)
    up(haproxy, seat, "web-a", "web-b")
    with on_each(port, 2) as clients:
        heard: list[str] = []
        asking = threading.Thread(target=lambda: heard.extend(iter(lambda: clients["web-b"].ask() or None, None)), daemon=True)  # type: ignore[arg-type]
        asking.start()
        changed(haproxy, old, wanted(haproxy, "tcp", (a.member,), port, balance="roundrobin"), seat)
        asking.join(3)
        assert len(heard) > 20, "it was served on for a while"
        assert not asking.is_alive(), "and then sent away"
        assert clients["web-a"].ask() == "web-a"


def test_a_server_over_tls_is_added_live_with_everything_that_it_needs(haproxy: Haproxy, server: Maker, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    a = server("web-a")
    port = free_port()
    tls = {"server_tls": {"ca_file": str(authority.ca_file), "name": "dns.example"}}
    old = wanted(haproxy, "http", (a.member,), port, **tls)
    new = wanted(haproxy, "http", (a.member, Member("web-b", "127.0.0.1", a.port)), port, **tls)
    seat, _ = haproxy.start(old)
    refusal = asyncio.run(haproxy.hands.live(old, new, seat))
    assert refusal is None, refusal


def test_a_reload_keeps_what_is_down_down(haproxy: Haproxy, server: Maker) -> None:
    a, b, c = server("web-a"), server("web-b"), server("web-c")
    port = free_port()
    slow = {**QUICK, "interval": "2s", "fast_interval": "2s", "timeout": "1s"}
    old = wanted(haproxy, "tcp", (a.member, b.member, c.member), port, health=slow)
    b.hangs = True
    seat, pid = haproxy.start(old)
    until(lambda: haproxy.servers(seat)["web0/web-b"].down, "web-b is DOWN", 12)
    first = haproxy.workers(seat)[0]
    seen = b.seen
    new = replace(old, hard_stop_s=77.0)
    assert haproxy.engine.change(old, new).cost is Cost.RELOAD
    assert haproxy.reload(new, seat, pid) is None
    assert haproxy.workers(seat)[0] != first
    begun = time.monotonic()
    asked = 0
    while time.monotonic() - begun < 1.0:
        assert answers(port) in ("web-a", "web-c")
        asked += 1
    assert asked > 20
    assert b.seen == seen, "the hung one got a client"
    assert haproxy.servers(seat)["web0/web-b"].down


def test_what_the_config_says_of_a_server_wins_over_what_was_kept_of_it(haproxy: Haproxy, server: Maker) -> None:
    a, b, other = server("web-a"), server("web-b"), server("web-other")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member, b.member), port, balance="roundrobin")
    seat, pid = haproxy.start(old)
    up(haproxy, seat, "web-a", "web-b")
    moved = (replace(a.member, weight=60), replace(b.member, port=other.port))
    new = replace(wanted(haproxy, "tcp", moved, port, balance="roundrobin"), hard_stop_s=77.0)
    assert haproxy.reload(new, seat, pid) is None
    up(haproxy, seat, "web-a", "web-b")
    assert who(port) == {"web-a", "web-other"}
    servers = haproxy.servers(seat)
    assert (servers["web0/web-a"].weight, servers["web0/web-b"].weight) == (60, 100)
    assert haproxy.reload(old, seat, pid) is None
    up(haproxy, seat, "web-a", "web-b")
    assert who(port) == {"web-a", "web-b"}


def test_what_was_changed_live_is_the_same_after_a_reload(haproxy: Haproxy, server: Maker) -> None:
    a, b, c = server("web-a"), server("web-b"), server("web-c")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member, b.member), port)
    seat, pid = haproxy.start(old)
    new = wanted(haproxy, "tcp", (replace(a.member, port=c.port, weight=3), c.member), port)
    changed(haproxy, old, new, seat)
    assert haproxy.reload(new, seat, pid) is None
    assert state.difference(new, stats.parse_servers_state(haproxy.ask(seat, "show servers state"))) is None


@pytest.fixture
def thief() -> Iterator[Callable[[int], None]]:
    held: list[socket.socket] = []
    yield lambda port: held.append(socket.create_server(("127.0.0.1", port)))
    for each in held:
        each.close()


def test_a_reload_that_cannot_have_its_port_says_so_and_the_one_before_can_be_had_again(haproxy: Haproxy, server: Maker, thief: Callable[[int], None]) -> None:
    """Taken between pre-flight and reload: HAProxy's master gives up, the worker before serves on, and a reload of what ran is proven."""
    a = server("web-a")
    port, taken = free_port(), free_port()
    old = wanted(haproxy, "tcp", (a.member,), port)
    seat, pid = haproxy.start(old)
    up(haproxy, seat, "web-a")
    new = haproxy.topology({"listen": [f"127.0.0.1:{port}", f"127.0.0.1:{taken}"], "health": QUICK}, members=(a.member,))
    assert asyncio.run(haproxy.hands.preflight(new, seat, seat, pid)) is None
    thief(taken)
    said = asyncio.run(haproxy.hands.preflight(new, seat, seat, pid))
    assert said is not None
    assert str(taken) in said
    refusal = haproxy.reload(new, seat, pid)
    assert refusal is not None
    assert "could not load the new configuration" in refusal
    assert haproxy.reload(old, seat, pid) is None
    until(lambda: answers(port) == "web-a", "it serves")
    live_too = wanted(haproxy, "tcp", (replace(a.member, weight=7),), port)
    changed(haproxy, old, live_too, seat)


def test_a_frozen_haproxy_is_told_and_not_waited_for_for_ever(haproxy: Haproxy, server: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "PROVE_DEADLINE_S", 1.0)
    monkeypatch.setattr(hands, "LIVE_DEADLINE_S", 1.0)
    a = server("web-a")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member,), port)
    seat, pid = haproxy.start(old)
    frozen = haproxy.workers(seat)
    for each in (*frozen, pid):
        os.kill(each, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        assert asyncio.run(haproxy.hands.live(old, wanted(haproxy, "tcp", (replace(a.member, weight=7),), port), seat)) is not None
        assert asyncio.run(haproxy.hands.prove(old, seat, pid)) is not None
        said = asyncio.run(haproxy.hands.reload(old, seat, pid))
        assert said is not None
        assert "could not be told to reload" in said
        assert time.monotonic() - begun < 10
    finally:
        for each in (pid, *frozen):
            os.kill(each, signal.SIGCONT)


def test_a_socket_that_was_removed_comes_back_with_a_reload(haproxy: Haproxy, server: Maker) -> None:
    a = server("web-a")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member,), port)
    seat, pid = haproxy.start(old)
    for file in Path(seat.master).parent.iterdir():
        file.unlink()
    Path(seat.master).parent.rmdir()
    said = asyncio.run(haproxy.hands.live(old, wanted(haproxy, "tcp", (replace(a.member, weight=7),), port), seat))
    assert said is not None
    assert "no socket" in said
    assert haproxy.reload(old, seat, pid) is None
    assert haproxy.ask(seat, "show info")
    assert Path(seat.master).stat().st_mode & 0o777 == 0o600


def test_a_listener_on_another_address_of_a_port_that_we_have_is_no_strangers(haproxy: Haproxy, server: Maker) -> None:
    a = server("web-a")
    port = free_port()
    old = wanted(haproxy, "tcp", (a.member,), port)
    seat, pid = haproxy.start(old)
    up(haproxy, seat, "web-a")
    wider = haproxy.topology({"listen": [f"0.0.0.0:{port}", f"[::]:{port}"], "health": QUICK}, members=(a.member,))
    assert asyncio.run(haproxy.hands.preflight(wider, seat, seat, pid)) is None
    assert "in use" in str(asyncio.run(haproxy.hands.preflight(wider, seat, None, None))), "for another process it is"
    assert haproxy.reload(wider, seat, pid) is None
    assert answers(port) == "web-a"
    with socket.create_connection(("::1", port), 2):
        pass
    assert haproxy.reload(old, seat, pid) is None
    assert answers(port) == "web-a"


def test_an_address_that_is_not_here_is_refused_or_taken_all_the_same(haproxy: Haproxy, server: Maker) -> None:
    a = server("web-a")
    port = free_port()
    absent = {"listen": [f"192.0.2.60:{port}", f"[2001:db8::60]:{port}", f"127.0.0.1:{port}"], "health": QUICK}
    without = haproxy.topology({**absent, "transparent": False}, members=(a.member,))
    seat = haproxy.hands.new_seat(without)
    said = asyncio.run(haproxy.hands.preflight(without, seat, None))
    assert said is not None
    assert f"192.0.2.60:{port} is not an address of this machine" in said
    assert "transparent: true" in said
    haproxy.start(haproxy.topology(absent, members=(a.member,)))
    until(lambda: answers(port) == "web-a", "it serves where it can")

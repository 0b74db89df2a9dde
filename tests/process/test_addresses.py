"""Addresses, links, neighbours and raw packets of real network namespaces: each lives in a thread, and goes with it."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from edgekeeper.engines.keepalived import packet
from edgekeeper.errors import StepFailedError
from edgekeeper.host import addresses, neighbour, rawip, sysctl
from edgekeeper.host.addresses import Address

pytestmark = pytest.mark.root

T = TypeVar("T")
FOUR, SIX = "192.0.2.53", "2001:db8::53"
ADVERT = bytes.fromhex("3101fe0100148a1ec0000235")
ADVERT_SIX = bytes.fromhex("3103fe01001446bd20010db8000000000000000000000053")
WAIT_S = 5.0


class Namespace:
    """A network namespace and the one thread in it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.tid = self._thread.submit(self._enter).result()

    @staticmethod
    def _enter() -> int:
        if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return threading.get_native_id()

    def do(self, work: Callable[..., T], *args: Any, **words: Any) -> T:
        return self._thread.submit(work, *args, **words).result()

    def loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def bounded() -> T:
            return await asyncio.wait_for(work(), 20)

        return self.do(lambda: asyncio.run(bounded()))

    def ip(self, *lines: str) -> str:
        return "".join(self.do(subprocess.run, ["ip", *line.split()], check=True, capture_output=True, text=True).stdout for line in lines)

    def close(self) -> None:
        self._thread.shutdown()


class Wire:
    """``here`` has a bridge with a cable to each of two others."""

    def __init__(self) -> None:
        self.here, *self.others = self.all = [Namespace() for _ in range(3)]
        self.here.ip("link add br0 type bridge", "link set br0 up", "addr add 192.0.2.11/24 dev br0", "addr add 2001:db8::11/64 dev br0 nodad")
        for number, other in enumerate(self.others):
            self.here.ip(f"link add c{number} type veth peer name eth0 netns {other.tid}", f"link set c{number} master br0 up")
            other.do(sysctl.write, "ipv6", "eth0", "accept_dad", 0)
            other.ip("link set eth0 up", f"addr add 192.0.2.{12 + number}/24 dev eth0", f"addr add 2001:db8::{12 + number}/64 dev eth0 nodad")
        self.macs = [other.do(sysctl_mac) for other in self.others]

    def close(self) -> None:
        for namespace in self.all:
            namespace.close()


def sysctl_mac() -> str:
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as wire:
        wire.bind(("eth0", 0))
        return str(wire.getsockname()[4].hex(":"))


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


@pytest.fixture
def alone() -> Iterator[Namespace]:
    made = Namespace()
    made.ip("link add eth0 type veth peer name eth1", "link set eth1 up", "link set eth0 up")
    yield made
    made.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is told by callbacks of many kinds
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("address", "prefix"), [(FOUR, 32), (SIX, 128)])
def test_an_address_comes_once_and_goes_once(alone: Namespace, address: str, prefix: int) -> None:
    assert alone.do(addresses.add, "lo", address, prefix, host_scope=True)
    assert not alone.do(addresses.add, "lo", address, prefix, host_scope=True)
    assert Address("lo", address, prefix, host_scope=":" not in address) in alone.do(addresses.held)
    assert ("scope host" if ":" not in address else "deprecated") in alone.ip(f"-o addr show to {address}"), "nothing is sent from it on its own"
    assert alone.do(addresses.add, "eth0", address, prefix), "on another interface it is another one"
    assert "tentative" not in alone.ip(f"-o addr show to {address}")
    assert alone.do(addresses.remove, "lo", address, prefix)
    assert not alone.do(addresses.remove, "lo", address, prefix)
    assert [a.interface for a in alone.do(addresses.held) if a.address == address] == ["eth0"]


def test_an_interface_that_is_missing_is_said_so(alone: Namespace) -> None:
    with pytest.raises(StepFailedError, match="cannot be put on eth7: there is no such interface"):
        alone.do(addresses.add, "eth7", FOUR, 32)
    assert not alone.do(addresses.remove, "eth7", FOUR, 32)
    with pytest.raises(StepFailedError, match="cannot be asked on eth7"):
        alone.loop(lambda: neighbour.ask("eth7", FOUR, 0.1))
    with pytest.raises(StepFailedError, match="no Ethernet"):
        alone.loop(lambda: neighbour.ask("lo", FOUR, 0.1))
    with pytest.raises(StepFailedError, match="cannot be read"):
        alone.do(sysctl.arp_ignore, "eth7")


def test_a_setting_is_that_of_the_threads_own_namespace(alone: Namespace) -> None:
    alone.do(sysctl.set_arp_ignore, "lo", 1)
    assert alone.do(sysctl.arp_ignore, "lo") == 1
    assert sysctl.arp_ignore("lo") != 1


def test_the_watch_tells_what_comes_and_goes(alone: Namespace) -> None:
    told: list[tuple[object, bool]] = []

    async def work() -> None:
        async with addresses.Watch(lambda a, present, _: told.append((a.address, present)), lambda i, up: told.append((i, up)), told.clear):
            addresses.add("lo", FOUR, 32)
            addresses.add("lo", SIX, 128)
            await until(lambda: (SIX, True) in told)
            addresses.remove("lo", FOUR, 32)
            addresses.remove("lo", SIX, 128)
            await until(lambda: (SIX, False) in told)
            await asyncio.to_thread(subprocess.run, ["ip", "link", "set", "eth1", "down"], check=True)
            await until(lambda: ("eth0", False) in told)  # its carrier is gone
            assert addresses.interfaces() == {"lo": True, "eth0": False, "eth1": False}
            await asyncio.to_thread(subprocess.run, ["ip", "link", "set", "eth1", "up"], check=True)
            await until(lambda: ("eth0", True) in told)
            await asyncio.to_thread(subprocess.run, ["ip", "link", "add", "new0", "type", "veth", "peer", "name", "new1"], check=True)
            addresses.add("new0", "198.51.100.1", 32)
            await until(lambda: ("198.51.100.1", True) in told)
            await asyncio.to_thread(subprocess.run, ["ip", "link", "del", "new0"], check=True)
            await until(lambda: ("198.51.100.1", False) in told)

    alone.loop(work)
    assert [entry for entry in told if entry[0] in {FOUR, SIX}] == [(FOUR, True), (SIX, True), (FOUR, False), (SIX, False)]


def test_news_that_were_lost_are_said_to_be(alone: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_WATCH_BUFFER", 4096)
    told: list[str] = []

    async def work() -> None:
        async with addresses.Watch(lambda a, present, _: told.append(f"{a.address} {present}"), lambda i, up: None, lambda: told.append("lost")):
            for _ in range(50):
                addresses.add("lo", FOUR, 32)
                addresses.remove("lo", FOUR, 32)
            await until(lambda: "lost" in told)
            addresses.add("lo", SIX, 128)
            await until(lambda: f"{SIX} True" in told)  # and it goes on

    alone.loop(work)
    assert len(told) < 100


def test_adverts_are_heard_with_their_source(wire: Wire) -> None:
    heard: list[tuple[str, packet.Advert | None]] = []

    def send() -> None:
        for family, to, payload in (
            (socket.AF_INET, "192.0.2.11", ADVERT),
            (socket.AF_INET6, "2001:db8::11", ADVERT_SIX),
            (socket.AF_INET, rawip.GROUP_4, ADVERT),
            (socket.AF_INET6, rawip.GROUP_6, ADVERT_SIX),
        ):
            with socket.socket(family, socket.SOCK_RAW, 112) as raw:
                raw.sendto(payload, (to, 0, 0, socket.if_nametoindex("eth0")) if family == socket.AF_INET6 else (to, 0))

    async def work() -> int:
        async with rawip.RawListener(112, {4, 6}, lambda who, data, _: heard.append((who, packet.parse(data))), multicast=["br0"]) as listener:
            await asyncio.to_thread(wire.others[0].do, subprocess.run, ["ip", "route", "replace", "224.0.0.0/4", "dev", "eth0"], check=True)
            await asyncio.to_thread(wire.others[0].do, send)
            await until(lambda: len(heard) == 4)
            assert listener.dropped == 0
            wire.others[0].do(lambda: [send() for _ in range(400)])  # while nothing is read
            return listener.dropped

    assert wire.here.loop(work) > 0
    assert {(who, advert.vrid) for who, advert in heard[:4] if advert} >= {("192.0.2.12", 1), ("2001:db8::12", 3)}
    assert len(heard) >= 4


@pytest.mark.parametrize(("address", "prefix"), [(FOUR, 24), (SIX, 64)])
def test_two_that_claim_an_address_are_two(wire: Wire, address: str, prefix: int) -> None:
    assert wire.here.loop(lambda: neighbour.ask("br0", address, 0.2)) == ()
    for other in wire.others:
        other.do(addresses.add, "eth0", address, prefix)
    try:
        assert wire.here.loop(lambda: neighbour.ask("br0", address, 0.4)) == tuple(sorted(wire.macs))
    finally:
        for other in wire.others:
            other.do(addresses.remove, "eth0", address, prefix)


def test_a_copy_on_the_loopback_interface_claims_nothing_once_arp_is_told_to_ignore_it(wire: Wire) -> None:
    """What a cover of a VIP rests on."""
    other = wire.others[0]
    other.do(addresses.add, "lo", FOUR, 32, host_scope=True)
    other.do(addresses.add, "lo", SIX, 128, host_scope=True)
    try:
        assert wire.here.loop(lambda: neighbour.ask("br0", FOUR, 0.2)) == (wire.macs[0],), "the kernel answers for all its addresses"
        other.do(sysctl.set_arp_ignore, "eth0", 1)
        assert wire.here.loop(lambda: neighbour.ask("br0", FOUR, 0.2)) == ()
        assert wire.here.loop(lambda: neighbour.ask("br0", SIX, 0.2)) == ()
    finally:
        other.do(sysctl.set_arp_ignore, "eth0", 0)
        other.do(addresses.remove, "lo", FOUR, 32)
        other.do(addresses.remove, "lo", SIX, 128)


WITHOUT_RIGHTS = """
import asyncio
from edgekeeper.errors import MissingError
from edgekeeper.host import addresses, neighbour, rawip
assert addresses.held()
async def follow():
    async with addresses.Watch(print, print, print):
        pass
async def hear():
    async with rawip.RawListener(112, {4}, print):
        pass
asyncio.run(follow())
for work in (
    lambda: addresses.add("lo", "192.0.2.53", 32), lambda: addresses.remove("lo", "192.0.2.53", 32),
    lambda: asyncio.run(hear()), lambda: asyncio.run(neighbour.ask("eth0", "192.0.2.53", 0.1)),
):
    try:
        work()
    except MissingError as err:
        print(err)
"""


def test_without_rights_one_may_look_and_the_missing_one_is_named(alone: Namespace) -> None:
    argv = ["setpriv", "--bounding-set=-all", sys.executable, "-c", WITHOUT_RIGHTS]
    said = alone.do(subprocess.run, argv, check=False, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert [line.rpartition("(")[2] for line in said.stdout.splitlines()] == ["CAP_NET_ADMIN)"] * 2 + ["CAP_NET_RAW)"] * 2

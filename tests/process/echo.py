"""An echo behind VIPs and a client that asks it all the time, each in the network namespace of its node."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import os
import socket
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

from edgekeeper.lab.netns import Net
from edgekeeper.lab.topology import LAN_CLIENT

from .edge import until
from .fleet import Loop

T = TypeVar("T")
ECHO = 7007
"""The port."""
_FREEBIND = 15
_NEW_NETWORK = 0x40000000


def inside(net: Net, node: str, do: Callable[[], T]) -> T:
    """Do something in the namespace of a node, in a thread that goes there and ends there."""

    def there() -> T:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{net.name[node]}") as space:  # noqa: PTH123 - its descriptor is what is wanted
            assert libc.setns(space.fileno(), _NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
        return do()

    with concurrent.futures.ThreadPoolExecutor(1) as one:
        return one.submit(there).result(10)


class Echo(asyncio.DatagramProtocol):
    """Answers with its node's name and what it was asked."""

    def __init__(self, node: str) -> None:
        self._node = node.encode()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._transport.sendto(self._node + b" " + data, addr)


class Load(asyncio.DatagramProtocol):
    """Asks a VIP 200 times a second; ``lost`` are the questions that nobody answered within a second."""

    def __init__(self, loop: Loop, net: Net, ip: str) -> None:
        self._loop, self._net, self._ip, self._stop = loop, net, ip, False
        self.asked: list[float] = []
        self._answered: set[int] = set()
        self.by: set[str] = set()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        node, _, number = data.decode().partition(" ")
        self._answered.add(int(number))
        self.by.add(node)

    def error_received(self, exc: OSError) -> None:
        """What is not answered is counted."""

    @property
    def lost(self) -> list[float]:
        """When each question was asked that stayed without an answer, in seconds since the first one."""
        return [round(at - self.asked[0], 3) for number, at in enumerate(self.asked) if number not in self._answered]

    def __enter__(self) -> Self:
        self._running = self._loop.submit(self._run())
        until(lambda: len(self._answered) > 5, f"{self._ip} answers at all")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._running.result(10)

    async def _run(self) -> None:
        sock = self._net.socket("client", socket.SOCK_DGRAM)
        sock.bind((LAN_CLIENT, 0))
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=sock)
        begun = time.monotonic()
        while not self._stop:
            self.asked.append(time.monotonic())
            transport.sendto(str(len(self.asked) - 1).encode(), (self._ip, ECHO))
            await asyncio.sleep(max(0.0, begun + len(self.asked) / 200 - time.monotonic()))
        end = time.monotonic() + 1
        while self.lost and time.monotonic() < end:  # noqa: ASYNC110 - it is the network that is waited for
            await asyncio.sleep(0.02)
        transport.close()


def echo_socket(net: Net, node: str, ip: str) -> socket.socket:
    """A socket on a VIP that the node may not have yet."""
    sock = net.socket(node, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IP, _FREEBIND, 1)
    sock.bind((ip, ECHO))
    return sock

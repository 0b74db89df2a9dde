"""The runner's look at the addresses of each node: the kernel's own news, read from outside the product."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import time
from collections.abc import Iterator

from edgekeeper.host import netlink
from edgekeeper.lab.holders import Change
from edgekeeper.lab.netns import Net

_NEWADDR, _DELADDR, _GETADDR = 20, 21, 22
_GROUPS = 0x10 | 0x100
_BUFFER = 1 << 20
_LOOPBACK_INDEX = 1
_DUMP = struct.pack("=IHHIIBBBBI", 24, _GETADDR, 0x301, 1, 0, 0, 0, 0, 0, 0)


class Watch:
    """Follows the addresses of all nodes; every change with the moment it was read (a few milliseconds late at most on a busy machine)."""

    def __init__(self, net: Net, nodes: tuple[str, ...]) -> None:
        self.changes: list[Change] = []
        self._net = net
        self._nodes = nodes
        self._sockets: dict[str, socket.socket] = {}
        self._off: set[str] = set()
        self._now: dict[str, set[tuple[str, str]]] = {node: set() for node in nodes}

    def start(self) -> None:
        """Begin; what the nodes have already is read first."""
        loop = asyncio.get_running_loop()
        for node in self._nodes:
            kernel = self._net.socket(node, socket.SOCK_RAW, socket.AF_NETLINK, socket.NETLINK_ROUTE)
            kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            kernel.bind((0, _GROUPS))
            self._sockets[node] = kernel
            loop.add_reader(kernel, self._read, node)
            kernel.send(_DUMP)

    def stop(self) -> None:
        """End; the changes stay."""
        loop = asyncio.get_running_loop()
        for kernel in self._sockets.values():
            loop.remove_reader(kernel)
            kernel.close()
        self._sockets = {}

    def holders(self, address: str) -> frozenset[str]:
        """Which nodes have an address on an interface that clients reach, now."""
        return frozenset(n for n, has in self._now.items() if n not in self._off and any(a == address and i != "lo" for i, a in has))

    def shadows(self, address: str) -> frozenset[str]:
        """Which nodes have an address on their loopback interface, now."""
        return frozenset(n for n, has in self._now.items() if ("lo", address) in has)

    def off(self, node: str) -> None:
        """A node is off the wire from now on: what it holds counts no more."""
        self._off.add(node)
        now = time.monotonic()
        self.changes += [Change(now, node, "", address, present=False) for _, address in self._now[node]]

    def on(self, node: str) -> None:
        """It is on the wire again, with what it holds."""
        self._off.discard(node)
        now = time.monotonic()
        self.changes += [Change(now, node, interface, address, present=True) for interface, address in self._now[node]]

    def _read(self, node: str) -> None:
        now = time.monotonic()
        for interface, address, present in self._news(self._sockets[node]):
            known = (interface, address) in self._now[node]
            if known == present:
                continue
            (self._now[node].add if present else self._now[node].discard)((interface, address))
            if node not in self._off:
                self.changes.append(Change(now, node, interface, address, present))

    @staticmethod
    def _news(kernel: socket.socket) -> Iterator[tuple[str, str, bool]]:
        while True:
            try:
                data = kernel.recv(1 << 16)
            except BlockingIOError:
                return
            for kind, body in netlink.messages(data):
                if kind not in {_NEWADDR, _DELADDR} or len(body) < 8:
                    continue
                family, _, _, _, index = struct.unpack_from("=BBBBI", body)
                found = netlink.attributes(body[8:])
                raw = found.get(2, found.get(1)) if family == socket.AF_INET else found.get(1)
                if raw is not None:
                    yield "lo" if index == _LOOPBACK_INDEX else "eth", str(ipaddress.ip_address(raw)), kind == _NEWADDR

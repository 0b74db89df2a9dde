"""A member of the fake's cluster: a TLS passthrough proxy that routes by server name, as NetBird's does for services of mode tls.

The table is matched exactly (a wildcard never is), only enabled services of this proxy's own port are in it, and whenever a service is sent
anew its connections are closed. Restrictions by address are kept, those by country are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, Self

from edgekeeper.lab import hello
from edgekeeper.lab.hello import Client
from edgekeeper.lab.netbird_state import CLUSTER, State
from edgekeeper.lab.netbird_world import Account, Route

Mode = Literal["ok", "wedged", "mute"]
DIAL_S, IDLE_S, _HELLO_S = 30.0, 300.0, 10.0
"""The proxy's own defaults."""
_CHUNK = 65_536


class SniProxy:
    """One member. ``port``: the port that it believes to listen on, by which services are its own, wherever it really listens.

    ``leads`` replaces targets that do not exist on this machine, (address, port) by (address, port). ``mode``: ``wedged`` takes connections
    and reaches nothing, as a proxy whose routes are gone; ``mute`` does not even read. ``count`` has ``accepted``, ``relayed``, ``unmatched``,
    ``denied``, ``unreached`` and ``cut``.
    """

    def __init__(self, state: State, listen: tuple[str, int] = ("127.0.0.1", 0), *, cluster: str = CLUSTER, port: int = 443) -> None:
        self.mode: Mode = "ok"
        self.leads: dict[tuple[str, int], tuple[str, int]] = {}
        self.table: dict[str, Route] = {}
        self.count: Counter[str] = Counter()
        self.address = listen
        self._state = state
        self._cluster = cluster
        self._port = port
        self._hosts: dict[str, str] = {}
        self._relays: dict[str, set[asyncio.Task[Any]]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> Self:
        """Listen; ``address`` is known then."""
        self._state.world.pushed.append(self._sent)
        for route in self._state.routes(self._cluster):
            self._put(route)
        self._server = await asyncio.start_server(self._talk, *self.address, backlog=1024)
        self.address = self._server.sockets[0].getsockname()[:2]
        return self

    async def stop(self) -> None:
        """End, with all connections."""
        self._state.world.pushed.remove(self._sent)
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _sent(self, account: Account, services: Iterable[str]) -> None:
        """Management sends services: each route is removed, which cuts its connections, and made anew where there still is one."""
        del account
        sent = list(services)
        for identity in sent:
            host = self._hosts.pop(identity, None)
            if host is not None:
                del self.table[host]
            for task in self._relays.pop(identity, ()):
                self.count["cut"] += 1
                task.cancel()
        for route in self._state.routes(self._cluster, only=sent) if sent else ():
            self._put(route)

    def _put(self, route: Route) -> None:
        if route.listen_port == self._port:
            self.table[route.host] = route
            self._hosts[route.service] = route.host

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs is in one
        self._tasks.add(task)
        self.count["accepted"] += 1
        try:
            with contextlib.suppress(asyncio.CancelledError, OSError, TimeoutError, hello.WrongHelloError):
                await self._serve(reader, writer, task)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[Any]) -> None:
        if self.mode == "mute":
            await asyncio.Event().wait()
        data, name = b"", None
        async with asyncio.timeout(_HELLO_S):
            while (name := hello.server_name(data)) is None:
                if not (piece := await reader.read(_CHUNK)):
                    return
                data += piece
        route = self.table.get(name)
        if route is None:
            self.count["unmatched"] += 1
            writer.write(hello.UNRECOGNIZED_NAME)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            return
        client, server = (Client(*writer.get_extra_info(end)[:2]) for end in ("peername", "sockname"))
        if not permitted(route, client.address):
            self.count["denied"] += 1
            return
        relays = self._relays.setdefault(route.service, set())
        relays.add(task)
        try:
            await self._relay(route, reader, writer, (hello.proxy_header(client, server) if route.proxy_protocol else b"") + data)
        finally:
            relays.discard(task)

    async def _relay(self, route: Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes) -> None:
        try:
            async with asyncio.timeout(route.dial_s or DIAL_S):
                if route.dead or self.mode == "wedged":
                    await asyncio.Event().wait()
                there = await asyncio.open_connection(*self.leads.get((route.address, route.port), (route.address, route.port)))
        except (OSError, TimeoutError):
            self.count["unreached"] += 1
            return
        self.count["relayed"] += 1
        try:
            there[1].write(first)
            idle_s = route.idle_s or IDLE_S
            ways = [asyncio.create_task(_pump(*way, idle_s)) for way in ((reader, there[1]), (there[0], writer))]
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
        finally:
            there[1].transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, idle_s: float) -> None:
    """Bytes one way, and their end."""
    while True:
        async with asyncio.timeout(idle_s):
            piece = await source.read(_CHUNK)
        if not piece:
            break
        sink.write(piece)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


def permitted(route: Route, address: str) -> bool:
    """Whether a client may use a service: in the allow-list where there is one, and in no block-list."""
    client = ipaddress.ip_address(address.partition("%")[0])
    allowed, blocked = ([ipaddress.ip_network(text) for text in texts] for texts in (route.allowed, route.blocked))
    return (not allowed or any(client in network for network in allowed)) and not any(client in network for network in blocked)

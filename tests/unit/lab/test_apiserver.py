"""The small kube-apiserver and the client that keeps its connection, wired to each other without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from typing_extensions import override

from edgekeeper.lab.apiserver import Manner, Server
from edgekeeper.lab.hold import Http2


class Pipe(asyncio.Transport):
    """One end of a connection in memory; ``peer`` is the protocol at the other end."""

    def __init__(self, alpn: str | None = "h2") -> None:
        super().__init__()
        self.peer: asyncio.Protocol | None = None
        self.sent = b""
        self.closed = False
        self._alpn = alpn

    @override
    def get_extra_info(self, name: str, default: object = None) -> object:
        return self if name == "ssl_object" else default

    def selected_alpn_protocol(self) -> str | None:
        return self._alpn

    @override
    def write(self, data: bytes) -> None:
        self.sent += data
        if data and self.peer is not None:
            asyncio.get_running_loop().call_soon(self.peer.data_received, bytes(data))

    @override
    def is_closing(self) -> bool:
        return self.closed

    @override
    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.peer is not None:
                asyncio.get_running_loop().call_soon(self.peer.connection_lost, None)

    abort = close


def connect(manner: Manner) -> tuple[Http2, Server, Pipe]:
    """A client and a server, talking; and the server's end of the connection."""
    client, server = Http2(), Server(manner)
    ours, theirs = Pipe(), Pipe()
    ours.peer, theirs.peer = server, client
    server.connection_made(theirs)
    client.connection_made(ours)
    return client, server, theirs


def run(script: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await script()

    asyncio.run(whole())


def test_it_says_who_it_is_and_whether_it_is_ready() -> None:
    async def script() -> None:
        manner = Manner("cp1")
        client, _, _ = connect(manner)
        assert await client.get("/version", 1.0) == "cp1"
        assert await client.get("/readyz", 1.0) == "cp1"
        manner.command("mode unready")
        assert await client.get("/readyz?verbose", 1.0) == "!500"
        assert await client.get("/version", 1.0) == "cp1"
        assert manner.command("asked") == "4"

    run(script)


def test_a_black_hole_answers_pings_and_no_request_and_the_client_stays() -> None:
    async def script() -> None:
        manner = Manner("cp1")
        client, _, _ = connect(manner)
        assert await client.get("/version", 1.0) == "cp1"
        manner.command("mode blackhole")
        assert await client.get("/version", 0.02) == "!timeout"
        client.ping()
        assert client.pinged is not None
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert client.pinged is None, "the PING was acknowledged"
        assert not client.ended.done(), "a missed deadline ends the request, not the connection"
        manner.command("mode ok")
        assert await client.get("/version", 1.0) == "cp1", "and the connection is still of use"

    run(script)


def test_what_is_under_way_when_the_server_becomes_a_black_hole_is_never_answered() -> None:
    async def script() -> None:
        manner = Manner("cp1", delay=0.01)
        client, _, _ = connect(manner)
        asking = asyncio.create_task(client.get("/version", 0.05))
        await asyncio.sleep(0)
        manner.command("mode blackhole")
        assert await asking == "!timeout"

    run(script)


def test_a_cut_ends_what_is_under_way_at_once() -> None:
    async def script() -> None:
        manner = Manner("cp1", mode="blackhole")
        client, _, theirs = connect(manner)
        asking = asyncio.create_task(client.get("/version", 5.0))
        await asyncio.sleep(0)
        theirs.close()
        assert await asking == "!connection ended"
        assert client.ended.done()
        assert await client.get("/version", 5.0) == "!connection ended"

    run(script)


def test_http_1_as_haproxy_checks_it() -> None:
    async def script() -> None:
        manner = Manner("cp1", slow=0.0)
        server, pipe = Server(manner), Pipe(alpn=None)
        server.connection_made(pipe)
        server.data_received(b"GET /readyz HT")
        server.data_received(b"TP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.001)
        assert pipe.sent.startswith(b"HTTP/1.1 200 ")
        assert b"x-served-by: cp1\r\n" in pipe.sent
        assert not pipe.closed
        server.data_received(b"GET /readyz HTTP/1.0\r\n\r\n")
        await asyncio.sleep(0.001)
        assert pipe.closed, "HTTP/1.0 ends the connection"

    run(script)


@pytest.mark.parametrize("line", ["mode nope", "what", "slow", "slow 1 2"])
def test_what_it_does_not_understand(line: str) -> None:
    assert "is not a command" in Manner("cp1").command(line)

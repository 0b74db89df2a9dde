"""The black-hole probe against servers on loopback that end the conversation at each of its steps."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.lab.certs import Authority
from edgekeeper.model.reach import Reach, Reached
from edgekeeper.probe.blackhole import Question, ask

from .edge import free_ports

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def leaf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("ca")).issue("api.example")


def says(answer: bytes, *, close: bool = True) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            if close:
                writer.close()
            else:
                await reader.read()
        writer.transport.abort()

    return serve


def reached(serve: Serve, leaf: Path | None, **said: Any) -> Reached:
    async def work() -> Reached:
        context = None
        if leaf is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(leaf / "tls.crt", leaf / "tls.key")
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        found = await ask(Question("127.0.0.1", port, **{"tls": leaf is not None, "first_byte_s": 0.3, "tls_s": 0.3, **said}))
        server.close()
        await asyncio.sleep(0.02)  # the server's side ends too
        return found

    return asyncio.run(work())


@pytest.mark.parametrize("status", ["200 OK", "302 Found", "401 Unauthorized", "403 Forbidden", "404 Not Found", "429 Too Many Requests"])
def test_whoever_answers_is_awake(status: str, leaf: Path) -> None:
    found = reached(says(f"HTTP/1.1 {status}\r\n\r\nok".encode()), leaf)
    assert (found.reach, found.status) == (Reach.OK, int(status[:3]))
    assert found.connect_ms is not None
    assert found.tls_ms is not None
    assert found.first_byte_ms is not None


def test_not_ready_shows_what_it_says(leaf: Path) -> None:
    found = reached(says(b"HTTP/1.1 500 No\r\n\r\n[-]etcd failed: \x1b[2Jreason withheld\n" + b"x" * 5000), leaf)
    assert (found.reach, found.status) == (Reach.UNREADY, 500)
    assert found.body.startswith("[-]etcd failed: \\x1b[2J")
    assert len(found.body) <= 330


@pytest.mark.parametrize("plain", [False, True])
def test_a_black_hole_takes_the_connection_and_gives_no_byte(plain: bool, leaf: Path) -> None:
    begun = time.monotonic()
    found = reached(says(b"", close=False), None if plain else leaf)
    assert found.reach is Reach.BLACK_HOLE
    assert "no byte within 0.3 s" in found.why
    assert found.first_byte_ms is None
    assert (found.tls_ms is None) is plain
    assert 0.3 <= time.monotonic() - begun < 1.5


def test_one_byte_is_no_black_hole_and_no_good_answer(leaf: Path) -> None:
    assert reached(says(b"H", close=False), leaf).reach is Reach.UNREADY
    assert reached(says(b"\0\0\x12\4\0garbage"), leaf).reach is Reach.UNREADY


def test_an_end_without_an_answer_is_not_a_silence(leaf: Path) -> None:
    found = reached(says(b""), leaf)
    assert (found.reach, found.why) == (Reach.REFUSED, "TCP and TLS stand, then it ended the connection without an answer")


def test_a_server_that_speaks_no_tls() -> None:
    assert reached(says(b"HTTP/1.1 400 Bad\r\n\r\n"), None, tls=True).reach is Reach.TLS_FAIL

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(4096):
                pass
        writer.transport.abort()

    found = reached(silent, None, tls=True)
    assert (found.reach, found.why) == (Reach.TLS_FAIL, "the TLS handshake did not end within 0.3 s")


def test_refused_and_filtered() -> None:
    (port,) = free_ports(1)
    assert asyncio.run(ask(Question("127.0.0.1", port))).reach is Reach.REFUSED

    async def full() -> Reached:
        """A listener whose queue is full drops the packets that would open another connection."""
        import socket  # noqa: PLC0415

        with socket.socket() as listener, contextlib.ExitStack() as held:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for _ in range(2):
                one = held.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(listener.getsockname())
            return await ask(Question("127.0.0.1", listener.getsockname()[1], connect_s=0.3))

    found = asyncio.run(full())
    assert (found.reach, found.why) == (Reach.FILTERED, "no connection within 0.3 s")


def test_what_goes_wrong_here_says_nothing_about_the_server() -> None:
    assert asyncio.run(ask(Question("2001:db8::1%nowhere", 6443))).reach in (Reach.UNKNOWN, Reach.REFUSED)

    async def held_up() -> Reached:
        async def block() -> None:
            await asyncio.sleep(0.1)
            time.sleep(1.2)  # noqa: ASYNC251 - the process stands still, as under SIGSTOP

        server = await asyncio.start_server(says(b"", close=False), "127.0.0.1", 0)
        blocking = asyncio.create_task(block())
        found = await ask(Question("127.0.0.1", server.sockets[0].getsockname()[1], tls=False, first_byte_s=0.3))
        await blocking
        server.close()
        await asyncio.sleep(0.02)
        return found

    found = asyncio.run(held_up())
    assert found.reach is Reach.UNKNOWN
    assert "held up" in found.why


def test_the_certificate_is_recorded_and_never_enforced(leaf: Path) -> None:
    ca = str(leaf.parent / "ca.crt")
    good = says(b"HTTP/1.1 200 OK\r\n\r\nok")
    assert reached(good, leaf).verified is None
    found = reached(good, leaf, ca_file=ca, sni="api.example", tls_s=2.0)
    assert (found.reach, found.verified, found.unverified) == (Reach.OK, True, "")
    found = reached(good, leaf, ca_file=ca, sni="other.example", tls_s=2.0)
    assert (found.reach, found.verified) == (Reach.OK, False)
    assert "other.example" in found.unverified

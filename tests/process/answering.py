"""Small servers on loopback that answer, refuse, hang or speak of their health; and a network namespace with one on its loopback."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator

HEAD = "HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\n\r\n"


class Served:
    """A server and what it was asked: the heads of requests. ``status``, ``body`` and ``say`` (a body for a head) may be changed; ``hangs`` says nothing."""

    def __init__(self) -> None:
        self.port = 0
        self.status, self.body, self.hangs = 200, "ok", False
        self.heads: list[str] = []
        self.connections = 0
        self.say: Callable[[str], str] = lambda _: self.body

    def reply(self, head: bytes) -> bytes:
        self.heads.append(head.decode())
        body = self.say(self.heads[-1])
        return (HEAD.format(status=self.status, length=len(body)) + body).encode()


@contextlib.asynccontextmanager
async def served(*, tls: ssl.SSLContext | None = None, hangs: bool = False) -> AsyncIterator[Served]:
    """A server of HTTP, over TLS if a context is given; one that ``hangs`` accepts connections and never says a word (no handshake either)."""
    told = Served()
    told.hangs = hangs
    busy: set[asyncio.Task[None]] = set()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        told.connections += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while not told.hangs:
                    writer.write(told.reply(await reader.readuntil(b"\r\n\r\n")))
                await asyncio.sleep(60)
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(client, "127.0.0.1", 0, ssl=None if hangs else tls)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def elsewhere() -> Iterator[tuple[str, Served]]:
    """A server on the loopback of a network namespace of its own, as in a container, and the path of that namespace. Needs root."""
    told = Served()
    up, ended = threading.Event(), threading.Event()
    place: list[str] = []

    def live() -> None:
        if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            told.port = listener.getsockname()[1]
            listener.settimeout(0.05)
            place.append(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net")
            up.set()
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    answer(listener.accept()[0])

    def answer(client: socket.socket) -> None:
        with client:
            client.settimeout(5)
            head = b""
            while not head.endswith(b"\r\n\r\n") and (piece := client.recv(4096)):
                head += piece
            client.sendall(told.reply(head))

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    try:
        assert up.wait(10)
        yield place[0], told
    finally:
        ended.set()
        thread.join()

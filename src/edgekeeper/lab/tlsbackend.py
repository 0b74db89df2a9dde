"""What stands behind a passthrough proxy: a TLS server with a certificate for any name, which reads PROXY v2 and says whom it sees.

Each request on a connection, whatever its path, is answered with ``client ADDRESS``, ``port PORT``, ``host NAME`` (by SNI) and ``path PATH``, a
line each. ``python -m edgekeeper.lab.tlsbackend --listen 192.0.2.51:443 [--proxied off]`` is one as a process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any, Literal, Self, get_args

from edgekeeper.host.authority import Authority
from edgekeeper.host.clock import SystemClock
from edgekeeper.lab import hello
from edgekeeper.lab.hello import Client

Proxied = Literal["require", "accept", "off"]
_PATIENCE_S = 10.0
_NAMELESS = "nameless.example"


class TlsBackend:
    """The server. ``proxied`` says what it makes of PROXY headers; one that must come and does not ends the connection.

    ``ca`` is the certificate of those that it shows, PEM. ``seen`` has the clients and the names they asked for. ``mute`` takes connections and
    says nothing.
    """

    def __init__(self, listen: tuple[str, int] = ("127.0.0.1", 0), *, proxied: Proxied = "require") -> None:
        self.address = listen
        self.proxied = proxied
        self.mute = False
        self.seen: list[tuple[str, str]] = []
        self._authority = Authority("lab backend", SystemClock().wall(), 30)
        self.ca = self._authority.own.certificate
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._names: dict[int, str] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="tlsbackend-")
        self._tasks: set[asyncio.Task[Any]] = set()
        self._socket: socket.socket | None = None

    async def start(self) -> Self:
        """Listen; ``address`` is known then."""
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        sock = socket.create_server(self.address, family=family, backlog=1024)
        sock.setblocking(False)
        self._socket = sock
        self.address = sock.getsockname()[:2]
        self._keep(asyncio.create_task(self._accept(sock)))
        return self

    async def stop(self) -> None:
        """End, with all connections."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()
        self._folder.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def context(self, name: str) -> ssl.SSLContext:
        """TLS with a certificate for this name."""
        if name not in self._contexts:
            pair = self._authority.issue([name])
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            file = Path(self._folder.name, f"{len(self._contexts)}.pem")
            file.touch(mode=0o600)
            file.write_text(pair.certificate + pair.key)
            made.load_cert_chain(file)
            made.sni_callback = self._choose
            self._contexts[name] = made
            self._names[id(made)] = name
        return self._contexts[name]

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        if name is not None:
            connection.context = self.context(name.lower())

    async def _accept(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            one, _ = await loop.sock_accept(sock)
            self._keep(asyncio.create_task(self._serve(one)))

    async def _serve(self, sock: socket.socket) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            with contextlib.suppress(OSError, TimeoutError, hello.WrongHelloError, asyncio.IncompleteReadError):
                if self.mute:
                    await asyncio.Event().wait()
                async with asyncio.timeout(_PATIENCE_S):
                    client = await self._client(sock)
                    reader, writer = await self._secured(sock)
                await self._answer(reader, writer, client)
        finally:
            if writer is not None:
                writer.transport.abort()
            else:
                sock.close()

    async def _client(self, sock: socket.socket) -> Client:
        """Who it is, by the header where there is one."""
        true = Client(*sock.getpeername()[:2])
        if self.proxied == "off":
            return true
        loop = asyncio.get_running_loop()
        while (proxied := hello.is_proxied(await _peek(sock, 12))) is None:  # noqa: ASYNC110 - what is only looked at is there again at once
            await asyncio.sleep(0.001)
        if not proxied:
            if self.proxied == "require":
                msg = "no PROXY header"
                raise hello.WrongHelloError(msg)
            return true
        head = await _exactly(loop, sock, 16)
        header = head + await _exactly(loop, sock, hello.header_length(head) - len(head))
        return hello.proxied_client(header) or true

    async def _secured(self, sock: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, protocol = await loop.connect_accepted_socket(
            lambda: asyncio.StreamReaderProtocol(reader), sock, ssl=self.context(_NAMELESS), ssl_handshake_timeout=_PATIENCE_S
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: Client) -> None:
        name = self._names[id(writer.get_extra_info("ssl_object").context)]
        self.seen.append((client.address, name))
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            body = f"client {client.address}\nport {client.port}\nhost {name}\npath {words[1] if len(words) == 3 else '/'}\n".encode()
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            if b"connection: close" in head.lower():
                return


async def _exactly(loop: asyncio.AbstractEventLoop, sock: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = await loop.sock_recv(sock, count - len(found))
        if not piece:
            msg = "the connection ended in its PROXY header"
            raise hello.WrongHelloError(msg)
        found += piece
    return found


async def _peek(sock: socket.socket, count: int) -> bytes:
    """The first bytes, which stay to be read."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sock)
    found = sock.recv(count, socket.MSG_PEEK)
    if not found:
        msg = "the connection ended at once"
        raise hello.WrongHelloError(msg)
    return found


async def serve(listen: tuple[str, int], proxied: Proxied) -> None:
    """A backend, until cancelled."""
    async with TlsBackend(listen, proxied=proxied):
        await asyncio.Event().wait()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.tlsbackend", description="A TLS server that reads PROXY v2 and says whom it sees.")
    parser.add_argument("--listen", required=True, help="address:port")
    parser.add_argument("--proxied", choices=get_args(Proxied), default="require")
    args = parser.parse_args()
    host, _, port = args.listen.rpartition(":")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve((host.strip("[]"), int(port)), args.proxied))


if __name__ == "__main__":
    main()

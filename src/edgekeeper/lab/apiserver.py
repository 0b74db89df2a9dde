"""A small kube-apiserver for drills: HTTP/2 and HTTP/1.1 over TLS, and it becomes a black hole when told to.

``python -m edgekeeper.lab.apiserver --listen 192.0.2.21:6443 --name cp1 --cert tls.crt --key tls.key --control /path/cp1.sock``

Without a certificate it speaks HTTP/1.1 in the clear: an ordinary web server. Every answer names the
server, in the header ``x-served-by`` and in the body. As a black hole it does what a kube-apiserver
does whose etcd is dead: it accepts TCP and TLS, speaks HTTP/2 (SETTINGS, an answer to each PING), and
never answers a request. Commands come as lines on the control socket, each answered with ``ok`` or
one sentence.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError
from typing_extensions import override

HEALTH = frozenset({"/readyz", "/livez", "/healthz"})
MODES = ("ok", "blackhole", "unready")


@dataclass(slots=True)
class Manner:
    """How it answers just now. Delays are seconds: ``slow`` of the health paths, ``delay`` of all others."""

    name: str
    mode: str = "ok"
    slow: float = 0.0
    delay: float = 0.0
    asked: int = 0

    def command(self, line: str) -> str:
        """Carry out one command; the answer is ``ok``, a value, or what was wrong."""
        match line.split():
            case ["mode", mode] if mode in MODES:
                self.mode = mode
            case ["slow", seconds]:
                self.slow = float(seconds)
            case ["delay", seconds]:
                self.delay = float(seconds)
            case ["asked"]:
                return str(self.asked)
            case _:
                return f"{line!r} is not a command; see the module's documentation"
        return "ok"

    def answer(self, path: str) -> tuple[int, str, float]:
        """Status, body and after how many seconds for a request of this path, black hole or not."""
        self.asked += 1
        path = path.partition("?")[0]
        if path not in HEALTH:
            return 200, self.name, self.delay
        if self.mode == "unready" and path == "/readyz":
            return 500, f"[-]etcd failed: reason withheld\n{self.name}: readyz check failed", self.slow
        return 200, f"ok {self.name}", self.slow


class Server(asyncio.Protocol):
    """One client's connection, HTTP/2 where ALPN chose it, else HTTP/1."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._http2: H2Connection | None = None
        self._buffer = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._http2 = H2Connection(H2Configuration(client_side=False))
            self._http2.initiate_connection()
            self._flush()

    @override
    def data_received(self, data: bytes) -> None:
        if self._http2 is not None:
            self._read_http2(self._http2, data)
        else:
            self._buffer += data
            self._read_http1()

    def _read_http2(self, http2: H2Connection, data: bytes) -> None:
        try:
            events = http2.receive_data(data)
        except ProtocolError:
            self._flush()
            self._transport.close()
            return
        for event in events:
            if isinstance(event, RequestReceived) and event.stream_id is not None:
                path = next((value.decode() for name, value in event.headers or () if name == b":path"), "/")
                self._later(path, http2, event.stream_id)
        self._flush()  # also the answers to SETTINGS and PING, which a black hole gives

    def _read_http1(self) -> None:
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            words = lines[0].split(" ")
            keep = words[-1] == "HTTP/1.1" and "connection: close" not in (line.lower() for line in lines[1:])
            self._later(words[1] if len(words) == 3 else "/", None, 0, keep=keep)

    def _later(self, path: str, http2: H2Connection | None, stream: int, *, keep: bool = True) -> None:
        status, body, delay = self._manner.answer(path)
        asyncio.get_running_loop().call_later(delay, self._reply, status, body, http2, stream, keep)

    def _reply(self, status: int, body: str, http2: H2Connection | None, stream: int, keep: bool) -> None:  # noqa: FBT001 - called by a timer
        if self._manner.mode == "blackhole" or self._transport.is_closing():
            return
        data = body.encode() + b"\n"
        if http2 is None:
            end = "" if keep else "Connection: close\r\n"
            head = f"HTTP/1.1 {status} X\r\nx-served-by: {self._manner.name}\r\nContent-Length: {len(data)}\r\n{end}\r\n"
            self._transport.write(head.encode() + data)
            if not keep:
                self._transport.close()
            return
        with contextlib.suppress(ProtocolError):  # the client has given the request up meanwhile
            http2.send_headers(stream, [(":status", str(status)), ("x-served-by", self._manner.name), ("content-length", str(len(data)))])
            http2.send_data(stream, data, end_stream=True)
        self._flush()

    def _flush(self) -> None:
        if self._http2 is not None and not self._transport.is_closing():
            self._transport.write(self._http2.data_to_send())


def context(cert: Path, key: Path) -> ssl.SSLContext:
    """TLS as a kube-apiserver offers it: HTTP/2 first, HTTP/1.1 for those who do not ask."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    return tls


async def control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, manner: Manner) -> None:
    """Commands, one a line, until the other end closes."""
    while line := await reader.readline():
        try:
            said = manner.command(line.decode())
        except ValueError as err:
            said = str(err)
        writer.write(said.encode() + b"\n")
        await writer.drain()
    writer.close()


async def serve(listen: tuple[str, int], manner: Manner, tls: ssl.SSLContext | None, path: Path | None) -> None:
    """Serve until cancelled."""
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: Server(manner), *listen, ssl=tls, backlog=1024)
    if path is not None:
        await asyncio.start_unix_server(lambda r, w: control(r, w, manner), path)
    await asyncio.Event().wait()


def main() -> None:
    """The command line of one server."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.apiserver", description="A small kube-apiserver that misbehaves on command.")
    parser.add_argument("--listen", required=True, help="address:port")
    parser.add_argument("--name", required=True)
    parser.add_argument("--cert", type=Path, help="PEM; without it there is no TLS")
    parser.add_argument("--key", type=Path)
    parser.add_argument("--control", type=Path)
    args = parser.parse_args()
    host, _, port = args.listen.rpartition(":")
    tls = context(args.cert, args.key) if args.cert else None
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve((host, int(port)), Manner(args.name), tls, args.control))


if __name__ == "__main__":
    main()

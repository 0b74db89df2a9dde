"""The clients of a load balancer: warm ones that keep one connection each, and fresh ones that open one for each request.

``python -m edgekeeper.lab.hold --server 198.51.100.1:6443 --clients 9 --every 0.25 --fresh 20 --duration 10 --ca ca.crt --out hold.jsonl``

A warm client does what a Kubernetes client in Go does: one HTTP/2 connection, a deadline for each
request, and the connection is kept when a deadline is missed. It is judged by PING alone: one every
``--ping`` seconds, and only a PING that is not acknowledged makes the client leave. That is why a
server that answers PING and nothing else holds such a client for ever. Its requests are a closed
loop: the next one ``--every`` seconds after the one before was answered or given up.

Fresh clients are an open loop: so many a second, whatever became of the ones before, HTTP/1.1, each
on a connection of its own. The first line on standard output is the moment the load began (monotonic
clock; every warm client has been answered once by then); records go to ``--out`` at the end, which
is after ``--duration`` or when TERM comes; see ``edgekeeper.lab.held``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import ssl
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, PingAckReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from typing_extensions import override

SERVER_NAME = "api.example"
_RETRY_S = 0.05
"""How long a client waits after a failure before it asks again, when that is less than its period."""


@dataclass(slots=True)
class Load:
    """What is to be asked, and the records so far."""

    server: tuple[str, int]
    path: str
    timeout: float
    ca: str | None
    ping: float
    ping_timeout: float
    lines: list[list[Any]] = field(default_factory=list)
    end: asyncio.Event = field(default_factory=asyncio.Event)

    def tls(self, *protocols: str) -> ssl.SSLContext | None:
        """How to connect, offering these protocols (ALPN); None where there is no TLS."""
        if self.ca is None:
            return None
        found = ssl.create_default_context(cafile=self.ca)
        if protocols:
            found.set_alpn_protocols(list(protocols))
        return found

    def record(self, kind: str, client: int, serial: int, sent: float, *, ok: bool, by: str | None = None, error: str | None = None) -> None:
        """One request that has ended now."""
        self.lines.append([kind, client, serial, round(sent, 6), round(time.monotonic(), 6), ok, by, error])


class Http2(asyncio.Protocol):
    """One HTTP/2 connection of a client."""

    def __init__(self) -> None:
        self._http2 = H2Connection(H2Configuration(client_side=True))
        self._answers: dict[int, asyncio.Future[str]] = {}
        self._served_by: dict[int, str] = {}
        self.pinged: float | None = None
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.leaving = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._http2.initiate_connection()
        self._flush()

    @override
    def data_received(self, data: bytes) -> None:
        try:
            events = self._http2.receive_data(data)
        except ProtocolError as err:
            self.close(f"not HTTP/2: {err}")
            return
        for event in events:
            match event:
                case ResponseReceived(stream_id=int(stream)):
                    headers = dict(event.headers or ())
                    status = headers.get(b":status", b"").decode()
                    self._served_by[stream] = headers.get(b"x-served-by", b"").decode() if status == "200" else f"!{status}"
                case DataReceived(stream_id=int(stream)):
                    self._http2.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                case StreamEnded(stream_id=int(stream)):
                    self._finish(stream, self._served_by.pop(stream, "!no answer"))
                case StreamReset(stream_id=int(stream)):
                    self._finish(stream, "!reset")
                case PingAckReceived():
                    self.pinged = None
                case ConnectionTerminated():
                    self.leaving = True
                case _:
                    pass
        self._flush()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._end(f"connection ended{': ' + str(exc) if exc else ''}")

    def _end(self, why: str) -> None:
        for stream in list(self._answers):
            self._finish(stream, f"!{why}")
        if not self.ended.done():
            self.ended.set_result(why)

    def _finish(self, stream: int, said: str) -> None:
        answer = self._answers.pop(stream, None)
        if answer is not None and not answer.done():
            answer.set_result(said)

    def _flush(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._http2.data_to_send())

    def close(self, why: str) -> None:
        """Leave this connection."""
        self._end(why)
        self._transport.abort()

    def ping(self) -> None:
        """Ask whether the other end is there."""
        self.pinged = time.monotonic()
        self._http2.ping(b"edgekeep")
        self._flush()

    async def get(self, path: str, timeout: float) -> str:
        """Who answered; what begins with ``!`` is an error. A missed deadline ends the request, not the connection."""
        if self.ended.done():
            return f"!{self.ended.result()}"
        stream = self._http2.get_next_available_stream_id()
        self._http2.send_headers(
            stream, [(":method", "GET"), (":scheme", "https"), (":authority", SERVER_NAME), (":path", path), ("user-agent", "lab")], end_stream=True
        )
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers[stream] = answer
        self._flush()
        try:
            return await asyncio.wait_for(answer, timeout)
        except TimeoutError:
            self._answers.pop(stream, None)
            with contextlib.suppress(ProtocolError):
                self._http2.reset_stream(stream, ErrorCodes.CANCEL)
                self._flush()
            return "!timeout"


class Warm:
    """A client that keeps one connection, opens another only when that one has ended, and counts."""

    def __init__(self, load: Load, client: int) -> None:
        self._load = load
        self._client = client
        self._tls = load.tls("h2")
        self._connection: Http2 | None = None
        self._serial = 0

    async def _connected(self) -> Http2:
        """The connection there is, else a new one; OSError or TimeoutError when there is none to be had."""
        if self._connection is not None and not self._connection.ended.done() and not self._connection.leaving:
            return self._connection
        if self._connection is not None and not self._connection.ended.done():
            self._connection.close("told to go")
        self._serial += 1
        name = SERVER_NAME if self._tls else None
        loop = asyncio.get_running_loop()
        _, protocol = await asyncio.wait_for(loop.create_connection(Http2, *self._load.server, ssl=self._tls, server_hostname=name), self._load.timeout)
        self._connection = protocol
        protocol.ended.add_done_callback(self._note_cut)
        return protocol

    def _note_cut(self, ended: asyncio.Future[str]) -> None:
        if not self._load.end.is_set():
            now = round(time.monotonic(), 6)
            self._load.lines.append(["cut", self._client, self._serial, now, now, True, None, ended.result()])

    async def ask(self) -> bool:
        """One request, recorded; whether it was answered."""
        sent = time.monotonic()
        try:
            connection = await self._connected()
            said = await connection.get(self._load.path, self._load.timeout)
        except (OSError, TimeoutError, ProtocolError) as err:
            said = f"!no connection: {type(err).__name__}"
        ok = not said.startswith("!")
        self._load.record("warm", self._client, self._serial, sent, ok=ok, by=said if ok else None, error=None if ok else said[1:])
        return ok

    async def run(self, every: float) -> None:
        """Ask until the load is over; what is under way then is waited for."""
        while not self._load.end.is_set():
            ok = await self.ask()
            await asyncio.sleep(every if ok else min(every, _RETRY_S))

    async def pings(self) -> None:
        """PING the connection there is; leave it when a PING is not acknowledged."""
        while True:
            await asyncio.sleep(self._load.ping)
            connection = self._connection
            if connection is None or connection.ended.done():
                continue
            if connection.pinged is None:
                connection.ping()
            elif time.monotonic() - connection.pinged > self._load.ping_timeout:
                connection.close("PING not acknowledged")


async def fresh(load: Load, number: int, tls: ssl.SSLContext | None) -> None:
    """One request over HTTP/1.1 on a connection of its own."""
    sent = time.monotonic()
    writer: asyncio.StreamWriter | None = None
    said = "!timeout"
    try:
        async with asyncio.timeout(load.timeout):
            reader, writer = await asyncio.open_connection(*load.server, ssl=tls, server_hostname=SERVER_NAME if tls else None)
            writer.write(f"GET {load.path} HTTP/1.1\r\nHost: {SERVER_NAME}\r\nConnection: close\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = head[0].split(" ")[1]
            by = next((line.partition(": ")[2] for line in head if line.startswith("x-served-by")), "")
            said = by if status == "200" else f"!{status}"
    except TimeoutError:
        pass
    except (OSError, asyncio.IncompleteReadError, IndexError) as err:
        said = f"!{type(err).__name__}"
    finally:
        if writer is not None:
            writer.transport.abort()
    ok = not said.startswith("!")
    load.record("fresh", number, 0, sent, ok=ok, by=said if ok else None, error=None if ok else said[1:])


async def _open_loop(load: Load, rate: float, start: float, duration: float) -> None:
    """So many fresh clients a second; a late one is made up for at once, never skipped."""
    tls = load.tls()
    under_way: set[asyncio.Task[None]] = set()
    for number in range(round(rate * duration)):
        if load.end.is_set():
            break
        if (wait := start + number / rate - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(fresh(load, number, tls))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def run(load: Load, clients: int, every: float, rate: float, duration: float) -> None:
    """All clients for so many seconds; requests under way at the end are waited for."""
    warm = [Warm(load, number) for number in range(clients)]
    for one in warm:  # one after the other: round robin gives each server its share
        while not await one.ask():  # noqa: ASYNC110 - the answer is not ours to give
            await asyncio.sleep(_RETRY_S)
    load.lines.clear()
    start = time.monotonic()
    sys.stdout.write(f"{start:.6f}\n")
    sys.stdout.flush()
    pings = [asyncio.create_task(one.pings()) for one in warm]
    tasks = [asyncio.create_task(_spread(one, every, number / max(1, clients))) for number, one in enumerate(warm)]
    opens = asyncio.create_task(_open_loop(load, rate, start, duration))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, load.end.set)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(load.end.wait(), max(0.0, start + duration - time.monotonic()))
    load.end.set()
    await asyncio.gather(opens, *tasks)
    for task in pings:
        task.cancel()
    await asyncio.gather(*pings, return_exceptions=True)


async def _spread(one: Warm, every: float, share: float) -> None:
    """Ask in the client's own rhythm: the periods of all clients do not begin together."""
    await asyncio.sleep(every * share)
    await one.run(every)


def main() -> None:
    """The command line of the clients."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.hold", description="Clients of a load balancer, warm and fresh.")
    parser.add_argument("--server", required=True, help="address:port")
    parser.add_argument("--path", default="/version")
    parser.add_argument("--clients", type=int, default=0, help="warm clients")
    parser.add_argument("--every", type=float, default=0.25, help="seconds from an answer to a warm client's next request")
    parser.add_argument("--fresh", type=float, default=0.0, help="fresh clients a second")
    parser.add_argument("--timeout", type=float, default=4.0, help="seconds until a request is given up")
    parser.add_argument("--ping", type=float, default=1.0, help="seconds between PINGs of a warm client")
    parser.add_argument("--ping-timeout", type=float, default=3.0, help="seconds until a PING that is not acknowledged ends the connection")
    parser.add_argument("--duration", type=float, default=5.0, help="seconds")
    parser.add_argument("--ca", help="CA file; without it there is no TLS")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    host, _, port = args.server.rpartition(":")

    async def whole() -> Load:
        load = Load((host, int(port)), args.path, args.timeout, args.ca, args.ping, args.ping_timeout)
        await run(load, args.clients, args.every, args.fresh, args.duration)
        return load

    load = asyncio.run(whole())
    args.out.write_text("".join(json.dumps(line) + "\n" for line in load.lines), encoding="ascii")


if __name__ == "__main__":
    main()

"""An open-loop DNS client: asks on schedule, whatever became of the question before.

``python -m edgekeeper.lab.load --server 198.51.100.1:53 --qps 500 --duration 5 --out load.jsonl``

One line of JSON for each question goes to ``--out`` at the end; the first line on standard output
is the moment it started (monotonic clock), the last a summary. TERM ends it before its time: what is under way is waited for. Over TCP and DoT a connection that
ends is opened anew and what was under way on it is asked again, at most ``--reconnects`` times.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from edgekeeper.probe.packet import question

_STALL_S = 3.0
"""A question unanswered for this long makes the client leave its connection and ask again on a new one."""


@dataclass(slots=True)
class Asked:
    """One question: when it was sent, when and how it was answered; ``tries`` counts reconnects."""

    packet: bytes
    sent: float
    done: float | None = None
    rcode: int | None = None
    by: int | None = None
    tries: int = 0
    error: str | None = None

    def answered(self, data: bytes, now: float) -> None:
        """Note the answer; only the first counts."""
        if self.done is None:
            self.done = now
            self.rcode = data[3] & 0xF
            self.by = data[-1] if data[7] else None


@dataclass(slots=True)
class Load:
    """What is to be asked, and what has been so far."""

    server: tuple[str, int]
    qps: float
    duration: float
    names: int
    timeout: float
    transport: str
    ports: int
    connections: int
    reconnects: int
    per_connection: int
    ca: str | None
    suffix: str
    asked: list[Asked] = field(default_factory=list)
    handshakes: int = 0
    failed_handshakes: int = 0
    ends: int = 0
    stalls: int = 0
    certificates: dict[str, int] = field(default_factory=dict)
    end: asyncio.Event = field(default_factory=asyncio.Event)

    def next_question(self, ident: int) -> Asked:
        """The next question in order, stamped now."""
        number = len(self.asked)
        label = f"q{number}" if self.names == 0 else f"n{number % self.names}"
        one = Asked(question(ident, f"{label}.{self.suffix}"), time.monotonic())
        self.asked.append(one)
        return one

    def open(self) -> bool:
        """Whether a question is still under way."""
        now = time.monotonic()
        return any(a.done is None and a.error is None and now - a.sent < self.timeout for a in self.asked)


async def _pace(load: Load, ask: Callable[[int], None]) -> None:
    """Call ``ask(n)`` on schedule; a late one is made up for at once, never skipped."""
    start = time.monotonic()
    print(f"{start:.6f}", flush=True)  # noqa: T201 - this module is a program of its own
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, load.end.set)
    total = round(load.qps * load.duration)
    for number in range(total):
        if load.end.is_set():
            break
        due = start + number / load.qps
        if (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        ask(number)
        if number % 50 == 0:
            await asyncio.sleep(0)
    while load.open():  # noqa: ASYNC110 - the end is a time-out of many questions, not an event
        await asyncio.sleep(0.02)


async def _udp(load: Load) -> None:
    loop = asyncio.get_running_loop()
    waiting: list[dict[int, Asked]] = []
    sockets: list[socket.socket] = []

    def receive(index: int) -> None:
        try:
            data = sockets[index].recv(4096)
        except OSError:
            return  # a port unreachable for an earlier question; what it costs shows as unanswered
        one = waiting[index].pop(int.from_bytes(data[:2], "big"), None)
        if one is not None:
            one.answered(data, time.monotonic())

    for index in range(load.ports):
        sock = socket.socket(socket.AF_INET6 if ":" in load.server[0] else socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect(load.server)
        sockets.append(sock)
        waiting.append({})
        loop.add_reader(sock, receive, index)

    def ask(number: int) -> None:
        index = number % load.ports
        ident = (number // load.ports * 257 + index) & 0xFFFF
        one = load.next_question(ident)
        waiting[index][ident] = one
        # A pending port-unreachable error is raised by the next send, which then has sent nothing.
        for _ in range(2):
            with contextlib.suppress(OSError):
                sockets[index].send(one.packet)
                break

    await _pace(load, ask)
    for sock in sockets:
        loop.remove_reader(sock)
        sock.close()


class _Connection:
    """One TCP or DoT connection that is opened anew when it ends."""

    def __init__(self, load: Load, tls: ssl.SSLContext | None) -> None:
        self._load = load
        self._tls = tls
        self._flight: dict[int, Asked] = {}
        self._written: dict[int, float] = {}
        self._queue: asyncio.Queue[tuple[int, Asked]] = asyncio.Queue()
        self._ident = 0

    def put(self) -> None:
        """Ask one question on this connection."""
        self._ident = (self._ident + 1) & 0xFFFF
        self._queue.put_nowait((self._ident, self._load.next_question(self._ident)))

    async def run(self) -> None:
        """Connect, ask and read, for ever; reconnect at once on an end, after 50 ms on a refusal."""
        while True:
            try:
                reader, writer = await asyncio.wait_for(self._connect(), 3.0)
            except (OSError, TimeoutError):
                self._load.failed_handshakes += 1
                self._lose("no connection")
                await asyncio.sleep(0.05)
                continue
            self._load.handshakes += 1
            self._note_certificate(writer)
            send = asyncio.create_task(self._send(writer))
            try:
                await self._read(reader)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as err:
                self._load.ends += 1
                self._load.stalls += type(err) is TimeoutError
                self._lose("connection ended")
            finally:
                send.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await send
                writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._load.server
        return await asyncio.open_connection(host, port, ssl=self._tls, server_hostname="dns.example" if self._tls else None)

    def _note_certificate(self, writer: asyncio.StreamWriter) -> None:
        channel = writer.get_extra_info("ssl_object")
        if channel is not None:
            mark = hashlib.sha256(channel.getpeercert(binary_form=True)).hexdigest()[:12]
            self._load.certificates[mark] = self._load.certificates.get(mark, 0) + 1

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        self._written.clear()
        for ident, one in list(self._flight.items()):
            self._write(writer, ident, one)
        while True:
            ident, one = await self._queue.get()
            self._flight[ident] = one
            self._write(writer, ident, one)
            await writer.drain()

    def _write(self, writer: asyncio.StreamWriter, ident: int, one: Asked) -> None:
        self._written[ident] = time.monotonic()
        packet = ident.to_bytes(2, "big") + one.packet[2:]
        writer.write(len(packet).to_bytes(2, "big") + packet)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        answered = 0
        while True:
            data = await self._next(reader)
            ident = int.from_bytes(data[:2], "big")
            self._written.pop(ident, None)
            one = self._flight.pop(ident, None)
            if one is not None:
                one.answered(data, time.monotonic())
            answered += 1
            if self._load.per_connection and answered >= self._load.per_connection and not self._flight:
                return

    async def _next(self, reader: asyncio.StreamReader) -> bytes:
        """The next answer; TimeoutError when a question has waited on this connection for ``_STALL_S``, as resolvers give up on one."""
        head = asyncio.ensure_future(reader.readexactly(2))
        try:
            while not head.done():
                await asyncio.wait({head}, timeout=0.1)
                if not head.done() and self._written and time.monotonic() - min(self._written.values()) > _STALL_S:
                    raise TimeoutError
        finally:
            if not head.done():
                head.cancel()
        return await reader.readexactly(int.from_bytes(head.result(), "big"))

    def _lose(self, why: str) -> None:
        for ident, one in list(self._flight.items()):
            one.tries += 1
            if one.tries > self._load.reconnects:
                one.error = why
                del self._flight[ident]


async def _streams(load: Load) -> None:
    tls: ssl.SSLContext | None = None
    if load.transport == "dot":
        tls = ssl.create_default_context(cafile=load.ca) if load.ca else ssl._create_unverified_context()  # noqa: S323, SLF001
    connections = [_Connection(load, tls) for _ in range(load.connections)]
    tasks = [asyncio.create_task(c.run()) for c in connections]
    await _pace(load, lambda number: connections[number % len(connections)].put())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def lines(load: Load) -> list[str]:
    """One JSON line a question: number, sent, done, rcode, by, tries, error."""
    return [json.dumps([i, round(a.sent, 6), a.done and round(a.done, 6), a.rcode, a.by, a.tries, a.error]) for i, a in enumerate(load.asked)]


def main() -> None:
    """The command line of the load generator."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.load", description="An open-loop DNS client.")
    parser.add_argument("--server", required=True, help="address:port, [address]:port for IPv6")
    parser.add_argument("--qps", type=float, default=500.0)
    parser.add_argument("--duration", type=float, default=5.0, help="seconds")
    parser.add_argument("--names", default="unique", help="unique, or how many names in turn")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds until a question counts as unanswered")
    parser.add_argument("--transport", choices=("udp", "tcp", "dot"), default="udp")
    parser.add_argument("--ports", type=int, default=200, help="UDP source ports")
    parser.add_argument("--connections", type=int, default=20, help="TCP or DoT connections")
    parser.add_argument("--reconnects", type=int, default=4, help="how often a question is asked again after its connection ended")
    parser.add_argument("--per-connection", type=int, default=0, help="answers after which a connection is replaced; 0: never")
    parser.add_argument("--ca", help="CA file that the DoT certificate must come from; without it none is checked")
    parser.add_argument("--suffix", default="load.example.")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    host, _, port = args.server.rpartition(":")
    load = Load(
        server=(host.strip("[]"), int(port)),
        qps=args.qps,
        duration=args.duration,
        names=0 if args.names == "unique" else int(args.names),
        timeout=args.timeout,
        transport=args.transport,
        ports=args.ports,
        connections=args.connections,
        reconnects=args.reconnects,
        per_connection=args.per_connection,
        ca=args.ca,
        suffix=args.suffix,
    )
    asyncio.run(_udp(load) if load.transport == "udp" else _streams(load))
    args.out.write_text("\n".join(lines(load)) + "\n", encoding="ascii")
    summary = {
        "asked": len(load.asked),
        "answered": sum(a.rcode == 0 for a in load.asked),
        "handshakes": load.handshakes,
        "failed_handshakes": load.failed_handshakes,
        "ends": load.ends,
        "stalls": load.stalls,
        "certificates": load.certificates,
    }
    sys.stdout.write(json.dumps(summary) + "\n")


if __name__ == "__main__":
    main()

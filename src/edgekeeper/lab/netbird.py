"""A stateful fake of NetBird's management API over real HTTP, which misbehaves on command.

``python -m edgekeeper.lab.netbird --listen 192.0.2.31:8443 --control /path/netbird.sock [--proxy 192.0.2.41:443]...``

In a test: ``async with FakeNetBird() as fake``, then ``fake.url``, ``fake.token``. The behaviour is in ``netbird_state`` (pure); here is the
wire: HTTP/1.1 with kept connections, latency, and faults down to a reset in the middle of an answer. Each ``--proxy`` is a member of the
cluster, a TLS passthrough proxy that follows the services (``lab.sniproxy``).

The control socket takes one JSON object a connection (``host.control``) with ``do``: ``where``, ``latency`` (``seconds``), ``fault`` (fields of
``Fault``), ``clear``, ``advance`` (``seconds``), ``limit`` (``on``, ``per_minute``, ``burst``), ``counters`` (``reset``), ``cluster`` (``address``, ``proxies``),
``newer`` (``on``), ``resync``, ``user`` (``token``, ``role``), ``log``, ``routed``, ``proxy`` (``member``, ``mode`` and what ``SniProxy`` knows), ``hand`` (``method``, ``path``, ``body``, ``account``), ``edit`` (``domain``, ``changes``), ``find`` (``domain``), ``names``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

from typing_extensions import override

from edgekeeper.host import control
from edgekeeper.host.clock import SystemClock
from edgekeeper.lab import netbird_state
from edgekeeper.lab.netbird_faults import Fault, Faults, parse
from edgekeeper.lab.netbird_state import CLUSTER, Answer, State
from edgekeeper.lab.netbird_world import AnswerError, World
from edgekeeper.lab.sniproxy import Mode, SniProxy

__all__ = ["FakeNetBird", "Fault"]

_PIECES = 10
"""An answer that comes slowly comes in so many pieces."""


class FakeNetBird:
    """The fake on a port of its own. ``now`` is its clock (Unix time); without one the machine's, plus what ``advance`` added."""

    def __init__(self, listen: tuple[str, int] = ("127.0.0.1", 0), *, now: Callable[[], float] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._now = now if now is not None else SystemClock().wall
        self.state = State(World(now=self._now()))
        self.faults = Faults()
        self.latency_s = 0.0
        self.token, self.reader = "nbp_main_admin", "nbp_main_reader"
        self.url = ""
        self.proxies: list[SniProxy] = []
        """Members of the cluster, where there are any; they are stopped with the fake."""
        self.most_at_once = 0
        """The most requests that were waiting for their answers at the same moment."""
        self.log: deque[tuple[float, str, str, str]] = deque(maxlen=1000)
        """The last writes that were carried out: when (monotonic clock), whose token, method, kind."""
        self.connections = 0
        """How many connections were accepted."""
        self._listen = listen
        self._ahead_s = 0.0
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()
        self._waiting = 0

    async def start(self) -> Self:
        """Listen; ``url`` is known then."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), *self._listen, ssl=self._tls, backlog=1024)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"{'https' if self._tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        return self

    async def stop(self) -> None:
        """Close everything; AssertionError when an answer was not as our schema says."""
        if self._server is not None:
            self._server.close()
            for connection in tuple(self._open):
                connection.abort()
            await self._server.wait_closed()
        for proxy in self.proxies:
            await proxy.stop()
        if self.state.broken:
            msg = f"the fake broke its own schema: {'; '.join(self.state.broken[:5])}"
            raise AssertionError(msg)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def add_proxy(self, listen: tuple[str, int] = ("127.0.0.1", 0), *, port: int = 443) -> SniProxy:
        """Another member of the cluster; ``port`` is the one that it believes to listen on."""
        made = await SniProxy(self.state, listen, port=port).start()
        self.proxies.append(made)
        return made

    def now(self) -> float:
        """Unix time, by the fake's clock."""
        return self._now() + self._ahead_s

    def advance(self, seconds: float) -> None:
        """Move the clock on."""
        self._ahead_s += seconds

    def cut_connections(self) -> None:
        """Reset all connections that are open, as a restart does."""
        for connection in tuple(self._open):
            connection.abort()

    async def command(self, request: dict[str, Any]) -> dict[str, Any]:
        """One command of the control socket."""
        request = dict(request)
        try:
            said = self._command(request.pop("do", ""), request)
        except AnswerError as err:
            return {"ok": False, "status": err.status, "why": err.message}
        except (TypeError, ValueError, KeyError) as err:
            return {"ok": False, "why": str(err)}
        return {"ok": True, **(said or {})}

    def _command(self, do: str, given: dict[str, Any]) -> dict[str, Any] | None:
        simple: dict[str, Callable[..., dict[str, Any] | None]] = {
            "where": lambda: {"url": self.url, "token": self.token, "reader": self.reader},
            "latency": lambda seconds: setattr(self, "latency_s", float(seconds)),
            "clear": self.faults.clear,
            "resync": self.state.resync,
            "advance": lambda seconds: self.advance(float(seconds)),
            "limit": self.state.limit,
            "counters": lambda reset=False: (self.state.reset() if reset else self.state.counters).raw(),
            "cluster": lambda proxies, address=CLUSTER: setattr(self.state.world.clusters[address], "proxies", int(proxies)),
            "newer": lambda on=True: setattr(self.state.world, "newer", bool(on)),
            "hand": lambda method, path, body=None, account="main": {"answer": self.state.hand(method, path, body, account=account)},
            "edit": lambda domain, changes: {"service": self.state.edit(domain, **changes)},
            "user": lambda token, role="admin": self.state.add_user(token, role),
            "log": lambda: {"log": list(self.log)},
            "routed": lambda: {"hosts": [route.host for route in self.state.routes()]},
            "find": lambda domain: {"service": self.state.find(domain)},
            "names": lambda account="main": {"names": {s["domain"]: s["name"] for s in self.state.world.accounts[account].services.values()}},
            "fault": self._fault,
            "proxy": self._proxy,
        }
        if do not in simple:
            msg = f"{do!r} is not a command; known are {', '.join(simple)}"
            raise ValueError(msg)
        return simple[do](**given)

    def _fault(self, **wanted: Any) -> None:
        self.faults.add(parse(wanted))

    def _proxy(self, member: int = 0, mode: Mode | None = None) -> dict[str, Any]:
        proxy = self.proxies[member]
        if mode is not None:
            proxy.mode = mode
        return {"address": list(proxy.address), "mode": proxy.mode, "hosts": len(proxy.table), "count": dict(proxy.count)}

    # --- for the connections

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Carry a request out."""
        said = headers.get("authorization")
        answer = self.state.handle(method, target, said, body, self.now())
        if method != "GET" and answer.status < 300:
            self.log.append((round(time.monotonic(), 3), (said or "").rpartition(" ")[2], method, answer.kind))
        return answer

    def opened(self, connection: _Connection) -> None:
        """A client has come."""
        self.connections += 1
        self._open.add(connection)

    def closed(self, connection: _Connection) -> None:
        """And is gone."""
        self._open.discard(connection)

    def waits(self, more: int) -> None:
        """So many more requests wait."""
        self._waiting += more
        self.most_at_once = max(self.most_at_once, self._waiting)


class _Connection(asyncio.Protocol):
    """One client's connection: a request at a time, as HTTP/1.1 has it."""

    def __init__(self, fake: FakeNetBird) -> None:
        self._fake = fake
        self._buffer = bytearray()
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._fake.opened(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._fake.closed(self)
        if self._timer is not None:
            self._timer.cancel()
        self._free()

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._busy:
            self._next()

    def abort(self) -> None:
        """A reset, as far as the other side can tell."""
        self._transport.abort()

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        words = first.split(" ")
        length = headers.get("content-length", "0")
        if len(words) != 3 or not length.isdecimal() or "transfer-encoding" in headers:
            self._send(400, b'{"message":"bad request","code":400}', keep=False)
            return
        begin = end + 4
        if len(self._buffer) < begin + int(length):
            return
        body = bytes(self._buffer[begin : begin + int(length)])
        del self._buffer[: begin + int(length)]
        self._busy = True
        self._fake.waits(1)
        self._handle(words[0], words[1], headers, body)

    def _handle(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        fake = self._fake
        keep = headers.get("connection", "").lower() != "close"
        fault = fake.faults.take(method, target, kind_of(target))
        if fault is not None and not fault.applied:
            fake.state.counters.calls[f"{method} {kind_of(target)}"] += 1
            if fault.how == "reset_before":
                self._reset()
            elif fault.how == "hang":
                if fault.seconds:  # counted when it is carried out
                    fake.state.counters.calls[f"{method} {kind_of(target)}"] -= 1
                    self._later(fault.seconds, lambda: self._plain(method, target, headers, body, keep))
            else:
                self._later(fake.latency_s, lambda: self._send(*fault.answer(200, b"{}"), keep=keep))
            return
        answer = fake.answer(method, target, headers, body)
        if fault is None:
            self._later(fake.latency_s, lambda: self._send(answer.status, answer.body, keep=keep))
        else:
            self._fail(fault, answer.status, answer.body, keep=keep)

    def _plain(self, method: str, target: str, headers: dict[str, str], body: bytes, keep: bool) -> None:  # noqa: FBT001 - called by a timer
        answer = self._fake.answer(method, target, headers, body)
        self._send(answer.status, answer.body, keep=keep)

    def _fail(self, fault: Fault, status: int, body: bytes, *, keep: bool) -> None:
        """An answer that goes wrong after its request was carried out."""
        match fault.how:
            case "reset_after":
                self._reset()
            case "hang":
                if fault.seconds:
                    self._later(fault.seconds, lambda: self._send(status, body, keep=keep))
            case "reset_mid" | "torn":
                whole = _head(status, len(body), keep=False) + body
                self._transport.write(whole[: len(whole) - max(len(body) // 2, 1)])
                self._later(0.01, self._reset if fault.how == "reset_mid" else self._transport.close)
            case "slow":
                self._dribble(_head(status, len(body), keep=keep) + body, fault.seconds / _PIECES, keep)
            case _:
                self._later(self._fake.latency_s, lambda: self._send(*fault.answer(status, body), keep=keep))

    def _dribble(self, rest: bytes, pause_s: float, keep: bool, size: int = 0) -> None:  # noqa: FBT001 - called by a timer
        size = size or -(-len(rest) // _PIECES)
        self._transport.write(rest[:size])
        if len(rest) > size:
            self._later(pause_s, lambda: self._dribble(rest[size:], pause_s, keep, size))
        else:
            self._done(keep=keep)

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        if delay_s > 0:
            self._timer = asyncio.get_running_loop().call_later(delay_s, act)
        else:
            act()

    def _send(self, status: int, body: bytes, *, keep: bool) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_head(status, len(body), keep=keep) + body)
        self._done(keep=keep)

    def _done(self, *, keep: bool) -> None:
        self._free()
        if not keep:
            self._transport.close()
        elif self._buffer:
            self._next()

    def _free(self) -> None:
        if self._busy:
            self._busy = False
            self._fake.waits(-1)

    def _reset(self) -> None:
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no time: a reset, whatever was sent
        self._transport.abort()


def kind_of(target: str) -> str:
    """What a request's path is about, as faults name it."""
    parts = [part for part in target.partition("?")[0].split("/") if part][1:]
    return netbird_state.kind_of(parts)


def _head(status: int, length: int, *, keep: bool) -> bytes:
    kind = "" if status == 204 else f"Content-Type: application/json; charset=UTF-8\r\nContent-Length: {length}\r\n"
    return f"HTTP/1.1 {status} {_WORDS.get(status, 'Unknown')}\r\n{kind}{'' if keep else 'Connection: close' + chr(13) + chr(10)}\r\n".encode()


_WORDS = {200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}


def place(text: str) -> tuple[str, int]:
    """``address:port`` as a pair."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


async def serve(listen: tuple[str, int], path: Path, proxies: Sequence[tuple[str, int]], *, tls: ssl.SSLContext | None = None) -> None:
    """The fake with its proxies and its control socket, until cancelled."""
    async with FakeNetBird(listen, tls=tls) as fake:
        for proxy in proxies:
            await fake.add_proxy(proxy)
        await control.serve(path, fake.command)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.netbird", description="A fake of NetBird's management API that misbehaves on command.")
    parser.add_argument("--listen", required=True, help="address:port")
    parser.add_argument("--control", required=True, type=Path)
    parser.add_argument("--cert", type=Path, help="PEM; without it there is no TLS")
    parser.add_argument("--key", type=Path)
    parser.add_argument("--proxy", action="append", default=[], metavar="ADDRESS:PORT", help="a member of the cluster, with NB_PROXY_ADDRESS :443")
    args = parser.parse_args()
    tls = None
    if args.cert:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(args.cert, args.key)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(place(args.listen), args.control, [place(proxy) for proxy in args.proxy], tls=tls))


if __name__ == "__main__":
    main()

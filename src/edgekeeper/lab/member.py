"""A small DNS server for drills: answers everything, and misbehaves when told to.

``python -m edgekeeper.lab.member --listen 192.0.2.21:5353 --name ns-a --control /path/a.sock``

It answers A with an address of its own (so that a client sees who answered), TXT of the health name
and of ``id.server.`` with its name, SOA with a settable serial, and AXFR of a catalog zone. Commands
come as lines on the control socket, each answered with ``ok`` or one sentence.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from typing_extensions import override

from edgekeeper.probe.packet import CLASSES, HEADER, RCODES, TYPES, decode_name, encode_name, question_of

_PROXY = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
MODES = ("normal", "drop", "refused", "servfail", "nxdomain", "notimp", "truncated")
SCOPES = ("all", "clients", "health")
_IP_FREEBIND = 15
_IPV6_FREEBIND = 78


@dataclass(slots=True)
class Manner:
    """How it answers just now. ``scope`` says which questions the mode and the delay hit.

    ``clients`` are all questions but those for the health name and of class CH: a resolver whose
    upstream is dead or slow still answers what it knows itself.
    """

    name: str
    answer: str = "192.0.2.200"
    health: str = "health.example."
    ttl: int = 60
    mode: str = "normal"
    scope: str = "all"
    delay: float = 0.0
    draining: bool = False
    serial: int = 1
    catalog: str = "catalog.example."
    zones: list[str] = field(default_factory=list)
    asked: int = 0
    seen_proxy: int = 0

    def command(self, line: str) -> str:
        """Carry out one command; the answer is ``ok``, a value, or what was wrong."""
        word, *rest = line.split()
        match word, rest:
            case "mode", [mode, *scope] if mode in MODES and (not scope or scope[0] in SCOPES):
                self.mode, self.scope = mode, scope[0] if scope else "all"
            case "delay", [seconds, *scope] if not scope or scope[0] in SCOPES:
                self.delay, self.scope = float(seconds), scope[0] if scope else "all"
            case "identity", [name]:
                self.name = name
            case "draining", [("on" | "off") as state]:
                self.draining = state == "on"
            case "serial", [serial]:
                self.serial = int(serial)
            case "zones", zones:
                self.zones = zones
            case "asked", []:
                return str(self.asked)
            case _:
                return f"{line!r} is not a command; see the module's documentation"
        return "ok"


def answer(packet: bytes, manner: Manner) -> tuple[bytes | None, float]:
    """The answer to a question, and after how many seconds; None: no answer at all."""
    asked = question_of(packet)
    qtype, qclass = struct.unpack("!HH", asked[-4:])
    manner.asked += 1
    name = decode_name(packet, HEADER.size)
    special = name == manner.health or qclass == CLASSES["CH"]
    hit = manner.scope == "all" or (manner.scope == "health") == special
    mode = manner.mode if hit else "normal"
    delay = manner.delay if hit else 0.0
    if mode == "drop":
        return None, 0.0
    if mode == "truncated":
        return _reply(packet, asked, 0, [], truncated=True), delay
    if mode != "normal":
        return _reply(packet, asked, RCODES.index(mode.upper()), []), delay
    return _reply(packet, asked, 0, _records(name, qtype, qclass, manner)), delay


def _records(name: str, qtype: int, qclass: int, manner: Manner) -> list[bytes]:
    here = b"\xc0\x0c"
    if qtype == TYPES["A"]:
        return [_record(here, qtype, qclass, ipaddress.ip_address(manner.answer).packed, manner.ttl)]
    if qtype == TYPES["TXT"] and (name == manner.health or name in {"id.server.", "hostname.bind."}):
        text = f"{manner.name} draining" if manner.draining else manner.name
        return [_record(here, qtype, qclass, bytes((len(text),)) + text.encode())]
    if qtype == TYPES["SOA"]:
        return [_record(here, qtype, qclass, _soa(manner.serial))]
    return []


def _soa(serial: int) -> bytes:
    return encode_name("ns.example.") + encode_name("admin.example.") + struct.pack("!IIIII", serial, 60, 60, 3600, 60)


def _record(owner: bytes, rtype: int, rclass: int, data: bytes, ttl: int = 60) -> bytes:
    return owner + struct.pack("!HHIH", rtype, rclass, ttl, len(data)) + data


def _reply(packet: bytes, asked: bytes, rcode: int, records: list[bytes], *, truncated: bool = False) -> bytes:
    flags = 0x8480 | (packet[2] & 0x01) << 8 | (0x0200 if truncated else 0) | rcode
    return packet[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0) + asked + b"".join(records)


def transfer(packet: bytes, manner: Manner) -> list[bytes]:
    """The catalog zone (RFC 9432) in one message, when AXFR asks for it; REFUSED for any other name."""
    asked = question_of(packet)
    zone = decode_name(packet, HEADER.size)
    if zone != manner.catalog:
        return [_reply(packet, asked, RCODES.index("REFUSED"), [])]
    soa = _record(encode_name(zone), TYPES["SOA"], 1, _soa(manner.serial))
    version = _record(encode_name(f"version.{zone}"), TYPES["TXT"], 1, b"\x012")
    members = [_record(encode_name(f"z{i}.zones.{zone}"), TYPES["PTR"], 1, encode_name(z)) for i, z in enumerate(manner.zones)]
    return [_reply(packet, asked, 0, [soa, version, *members, soa])]


def strip_proxy(data: bytes) -> tuple[bytes, int]:
    """Take a PROXY v2 header off; how many bytes it had (0: there was none)."""
    if not data.startswith(_PROXY) or len(data) < 16:
        return data, 0
    size = 16 + int.from_bytes(data[14:16], "big")
    return data[size:], size


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, manner: Manner, *, proxy: bool) -> None:
        self._manner = manner
        self._proxy = proxy

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)  # its class is not declared as one before 3.12

    @override
    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self._proxy:
            data, size = strip_proxy(data)
            self._manner.seen_proxy += size > 0
            if not size:
                return
        try:
            reply, delay = answer(data, self._manner)
        except ValueError:
            return
        if reply is not None and delay:
            asyncio.get_running_loop().call_later(delay, self._transport.sendto, reply, addr)
        elif reply is not None:
            self._transport.sendto(reply, addr)


async def _tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, manner: Manner, *, proxy: bool) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
        if proxy:
            head = await reader.readexactly(16)
            await reader.readexactly(int.from_bytes(head[14:16], "big"))
            manner.seen_proxy += 1
        while True:
            size = int.from_bytes(await reader.readexactly(2), "big")
            packet = await reader.readexactly(size)
            if packet[-4:-2] == b"\x00\xfc":
                for part in transfer(packet, manner):
                    _send(writer, part)
                continue
            reply, delay = answer(packet, manner)
            if reply is not None:
                loop.call_later(delay, _send, writer, reply)
    writer.close()


def _send(writer: asyncio.StreamWriter, packet: bytes) -> None:
    if not writer.is_closing():
        writer.write(len(packet).to_bytes(2, "big") + packet)


async def _control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, run: Callable[[str], str]) -> None:
    while line := await reader.readline():
        try:
            said = run(line.decode())
        except ValueError as err:
            said = str(err)
        writer.write(said.encode() + b"\n")
        await writer.drain()
    writer.close()


def bound(listen: tuple[str, int], kind: socket.SocketKind) -> socket.socket:
    """A socket on an address, which may come later: a VIP is not there while another node holds it."""
    six = ":" in listen[0]
    sock = socket.socket(socket.AF_INET6 if six else socket.AF_INET, kind)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(kind is socket.SOCK_STREAM))
    sock.setsockopt(socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP, _IPV6_FREEBIND if six else _IP_FREEBIND, 1)
    sock.bind(listen)
    return sock


async def serve(
    listen: Sequence[tuple[str, int]], manner: Manner, *, proxy: bool = False, control: Path | None = None,
    dot: Sequence[tuple[str, int]] = (), tls: ssl.SSLContext | None = None,
) -> None:  # fmt: skip
    """Serve until cancelled; ``dot`` are addresses of DNS over TLS."""
    loop = asyncio.get_running_loop()
    for address in listen:
        await loop.create_datagram_endpoint(lambda: _Udp(manner, proxy=proxy), sock=bound(address, socket.SOCK_DGRAM))
        await asyncio.start_server(lambda r, w: _tcp(r, w, manner, proxy=proxy), sock=bound(address, socket.SOCK_STREAM))
    for address in dot:
        await asyncio.start_server(lambda r, w: _tcp(r, w, manner, proxy=proxy), sock=bound(address, socket.SOCK_STREAM), ssl=tls)
    if control is not None:
        await asyncio.start_unix_server(lambda r, w: _control(r, w, manner.command), control)
    await asyncio.Event().wait()


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def main() -> None:
    """The command line of one member."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.member", description="A small DNS server that misbehaves on command.")
    parser.add_argument("--listen", required=True, action="append", type=_place, help="address:port; may be given several times")
    parser.add_argument("--dot", default=[], action="append", type=_place, help="address:port of DNS over TLS")
    parser.add_argument("--cert", type=Path)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--answer", default="192.0.2.200", help="what every A question is answered with")
    parser.add_argument("--health", default="health.example.")
    parser.add_argument("--ttl", type=int, default=60, help="TTL of the A answers; 1 where a cache in front would hide a death")
    parser.add_argument("--proxy", action="store_true", help="expect exactly one PROXY v2 header")
    parser.add_argument("--control", type=Path)
    args = parser.parse_args()
    tls = None
    if args.cert is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(args.cert, args.key)
    manner = Manner(args.name, answer=args.answer, health=args.health, ttl=args.ttl)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(args.listen, manner, proxy=args.proxy, control=args.control, dot=args.dot, tls=tls))


if __name__ == "__main__":
    main()

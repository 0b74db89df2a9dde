"""DNS packets, as much of RFC 1035 as a client's question and a server's short answer need. Pure.

A library parses everything and takes 100 times as long; the load generator and the small
servers of the lab handle thousands of packets a second with this.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "AXFR": 252, "ANY": 255}
CLASSES = {"IN": 1, "CH": 3}
RCODES = ("NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED")
HEADER = struct.Struct("!HHHHHH")
_FIXED = struct.Struct("!HHIH")
_POINTER = 0xC0
_MAX_HOPS = 64


@dataclass(frozen=True, slots=True)
class Reply:
    """What an answer says. ``question`` is the raw question section, to compare with the one asked."""

    ident: int
    rcode: int
    truncated: bool
    question: bytes
    addresses: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    serial: int | None = None

    @property
    def rcode_name(self) -> str:
        """``NOERROR``, ``SERVFAIL``, ...; ``RCODE9`` for those without a name here."""
        return RCODES[self.rcode] if self.rcode < len(RCODES) else f"RCODE{self.rcode}"


def encode_name(name: str) -> bytes:
    """Wire form of a domain name; ValueError when it does not fit (labels 63, whole 255)."""
    out = bytearray()
    for label in name.rstrip(".").split(".") if name.rstrip(".") else ():
        raw = label.encode("idna" if not label.isascii() else "ascii")
        if not 0 < len(raw) < 64:
            msg = f"{name!r} is not a domain name; a label has 1 to 63 characters"
            raise ValueError(msg)
        out += bytes((len(raw),)) + raw
    if len(out) > 254:
        msg = f"{name[:40]!r}... is not a domain name; it has at most 253 characters"
        raise ValueError(msg)
    return bytes(out) + b"\0"


def question(ident: int, name: str, qtype: str = "A", qclass: str = "IN", *, recursion: bool = True) -> bytes:
    """A packet that asks one question."""
    tail = struct.pack("!HH", TYPES[qtype], CLASSES[qclass])
    return HEADER.pack(ident, 0x0100 if recursion else 0, 1, 0, 0, 0) + encode_name(name) + tail


def question_of(packet: bytes) -> bytes:
    """The raw question section (name, type, class) of a packet with one question; ValueError else."""
    if len(packet) < HEADER.size or packet[4:6] != b"\0\1":
        msg = "not a DNS packet with one question"
        raise ValueError(msg)
    return packet[HEADER.size : _skip_name(packet, HEADER.size) + 4]


def decode_name(packet: bytes, at: int) -> str:
    """The name at an offset, lower-case and absolute, following compression."""
    labels: list[str] = []
    for _ in range(_MAX_HOPS * 2):
        length = _byte(packet, at)
        if length >= _POINTER:
            at = (length & 0x3F) << 8 | _byte(packet, at + 1)
        elif length == 0:
            return ".".join(labels).lower() + "."
        else:
            labels.append(packet[at + 1 : at + 1 + length].decode("latin-1"))
            at += 1 + length
    msg = "a name in the packet does not end"
    raise ValueError(msg)


def parse(packet: bytes) -> Reply:
    """Read an answer; ValueError when it is not one (too short, a question, cut in the middle)."""
    if len(packet) < HEADER.size:
        msg = f"{len(packet)} bytes are too short for a DNS answer"
        raise ValueError(msg)
    ident, flags, questions, answers, _, _ = HEADER.unpack_from(packet)
    if not flags & 0x8000:
        msg = "the packet is a question, not an answer"
        raise ValueError(msg)
    asked = question_of(packet) if questions == 1 else b""
    truncated = bool(flags & 0x0200)
    addresses: list[str] = []
    texts: list[str] = []
    serial: int | None = None
    at = HEADER.size + len(asked)
    for _ in range(0 if truncated else answers):
        at = _skip_name(packet, at)
        if at + _FIXED.size > len(packet):
            msg = "the answer ends in the middle of a record"
            raise ValueError(msg)
        rtype, _rclass, _ttl, size = _FIXED.unpack_from(packet, at)
        at += _FIXED.size
        data = packet[at : at + size]
        if len(data) < size:
            msg = "the answer ends in the middle of a record"
            raise ValueError(msg)
        if (rtype, size) in {(TYPES["A"], 4), (TYPES["AAAA"], 16)}:
            addresses.append(str(ipaddress.ip_address(data)))
        elif rtype == TYPES["TXT"]:
            texts.append(_strings(data))
        elif rtype == TYPES["SOA"] and size >= 22:
            serial = int.from_bytes(data[-20:-16], "big")
        at += size
    return Reply(ident, flags & 0xF, truncated, asked, tuple(addresses), tuple(texts), serial)


def _strings(data: bytes) -> str:
    out, at = b"", 0
    while at < len(data):
        out += data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
    return out.decode("utf-8", "replace")


def _byte(packet: bytes, at: int) -> int:
    if at >= len(packet):
        msg = "the packet ends in the middle of a name"
        raise ValueError(msg)
    return packet[at]


def _skip_name(packet: bytes, at: int) -> int:
    while True:
        length = _byte(packet, at)
        if length >= _POINTER:
            return at + 2
        at += 1 + length
        if length == 0:
            return at

"""ICMP echo packets (RFC 792, RFC 4443), made and read. Pure."""

from __future__ import annotations

import struct

_HEAD = struct.Struct("!BBHHH")
REQUEST_4, REPLY_4 = 8, 0
REQUEST_6, REPLY_6 = 128, 129


def request(ident: int, number: int, token: bytes, *, v6: bool) -> bytes:
    """An echo request. For IPv6 the kernel writes the checksum, which covers addresses that only it knows."""
    kind = REQUEST_6 if v6 else REQUEST_4
    packet = _HEAD.pack(kind, 0, 0, ident, number) + token
    return packet if v6 else packet[:2] + struct.pack("!H", checksum(packet)) + packet[4:]


def answers(data: bytes, number: int, token: bytes, *, v6: bool, headed: bool) -> bool:
    """Whether this is the reply to the request with this number and token; ``headed``: an IPv4 header stands before it (a raw socket).

    The identifier is not compared: the kernel replaces it on a ping socket. The token is what makes a reply ours.
    """
    if headed:
        if len(data) < 20 or len(data) < (start := (data[0] & 0xF) * 4):
            return False
        data = data[start:]
    if len(data) < _HEAD.size:
        return False
    kind, code, _, _, seen = _HEAD.unpack_from(data)
    return (kind, code, seen) == (REPLY_6 if v6 else REPLY_4, 0, number) and data[_HEAD.size :] == token


def checksum(packet: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(packet) % 2:
        packet += b"\0"
    total: int = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF

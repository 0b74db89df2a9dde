"""The two things that come before the bytes of a passed-through TLS session: the ClientHello with the server's name, and a PROXY v2 header. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_HEAD = 16
_TCP4, _TCP6 = 0x11, 0x21
_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
LONGEST = 65_536
"""No ClientHello is longer; with post-quantum keys they are about 2 KiB."""
UNRECOGNIZED_NAME = b"\x15\x03\x03\x00\x02\x02\x70"
"""The alert of a server that has no such name."""


class WrongHelloError(ValueError):
    """These bytes begin no TLS session, or carry no PROXY header where there must be one."""


def server_name(data: bytes) -> str | None:
    """The name that a ClientHello asks for in lower case, "" when it asks for none, None while there is more to come."""
    handshake = b""
    at = 0
    while at + 5 <= len(data):
        if data[at] != _HANDSHAKE or data[at + 1] != 3:
            msg = "not a TLS handshake"
            raise WrongHelloError(msg)
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        handshake += data[at + 5 : at + 5 + length]
        at += 5 + length
        if len(handshake) >= 4:
            if handshake[0] != _CLIENT_HELLO:
                msg = "not a ClientHello"
                raise WrongHelloError(msg)
            wanted = 4 + int.from_bytes(handshake[1:4], "big")
            if len(handshake) >= wanted:
                return _name(handshake[4:wanted])
    if len(data) > LONGEST:
        msg = "a ClientHello that does not end"
        raise WrongHelloError(msg)
    if data and data[0] != _HANDSHAKE:
        msg = "not a TLS handshake"
        raise WrongHelloError(msg)
    return None


def _name(body: bytes) -> str:
    try:
        at = 34  # version and random
        at += 1 + body[at]  # session id
        at += 2 + int.from_bytes(body[at : at + 2], "big")  # cipher suites
        at += 1 + body[at]  # compression methods
        end = at + 2 + int.from_bytes(body[at : at + 2], "big")
        at += 2
        while at + 4 <= end:
            kind, length = int.from_bytes(body[at : at + 2], "big"), int.from_bytes(body[at + 2 : at + 4], "big")
            if kind == _SERVER_NAME and body[at + 6] == 0:
                size = int.from_bytes(body[at + 7 : at + 9], "big")
                return body[at + 9 : at + 9 + size].decode("ascii").lower()
            at += 4 + length
    except (IndexError, UnicodeDecodeError):
        msg = "a ClientHello that is not whole"
        raise WrongHelloError(msg) from None
    return ""


def is_proxied(first: bytes) -> bool | None:
    """Whether a connection begins with a PROXY v2 header; None while that cannot be told yet."""
    seen = first[: len(_SIGNATURE)]
    if seen != _SIGNATURE[: len(seen)]:
        return False
    return True if len(seen) == len(_SIGNATURE) else None


@dataclass(frozen=True, slots=True)
class Client:
    """Who a connection comes from."""

    address: str
    port: int


def proxy_header(client: Client, server: Client) -> bytes:
    """A PROXY v2 header. An IPv4 address beside an IPv6 one is written as IPv6."""
    ends = [ipaddress.ip_address(end.address.partition("%")[0]) for end in (client, server)]
    if len({end.version for end in ends}) == 2:
        ends = [ipaddress.IPv6Address(f"::ffff:{end}") if end.version == 4 else end for end in ends]
    body = b"".join(end.packed for end in ends) + client.port.to_bytes(2, "big") + server.port.to_bytes(2, "big")
    return _SIGNATURE + bytes((0x21, _TCP4 if ends[0].version == 4 else _TCP6)) + len(body).to_bytes(2, "big") + body


def header_length(head: bytes) -> int:
    """How long the whole header is, by its first 16 bytes."""
    if len(head) < _HEAD or not head.startswith(_SIGNATURE) or head[12] >> 4 != 2:
        msg = "no PROXY v2 header"
        raise WrongHelloError(msg)
    return _HEAD + int.from_bytes(head[14:16], "big")


def proxied_client(header: bytes) -> Client | None:
    """Who a header speaks for; None when it is the proxy itself (LOCAL), or of a family that has no addresses."""
    if header_length(header) != len(header):
        msg = "a PROXY header that is not whole"
        raise WrongHelloError(msg)
    size = {_TCP4: 4, _TCP6: 16}.get(header[13])
    if header[12] & 0xF != 1 or size is None or len(header) < _HEAD + 2 * size + 4:
        return None
    address = ipaddress.ip_address(header[_HEAD : _HEAD + size])
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return Client(str(address), int.from_bytes(header[_HEAD + 2 * size : _HEAD + 2 * size + 2], "big"))

"""The kernel's sockets by its diagnostic netlink: only those that are asked for, where ``/proc/net/tcp`` walks over every connection.

Measured with 9,000 sockets on a busy machine of two processors: 5 ms for the 471 that listen; a reading of ``/proc/net/tcp`` took 0.14 s,
and now and then longer than 5 s, because it passes through the table of all connections while they come and go.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass

from edgekeeper.host import netlink

LISTEN = 10
"""TCP's state of a listener; the sockets of UDP have other states, all of them of use here."""
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20


@dataclass(frozen=True, slots=True)
class Bound:
    """A socket of this network namespace: where it is bound, its state as the kernel numbers it, and its inode."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int
    state: int
    inode: int


def sockets(family: int, protocol: int, states: int = 0xFFFFFFFF) -> list[Bound]:
    """All sockets of a family and protocol in these states (a bit each); OSError where the kernel has no such thing or refuses it."""
    asked = struct.pack("=BBBxI48x", family, protocol, 0, states)
    return [_read(body) for _, body in netlink.dump(_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, asked)]


def _read(body: bytes) -> Bound:
    """A ``struct inet_diag_msg``."""
    family, state = body[0], body[1]
    (port,) = struct.unpack_from("!H", body, 4)
    packed = body[8:24] if family == socket.AF_INET6 else body[8:12]
    (inode,) = struct.unpack_from("=I", body, 68)
    return Bound(ipaddress.ip_address(packed), port, state, inode)

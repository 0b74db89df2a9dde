"""One echo request: over a ping socket where the kernel permits it to this group (net.ipv4.ping_group_range), else over a raw socket."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct

from edgekeeper.errors import MissingError
from edgekeeper.probe import echo
from edgekeeper.probe.lookup import places
from edgekeeper.probe.target import Target

_IP_RECVERR, _IPV6_RECVERR = 11, 25
_SOL_RAW, _ICMP_FILTER = 255, 1
_ICMP6_FILTER = 1
_TOKEN = 24
_ICMP6_ONLY_REPLIES = struct.pack("=8I", *(0xFFFFFFFF & ~(1 << echo.REPLY_6 % 32) if word == echo.REPLY_6 // 32 else 0xFFFFFFFF for word in range(8)))


async def ask_echo(sock: socket.socket) -> None:
    """Send one request over a socket of ``open_echo`` and wait for its reply; OSError says what a router said instead."""
    loop = asyncio.get_running_loop()
    v6, headed = sock.family == socket.AF_INET6, sock.type == socket.SOCK_RAW and sock.family == socket.AF_INET
    number, token = random.getrandbits(16), os.urandom(_TOKEN)
    await loop.sock_sendall(sock, echo.request(random.getrandbits(16), number, token, v6=v6))
    while not echo.answers(await loop.sock_recv(sock, 2048), number, token, v6=v6, headed=headed):
        pass


def need_icmp() -> None:
    """MissingError where this process may not ask by ICMP at all."""
    try:
        _socket(socket.AF_INET).close()
    except OSError:
        return  # of another reason, which each question will tell


async def open_echo(target: Target) -> socket.socket:
    """A socket connected to the target, so that only what concerns it is heard; MissingError where this process may have none."""
    family, address = (await places(target.host, 0))[0]
    sock = _socket(family)
    try:
        sock.setblocking(False)
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _socket(family: int) -> socket.socket:
    v6 = family == socket.AF_INET6
    proto = socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP
    try:
        sock = socket.socket(family, socket.SOCK_DGRAM, proto)
    except PermissionError:
        sock = _raw(family, proto)
    # Without it an unreachable host, or a hop limit, would be told to nobody.
    sock.setsockopt(*((socket.IPPROTO_IPV6, _IPV6_RECVERR) if v6 else (socket.IPPROTO_IP, _IP_RECVERR)), 1)
    return sock


def _raw(family: int, proto: int) -> socket.socket:
    try:
        sock = socket.socket(family, socket.SOCK_RAW, proto)
    except PermissionError:
        msg = "this process may not ask by ICMP: give it CAP_NET_RAW, or its group a place in net.ipv4.ping_group_range"
        raise MissingError(msg) from None
    # A raw socket hears every ICMP packet of the machine; all but replies are of no use here.
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, _ICMP6_ONLY_REPLIES)
    else:
        sock.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", 0xFFFFFFFF & ~(1 << echo.REPLY_4)))
    return sock

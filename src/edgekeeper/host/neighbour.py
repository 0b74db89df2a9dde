"""Ask the wire who claims an address: ARP for IPv4, neighbour solicitation for IPv6.

Two MACs are two owners. A machine does not hear its own question: what this node itself claims is not in the answer, whether it holds
the address or not; ``addresses.held()`` says that. Nothing is claimed by asking: the ARP question is a probe without a sender's address
(RFC 5227), so that no neighbour learns anything from it, and IPv6 asks from the link-local address.
A machine whose ``arp_ignore`` is 2 or more does not answer a probe.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct

from edgekeeper.errors import MissingError, StepFailedError

_ETH_P_ARP = 0x0806
_BROADCAST = b"\xff" * 6
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_REQUEST, _REPLY = 1, 2
_SOLICITATION, _ADVERTISEMENT = 135, 136
_TARGET_MAC = 2
_OVERRIDE = 0x20000000
"""The flag of an advertisement that replaces what the hearer knew."""
_ICMP6_FILTER = 1
_ASKED = 3
"""Questions, spread over the first half of the deadline: one may be lost."""


async def ask(interface: str, address: str, deadline_s: float) -> tuple[str, ...]:
    """The MACs that claim the address on this interface's wire, after ``deadline_s`` of listening, in order of their text.

    MissingError without CAP_NET_RAW; StepFailedError where the interface is missing, down, or has no such thing as a MAC.
    """
    ip = ipaddress.ip_address(address)
    try:
        with _hardware(interface) as wire:
            mac = wire.getsockname()[4]
            if len(mac) != 6 or not any(mac):  # a tunnel; the loopback interface
                msg = f"{interface} is no Ethernet; nobody can be asked there who has {address}"
                raise StepFailedError(msg)
            if ip.version == 4:
                return await _collect(wire, (interface, _ETH_P_ARP, 0, 1, _BROADCAST), _arp(mac, ip.packed), ip.packed, deadline_s)
        with _icmp(interface) as wire:
            group = str(ipaddress.IPv6Address(ipaddress.ip_address("ff02::1:ff00:0").packed[:13] + ip.packed[13:]))
            return await _collect(wire, (group, 0, 0, socket.if_nametoindex(interface)), _solicitation(mac, ip.packed), ip.packed, deadline_s)
    except PermissionError:
        msg = f"who has {address} cannot be asked on {interface}: the right to open raw sockets is missing (CAP_NET_RAW)"
        raise MissingError(msg) from None
    except OSError as err:
        msg = f"who has {address} cannot be asked on {interface}: {err.strerror or err}"
        raise StepFailedError(msg) from None


def announce(interface: str, address: str) -> None:
    """Tell everybody on the wire once that this machine has the address: a gratuitous ARP, or an unsolicited neighbour advertisement.

    For an owner that stays while others have believed in another one; errors as of ``ask``.
    """
    ip = ipaddress.ip_address(address)
    try:
        with _hardware(interface) as wire:
            mac = wire.getsockname()[4]
            if ip.version == 4:
                wire.sendto(_ARP.pack(1, 0x0800, 6, 4, _REQUEST, mac, ip.packed, bytes(6), ip.packed), (interface, _ETH_P_ARP, 0, 1, _BROADCAST))
                return
        with _icmp(interface) as wire:
            told = struct.pack("!BBHI16sBB6s", _ADVERTISEMENT, 0, 0, _OVERRIDE, ip.packed, _TARGET_MAC, 1, mac)
            wire.sendto(told, ("ff02::1", 0, 0, socket.if_nametoindex(interface)))
    except OSError as err:
        msg = f"{address} cannot be announced on {interface}: {err.strerror or err}"
        raise StepFailedError(msg) from None


async def _collect(wire: socket.socket, to: tuple[object, ...], question: bytes, packed: bytes, deadline_s: float) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    found: set[str] = set()
    begin = loop.time()
    asked = 0
    while True:
        passed = loop.time() - begin
        if passed >= deadline_s:
            return tuple(sorted(found))
        if asked < _ASKED and passed >= asked * deadline_s / 2 / _ASKED:
            wire.sendto(question, to)  # a few bytes: they fit, or there is an error
            asked += 1
        following = asked * deadline_s / 2 / _ASKED if asked < _ASKED else deadline_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, following - passed)):
                while True:
                    mac = _claimed(await loop.sock_recv(wire, 2048), packed)
                    if mac is not None:
                        found.add(mac.hex(":"))


def _claimed(answer: bytes, packed: bytes) -> bytes | None:
    return claimed_by_arp(answer, packed) if len(packed) == 4 else claimed_by_advertisement(answer, packed)


def claimed_by_arp(answer: bytes, packed: bytes) -> bytes | None:
    """The MAC that this ARP packet claims the address for; None when it claims another one, or nothing, or is torn."""
    if len(answer) < _ARP.size:
        return None
    kind, protocol, mac_length, ip_length, operation, mac, claimed, _, _ = _ARP.unpack_from(answer)
    if (kind, protocol, mac_length, ip_length) != (1, 0x0800, 6, 4) or operation not in {_REQUEST, _REPLY}:
        return None
    return mac if claimed == packed else None  # a gratuitous question claims as an answer does


def claimed_by_advertisement(answer: bytes, packed: bytes) -> bytes | None:
    """The MAC that this neighbour advertisement (an ICMPv6 payload) names for the address; None otherwise."""
    if len(answer) < 24 or answer[0] != _ADVERTISEMENT or answer[8:24] != packed:
        return None
    at = 24
    while at + 2 <= len(answer) and answer[at + 1]:
        kind, length = answer[at], answer[at + 1] * 8
        if kind == _TARGET_MAC and at + 8 <= len(answer):
            return answer[at + 2 : at + 8]
        at += length
    return None


def _arp(mac: bytes, packed: bytes) -> bytes:
    return _ARP.pack(1, 0x0800, 6, 4, _REQUEST, mac, bytes(4), bytes(6), packed)


def _solicitation(mac: bytes, packed: bytes) -> bytes:
    return struct.pack("!BBHI16sBB6s", _SOLICITATION, 0, 0, 0, packed, 1, 1, mac)  # the kernel fills the checksum in


def _hardware(interface: str) -> socket.socket:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, 0)
    try:
        wire.bind((interface, _ETH_P_ARP))
    except BaseException:
        wire.close()
        raise
    return wire


def _icmp(interface: str) -> socket.socket:
    wire = socket.socket(socket.AF_INET6, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, socket.IPPROTO_ICMPV6)
    try:
        only = bytearray(b"\xff" * 32)
        only[_ADVERTISEMENT // 32 * 4 : _ADVERTISEMENT // 32 * 4 + 4] = struct.pack("=I", 0xFFFFFFFF & ~(1 << _ADVERTISEMENT % 32))
        wire.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, bytes(only))
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
        wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
    except BaseException:
        wire.close()
        raise
    return wire

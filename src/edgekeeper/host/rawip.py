"""Hear what arrives for an IP protocol of its own (VRRP is 112), beside the process that speaks it: the kernel gives each listener its copy."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Callable, Collection
from typing import Self

from edgekeeper.errors import MissingError, StepFailedError

GROUP_4, GROUP_6 = "224.0.0.18", "ff02::12"
"""VRRP's multicast groups (RFC 9568)."""
_BUFFER = 256 * 1024
"""What may wait, in bytes of the kernel's account: 316 adverts (measured)."""
_SO_MEMINFO, _DROPS = 55, 8
_SO_TIMESTAMPNS = 35
_STAMP_SPACE = socket.CMSG_SPACE(16)
_OLDEST_S = 3600.0
_AT_ONCE = 64
"""Packets read before other work of the loop has its turn."""


class RawListener:
    """Call ``heard(source, payload, mono)`` for each packet of ``protocol`` while the context lasts, on the running event loop.

    ``families`` are 4 and 6; the payload has no IP header. ``mono`` is when it arrived, by this process's monotonic clock in
    seconds: the kernel stamps it, so that what waited while we were frozen is told from what is new.
    With ``multicast`` the named interfaces join VRRP's groups, for peers that do not speak unicast. Whoever may send here may
    say anything: what is heard is a hint, the caller checks the source against those it expects. What this machine itself sends is not heard.
    MissingError without CAP_NET_RAW.
    """

    def __init__(self, protocol: int, families: Collection[int], heard: Callable[[str, bytes, float], None], *, multicast: Collection[str] = ()) -> None:
        self._protocol = protocol
        self._families = sorted(set(families))
        self._heard = heard
        self._multicast = sorted(set(multicast))
        self._open: dict[int, socket.socket] = {}

    @property
    def dropped(self) -> int:
        """Packets that the kernel threw away because too many waited."""
        return sum(struct.unpack_from("=I", s.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 36), 4 * _DROPS)[0] for s in self._open.values())

    async def __aenter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for family in self._families:
                self._open[family] = stack.enter_context(self._listen(family))
            stack.pop_all()
        loop = asyncio.get_running_loop()
        for family, raw in self._open.items():
            loop.add_reader(raw, self._read, family, raw)
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for raw in self._open.values():
            loop.remove_reader(raw)
            raw.close()
        self._open.clear()

    def _listen(self, family: int) -> socket.socket:
        try:
            raw = socket.socket(
                socket.AF_INET6 if family == 6 else socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, self._protocol
            )
        except PermissionError:
            msg = f"IP protocol {self._protocol} cannot be heard: the right to open raw sockets is missing (CAP_NET_RAW)"
            raise MissingError(msg) from None
        except OSError as err:
            msg = f"IP protocol {self._protocol} cannot be heard over IPv{family}: {err.strerror}"
            raise StepFailedError(msg) from None
        try:
            raw.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER // 2)  # the kernel doubles it
            for interface in self._multicast:
                _join(raw, family, interface)
        except BaseException:
            raw.close()
            raise
        return raw

    def _read(self, family: int, raw: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                data, told, _, sender = raw.recvmsg(1 << 16, _STAMP_SPACE)
            except BlockingIOError:
                return
            except OSError:  # an error of the interface (it went down); reading goes on
                continue
            payload = data if family == 6 else stripped(data)
            if payload is not None:
                self._heard(sender[0].partition("%")[0], payload, _arrived(told))
            if family not in self._open:  # the callback ended it
                return


def _arrived(told: list[tuple[int, int, bytes]]) -> float:
    """The kernel's stamp on the monotonic clock; now, where there is none, or the wall clock has been set meanwhile."""
    now = time.monotonic()
    for level, kind, data in told:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= 16:
            seconds, nanos = struct.unpack_from("=qq", data)
            age = time.time() - (seconds + nanos / 1e9)
            return now - age if 0 <= age < _OLDEST_S else now
    return now


def stripped(packet: bytes) -> bytes | None:
    """An IPv4 packet without its header; None when it is none or torn."""
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    length = (packet[0] & 0xF) * 4
    return packet[length:] if 20 <= length <= len(packet) else None


def _join(raw: socket.socket, family: int, interface: str) -> None:
    try:
        index = socket.if_nametoindex(interface)
        if family == 6:
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, GROUP_6) + struct.pack("=I", index))
        else:
            raw.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP_4) + bytes(4) + struct.pack("=i", index))
    except OSError as err:
        msg = f"{interface} cannot join VRRP's multicast group over IPv{family}: {err.strerror or err}"
        raise StepFailedError(msg) from None

"""Steer UDP traffic between two processes that share a port, from outside and without a loss.

Two sockets bound with SO_REUSEPORT share their datagrams by hash. A classic BPF program on the group
decides instead: here "a random one of ``count`` sockets, beginning with index ``first``"; the index is
the order in which the sockets were bound. The engine's socket is borrowed with ``pidfd_getfd``, which
needs ptrace rights over it (root, or the same user where yama allows). Measured on dnsdist 2.1.3:
none of 2,500 queries lost in an engine restart, 1 with two processes that merely overlap.

Every borrowed descriptor is closed before its owner dies: a copy that is kept keeps the dead socket
in the group (767 to 1,044 of 2,500 queries were lost that way).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from edgekeeper.errors import MissingError

_PIDFD_GETFD = 438
_SO_ATTACH_REUSEPORT_CBPF = 51
_SO_DETACH_REUSEPORT_BPF = 68
_LD_ABS, _MOD_K, _ADD_K, _RET_A = 0x20, 0x94, 0x04, 0x16
_RANDOM = 0xFFFFF038  # SKF_AD_OFF + SKF_AD_RANDOM
_SOCKET = re.compile(r"socket:\[(\d+)\]")


@contextlib.contextmanager
def _borrowed(pid: int, fd: int) -> Iterator[socket.socket]:
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        copy = libc.syscall(_PIDFD_GETFD, pidfd, fd, 0)
        if copy < 0:
            number = ctypes.get_errno()
            why = "ptrace rights over the engine are missing" if number == errno.EPERM else os.strerror(number)
            msg = f"a socket of pid {pid} cannot be borrowed: {why}"
            raise MissingError(msg)
    finally:
        os.close(pidfd)
    with socket.socket(fileno=copy) as borrowed:
        yield borrowed


def sockets(pid: int, listen: str) -> list[int]:
    """Descriptors of the UDP sockets that ``pid`` has bound to ``host:port``, in order of binding."""
    host, _, port = listen.rpartition(":")
    six = host.startswith("[")
    want = _hex_address(host.strip("[]"), int(port), six=six)
    table = Path(f"/proc/{pid}/net/udp6" if six else f"/proc/{pid}/net/udp").read_text(encoding="ascii")
    inodes = {fields[9] for fields in (line.split() for line in table.splitlines()[1:]) if fields[1] == want}
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            match = _SOCKET.match(str(entry.readlink()))
            if match and match[1] in inodes:
                found.append(int(entry.name))
    return sorted(found)


def _hex_address(host: str, port: int, *, six: bool) -> str:
    if not six:
        (number,) = struct.unpack("=I", socket.inet_pton(socket.AF_INET, host))
        return f"{number:08X}:{port:04X}"
    words = struct.unpack("=4I", socket.inet_pton(socket.AF_INET6, host))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def attach(pid: int, listens: Sequence[str], count: dict[str, int], first: dict[str, int]) -> None:
    """Send each address's datagrams to the ``count`` sockets from index ``first`` on."""
    for listen in listens:
        program = struct.pack(
            "=HBBIHBBIHBBIHBBI",
            _LD_ABS, 0, 0, _RANDOM, _MOD_K, 0, 0, max(1, count[listen]), _ADD_K, 0, 0, first[listen], _RET_A, 0, 0, 0,
        )  # fmt: skip
        buffer = ctypes.create_string_buffer(program)
        fprog = struct.pack("HL", 4, ctypes.addressof(buffer))
        found = sockets(pid, listen)
        if not found:
            msg = f"pid {pid} has no UDP socket on {listen}"
            raise MissingError(msg)
        for fd in found[:1]:
            with _borrowed(pid, fd) as borrowed:
                borrowed.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, fprog)


def detach(pid: int, listens: Sequence[str]) -> int:
    """Take every program away again; the number that was attached (none is no error)."""
    gone = 0
    for listen in listens:
        for fd in sockets(pid, listen)[:1]:
            with _borrowed(pid, fd) as borrowed:
                try:
                    borrowed.setsockopt(socket.SOL_SOCKET, _SO_DETACH_REUSEPORT_BPF, 0)
                    gone += 1
                except OSError as err:
                    if err.errno != errno.ENOENT:
                        raise
    return gone

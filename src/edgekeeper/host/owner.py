"""Which process listens on a port, from /proc of that process (its own network namespace)."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Collection
from pathlib import Path

from edgekeeper.host import sockdiag

_LISTEN = {"tcp": "0A", "udp": "07"}


def owns(pid: int, host: str, port: int, kind: str) -> bool:
    """Whether ``pid`` has a ``kind`` (tcp or udp) socket listening on exactly this address; False when it cannot be seen."""
    wanted = _inodes(pid, host, port, kind)
    return bool(wanted) and _has(pid, wanted)


def holder(host: str, port: int, kind: str) -> int | None:
    """The process of this network namespace that listens there, or None; those that must not be looked at are not seen.

    The kernel is asked once, and not for each process anew: that stopped a busy machine's supervisor for 7 s.
    """
    wanted = _inodes(os.getpid(), host, port, kind)
    for entry in Path("/proc").iterdir() if wanted else ():
        if entry.name.isdigit() and _has(int(entry.name), wanted):
            return int(entry.name)
    return None


def all_his(pids: Collection[int], host: str, port: int, kind: str) -> bool:
    """Whether every ``kind`` (tcp or udp) socket that stands in the way of one on this address belongs to these processes, and there is one."""
    address = ipaddress.ip_address(host)
    wild = "0" * (2 * len(address.packed))
    inodes = set()
    for row in _table(os.getpid(), f"{kind}6" if address.version == 6 else kind, port):
        at = row[1].partition(":")[0]
        if (at in (_hex(address), wild) or address.is_unspecified) and (kind == "udp" or row[3] == _LISTEN["tcp"]):
            inodes.add(row[9])
    own: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            own |= {_target(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
    return bool(inodes) and inodes <= own


def _has(pid: int, inodes: set[str]) -> bool:
    """Whether a process has one of these sockets open."""
    try:
        return any(_target(file) in inodes for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _target(file: Path) -> str:
    """The inode of a socket; empty for anything else, and for what was closed since."""
    try:
        target = str(file.readlink())
    except OSError:
        return ""
    return target[8:-1] if target.startswith("socket:[") else ""


def _inodes(pid: int, host: str, port: int, kind: str) -> set[str]:
    address = ipaddress.ip_address(host)
    place = f"{_hex(address)}:{port:04X}"
    return {row[9] for row in _table(pid, f"{kind}6" if address.version == 6 else kind, port) if row[1] == place and row[3] == _LISTEN[kind]}


def _hex(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    packed = address.packed
    return b"".join(packed[i : i + 4][::-1] for i in range(0, len(packed), 4)).hex().upper()


def _table(pid: int, name: str, port: int) -> list[list[str]]:
    """The sockets with this local port in the namespace of a process, as the words of ``/proc/net/tcp``."""
    try:
        if Path(f"/proc/{pid}/ns/net").stat().st_ino == Path("/proc/self/ns/net").stat().st_ino:
            return _diagnosed(name, port)
    except OSError:  # no such process, or a kernel without it
        pass
    return _listed(pid, name, port)


def _diagnosed(name: str, port: int) -> list[list[str]]:
    family = socket.AF_INET6 if name.endswith("6") else socket.AF_INET
    protocol, states = (socket.IPPROTO_TCP, 1 << sockdiag.LISTEN) if name.startswith("tcp") else (socket.IPPROTO_UDP, 0xFFFFFFFF)
    found = (bound for bound in sockdiag.sockets(family, protocol, states) if bound.port == port)
    return [["", f"{_hex(b.address)}:{b.port:04X}", "", f"{b.state:02X}", "", "", "", "", "", str(b.inode)] for b in found]


def _listed(pid: int, name: str, port: int) -> list[list[str]]:
    """To split the rows of 40,000 other sockets takes a tenth of a second."""
    try:
        text = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return []
    wanted = f":{port:04X}"
    rows = (line.split() for line in text.splitlines()[1:] if wanted in line)
    return [row for row in rows if len(row) > 9 and row[1].endswith(wanted)]

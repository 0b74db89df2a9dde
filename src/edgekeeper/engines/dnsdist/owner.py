"""Which process listens on a port, from /proc of that process (its own network namespace)."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

_LISTEN = {"tcp": "0A", "udp": "07"}


def owns(pid: int, host: str, port: int, kind: str) -> bool:
    """Whether ``pid`` has a ``kind`` (tcp or udp) socket listening on exactly this address; False when it cannot be seen."""
    wanted = _inodes(pid, host, port, kind)
    if not wanted:
        return False
    try:
        open_files = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    return any(_target(file) in wanted for file in open_files)


def holder(host: str, port: int, kind: str) -> int | None:
    """The process that listens there, or None; those that must not be looked at are not seen."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and owns(int(entry.name), host, port, kind):
            return int(entry.name)
    return None


def all_his(pid: int, host: str, port: int) -> bool:
    """Whether every UDP socket that stands in the way of one on this address is the process's own, and there is one."""
    address = ipaddress.ip_address(host)
    wild = "0" * (2 * len(address.packed))
    inodes = set()
    for row in _table(os.getpid(), "udp6" if address.version == 6 else "udp"):
        at, _, number = row[1].partition(":")
        if int(number, 16) == port and (at in (_hex(address), wild) or address.is_unspecified):
            inodes.add(row[9])
    try:
        own = {_target(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return False
    return bool(inodes) and inodes <= own


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
    return {row[9] for row in _table(pid, f"{kind}6" if address.version == 6 else kind) if row[1] == place and row[3] == _LISTEN[kind]}


def _hex(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    packed = address.packed
    return b"".join(packed[i : i + 4][::-1] for i in range(0, len(packed), 4)).hex().upper()


def _table(pid: int, name: str) -> list[list[str]]:
    try:
        text = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return []
    return [row for line in text.splitlines()[1:] if len(row := line.split()) > 9]

"""Which process listens on a port, from /proc of that process (its own network namespace)."""

from __future__ import annotations

import ipaddress
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


def _target(file: Path) -> str:
    """The inode of a socket; empty for anything else, and for what was closed since."""
    try:
        target = str(file.readlink())
    except OSError:
        return ""
    return target[8:-1] if target.startswith("socket:[") else ""


def _inodes(pid: int, host: str, port: int, kind: str) -> set[str]:
    address = ipaddress.ip_address(host)
    packed = address.packed
    words = b"".join(packed[i : i + 4][::-1] for i in range(0, len(packed), 4)).hex().upper()
    place = f"{words}:{port:04X}"
    try:
        table = Path(f"/proc/{pid}/net/{kind}{'6' if address.version == 6 else ''}").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return set()
    rows = (line.split() for line in table.splitlines()[1:])
    return {row[9] for row in rows if len(row) > 9 and row[1] == place and row[3] == _LISTEN[kind]}

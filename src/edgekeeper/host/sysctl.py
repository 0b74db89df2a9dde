"""Settings of an interface below ``/proc/sys/net``, in the network namespace of the calling thread."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from edgekeeper.errors import MissingError, StepFailedError

_ROOT = Path("/proc/sys/net")
_INTERFACE = re.compile(r"(?!\.{1,2}\Z)[^/\s:\0]{1,15}")
"""What the kernel allows as an interface's name."""
_KEY = re.compile(r"[a-z0-9_]+")


def read(family: str, interface: str, key: str) -> int:
    """A number, as ``read("ipv4", "eth0", "arp_ignore")``; ``all`` is an interface here. StepFailedError where there is none."""
    path = _path(family, interface, key)
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as err:
        why = getattr(err, "strerror", None) or "it is no number"
        msg = f"{path} cannot be read: {why}"
        raise StepFailedError(msg) from None


def write(family: str, interface: str, key: str, value: int) -> None:
    """Set a number; MissingError without the right to, StepFailedError otherwise."""
    path = _path(family, interface, key)
    try:
        path.write_text(f"{value}\n", encoding="ascii")
    except PermissionError:
        msg = f"{path} cannot be set to {value}: the right to is missing (CAP_NET_ADMIN)"
        raise MissingError(msg) from None
    except OSError as err:
        hint = "; a container has it read-only unless it is told otherwise" if err.errno == errno.EROFS else ""
        msg = f"{path} cannot be set to {value}: {err.strerror}{hint}"
        raise StepFailedError(msg) from None


def arp_ignore(interface: str) -> int:
    """Which ARP questions an interface leaves unanswered: 0 none, 1 those for addresses of other interfaces. The greater of it and ``all`` holds.

    Measured (kernel 6.18): a node whose address is on ``lo`` only answers ARP for it on eth0 with 0, not with 1; one that has it on
    eth0 too answers with both. IPv6 has no such setting and needs none: solicitations for an address on ``lo`` stay unanswered.
    keepalived 2.2.7 and 2.3.3 neither read nor change it.
    """
    return read("ipv4", interface, "arp_ignore")


def set_arp_ignore(interface: str, value: int) -> None:
    """Set it for one interface."""
    write("ipv4", interface, "arp_ignore", value)


def _path(family: str, interface: str, key: str) -> Path:
    if family not in {"ipv4", "ipv6"} or not _INTERFACE.fullmatch(interface) or not _KEY.fullmatch(key):
        msg = f"net.{family}.conf.{interface}.{key} names no setting of an interface; nothing is read or written"
        raise StepFailedError(msg)
    return _ROOT / family / "conf" / interface / key

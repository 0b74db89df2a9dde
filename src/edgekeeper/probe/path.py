"""By which way a target is reached from here: the kernel's own answer, without sending anything."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.addresses import held
from edgekeeper.probe.lookup import Place, known

WITHIN_S: Final = 2.0
"""A resolver that takes longer does not hold up the first question: with a dead one a single name takes ten seconds and more."""


@dataclass(frozen=True, slots=True)
class Way:
    """The address that a target has, the one that it is asked from, the interface that has that one ("?": not known), and whether the target is this machine."""

    address: str
    source: str
    interface: str
    own: bool


def ways_to(hosts: Iterable[str]) -> dict[str, Way]:
    """The way to each host; one to which there is none, or whose name is not known in time, is left out."""
    here = _held()
    found = {}
    for host, place in known(hosts, WITHIN_S).items():
        if (way := _way(place, here)) is not None:
            found[host] = way
    return found


def _way(place: Place, here: dict[str, str]) -> Way | None:
    family, address = place
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((address[0], 9, *address[2:]))
            source = str(sock.getsockname()[0])
    except OSError:
        return None
    asked = address[0]
    own = source == asked or asked in here or ipaddress.ip_address(asked.partition("%")[0]).is_loopback
    return Way(asked, source, here.get(source.partition("%")[0], "?"), own)


def _held() -> dict[str, str]:
    """The interface of each address of this machine; empty where the kernel does not tell."""
    try:
        return {address.address: address.interface for address in held()}
    except (EdgekeeperError, OSError):
        return {}

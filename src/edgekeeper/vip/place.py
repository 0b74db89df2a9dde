"""This node among those that share the VIPs: from ``nodes:``, or from a file of peers' addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from edgekeeper.config.ops import Peer
from edgekeeper.config.vip import MOST_NODES, Vips
from edgekeeper.config.viprules import node_address, unspeakable
from edgekeeper.engines.keepalived.topology import Place
from edgekeeper.errors import RefusedError


def of_nodes(vips: Vips, node: str, nodes: Mapping[str, Peer]) -> Place:
    """The place of a node among ``nodes:``, whose order counts; RefusedError when it is none of them."""
    if node not in nodes:
        msg = f"this node ({node}) is not among nodes: {', '.join(nodes) or 'there are none'}; name it there, or say node:"
        raise RefusedError(msg)
    names = list(nodes)
    sources: dict[int, str] = {}
    peers: dict[int, tuple[str, ...]] = {}
    for vip in vips.vips:
        version = ipaddress.ip_interface(vip.address).version
        own = (vips.source if version == 4 else vips.source6) or node_address(nodes[node], vip)
        if own is not None:
            sources[version] = own
        peers[version] = tuple(a for name in names if name != node and (a := node_address(nodes[name], vip)) is not None)
    return Place(names.index(node), len(names), sources, peers)


def of_peers(vips: Vips, node: str, nodes: Mapping[str, Peer], addresses: tuple[str, ...]) -> Place:
    """The place of a node among the addresses of a file: their numeric order counts, the own one included. RefusedError without an own address."""
    sources: dict[int, str] = {}
    for vip in vips.vips:
        version = ipaddress.ip_interface(vip.address).version
        own = (vips.source if version == 4 else vips.source6) or (node_address(nodes[node], vip) if node in nodes else None)
        if own is None:
            msg = f"the own IPv{version} address is not known; say vip.source{'6' if version == 6 else ''}, or name this node ({node}) in nodes:"
            raise RefusedError(msg)
        sources[version] = own
    by_version = {v: [a for a in addresses if ipaddress.ip_address(a).version == v] for v in sources}
    first = 4 if 4 in sources else 6
    everybody = sorted({*by_version[first], sources[first]}, key=ipaddress.ip_address)
    if len(everybody) > MOST_NODES:
        msg = f"{len(everybody)} nodes share the VIPs; at most {MOST_NODES} can"
        raise RefusedError(msg)
    lowest = vips.base - vips.step * (len(everybody) - 1)
    if lowest < 1:
        msg = f"with base {vips.base} and step {vips.step} the last of {len(everybody)} nodes would have priority {lowest}; it must be at least 1"
        raise RefusedError(msg)
    peers = {v: tuple(a for a in by_version[v] if a != sources[v]) for v in sources}
    return Place(everybody.index(sources[first]), len(everybody), sources, peers)


def read_peers(text: str) -> tuple[str, ...]:
    """One address a line, ``#`` begins a comment; RefusedError names the line that is none. The same address twice counts once."""
    found: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        try:
            if unspeakable(word) is not None:
                raise ValueError  # noqa: TRY301 - one sentence for both
            found.append(str(ipaddress.ip_address(word)))
        except ValueError:
            shown = "".join(char if char.isprintable() else "?" for char in word[:60])
            msg = f"line {number} of the peers file is no address of a node: {shown!r}; the peers before stay"
            raise RefusedError(msg) from None
    if not found:
        msg = "the peers file names no address; the peers before stay"
        raise RefusedError(msg)
    return tuple(dict.fromkeys(found))

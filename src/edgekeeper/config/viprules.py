"""What must hold between the parts of ``vip:`` and the nodes: who can hold which VIP, and whether one could ever move. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from edgekeeper.config.kinds import is_address, split_host_port
from edgekeeper.config.ops import Peer
from edgekeeper.config.vip import MOST_NODES, Vip, Vips
from edgekeeper.model.vrrp import move_sum, skew_s

SCRIPT_TIMEOUT_S = 1.0

Broken = tuple[tuple[str | int, ...], str]


def vip_rules(vips: Vips, nodes: Mapping[str, Peer]) -> tuple[Broken, ...]:
    """Every rule that the section breaks: where in it, and what to do."""
    out: list[Broken] = [*_unique(vips), *_probes(vips), *_sources(vips)]
    if vips.provider != "keepalived":
        return tuple(out)
    out += [(("vips", i), f"VIP {v.name} has no interface; say vip.interface, or its own") for i, v in enumerate(vips.vips) if vips.interface_of(v) is None]
    out += _priorities(vips, len(nodes))
    out += _nodes(vips, nodes)
    sums = move_sum(vips.script.interval, vips.script.fall, SCRIPT_TIMEOUT_S, skew_s(_lowest(vips, len(nodes)), vips.advert))
    if sums.seconds > vips.budget:
        out.append((("script",), f"a dead service would move its VIP only after {sums.seconds:.3g} s ({sums.text}); the budget is {vips.budget:g} s"))
    return tuple(out)


def _lowest(vips: Vips, count: int) -> int:
    return max(1, vips.base - vips.step * max(0, count - 1))


def _unique(vips: Vips) -> list[Broken]:
    out: list[Broken] = []
    for what, values in (
        ("name", [v.name for v in vips.vips]),
        ("VRID", [str(v.vrid) for v in vips.vips]),
        ("address", [str(ipaddress.ip_interface(v.address).ip) for v in vips.vips]),
    ):
        out += [(("vips", i), f"the {what} {value} is taken by another VIP") for i, value in enumerate(values) if value in values[:i]]
    return out


def _probes(vips: Vips) -> list[Broken]:
    """A probe through a VIP asks whoever holds it: a backup would judge the owner, and at a cold start nobody ever comes up (both measured)."""
    held = {str(ipaddress.ip_interface(v.address).ip): v.name for v in vips.vips}
    out: list[Broken] = []
    for i, vip in enumerate(vips.vips):
        if vip.probe is None:
            continue
        for target in (vip.probe.asked, (vip.probe.dnsdist_api or "").partition("//")[2].split("/")[0]):
            asked = _plain_address(target)
            if asked in held:
                why = f"the probe asks {asked}, which is the VIP {held[asked]}: a backup would judge the owner, and at a cold start nobody would ever hold it"
                out.append((("vips", i, "probe"), f"{why}; ask the local service (127.0.0.1), VRP018"))
                break
    return out


def _plain_address(target: str) -> str:
    """The address in a target with or without a port, as the kernel would connect to it; empty for a name."""
    host = split_host_port(target, 80)[0].partition("%")[0] if target else ""
    if not is_address(host):
        return ""
    found = ipaddress.ip_address(host)
    return str(getattr(found, "ipv4_mapped", None) or found)


def _sources(vips: Vips) -> list[Broken]:
    held = {str(ipaddress.ip_interface(v.address).ip): v.name for v in vips.vips}
    out: list[Broken] = []
    for key, source, version in (("source", vips.source, 4), ("source6", vips.source6, 6)):
        if source is None:
            continue
        if ipaddress.ip_address(source).version != version:
            out.append(((key,), f"{source} is no IPv{version} address; {key} is where IPv{version} adverts come from"))
        elif source in held:
            out.append(((key,), f"{source} is the VIP {held[source]}; adverts come from the node's own address"))
    return out


def unspeakable(address: str) -> str | None:
    """Why no adverts go from or to an address, or None."""
    if "%" in address:
        return "has an interface in it, which keepalived cannot read"
    found = ipaddress.ip_address(address)
    for is_so, what in ((found.is_loopback, "is loopback"), (found.is_multicast, "is multicast"), (found.is_unspecified, "is no address of a node")):
        if is_so:
            return what
    return None


def _priorities(vips: Vips, count: int) -> list[Broken]:
    if count > MOST_NODES:
        return [(("vips",), f"{count} nodes share the VIPs; at most {MOST_NODES} can")]
    lowest = vips.base - vips.step * max(0, count - 1)
    if lowest < 1:
        return [(("step",), f"with base {vips.base} and step {vips.step} the last of {count} nodes would have priority {lowest}; it must be at least 1")]
    return []


def _nodes(vips: Vips, nodes: Mapping[str, Peer]) -> list[Broken]:
    out: list[Broken] = []
    if vips.peers is not None:
        return out
    if len(nodes) < 2:
        found = "names one node only" if nodes else "is empty"
        return [(("peers",), f"nodes: {found}, so nobody could take a VIP over; name all nodes there, or give peers: {{file: ...}}")]
    for name, node in nodes.items():
        for vip in vips.vips:
            if node_address(node, vip) is None:
                six = ipaddress.ip_interface(vip.address).version == 6
                key = "address6 (or an IPv6 address)" if six else "address, as an IPv4 address"
                out.append((("vips", list(vips.vips).index(vip)), f"node {name} has no {key} in nodes:, so it cannot share the VIP {vip.name}"))
    addresses = [a for node in nodes.values() for a in (node.address, node.address6) if a and is_address(a)]
    out += [
        (("vips",), f"{a}, the address of a node in nodes:, {why}; VRRP cannot be spoken there") for a in dict.fromkeys(addresses) if (why := unspeakable(a))
    ]
    taken = sorted({a for a in addresses if addresses.count(a) > 1})
    out += [(("vips",), f"two nodes have the address {a} in nodes:") for a in taken]
    for i, vip in enumerate(vips.vips):
        if str(ipaddress.ip_interface(vip.address).ip) in addresses:
            out.append((("vips", i), f"{vip.address} is a node's own address; a VIP belongs to no node"))
    return out


def node_address(node: Peer, vip: Vip) -> str | None:
    """A node's address of the VIP's family, or None: VRRP over IPv6 for IPv6 VIPs."""
    version = ipaddress.ip_interface(vip.address).version
    for address in (node.address, node.address6):
        if address is not None and is_address(address) and ipaddress.ip_address(address).version == version:
            return address
    return None

"""Where a class leads: a Service's addresses -> the one place that its target means, or why there is none. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edgekeeper.config.expose import Target
from edgekeeper.expose.kinds import Place


@dataclass(frozen=True, slots=True)
class Front:
    """What matters of a Service: its cluster addresses and those of its load balancer, canonical; names are left out."""

    cluster: tuple[str, ...]
    balancer: tuple[str, ...]


def front_of(service: Any) -> Front:
    """The addresses of a Service, whatever of its fields is null."""
    spec, status = getattr(service, "spec", None), getattr(service, "status", None)
    said = [*(getattr(spec, "clusterIPs", None) or ()), getattr(spec, "clusterIP", None)]
    ingress = getattr(getattr(status, "loadBalancer", None), "ingress", None) or ()
    return Front(_addresses(said), _addresses(getattr(one, "ip", None) for one in ingress))


def place_of(target: Target, front: Front | None) -> Place | str:
    """The place of a target, or the sentence why it is not known. ``front``: its Service, None when it is not there (or not seen yet)."""
    if target.ip is not None:
        return Place(target.ip, target.port)
    if front is None:
        return f"Service {target.service} is not there"
    found = front.cluster if target.address == "cluster" else front.balancer
    version = 4 if target.family == "ipv4" else 6
    fitting = [address for address in found if ipaddress.ip_address(address).version == version]
    if fitting:
        return Place(fitting[0], target.port)
    what = "cluster address (ClusterIP)" if target.address == "cluster" else "load-balancer address"
    others = f"; it has {', '.join(found)}" if found else ""
    return f"Service {target.service} has no {'IPv4' if version == 4 else 'IPv6'} {what}{others}"


def fixed(targets: Mapping[str, Target]) -> dict[str, Place]:
    """The places of those targets that are addresses."""
    return {klass: Place(target.ip, target.port) for klass, target in targets.items() if target.ip is not None}


def service_network(networks: Iterable[Any], targets: Iterable[Target]) -> str | None:
    """Which of the cluster's networks of Services counts: the first one of the family that the targets are asked in (IPv4 unless all want IPv6)."""
    families = {target.family for target in targets if target.service is not None}
    version = 6 if families == {"ipv6"} else 4
    for text in networks:
        try:
            found = ipaddress.ip_network(text)
        except (ValueError, TypeError):
            continue
        if found.version == version:
            return str(found)
    return None


def _addresses(said: Iterable[Any]) -> tuple[str, ...]:
    out: dict[str, None] = {}
    for text in said:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:  # "", "None" of a headless Service, null
            continue
        if not getattr(address, "scope_id", None):
            out[str(address)] = None
    return tuple(out)

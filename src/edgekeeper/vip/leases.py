"""Who owns which address by what a cluster's objects say: kube-vip's Leases, MetalLB's ServiceL2Status, each joined with the Services. Pure.

Read from the sources of kube-vip (2026-09) and MetalLB (2026-08). kube-vip elects one node for all Services by the Lease
``plndr-svcs-lock`` (in its own namespace, kube-system when not said otherwise), or one for each Service by ``kubevip-SERVICE`` in the
Service's namespace, or by the Lease that the annotation ``kube-vip.io/leaseName`` names; the holder is a node's name. The newest write
the addresses into an annotation of the Lease, those of the control plane too. ``kube-vip.io/vipHost`` is written by the node that announces and
never taken back, so it counts only where no Lease does. A MetalLB speaker that begins to announce a Service writes a ServiceL2Status and
removes that of the node before.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edgekeeper.model.text import printable
from edgekeeper.vip.owner import Owner

ALL_SERVICES = "plndr-svcs-lock"
_FIRST_LOOKED_FOR = "kube-system"
NODE_LEASES = "kube-node-lease"
NODE_LEASE_OLD_S = 40.0
"""A kubelet renews its node's Lease every 10 s; after 40 s the node is NotReady (the defaults of Kubernetes)."""

SKEW_S = 5.0
"""A Lease that was renewed by so much in our future was stamped by a clock that is not ours; it must be seen to change."""

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Service:
    """A Service that has addresses: ``lease`` is the one that elects for it alone, ``host`` what its annotation says."""

    key: Key
    addresses: frozenset[str]
    lease: Key
    host: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease as it is now. ``seen`` is the monotonic time at which this record was first seen here.

    ``witnessed``: it was seen to change, so that its age is by our own clock; else ``stamped_s`` is its age at that moment by the
    stamp that its holder wrote, whose clock may be wrong. ``addresses``: what the Lease says it is for.
    """

    key: Key
    holder: str
    duration_s: float
    seen: float
    stamped_s: float = 0.0
    witnessed: bool = False
    since: float | None = None
    addresses: frozenset[str] = frozenset()

    def age_s(self, now: float) -> float:
        """Seconds since it was renewed, as well as that is known."""
        return max(0.0, now - self.seen + (0.0 if self.witnessed else max(0.0, self.stamped_s)))

    def doubtful(self, now: float) -> bool:
        """Whether only time tells if it is held: it looks expired, or is stamped in our future, and nobody here has seen it change."""
        strange = not self.witnessed and not -SKEW_S <= self.stamped_s < self.duration_s
        return bool(self.holder) and strange and now - self.seen < self.duration_s

    def held(self, now: float) -> bool:
        """Whether its holder has it."""
        return bool(self.holder) and not self.doubtful(now) and self.age_s(now) < self.duration_s and (self.witnessed or self.stamped_s >= -SKEW_S)


@dataclass(frozen=True, slots=True)
class Announced:
    """A ServiceL2Status: this node announces that Service, since Unix time ``since``."""

    service: Key
    node: str
    since: float | None = None


def of_kube_vip(services: Iterable[Service], leases: Sequence[Lease], now: float) -> Mapping[str, Owner]:
    """The owner of every address that kube-vip has to do with; ``now`` is monotonic. Why it is not known stands in the Owner."""
    by_key = {lease.key: lease for lease in leases}
    shared = [lease for lease in leases if lease.key[1] == ALL_SERVICES]
    everywhere = min(shared, key=lambda lease: (lease.key[0] != _FIRST_LOOKED_FOR, lease.key), default=None)
    out: dict[str, Owner] = {}
    for lease in leases:
        if lease.key[0] != NODE_LEASES:
            out |= dict.fromkeys(lease.addresses, _by_lease(lease, now))
    for service in services:
        elected = by_key.get(service.lease, everywhere)
        owner = _by_lease(elected, now, service.host) if elected is not None else _by_host(service)
        out |= {address: owner for address in service.addresses if address not in out or out[address].node is None}
    return out


def _by_lease(lease: Lease, now: float, host: str = "") -> Owner:
    name, age_s = f"Lease {printable('/'.join(lease.key), 120)}", lease.age_s(now)
    holder = printable(lease.holder, 100)
    if not lease.holder:
        return Owner(None, f"nobody holds the {name}", age_s=age_s)
    if lease.held(now):
        differs = f"; its Service still names {printable(host, 100)}" if host not in {"", lease.holder} else ""
        return Owner(lease.holder, f"{holder} holds the {name}, renewed {age_s:.0f} s ago{differs}", lease.since, age_s)
    if lease.doubtful(now):
        stamp = f"was renewed {lease.stamped_s:.0f} s ago" if lease.stamped_s >= 0 else f"will be renewed in {-lease.stamped_s:.0f} s"
        return Owner(None, f"the {name} of {holder} says that it {stamp}; whether it is held is seen within {lease.duration_s:g} s", age_s=age_s)
    return Owner(None, f"the {name} of {holder} has not been renewed for {age_s:.0f} s and lasts {lease.duration_s:g} s: nobody may hold it", age_s=age_s)


def _by_host(service: Service) -> Owner:
    name = printable("/".join(service.key), 120)
    if service.host:
        return Owner(service.host, f"Service {name} names {printable(service.host, 100)}; no Lease shows whether that is still so")
    return Owner(None, f"neither a Lease nor Service {name} names a node")


def of_metallb(services: Iterable[Service], announced: Iterable[Announced], leases: Sequence[Lease], now: float) -> Mapping[str, Owner]:
    """The owner of every address that MetalLB announces at layer 2; ``leases`` are those of the nodes, whose age is told."""
    nodes = {lease.key[1]: lease for lease in leases if lease.key[0] == NODE_LEASES}
    by_service: dict[Key, list[Announced]] = {}
    for one in announced:
        by_service.setdefault(one.service, []).append(one)
    out: dict[str, Owner] = {}
    for service in services:
        owner = _by_status(service, by_service.get(service.key, []), nodes, now)
        out |= {address: owner for address in service.addresses if address not in out or out[address].node is None}
    return out


def _by_status(service: Service, found: Sequence[Announced], nodes: Mapping[str, Lease], now: float) -> Owner:
    name = printable("/".join(service.key), 120)
    names = sorted({one.node for one in found if one.node})
    if not names:
        return Owner(None, f"no ServiceL2Status names a node that announces Service {name}")
    if len(names) > 1:
        return Owner(None, f"ServiceL2Status name {' and '.join(printable(one, 100) for one in names[:3])} for Service {name}; the newer removes the older")
    node = names[0]
    lease = nodes.get(node)
    age_s = lease.age_s(now) if lease is not None else None
    doubt = f"; the node's own Lease was renewed {age_s:.0f} s ago, it may be dead" if age_s is not None and age_s > NODE_LEASE_OLD_S else ""
    return Owner(node, f"MetalLB on {printable(node, 100)} announces Service {name}{doubt}", max((o.since or 0.0 for o in found), default=0.0) or None, age_s)


def addresses_of(texts: Iterable[str]) -> frozenset[str]:
    """The IP addresses among these texts, each of which may list several with commas; in one way of writing, without a prefix length."""
    out = set[str]()
    for text in texts:
        for word in text.split(","):
            try:
                out.add(str(ipaddress.ip_interface(word.strip()).ip))
            except ValueError:
                continue
    return frozenset(out)


def told_addresses(annotations: Mapping[str, str]) -> frozenset[str]:
    """The addresses that kube-vip writes into an annotation of its Lease, as JSON: ``{"version": "v1", "vips": [{"value": "..."}]}``."""
    out = frozenset[str]()
    for key, text in annotations.items():
        if key.startswith("kube-vip.io/") and text.startswith("{"):
            try:
                vips = json.loads(text).get("vips")
                out |= addresses_of(vip["value"] for vip in vips if isinstance(vip["value"], str))
            except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
                continue
    return out


def lease_of(namespace: str, service: str, annotation: str) -> Key:
    """The Lease that elects for this Service alone; ``annotation`` is that of ``kube-vip.io/leaseName``, "" when there is none."""
    first, slash, second = (annotation or f"kubevip-{service}").partition("/")
    return (first, second.partition("/")[0]) if slash else (namespace, first)

"""How long ago each node's kubelet renewed its Lease: the only signal that tells of a kubelet that is pinned to a dead server.

A kubelet renews every 10 s; after 40 s its node is NotReady, whatever else works on it. A stamp is another machine's clock, so a Lease that
looks old is looked at until it was renewed, or was not for longer than a kubelet ever takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from edgekeeper.kube.client import Api
from edgekeeper.kube.objects import Lease, Node, key, meta
from edgekeeper.ports import Clock

NAMESPACE: Final = "kube-node-lease"
OLD_S: Final = 20.0
"""Two renewals are missing."""
NOT_READY_S: Final = 40.0
"""Then the node is NotReady, by the defaults of Kubernetes (50 s in newer ones)."""
PATIENCE_S: Final = 11.0
"""A healthy kubelet renews within this time."""
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class NodeLease:
    """A node, its addresses, what its Ready condition says (None: Unknown, or nothing), and the age of its Lease (None: it has none)."""

    name: str
    addresses: frozenset[str]
    ready: bool | None
    age_s: float | None


async def node_leases(api: Api, clock: Clock, *, patience_s: float = PATIENCE_S) -> tuple[NodeLease, ...]:
    """All nodes by name; an EdgekeeperError when the cluster does not say. ``patience_s``: how long a Lease that looks old is looked at."""
    nodes = (await api.list(Node)).items
    first, began = await _stamps(api), clock.monotonic()
    ages: dict[str, float | None] = {name: None if stamp is None else clock.wall() - stamp for name, stamp in first.items()}
    strange = {name for name, age in ages.items() if age is not None and not -OLD_S < age <= OLD_S}
    while strange and clock.monotonic() - began < patience_s:
        await asyncio.sleep(_LOOK_S)
        now = await _stamps(api)
        renewed = {name for name in strange if now.get(name, first[name]) != first[name]}
        ages |= dict.fromkeys(renewed, 0.0)
        strange -= renewed
    waited = clock.monotonic() - began
    ages |= {name: max((ages[name] or 0.0) + waited, waited) for name in strange}
    return tuple(sorted((_node(node, ages) for node in nodes), key=lambda one: one.name))


async def _stamps(api: Api) -> dict[str, float | None]:
    found = (await api.list(Lease, namespace=NAMESPACE)).items
    return {key(lease)[1]: renewed(lease) for lease in found}


def renewed(lease: Lease) -> float | None:
    """When its holder says that it renewed it, in Unix seconds."""
    stamp: Any = lease.spec.renewTime if lease.spec is not None else None
    return float(stamp.timestamp()) if stamp is not None else None


def addresses(node: Node) -> frozenset[str]:
    """The addresses of a node."""
    told = node.status.addresses if node.status is not None else None
    return frozenset(str(one.address) for one in told or () if one.type in {"InternalIP", "ExternalIP"})


def _node(node: Node, ages: Mapping[str, float | None]) -> NodeLease:
    conditions = (node.status.conditions if node.status is not None else None) or ()
    said = next((one.status for one in conditions if one.type == "Ready"), "")
    name = meta(node).name or ""
    return NodeLease(name, addresses(node), {"True": True, "False": False}.get(said), ages.get(name))

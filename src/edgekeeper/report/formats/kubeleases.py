"""Leases of nodes: how long a kubelet did not renew its own. Pure.

What ``kubectl get leases -n kube-node-lease -o json --watch`` prints, or lists that were taken now and then. A kubelet renews every 10 s
with a jitter of 4 %, so that a longer gap is a renewal that was missed: the node, or its way to the API server, was ill before anything
else said so. A list alone says when a lease was renewed, not how old it was when somebody looked: one renewal is no gap.
"""

from __future__ import annotations

import re
from typing import Any

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Item, Parsed, name
from edgekeeper.report.formats.kubeobjects import objects
from edgekeeper.report.kinds import NO_TIME, TRUNCATED, Kind, Mark, Skip

MISSED_S = 12.0
"""From here on a renewal was missed: one every 10 s, its jitter, and the time that the request itself may take."""

NAMESPACE = "kube-node-lease"
_NODES_MOST = 10_000
_LIKES = re.compile(
    rb'^\s*\{(?=.*"renewTime": ?")(?=.*"holderIdentity": ?").*"kind": ?"(?:Lease|LeaseList|List)"'
    rb'|^\s+"(?:renewTime|leaseDurationSeconds|holderIdentity|leaseTransitions)": ["0-9]',
    re.DOTALL,
)


class KubeLeases:
    """``k8s-leases``."""

    name = "k8s-leases"

    def parse(self, line: bytes, context: Context) -> Parsed:
        """A mark at the second renewal of each node's lease that is seen, and at each that came late."""
        found, lost = objects(line, context, self.name)
        renewed: dict[str, float] = context.state.setdefault("k8s-leases renewed", {})
        out: list[Item] = [Skip(TRUNCATED)] * lost
        for _, one in found:
            item = _of(one, context, renewed)
            if item is not None:
                out.append(item)
        return out or None

    def likes(self, line: bytes) -> bool:
        """Whether the line is a Lease, or a line of one that is printed over many."""
        return _LIKES.search(line) is not None


def _of(one: dict[str, Any], context: Context, renewed: dict[str, float]) -> Mark | Skip | None:
    meta, spec = one.get("metadata"), one.get("spec")
    if not isinstance(meta, dict) or not isinstance(spec, dict) or meta.get("namespace") != NAMESPACE:
        return None
    node, stamp = meta.get("name"), spec.get("renewTime")
    at = stamps.iso(stamp) if isinstance(stamp, str) else None
    if not isinstance(node, str) or at is None:
        return Skip(NO_TIME)
    before = renewed.get(node)
    if before is not None and at <= before:
        return None  # it is told again
    if before is None:
        if len(renewed) < _NODES_MOST:
            renewed[node] = at
        return None
    renewed[node] = at
    first = context.state.setdefault("k8s-leases told", set())
    gap = at - before
    if node in first and gap <= MISSED_S:
        return None
    first.add(node)
    about = name(node)
    return Mark(
        at, Kind.LEASE_AGE, about, f"{about} has renewed its lease after {gap:.1f} s", context.source, about, 0.0, {"age_s": gap if gap > MISSED_S else 0.0}
    )


K8S_LEASES = KubeLeases()

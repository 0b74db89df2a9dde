"""The Leases of a cluster's nodes (NOD001). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from edgekeeper.doctor.check import Check, Needs, Page
from edgekeeper.doctor.facts import HaproxyFacts, HaproxyRuntime, NodeFact, Unknown
from edgekeeper.engines.haproxy.cfg_values import Config
from edgekeeper.model.finding import Finding, Severity

OLD_S, LATE_S, NOT_READY_S = 20.0, 30.0, 40.0

NOD001_PAGE = Page(
    what="""
A node whose Lease (namespace `kube-node-lease`) was not renewed for more than 20 s (HIGH) or 30 s (CRIT) while the cluster still calls it
Ready. A Lease that looks old is looked at for 11 s more, so that a wrong clock on a node is no finding. Where HAProxy has sessions of that
node on a server that is DOWN, the finding says so.
""",
    why="""
A kubelet renews its node's Lease every 10 s; after 40 s the node is NotReady and its pods are moved away. A kubelet whose one connection is
pinned to a hung kube-apiserver renews nothing, while every probe of the load balancer, the node and the API says that all is well: the age of
its Lease is the only true signal, and it tells before the node is lost. Seen in the field: such a node was NotReady for five days.

Two or more nodes at once are no fault of the nodes: look at the API servers and at etcd.
""",
    fix="""
End the sessions that keep it (its kubelet connects anew within seconds), else restart its kubelet:

```sh
edgekeeper lb sessions --pinned
edgekeeper lb sessions --free all --yes
```
""",
    others="None was found that looks at the age of a node's Lease.",
)


def stale_leases(facts: HaproxyFacts, _config: Config) -> Iterator[Finding]:
    """NOD001."""
    nodes = facts.inventory.nodes
    if isinstance(nodes, Unknown):
        return
    old = [node for node in nodes if node.ready and node.lease_age_s is not None and node.lease_age_s > OLD_S]
    for node in old:
        age_s = node.lease_age_s or 0.0
        left = f"it is NotReady in about {NOT_READY_S - age_s:.0f} s" if age_s < NOT_READY_S else "it is about to be NotReady"
        pinned = _pinned(facts, node)
        others = f"; {len(old) - 1} more at the same time: look at the API servers and etcd first" if len(old) > 1 else ""
        yield Finding(
            id="NOD001",
            severity=Severity.CRIT if age_s > LATE_S else Severity.HIGH,
            object=f"node {node.name}",
            what=f"its Lease was not renewed for {age_s:.0f} s, and the node counts as Ready",
            evidence=f"{left}{f'; sessions from it on servers that are DOWN: {pinned}' if pinned else ''}{others}",
            why="its kubelet does not reach the API, though every probe may say that all is well",
            fix="edgekeeper lb sessions --free all --yes" if pinned else "see which API server its kubelet is connected to; restart the kubelet",
        )


def _pinned(facts: HaproxyFacts, node: NodeFact) -> int:
    runtime = facts.runtime
    if not isinstance(runtime, HaproxyRuntime) or isinstance(runtime.sessions, Unknown):
        return 0
    down = {(row.backend, row.server) for row in runtime.stats.servers if row.down and not row.unresolved}
    return sum(1 for many in runtime.sessions.values() for one in many if one.source_host in node.addresses and (one.backend, one.server) in down)


CHECKS = (Check("NOD001", Severity.CRIT, "A node's Lease is old while the node counts as Ready", Needs.CLUSTER, NOD001_PAGE, stale_leases),)

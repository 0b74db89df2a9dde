"""The members are pods of a real Kubernetes: their Deployment is rolled, and its slices change, under load."""

from __future__ import annotations

import math
import time

from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.changes import NOTHING_LOST, SAME_ENGINE, accepted_at
from edgekeeper.lab.edges import ProductEdge
from edgekeeper.lab.kube import Cluster
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.pods import NAMESPACE, SERVICE, Pods, write_slice
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import NAMES, Stage
from edgekeeper.lab.topology import MEMBERS

LINGER_S = 4.0
"""How long a pod answers once it is told to end: more than the debounce (1 s here) and what taking a server out takes (1.1 s at most)."""


def edge_of(stage: Stage, cluster: Cluster) -> ProductEdge:
    """``edgekeeper dns run`` whose members are the endpoints of the Service."""
    root = {"kubernetes": {"kubeconfig": str(cluster.kubeconfig(stage.folder / "kubeconfig"))}}
    return ProductEdge(stage, 0, dns={"members": {"endpointslice": f"{NAMESPACE}/{SERVICE}"}}, root=root)


def rolled(linger_s: float) -> Script:
    """Every pod is replaced by the Deployment's own controller, one after the other."""

    async def script(stage: Stage) -> Measured:
        async with Cluster(stage.folder / "kube", net=stage.net, namespace="edge") as cluster:
            await cluster.start_controllers()
            await cluster.start_kubelet()
            async with Pods(stage, cluster, linger_s) as pods:
                await pods.deploy()
                before = pods.addresses()
                edge = edge_of(stage, cluster)
                await edge.up(3)
                pid = await edge.engine_pid()
                load = await stage.load(duration=60.0)
                await load.at(2.5)
                await pods.roll()
                stage.note("the Deployment's template changed")
                await pods.settled()
                stage.note("all pods are new")
                now = time.monotonic()
                await load.at(now - load.started + 3.0)
                tally = await load.stop()
                gave = {last for last, count in tally.by.items() if count}
                unused = {address for address in pods.addresses() if int(address.rpartition(".")[2]) not in gave}
                edge.must_run()
                held = sum(entry.get("event") == "members.held" for entry in edge.journal())
                more = {"kept_pods": float(len(before & pods.addresses())), "unused_pods": float(len(unused)), "held": float(held)}
                return stage.measured(tally, engine_restarts=float(await edge.engine_pid() != pid), **more)

    return script


async def events(stage: Stage) -> Measured:
    """A slice loses an endpoint and gets it back, again and again: how soon does the engine know the new one."""
    await stage.add_members(4)
    everybody = tuple(zip(NAMES[:4], MEMBERS[:4], strict=True))
    async with Cluster(stage.folder / "kube", net=stage.net, namespace="edge") as cluster:
        await write_slice(cluster, everybody, new=True)
        edge = edge_of(stage, cluster)
        await edge.up(4)
        pid = await edge.engine_pid()
        edits, every = (10, 1.4) if stage.quick else (40, 1.4)
        load = await stage.load(duration=2.5 + edits * every)
        times = []
        for number in range(edits):
            await load.at(2.0 + number * every)
            await write_slice(cluster, everybody if number % 2 else tuple(m for m in everybody if m[0] != "ns-b"))
            times.append(time.monotonic())
        stage.note(f"{edits} changes of the slice, one every {every:g} s")
        tally = await load.tally()
        took = sorted(accepted_at(edge, at) for at in times[1::2])
        p95 = took[math.ceil(0.95 * len(took)) - 1]
        stage.note(f"from an event that adds an endpoint to the server in the engine: half within {took[len(took) // 2]:.3f} s, 95 % within {p95:.3f} s")
        return stage.measured(tally, engine_restarts=float(await edge.engine_pid() != pid), present_s=p95)


PRESENT = Promise("present_s", "from the slice's event to the new server in the engine, 95 %", 0.2, "s")
DEPLOYMENT_ROLLED = Drill(
    "dns-deployment-rolled",
    "members that are pods of a Kubernetes: their Deployment is rolled, and its slices change, under 500 questions a second",
    (
        Case(
            "defaults",
            f"three pods, rolled by the real controllers; each answers for {LINGER_S:g} s after it is told to end (a preStop hook)",
            rolled(LINGER_S),
            (
                NOTHING_LOST,
                SAME_ENGINE,
                Promise("kept_pods", "pods that were not replaced", 0, "members"),
                Promise("unused_pods", "new pods that gave no answer", 0, "members"),
                Promise("held", "changes held back", 0, "errors"),
            ),
            alone=True,
            ci=True,
            members=1,
        ),
        Case(
            "events",
            "a slice changes every 1.4 s; the figure is that of an added endpoint",
            events,
            (NOTHING_LOST, SAME_ENGINE, PRESENT),
            alone=True,
            members=4,
        ),
    ),
)

__all__ = ["DEPLOYMENT_ROLLED"]

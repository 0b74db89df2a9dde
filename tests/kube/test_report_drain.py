"""What a real kubectl prints while it drains, and the Events of a real control plane, read as a report reads them."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.eventlines import context, marks

from edgekeeper.lab.kube import Cluster, assets
from edgekeeper.report.formats import recognise
from edgekeeper.report.formats.kubectl import KUBECTL
from edgekeeper.report.formats.kubeevents import K8S_EVENTS
from edgekeeper.report.formats.kubeleases import K8S_LEASES
from edgekeeper.report.kinds import Kind, Mark

LABELS = {"app": "web"}
SPACE = "shop"
WATCHED = {"leases": ("leases", "-n", "kube-node-lease"), "events": ("events", "-A")}
BUDGET = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets"


class Kubectl:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.argv = [str(assets(controllers=True) / "kubectl"), "--kubeconfig", str(cluster.kubeconfig(folder / "k.yaml"))]

    def __call__(self, *words: str) -> str:
        return subprocess.run([*self.argv, *words], capture_output=True, text=True, timeout=30, check=True).stdout

    def watch(self, path: Path, *words: str) -> subprocess.Popen[bytes]:
        """What it prints of objects and of what becomes of them, until it is ended."""
        with path.open("wb") as out:
            return subprocess.Popen([*self.argv, "get", *words, "-o", "json", "--watch"], stdout=out, stderr=subprocess.STDOUT)

    async def stamped(self, told: Callable[[str], Any], *words: str) -> list[str]:
        """Its lines as they come, each behind the time; ``told`` is called with each."""
        process = await asyncio.create_subprocess_exec(*self.argv, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        assert process.stdout is not None
        lines: list[str] = []
        async with asyncio.timeout(60):
            async for raw in process.stdout:
                now = time.time()
                lines.append(f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z {raw.decode().rstrip()}")
                await told(lines[-1])
            assert await process.wait() == 0, lines
        return lines


async def pods(cluster: Cluster) -> list[tuple[str, str]]:
    """Name and node of the pods that are ready and not on their way out."""
    found = (await cluster.must("GET", f"/api/v1/namespaces/{SPACE}/pods"))["items"]
    ready = [
        p
        for p in found
        if "deletionTimestamp" not in p["metadata"] and any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", ()))
    ]
    return [(p["metadata"]["name"], p["spec"]["nodeName"]) for p in ready]


async def run_web(cluster: Cluster) -> None:
    await cluster.make_namespace(SPACE)
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "none"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    await cluster.must("POST", f"/apis/apps/v1/namespaces/{SPACE}/deployments", {"metadata": {"name": "web"}, "spec": spec})
    await cluster.must("POST", BUDGET, {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": LABELS}}})
    await until_ready(cluster)


async def until_ready(cluster: Cluster) -> None:
    end = time.monotonic() + 30
    while len(await pods(cluster)) != 2:
        assert time.monotonic() < end, "the pods are not ready"
        await asyncio.sleep(0.1)


@pytest.mark.timeout(120)
def test_a_drain_that_a_budget_blocks_and_one_that_bypasses_it(clusters: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = clusters()
    kubectl = Kubectl(cluster, tmp_path)

    async def nothing(_: str) -> None:
        return

    async def allow(line: str) -> None:
        if "will retry after" in line:
            await cluster.must("PATCH", f"{BUDGET}/web", {"spec": {"minAvailable": 0}}, kind="application/merge-patch+json")

    async def story() -> tuple[list[str], list[str], str, set[str]]:
        await cluster.start_controllers()
        await cluster.start_kubelet()
        watches.extend(kubectl.watch(tmp_path / name, *words) for name, words in WATCHED.items())
        await run_web(cluster)
        node = (await pods(cluster))[0][1]
        there = {f"{SPACE}/{name}" for name, on in await pods(cluster) if on == node}
        lines = await kubectl.stamped(allow, "drain", node, "--ignore-daemonsets", "--force")
        lines += await kubectl.stamped(nothing, "uncordon", node)
        await until_ready(cluster)
        bypassed = await kubectl.stamped(nothing, "drain", "node-a" if node == "node-b" else "node-b", "--disable-eviction", "--force")
        return lines, bypassed, node, there

    watches: list[subprocess.Popen[bytes]] = []
    begun = time.time()
    try:
        lines, bypassed, node, there = asyncio.run(story())
    finally:
        for process in watches:
            process.terminate()
            process.wait(10)
    found = marks(KUBECTL, "\n".join(lines))
    assert recognise([line.encode() for line in lines]) is KUBECTL
    assert [(m.kind, m.object) for m in found if m.kind in {Kind.CORDONED, Kind.DRAINED, Kind.UNCORDONED}] == [
        (Kind.CORDONED, node),
        (Kind.DRAINED, node),
        (Kind.UNCORDONED, node),
    ]
    by = {kind: [m for m in found if m.kind is kind] for kind in (Kind.EVICTING, Kind.EVICTED, Kind.EVICTION_BLOCKED)}
    assert {m.object for m in by[Kind.EVICTING]} == {m.object for m in by[Kind.EVICTED]} == there
    assert len(by[Kind.EVICTED]) == len(there)
    blocked = by[Kind.EVICTION_BLOCKED]
    assert blocked
    assert {m.object for m in blocked} <= there
    assert (blocked[0].data["again_s"], "disruption budget" in str(blocked[0].data["why"])) == (5.0, True)
    assert all(begun <= (m.at or 0) <= time.time() and m.stamp_s == pytest.approx(0.001) for m in found)
    assert [m.kind for m in marks(KUBECTL, "\n".join(bypassed))].count(Kind.DELETED) >= 1

    plain = [line.partition("Z ")[2] for line in lines]
    assert [(m.kind, m.object, m.at) for m in marks(KUBECTL, "\n".join(plain))] == [(m.kind, m.object, None) for m in found]
    told_by_events(kubectl, node, there, begun)
    watched = {name: (tmp_path / name).read_text() for name in WATCHED}
    assert recognise([line.encode() for line in watched["leases"].splitlines()]) is K8S_LEASES
    assert [(m.object, m.data["age_s"]) for m in sorted(marks(K8S_LEASES, watched["leases"]), key=lambda m: m.object)] == [("node-a", 0.0), ("node-b", 0.0)]
    assert there <= {m.object for m in marks(K8S_EVENTS, watched["events"]) if m.data["reason"] == "Scheduled"}


def told_by_events(kubectl: Kubectl, node: str, there: set[str], begun: float) -> None:
    """One printed list, and what a watch prints; both tell of the same pods."""
    printed = kubectl("get", "events", "-A", "-o", "json")
    assert recognise([line.encode() for line in printed.splitlines()]) is K8S_EVENTS
    found = marks(K8S_EVENTS, printed, context())
    scheduled = {m.object: m for m in found if m.kind is Kind.POD and m.data["reason"] == "Scheduled"}
    assert there <= set(scheduled)
    assert all(begun - 1 <= (m.at or 0) <= time.time() and m.stamp_s <= 1.0 for m in found)
    assert node in {m.object for m in found if m.kind is Kind.NODE_STATE}
    one_a_line = kubectl("get", "--raw", "/api/v1/events")
    assert [key(m) for m in marks(K8S_EVENTS, one_a_line, context())] == [key(m) for m in found]
    newer = kubectl("get", "--raw", "/apis/events.k8s.io/v1/events")
    assert sorted(key(m) for m in marks(K8S_EVENTS, newer, context())) == sorted(key(m) for m in found)


def key(mark: Mark) -> tuple[str, str, float, str]:
    return str(mark.kind), mark.object, mark.at or 0.0, str(mark.data.get("reason"))

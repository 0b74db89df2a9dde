"""The age of a node's Lease, with the real controllers: what an audit and `lb sessions` tell of a kubelet that has gone silent."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edgekeeper.cli.lb_sessions import _leases
from edgekeeper.cli.main import run
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.root import Root
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube import nodelease
from edgekeeper.kube.client import connect
from edgekeeper.kube.nodelease import NodeLease, node_leases
from edgekeeper.lab.kube import Cluster

MERGE = "application/merge-patch+json"


async def renew(cluster: Cluster, node: str, ahead_s: float) -> None:
    stamp = (datetime.now(UTC) + timedelta(seconds=ahead_s, microseconds=1)).isoformat(timespec="microseconds").replace("+00:00", "Z")
    where = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    body = {"spec": {"renewTime": stamp, "holderIdentity": node, "leaseDurationSeconds": 40}}
    if (await cluster.request("PATCH", f"{where}/{node}", body, kind=MERGE)).status == 404:
        await cluster.must("POST", where, {"metadata": {"name": node}, **body})


async def node(cluster: Cluster, name: str, address: str, ahead_s: float) -> None:
    await cluster.must("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    status = {"status": {"addresses": [{"type": "InternalIP", "address": address}], "conditions": [{"type": "Ready", "status": "True"}]}}
    await cluster.must("PATCH", f"/api/v1/nodes/{name}/status", status, kind="application/strategic-merge-patch+json")
    await renew(cluster, name, ahead_s)


def config(cluster: Cluster, folder: Path) -> str:
    return str(cluster.kubeconfig(folder / "config"))


@pytest.fixture
def alone(clusters) -> Cluster:
    """A cluster without controllers: nobody but the test says what is Ready."""
    return clusters()


def test_ages_are_told_and_a_wrong_clock_is_no_finding(
    alone: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nodelease, "PATIENCE_S", 3.0)

    async def ages(patience_s: float) -> dict[str, NodeLease]:
        async with connect(Kubernetes.model_validate({"kubeconfig": config(alone, tmp_path)})) as api:
            return {one.name: one for one in await node_leases(api, SystemClock(), patience_s=patience_s)}

    async def story() -> None:
        for name, number, ahead_s in (("fresh", 1, -3.0), ("dead", 2, -33.0), ("behind", 3, -3600.0), ("ahead", 4, 3600.0)):
            await node(alone, name, f"192.0.2.{number}", ahead_s)
        await alone.must("POST", "/api/v1/nodes", {"metadata": {"name": "none"}})
        begun = time.monotonic()
        looking = asyncio.create_task(ages(3.0))
        await asyncio.sleep(0.7)
        await renew(alone, "behind", -3600.0)
        await renew(alone, "ahead", 3600.0)
        found = await looking
        assert time.monotonic() - begun < 8.0
        assert (found["fresh"].addresses, found["fresh"].ready) == (frozenset({"192.0.2.1"}), True)
        assert 2.0 < (found["fresh"].age_s or 0.0) < 10.0
        assert (found["dead"].age_s or 0.0) > 33.0
        assert found["behind"].age_s == found["ahead"].age_s == 0.0
        assert (found["none"].age_s, found["none"].ready) == (None, None)

    asyncio.run(story())
    cfg = tmp_path / "haproxy.cfg"
    cfg.write_text("defaults\n timeout connect 1s\n timeout client 1s\n timeout server 1s\nbackend web\n server a 192.0.2.1:80\n")
    for name in ("behind", "ahead"):
        asyncio.run(alone.must("DELETE", f"/api/v1/nodes/{name}"))
    assert run(["audit", str(cfg), "--kubeconfig", config(alone, tmp_path), "--only", "NOD"]) == 1
    told = capsys.readouterr().out
    assert "NOD001" in told
    assert "node dead" in told
    assert "node fresh" not in told
    root = Root.model_validate({"kubernetes": {"kubeconfig": config(alone, tmp_path)}})
    leases, why = asyncio.run(_leases(root))
    assert why == []
    assert {one.name for one in leases} == {"dead", "fresh", "none"}
    assert asyncio.run(_leases(Root.model_validate({}))) == ((), []), "nobody named a cluster"
    gone = Root.model_validate({"kubernetes": {"kubeconfig": config(alone, tmp_path), "timeout": "500ms"}})
    alone.kill()
    leases, why = asyncio.run(_leases(gone))
    assert leases == ()
    assert why[0].startswith("the Leases of the cluster's nodes: ")


def test_an_audit_compares_the_servers_with_the_clusters_own(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cfg = tmp_path / "haproxy.cfg"
    cfg.write_text("backend api\n mode tcp\n server cp1 192.0.2.31:6443 check\n server cp2 192.0.2.32:6443 check\n")
    where = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    body = {
        "metadata": {"name": "kubernetes-test", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.31"]}, {"addresses": ["192.0.2.33"]}], "ports": [{"name": "https", "port": 6443}],
    }  # fmt: skip
    asyncio.run(cluster.must("POST", where, body))
    try:
        assert run(["audit", str(cfg), "--kubeconfig", config(cluster, tmp_path), "--only", "HAP009"]) == 1
        assert "missing: 192.0.2.33; left over: 192.0.2.32" in capsys.readouterr().out
    finally:
        asyncio.run(cluster.must("DELETE", f"{where}/kubernetes-test"))
    assert run(["audit", str(cfg), "--kubeconfig", str(tmp_path / "none"), "--only", "HAP009"]) == 6

"""The lab's own Kubernetes: what tests of faults rely on, with the real programs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.host import process
from edgekeeper.lab.kube import Cluster

LABELS = {"app": "dns"}


async def until(what: str, check: Callable[[], Awaitable[Any]], timeout_s: float = 20.0) -> Any:
    """Ask until there is something."""
    began = time.monotonic()
    while not (found := await check()):
        assert time.monotonic() - began < timeout_s, f"not within {timeout_s:g} s: {what}"
        await asyncio.sleep(0.05)
    return found


def template(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": LABELS, "annotations": {f"lab.example/{name.replace('_', '-')}": value for name, value in annotations.items()}},
        "spec": {"containers": [{"name": "dns", "image": "none"}]},
    }


def workload(template: dict[str, Any], replicas: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "dns"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template},
    }


def ready(pod: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())


class Play:
    """One namespace with a workload in it."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.core = f"/api/v1/namespaces/{namespace}"
        self.apps = f"/apis/apps/v1/namespaces/{namespace}"
        self.policy = f"/apis/policy/v1/namespaces/{namespace}"
        self.slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}"

    async def pods(self) -> list[dict[str, Any]]:
        return list((await self.cluster.must("GET", f"{self.core}/pods"))["items"])

    async def all_ready(self, count: int) -> list[dict[str, Any]]:
        async def check() -> list[dict[str, Any]]:
            pods = [pod for pod in await self.pods() if ready(pod)]
            return pods if len(pods) == count else []

        return list(await until(f"{count} pods are ready", check))

    async def endpoints(self) -> list[dict[str, Any]]:
        slices = (await self.cluster.must("GET", f"{self.slices}/endpointslices"))["items"]
        return [endpoint for one in slices for endpoint in one["endpoints"] or ()]


def test_pods_run_and_a_budget_refuses_the_second_eviction_until_the_first_has_been_replaced(controllers, namespace):
    async def story() -> None:
        play = Play(controllers, namespace)
        await controllers.must("POST", f"{play.apps}/deployments", workload(template(ready_after="1", gone_after="1")))
        budget = {"metadata": {"name": "dns"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": LABELS}}}
        await controllers.must("POST", f"{play.policy}/poddisruptionbudgets", {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **budget})
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dns"}, "spec": {"selector": LABELS, "ports": [{"port": 53}]}}
        await controllers.must("POST", f"{play.core}/services", service)
        first, second, _ = await play.all_ready(3)

        async def room() -> bool:
            return bool((await controllers.must("GET", f"{play.policy}/poddisruptionbudgets/dns"))["status"].get("disruptionsAllowed"))

        async def evict(pod: dict[str, Any]) -> int:
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["metadata"]["name"]}}
            return (await controllers.request("POST", f"{play.core}/pods/{pod['metadata']['name']}/eviction", body)).status

        await until("the budget has room", room)
        assert await evict(first) == 201
        assert await evict(second) == 429

        async def leaving() -> bool:
            said = [endpoint["conditions"] for endpoint in await play.endpoints()]
            return any(c.get("terminating") and c.get("serving") and not c["ready"] for c in said)

        await until("a slice says that the first one is terminating and still serves", leaving)
        await until("the budget has room again", room)
        assert await evict(second) == 201
        names = {pod["metadata"]["name"] for pod in await play.all_ready(3)}
        assert first["metadata"]["name"] not in names

    asyncio.run(story())


def test_a_pod_has_the_address_that_its_annotation_names_and_a_wedged_one_does_not_end(controllers, namespace):
    async def story() -> None:
        play = Play(controllers, namespace)
        await controllers.must("POST", f"{play.apps}/deployments", workload(template(address="203.0.113.77", wedged="true"), 1))
        (pod,) = await play.all_ready(1)
        assert pod["status"]["podIP"] == "203.0.113.77"
        path = f"{play.core}/pods/{pod['metadata']['name']}"
        await controllers.must("DELETE", path)
        await play.all_ready(2)  # its replacement, and the wedged one
        await asyncio.sleep(0.5)
        assert (await controllers.request("GET", path)).status == 200
        merge = "application/merge-patch+json"
        await controllers.must("PATCH", path, {"metadata": {"annotations": {"lab.example/wedged": "false"}}}, kind=merge)

        async def gone() -> bool:
            return (await controllers.request("GET", path)).status == 404

        await until("it ends", gone)

    asyncio.run(story())


def test_a_history_that_is_gone_is_answered_with_410(clusters):
    async def story(cluster: Cluster) -> None:
        old = (await cluster.must("GET", "/api/v1/namespaces?limit=1"))["metadata"]
        await cluster.make_namespace("later")
        await cluster.compact()
        answer = await cluster.request("GET", f"/api/v1/namespaces?limit=1&continue={old['continue']}")
        assert answer.status == 410

    asyncio.run(story(clusters(watch_cache=False)))


def test_one_of_two_servers_may_be_frozen_or_killed_and_comes_back_where_it_was(clusters):
    async def story(cluster: Cluster) -> None:
        cluster.freeze(0)
        with pytest.raises(MissingError, match="not in time"):
            await cluster.request("GET", "/version", deadline_s=0.5)
        await cluster.must("GET", "/version", api=1)
        cluster.thaw(0)
        await cluster.must("GET", "/version")
        where = cluster.urls
        cluster.kill(0)
        with pytest.raises(MissingError):
            await cluster.request("GET", "/version")
        await cluster.start_api(0)
        assert cluster.urls == where
        await cluster.must("GET", "/version")

    asyncio.run(story(clusters(apis=("127.0.0.1:0", "127.0.0.1:0"))))


def test_with_roles_on_a_user_may_do_what_a_role_grants_and_nothing_else(clusters):
    async def story(cluster: Cluster) -> None:
        role = {"metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]}
        kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
        await cluster.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {**kind, **role})
        binding = {
            **kind,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "User", "name": "watcher", "apiGroup": "rbac.authorization.k8s.io"}],
        }
        await cluster.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)

        async def granted() -> bool:
            return (await cluster.request("GET", "/api/v1/namespaces", user="watcher")).status == 200

        await until("the role is in force", granted)
        refused = await cluster.request("GET", "/api/v1/pods", user="watcher")
        assert refused.status == 403
        assert 'cannot list resource "pods"' in refused.body["message"]

    asyncio.run(story(clusters(rbac=True, users={"watcher": ()})))


def test_nothing_outlives_a_test_run_that_was_killed(tmp_path):
    script = f"""
import os, pathlib, signal
from edgekeeper.lab.kube import Cluster
cluster = Cluster(pathlib.Path({str(tmp_path)!r}))
cluster._spawn("etcd", ["sleep", "60"])
print(cluster.pid("etcd"), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    pid = int(told.stdout)
    for _ in range(100):
        if process.start_time(pid) is None:
            return
        time.sleep(0.02)
    os.kill(pid, 9)
    pytest.fail("a process of the cluster is still there")

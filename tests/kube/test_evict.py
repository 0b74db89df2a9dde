"""Cordons and evictions, judged by a real scheduler and real controllers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.errors import RefusedError, StepFailedError
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.errors import Absent, Blocked
from edgekeeper.kube.evict import cordon, evict, uncordon
from edgekeeper.kube.objects import Node, ObjectMeta, Pod, meta
from edgekeeper.lab.kube import Cluster

LABELS = {"app": "web"}


async def until(what: str, check: Callable[[], Awaitable[Any]], timeout_s: float = 20.0) -> Any:
    end = asyncio.get_running_loop().time() + timeout_s
    while not (found := await check()):
        assert asyncio.get_running_loop().time() < end, f"not within {timeout_s:g} s: {what}"
        await asyncio.sleep(0.05)
    return found


def reach(cluster: Cluster, folder: Path) -> Api:
    return connect(Kubernetes(kubeconfig=str(cluster.kubeconfig(folder / "k.yaml"))))


async def ready(api: Api, namespace: str) -> list[Pod]:
    pods = (await api.list(Pod, namespace=namespace)).items
    return [
        pod
        for pod in pods
        if not meta(pod).deletionTimestamp and pod.status and any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())
    ]


async def run_pods(cluster: Cluster, api: Api, namespace: str, replicas: int, available: int, **annotations: str) -> list[Pod]:
    told = {f"lab.example/{name.replace('_', '-')}": value for name, value in annotations.items()}
    template = {"metadata": {"labels": LABELS, "annotations": told}, "spec": {"containers": [{"name": "web", "image": "none"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    budget = {"minAvailable": available, "selector": {"matchLabels": LABELS}}
    await cluster.must("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", {"metadata": {"name": "web"}, "spec": spec})
    await cluster.must("POST", f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget})

    async def all_ready() -> list[Pod]:
        found = await ready(api, namespace)
        status = (await cluster.must("GET", f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/web")).get("status") or {}
        return found if len(found) == replicas and status.get("currentHealthy") == replicas else []

    return list(await until(f"{replicas} pods are ready", all_ready))


def test_the_second_eviction_is_refused_in_the_budgets_words_and_goes_through_once_the_first_is_replaced(controllers, namespace, tmp_path):
    async def story() -> None:
        async with reach(controllers, tmp_path) as api:
            first, second, third = (meta(pod) for pod in await run_pods(controllers, api, namespace, 3, 2, ready_after="1"))
            assert await evict(api, namespace, first.name, dry_run=True)
            assert not await evict(api, namespace, first.name, uid=third.uid), "of this name, but not the one that is meant"
            assert len(await ready(api, namespace)) == 3
            assert await evict(api, namespace, first.name, uid=first.uid)
            for dry_run in (True, False):
                with pytest.raises(
                    Blocked, match=r"\(429\).*disruption budget.* web needs 2 healthy pods and has 2 currently; it is tried again later"
                ) as refused:
                    await evict(api, namespace, second.name, dry_run=dry_run)
            assert refused.value.again_s is None or refused.value.again_s > 0

            async def accepted() -> bool:
                try:
                    return await evict(api, namespace, second.name, uid=second.uid)
                except Blocked:
                    return False

            await until("the budget allows it", accepted)
            assert len(await ready(api, namespace)) == 2

            async def gone() -> bool:
                return await api.get(Pod, second.name, namespace=namespace) is None

            await until("it is gone", gone)
            assert not await evict(api, namespace, second.name)

    asyncio.run(story())


def test_a_cordoned_node_gets_no_pods_and_only_who_cordoned_it_lets_them_on_again(controllers, namespace, tmp_path):
    async def story() -> None:
        async with reach(controllers, tmp_path) as api:
            try:
                assert await cordon(api, "node-a", "roll-1", dry_run=True)
                assert not (await api.get(Node, "node-a")).spec.unschedulable
                assert await cordon(api, "node-a", "roll-1")
                assert await cordon(api, "node-a", "roll-1"), "again is no mistake"
                assert not await cordon(api, "node-a", "roll-2"), "somebody else's cordon is left as it is"
                pods = await run_pods(controllers, api, namespace, 3, 1)
                assert {pod.spec.nodeName for pod in pods} == {"node-b"}
                with pytest.raises(RefusedError, match="node node-a was cordoned by roll-1, not by roll-2; it stays cordoned"):
                    await uncordon(api, "node-a", "roll-2")
                assert await uncordon(api, "node-a", "roll-1")
                assert not await uncordon(api, "node-a", "roll-1")
                node = await api.get(Node, "node-a")
                assert not node.spec.unschedulable
                assert "edgekeeper.io/cordoned-by" not in (node.metadata.annotations or {})
            finally:
                await controllers.must("PATCH", "/api/v1/nodes/node-a", {"spec": {"unschedulable": None}}, kind="application/merge-patch+json")

    asyncio.run(story())


def test_a_cordon_by_hand_stays(cluster, tmp_path):
    name = f"n-{secrets.token_hex(3)}"

    async def story() -> None:
        async with reach(cluster, tmp_path) as api:
            await api.create(Node(metadata=ObjectMeta(name=name)))
            await api.patch(Node, name, {"spec": {"unschedulable": True}})
            assert not await cordon(api, name, "roll-1")
            with pytest.raises(RefusedError, match="cordoned by somebody who wrote no name, not by roll-1"):
                await uncordon(api, name, "roll-1")
            await api.delete(Node, name)
            with pytest.raises(Absent, match="the cluster has no node"):
                await cordon(api, name, "roll-1")

    asyncio.run(story())


class Busy:
    """The API, where somebody else writes the node after each of the first looks at it."""

    def __init__(self, api: Api, times: int) -> None:
        self.api, self.times = api, times

    async def get(self, kind: type[Node], name: str) -> Node | None:
        found = await self.api.get(kind, name)
        if self.times:
            self.times -= 1
            await self.api.patch(kind, name, {"metadata": {"annotations": {"other.example/n": str(self.times)}}})
        return found

    async def patch(self, *args: Any, **options: Any) -> Node:
        return await self.api.patch(*args, **options)


def test_a_write_of_somebody_else_in_between_is_kept_and_the_cordon_done_on_top(cluster, tmp_path):
    name = f"n-{secrets.token_hex(3)}"

    async def story() -> None:
        async with reach(cluster, tmp_path) as api:
            await api.create(Node(metadata=ObjectMeta(name=name)))
            assert await cordon(Busy(api, 3), name, "roll-1")
            assert await uncordon(Busy(api, 3), name, "roll-1")
            with pytest.raises(StepFailedError, match="written by others 10 times"):
                await cordon(Busy(api, 100), name, "roll-1")
            node = await api.get(Node, name)
            assert (node.spec.unschedulable, node.metadata.annotations) == (None, {"other.example/n": "90"})
            await api.delete(Node, name)

    asyncio.run(story())

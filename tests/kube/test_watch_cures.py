"""Cures in a cluster, on a real API server with the real controllers: what is deleted, what is refused, and when it counts as done."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.root import Root
from edgekeeper.config.watch import CureStep, Watch
from edgekeeper.host.clock import SystemClock
from edgekeeper.lab.kube import Cluster
from edgekeeper.watch import build
from edgekeeper.watch.check import verdict

SELECTOR = {"app": "proxy"}
MERGE = "application/merge-patch+json"


class Play:
    """A namespace with a workload, and cures of it."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.core = f"/api/v1/namespaces/{namespace}"
        self.apps = f"/apis/apps/v1/namespaces/{namespace}"
        self.config = str(cluster.kubeconfig(folder / "config"))

    async def make(self, kind: str, replicas: int = 1, strategy: str = "", **annotations: str) -> None:
        notes = {f"lab.example/{name.replace('_', '-')}": value for name, value in annotations.items()}
        template = {"metadata": {"labels": SELECTOR, "annotations": notes}, "spec": {"containers": [{"name": "proxy", "image": "none"}]}}
        spec: dict[str, Any] = {"selector": {"matchLabels": SELECTOR}, "template": template}
        spec |= {} if kind == "DaemonSet" else {"replicas": replicas}
        spec |= {"serviceName": "proxy"} if kind == "StatefulSet" else {}
        spec |= {"updateStrategy": {"type": strategy}} if strategy else {}
        body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "proxy"}, "spec": spec}
        await self.cluster.must("POST", f"{self.apps}/{kind.lower()}s", body)
        await self.ready(2 if kind == "DaemonSet" else replicas)

    async def pods(self) -> list[dict[str, Any]]:
        return list((await self.cluster.must("GET", f"{self.core}/pods"))["items"])

    async def ready(self, count: int) -> dict[str, str]:
        """Names and uids, once so many are ready."""
        began = time.monotonic()
        while True:
            found = [p for p in await self.pods() if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions") or ())]
            if len(found) == count:
                return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}
            assert time.monotonic() - began < 20
            await asyncio.sleep(0.05)

    def watch(self, said: dict[str, Any], **more: Any) -> Watch:
        return Watch.model_validate({"name": "proxy", "probe": "tcp://192.0.2.1:1", "cure": {"kubernetes": said, **more}})

    def cure(self, said: dict[str, Any], node: str = "node-a", **more: Any) -> Any:
        made = build.parts(
            self.watch(said, **more), SystemClock(), Path("/x"), Path("/x"), build.Here(node, Kubernetes.model_validate({"kubeconfig": self.config}))
        )
        return made.cures[0]


@pytest.fixture
def play(controllers: Cluster, namespace: str, tmp_path: Path) -> Play:
    return Play(controllers, namespace, tmp_path)


def test_a_pod_is_deleted_and_its_successor_is_waited_for(play: Play) -> None:
    async def story() -> None:
        await play.make("Deployment", ready_after="1")
        (before,) = (await play.ready(1)).items()
        cure = play.cure({"label": f"{play.namespace}/app=proxy"})
        assert await cure.ready(ours=False, since=time.time() + 1) is None
        began = time.monotonic()
        assert await cure.apply() is None
        assert time.monotonic() - began >= 1.0, "only what is ready counts"
        (after,) = (await play.ready(1)).items()
        assert before != after
        told = await cure.ready(ours=False, since=time.time() - 30)
        assert told == f"pod {after[0]} was started after the probe had failed; it has to fail again"
        assert await cure.ready(ours=True, since=time.time() - 30) is None

    asyncio.run(story())


def test_a_pod_of_a_stateful_set_by_its_name_comes_back_under_it(play: Play) -> None:
    async def story() -> None:
        await play.make("StatefulSet", 2)
        before = await play.ready(2)
        assert await play.cure({"pod": f"{play.namespace}/proxy-1"}, stop_timeout="0s").apply() is None
        after = await play.ready(2)
        assert after["proxy-0"] == before["proxy-0"]
        assert after["proxy-1"] != before["proxy-1"]
        assert await play.cure({"pod": f"{play.namespace}/proxy-9"}).apply() == f"there is no pod {play.namespace}/proxy-9"

    asyncio.run(story())


def test_of_several_the_one_that_is_here_or_all_and_never_any_of_them(play: Play) -> None:
    async def story() -> None:
        await play.make("DaemonSet")
        label = f"{play.namespace}/app=proxy"
        before = await play.ready(2)
        assert str(await play.cure({"label": label}).apply()).startswith(f"there are 2 pods {label}")
        assert await play.ready(2) == before
        assert await play.cure({"label": label, "which": "here"}, node="node-b").apply() is None
        after = await play.ready(2)
        assert len(before.items() & after.items()) == 1
        nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in await play.pods()}
        assert nodes[next(iter(before.keys() & after.keys()))] == "node-a"
        assert await play.cure({"label": label, "which": "all"}).apply() is None
        assert not (await play.ready(2)).items() & after.items()

    asyncio.run(story())


def test_what_would_not_come_back_is_never_deleted(play: Play) -> None:
    async def story() -> None:
        pod = {"metadata": {"name": "bare", "labels": SELECTOR}, "spec": {"containers": [{"name": "proxy", "image": "none"}]}}
        await play.cluster.must("POST", f"{play.core}/pods", pod)
        before = await play.ready(1)
        assert await play.cure({"label": f"{play.namespace}/app=proxy"}).apply() == "pod bare has no controller; nothing would make another one"
        assert await play.ready(1) == before

    asyncio.run(story())


def test_a_successor_that_does_not_get_ready_is_told_within_the_deadline(play: Play) -> None:
    async def story() -> None:
        await play.make("Deployment")
        never = {"spec": {"template": {"metadata": {"annotations": {"lab.example/ready": "false"}}}, "paused": True}}
        await play.cluster.must("PATCH", f"{play.apps}/deployments/proxy", never, kind=MERGE)
        name = next(iter(await play.ready(1)))
        sets = (await play.cluster.must("GET", f"{play.apps}/replicasets"))["items"]
        await play.cluster.must("PATCH", f"{play.apps}/replicasets/{sets[0]['metadata']['name']}", {"spec": never["spec"] | {"paused": None}}, kind=MERGE)
        told = await play.cure({"label": f"{play.namespace}/app=proxy"}, timeout="2s").apply()
        assert told is not None
        assert told.startswith(f"pod {name} was deleted, but within 2 s 0 of 1 new pods are ready; pod proxy-")

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_rollout_restarts_every_pod(play: Play, kind: str) -> None:
    async def story() -> None:
        await play.make(kind, 2)
        before = await play.ready(2)
        cure = play.cure({"rollout": f"{play.namespace}/{kind.lower()}/proxy"})
        assert await cure.ready(ours=False, since=time.time()) is None
        assert await cure.apply() is None
        after = await play.ready(2)
        assert not set(before.values()) & set(after.values())
        assert "was restarted after the probe had failed" in str(await cure.ready(ours=False, since=time.time() - 30))

    asyncio.run(story())


def test_a_workload_that_a_rollout_does_not_restart_is_refused(play: Play) -> None:
    async def story() -> None:
        await play.make("DaemonSet", strategy="OnDelete")
        assert "OnDelete" in str(await play.cure({"rollout": f"{play.namespace}/daemonset/proxy"}).ready(ours=False, since=time.time()))
        none = await play.cure({"rollout": f"{play.namespace}/deployment/proxy"}).ready(ours=False, since=time.time())
        assert none == f"there is no deployment {play.namespace}/proxy"

    asyncio.run(story())


def test_check_asks_the_cluster_and_says_what_it_cannot_judge(play: Play) -> None:
    async def story() -> None:
        await play.make("Deployment")
        before = await play.ready(1)

        async def doubts(said: dict[str, Any], kubeconfig: str) -> tuple[str, ...]:
            watch = {"name": "proxy", "probe": "tcp://192.0.2.1:1", "cure": {"kubernetes": said}}
            root = Root.model_validate({"kubernetes": {"kubeconfig": kubeconfig, "timeout": "1s"}, "watch": [watch]})
            found = await verdict(root, "node-a")
            assert found.refusal is None
            return found.doubts

        for said in ({"label": f"{play.namespace}/app=proxy"}, {"rollout": f"{play.namespace}/deployment/proxy"}):
            assert await doubts(said, play.config) == ()
            (told,) = await doubts(said, "/nowhere/config")
            assert told.endswith("not judged here")
        assert "there is no pod" in (await doubts({"label": f"{play.namespace}/app=other"}, play.config))[0]
        assert await play.ready(1) == before, "nothing was changed"
        assert CureStep.model_validate({"kubernetes": said}).kubernetes is not None

    asyncio.run(story())

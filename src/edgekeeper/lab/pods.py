"""Pods that are real DNS servers: a Deployment of the lab's Kubernetes, played on the stage of a drill.

The controllers make and delete the pods, the test kubelet gives them addresses, and for each a small DNS server (``lab.member``) runs at
that address in the namespace of the members. A pod is Ready once its server answers. Once it is told to end, its server goes on for
``linger_s``, as the preStop hook of a real one has it, and then ends.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from edgekeeper.lab.kube import Cluster
from edgekeeper.lab.kubelet import MARK
from edgekeeper.lab.stage import MEMBER_PORT, Stage
from edgekeeper.lab.topology import MEMBERS

NAMESPACE = "dns-system"
SERVICE = "resolver"
POD_NETS = ("203.0.113.0/24",)
"""Where the test kubelet takes addresses from first."""
_LABELS = {"app": SERVICE}
_LOOK_S = 0.05
_MERGE = "application/merge-patch+json"


class Pods:
    """The pods of one Deployment and their servers. ``play`` runs beside the drill until it is cancelled."""

    def __init__(self, stage: Stage, cluster: Cluster, linger_s: float) -> None:
        self._stage = stage
        self._cluster = cluster
        self._linger_s = linger_s
        self._known: dict[str, str] = {}
        self._ready: set[str] = set()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self._core = f"/api/v1/namespaces/{NAMESPACE}"
        self._apps = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"

    async def __aenter__(self) -> Self:
        """Let the members' namespace have every address that a pod may get, and the edge a way to them."""
        for net in POD_NETS:
            await self._stage.net.ip("members", "route", "add", "local", net, "dev", "lo")
            await self._stage.net.ip("edge", "route", "add", net, "via", MEMBERS[0])
        self._playing = asyncio.create_task(self._play())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._playing, *self._leaving.values()):
            task.cancel()
        await asyncio.gather(self._playing, *self._leaving.values(), return_exceptions=True)

    async def deploy(self, replicas: int = 3) -> None:
        """The Deployment, with the strategy that it has by default, and its Service; returns when all pods are ready."""
        await self._cluster.make_namespace(NAMESPACE)
        marks = {f"{MARK}ready": "false", f"{MARK}gone-after": f"{self._linger_s + 0.2:g}"}
        template = {"metadata": {"labels": _LABELS, "annotations": marks}, "spec": {"containers": [{"name": "dns", "image": "none"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": _LABELS}, "template": template}
        await self._cluster.must("POST", self._apps, {"metadata": {"name": SERVICE}, "spec": spec})
        ports = [{"name": "dns", "port": 53, "targetPort": MEMBER_PORT, "protocol": "UDP"}]
        await self._cluster.must("POST", f"{self._core}/services", {"metadata": {"name": SERVICE}, "spec": {"selector": _LABELS, "ports": ports}})
        await self.settled(replicas)

    async def roll(self) -> None:
        """Change the template, as a new image does; returns at once."""
        patch = {"spec": {"template": {"metadata": {"annotations": {"lab.example/image": "2"}}}}}
        await self._cluster.must("PATCH", f"{self._apps}/{SERVICE}", patch, kind=_MERGE)

    async def settled(self, replicas: int = 3, timeout_s: float = 60.0) -> None:
        """Wait until all pods are of the newest template, ready, and no other one is left."""

        async def check() -> bool:
            self._must_play()
            found = await self._cluster.must("GET", f"{self._apps}/{SERVICE}")
            now = found.get("status") or {}
            counts = [now.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
            return now.get("observedGeneration") == found["metadata"]["generation"] and counts == [replicas] * 3 and len(self._known) == replicas

        await self._stage.until(f"the Deployment has {replicas} pods, all new and ready", check, timeout_s=timeout_s)

    def addresses(self) -> set[str]:
        """The addresses of the pods that are there."""
        return set(self._known.values())

    async def _play(self) -> None:
        while True:
            pods = (await self._cluster.must("GET", f"{self._core}/pods"))["items"]
            names = {pod["metadata"]["name"] for pod in pods}
            self._known = {name: address for name, address in self._known.items() if name in names}
            for pod in pods:
                await self._look_at(pod)
            await asyncio.sleep(_LOOK_S)

    async def _look_at(self, pod: dict[str, Any]) -> None:
        name, address = pod["metadata"]["name"], pod["status"].get("podIP")
        if address and name not in self._known:
            self._known[name] = address
            await self._stage.add_member(name, address)
        if name not in self._known:
            return
        if pod["metadata"].get("deletionTimestamp"):
            if name not in self._leaving:
                self._stage.note(f"pod {name} is told to end; it answers for {self._linger_s:g} s more")
                self._leaving[name] = asyncio.create_task(self._end(name))
        elif name not in self._ready and await self._stage.ask("edge", self._known[name], MEMBER_PORT, "health.example.", "TXT") is not None:
            self._ready.add(name)
            self._stage.note(f"pod {name} answers: ready")
            patch = {"metadata": {"annotations": {f"{MARK}ready": "true"}}}
            await self._cluster.must("PATCH", f"{self._core}/pods/{name}", patch, kind=_MERGE)

    async def _end(self, name: str) -> None:
        await asyncio.sleep(self._linger_s)
        await self._stage.members[name].stop()

    def _must_play(self) -> None:
        if self._playing.done():
            self._playing.result()


async def write_slice(cluster: Cluster, addresses: tuple[tuple[str, str], ...], *, new: bool = False) -> None:
    """A slice of the Service as a controller would write it: names and addresses, all ready."""
    if new:
        await cluster.make_namespace(NAMESPACE)
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    body = {
        "metadata": {"name": f"{SERVICE}-lab", "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "ports": [{"name": "dns", "port": MEMBER_PORT, "protocol": "UDP"}],
        "endpoints": [{"addresses": [address], "hostname": name, "conditions": {"ready": True}} for name, address in addresses],
    }
    await cluster.must("POST" if new else "PUT", path if new else f"{path}/{SERVICE}-lab", body)

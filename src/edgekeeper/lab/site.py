"""A real Kubernetes whose Ingresses are to be published, and who publishes them: edgekeeper, or a controller as the field has it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any

from edgekeeper.lab.actors import Actor
from edgekeeper.lab.kube import ADMIN, Cluster
from edgekeeper.lab.mesh import SERVICE_CIDR, TARGETS, URL, Mesh
from edgekeeper.lab.outcome import Side
from edgekeeper.lab.product import Home, Product
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT, MEMBERS

PORT = 6443
OPS_PORT = 8088
LABEL = "edgekeeper.io/public"
_SHOP = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/edgekeeper/leases"
_SERVICES = "/api/v1/namespaces/ingress/services"
_MERGE = "application/merge-patch+json"


class Site:
    """One cluster, named ``name``. ``target`` is the address of its ingress controller's Service, ``ingress/ingress``."""

    def __init__(self, stage: Stage, mesh: Mesh, name: str = "a", *, address: str = MEMBERS[0], target: str = TARGETS[0]) -> None:
        self.stage, self.mesh, self.name, self.target = stage, mesh, name, target
        self.kube = Cluster(stage.folder / f"kube-{name}", apis=(f"{address}:{PORT}",), net=stage.net, namespace="members")

    async def up(self) -> None:
        """Start it, with the namespaces and the Service that are there before anything is published."""
        self.stage.closing.append(self.kube.end)
        await self.kube.start()
        await self._lead(self.target, "add")
        await self.furnish()

    async def furnish(self) -> None:
        """What a cluster has before its applications: namespaces, the empty Lease that the rights come with, the ingress controller's Service."""
        for space in ("edgekeeper", "ingress", "shop"):
            await self.kube.make_namespace(space)
        await self.kube.request("POST", _LEASES, {"metadata": {"name": "edgekeeper-expose"}})  # an edgekeeper that waits may have made it already
        await self._service()

    async def publish(self, *wanted: str) -> None:
        """An Ingress for each host."""
        for host in wanted:
            await self.kube.must("POST", _SHOP, _ingress(host))

    async def label(self, wanted: Iterable[str], *, on: bool) -> None:
        """Put the label on the Ingresses of these hosts, or take it off."""
        for host in wanted:
            patch = {"metadata": {"labels": {LABEL: "true" if on else None}}}
            await self.kube.must("PATCH", f"{_SHOP}/{host.partition('.')[0]}", patch, kind=_MERGE)

    async def add_host(self, ingress: str, *wanted: str) -> float:
        """Change an Ingress: it has these hosts now. When that was done (monotonic clock)."""
        await self.kube.must("PATCH", f"{_SHOP}/{ingress.partition('.')[0]}", {"spec": {"rules": [_rule(host) for host in (ingress, *wanted)]}}, kind=_MERGE)
        return time.monotonic()

    async def move(self, target: str) -> float:
        """The ingress controller's Service is made anew, and has another address. When that was done (monotonic clock)."""
        await self.kube.must("DELETE", f"{_SERVICES}/ingress")
        await self._lead(self.target, "del")
        self.target = target
        await self._lead(target, "add")
        await self._service()
        return time.monotonic()

    async def grow_old(self, changes: int = 800) -> None:
        """Change something so often that a fresh etcd has not made as many changes soon: a cluster's is years behind."""
        path = "/api/v1/namespaces/shop/configmaps"
        await self.kube.must("POST", path, {"metadata": {"name": "age"}})
        for begin in range(0, changes, 20):
            ages = ({"data": {"age": str(begin + n)}} for n in range(20))
            await asyncio.gather(*(self.kube.must("PATCH", f"{path}/age", age, kind=_MERGE) for age in ages))

    async def wipe(self) -> None:
        """A fresh etcd behind the same API server, as after a restore that went wrong: nothing is in it."""
        self.kube.kill()
        self.kube.kill_named("etcd")
        shutil.rmtree(self.kube.folder / "etcd")
        await self.kube.start_etcd()
        await self.kube.start_api()

    async def _service(self) -> None:
        spec = {"clusterIP": self.target, "ports": [{"port": 443}]}
        await self.kube.must("POST", _SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ingress"}, "spec": spec})

    async def _lead(self, target: str, verb: str) -> None:
        """The address of the Service leads to the ingress controller, or no more."""
        await self.stage.net.ip("members", "route", verb, "local", target, "dev", "lo")


def _rule(host: str) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    return {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}


def _ingress(host: str) -> dict[str, Any]:
    named = {"name": host.partition(".")[0], "labels": {LABEL: "true"}}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": named, "spec": {"rules": [_rule(host)]}}


class Keeper:
    """edgekeeper at a site, as ``node``; ``said`` is more of its ``expose:`` section."""

    def __init__(self, site: Site, node: str = "edge-a", said: dict[str, Any] | None = None, *, every_s: float = 5.0, ops_port: int = OPS_PORT) -> None:
        self.site, self.node = site, node
        self._said = {"every": f"{every_s:g}s", **(said or {})}
        self._ops_port = ops_port
        self.product: Product | None = None

    async def start(self) -> None:
        """Write its config and start it."""
        stage, site = self.site.stage, self.site
        token = await site.mesh.token(self.node)
        section = {
            "owner": "home",
            "cluster": site.name,
            "netbird": {"url": URL, "token_file": str(token), "network": f"cluster-{site.name}", "router_group": "routers"},
            "targets": {"default": {"service": "ingress/ingress"}},
            "service_cidr": SERVICE_CIDR,
            "prove": {"addresses": [f"{FRONT}:443"]},
            **self._said,
        }
        root = {"kubernetes": {"kubeconfig": str(site.kube.kubeconfig(stage.folder / f"{self.node}.kubeconfig"))}}
        home = Home(namespace="members", node=self.node, folder=f"{self.node}-home", root=root)
        self.product = Product(stage, "expose", section, self._ops_port, home)
        await self.product.start()

    async def says(self, key: str) -> Any:
        """One detail of what the role says of itself; None when it says nothing."""
        self.must_run()
        return (await self.product.role_status()).get(key) if self.product is not None else None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self.product is not None:
            self.product.signal(number)

    def must_run(self) -> None:
        """StepFailedError when it has ended."""
        if self.product is not None:
            self.product.must_run()

    def tells(self) -> None:
        """Put what it journaled on the timeline."""
        for entry in self.product.journal() if self.product is not None else ():
            if str(entry.get("event", "")).startswith("expose.") and entry["event"] not in {"expose.created", "expose.proved"}:
                self.site.stage.place(float(entry["mono"]), f"{self.node}: {entry['event']}: {entry['why']}")


class PlainKeeper:
    """A controller as the field has it, at a site: a pass every so many seconds."""

    def __init__(self, site: Site, node: str = "edge-a", *, every_s: float = 5.0) -> None:
        self.site, self.node = site, node
        self._every_s = every_s
        self._actor: Actor | None = None

    async def start(self) -> None:
        """Start it; its first pass is at once."""
        kube = self.site.kube
        argv = [sys.executable, "-m", "edgekeeper.lab.plain_expose", "--netbird", URL, "--token-file", str(await self.site.mesh.token(self.node))]
        argv += ["--cidr", SERVICE_CIDR, "--api", kube.url, "--api-token", kube.tokens[ADMIN], "--api-ca", str(kube.ca_file), "--every", f"{self._every_s:g}"]
        self._actor = await self.site.stage.spawn("members", f"plain-{self.node}", argv)
        self.site.stage.note(f"the field's controller makes a pass every {self._every_s:g} s")

    def tells(self) -> None:
        """Put the last thing that it said on the timeline."""
        if self._actor is not None:
            self._actor.must_run()
            self.site.stage.note(f"{self.node}: {self._actor.tail()[-200:]}")


def keeper(site: Site, node: str = "edge-a", said: dict[str, Any] | None = None, *, every_s: float = 5.0, ops_port: int = OPS_PORT) -> Keeper | PlainKeeper:
    """Who publishes on this side."""
    if site.stage.side is Side.PLAIN:
        return PlainKeeper(site, node, every_s=every_s)
    return Keeper(site, node, said, every_s=every_s, ops_port=ops_port)

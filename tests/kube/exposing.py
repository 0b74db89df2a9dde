"""A mesh, its proxy, a TLS backend and a cluster with RBAC, and an edgekeeper for all of them: what ``edgekeeper expose`` is tried on as processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from edgekeeper.host.http import get
from edgekeeper.lab.kube import Cluster
from edgekeeper.lab.netbird import FakeNetBird
from edgekeeper.lab.sniproxy import SniProxy
from edgekeeper.lab.tlsbackend import TlsBackend

from .conftest import started
from .test_expose_sources import crd

USER = "system:serviceaccount:edgekeeper:edgekeeper-expose"
RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac" / "expose.yaml"
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/edgekeeper/serviceaccounts",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/edgekeeper/leases",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/edgekeeper/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/edgekeeper/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASE = f"{PLACES['Lease']}/edgekeeper-expose"
ROUTES = {"HTTPRoute": "v1", "TLSRoute": "v1alpha2"}
PUBLIC = {"edgekeeper.io/public": "true"}


def guarded_cluster(folder: Path) -> Cluster:
    """A cluster in which the account may do what the manifest says."""
    made = started(Cluster(folder, rbac=True, users={USER: ("system:serviceaccounts", "system:authenticated")}))

    async def fill() -> None:
        for document in yaml.safe_load_all(RBAC.read_text(encoding="utf-8")):
            await made.must("POST", PLACES[document["kind"]], document)
        for kind, version in ROUTES.items():
            await made.must("POST", DEFINITIONS, crd(kind, version))

    try:
        asyncio.run(fill())
    except BaseException:
        made.end()
        raise
    return made


class Ended(NamedTuple):
    """A command that is over."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def ingress(name: str, *hosts: str, **annotations: str) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}} for host in hosts]
    noted = {f"edgekeeper.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    meta = {"name": name, "labels": PUBLIC, "annotations": noted}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": {"ingressClassName": "traefik", "rules": rules}}


class Site:
    """The mesh, its proxy, what stands behind it, a namespace of the cluster, and the config of an edgekeeper for all of them."""

    def __init__(self, folder: Path, cluster: Cluster, fake: FakeNetBird, proxy: SniProxy, backend: TlsBackend, space: str) -> None:
        self.folder, self.cluster, self.fake, self.proxy, self.backend, self.space = folder, cluster, fake, proxy, backend, space
        self.ingresses = f"/apis/networking.k8s.io/v1/namespaces/{space}/ingresses"
        self.token = folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(fake.token)
        self.processes: list[asyncio.subprocess.Process] = []
        self.at: dict[str, int] = {}

    async def lead_to(self, name: str) -> str:
        """A Service that the proxy finds at the backend; its address."""
        made = await self.cluster.must("POST", f"/api/v1/namespaces/{self.space}/services", {"metadata": {"name": name}, "spec": {"ports": [{"port": 443}]}})
        address: str = made["spec"]["clusterIP"]
        self.proxy.leads[(address, 443)] = self.backend.address
        return address

    def config(self, node: str = "edge-a", *, service: str = "traefik", netbird: dict[str, Any] | None = None, **more: Any) -> Path:
        if node not in self.at:
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", 0))
                self.at[node] = sock.getsockname()[1]
        host, port = self.proxy.address[:2]
        root = {
            "node": node,
            "run_dir": str(self.folder / node / "run"),
            "state_dir": str(self.folder / node / "state"),
            "ops": {"listen": f"127.0.0.1:{self.at[node]}"},
            "kubernetes": {"kubeconfig": str(self.cluster.kubeconfig(self.folder / "kubeconfig", user=USER))},
            "expose": {
                "owner": "home",
                "netbird": {"url": self.fake.url, "token_file": str(self.token), "router_group": "routers", **(netbird or {})},
                "sources": {"namespaces": [self.space]},
                "targets": {"traefik": {"service": f"{self.space}/{service}"}},
                "service_cidr": "198.51.100.0/24",
                "prove": {"addresses": [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"], "timeout": "1s"},
                **more,
            },
        }
        file = self.folder / f"{node}.yaml"
        file.write_text(yaml.safe_dump(root))
        return file

    async def start(self, config: Path) -> asyncio.subprocess.Process:
        argv = [sys.executable, "-m", "edgekeeper", "--config", str(config), "expose", "run"]
        with (self.folder / f"{config.stem}.log").open("ab") as log:
            self.processes.append(await asyncio.create_subprocess_exec(*argv, stdout=log, stderr=log))
        return self.processes[-1]

    async def command(self, *words: str, config: Path | None = None, lease_s: float = 20.0) -> Ended:
        """One command; ``lease_s`` is how long it waits for the Lease."""
        script = f"import sys; from edgekeeper.cli import expose_work, main; expose_work.LEASE_S = {lease_s}; sys.exit(main.run(sys.argv[1:]))"
        argv = [sys.executable, "-c", script, "--config", str(config or self.config()), "expose", *words]
        done = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        async with asyncio.timeout(40):
            out, err = await done.communicate()
        for text in (out, err):
            assert self.fake.token.encode() not in text
            assert b"\x1b" not in text
        return Ended(done.returncode or 0, out.decode(), err.decode())

    async def put(self, body: dict[str, Any]) -> dict[str, Any]:
        return await self.cluster.must("POST", self.ingresses, body)

    def routes(self, kind: str) -> str:
        return f"/apis/gateway.networking.k8s.io/{ROUTES[kind]}/namespaces/{self.space}/{kind.lower()}s"

    async def route(self, kind: str, name: str, *hosts: str, **annotations: str) -> None:
        meta = {"name": name, "labels": PUBLIC, "annotations": {f"edgekeeper.io/{key}": value for key, value in annotations.items()}}
        spec = {"hostnames": list(hosts), "parentRefs": [{"name": "traefik"}]}
        version = f"gateway.networking.k8s.io/{ROUTES[kind]}"
        await self.cluster.must("POST", self.routes(kind), {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec})

    async def merge(self, name: str, body: dict[str, Any]) -> None:
        await self.cluster.must("PATCH", f"{self.ingresses}/{name}", body, kind="application/merge-patch+json")

    def there(self, host: str) -> Any:
        return self.fake.state.find(host)

    async def status(self, node: str = "edge-a") -> dict[str, Any]:
        found = await get(f"http://127.0.0.1:{self.at[node]}/status", deadline_s=3)
        assert "\x1b" not in found.text
        return dict(json.loads(found.text)["roles"]["expose"])

    async def events(self) -> dict[tuple[str, str], str]:
        found = await self.cluster.must("GET", f"/api/v1/namespaces/{self.space}/events")
        return {(event["involvedObject"]["name"], event["reason"]): event["message"] for event in found["items"]}

    async def noted(self, name: str, path: str = "") -> dict[str, str]:
        found = await self.cluster.must("GET", f"{path or self.ingresses}/{name}")
        return dict(json.loads((found["metadata"].get("annotations") or {}).get("edgekeeper.io/expose-status", "{}")))

    def log(self, node: str = "edge-a") -> str:
        return (self.folder / f"{node}.log").read_text()

    def clean(self, *told: str) -> None:
        """No secret has come out anywhere, and nothing that a terminal or a config would obey."""
        for secret in (self.fake.token, self.cluster.tokens[USER]):
            assert secret not in self.written() + "".join(told)
        for text in (self.log(), *told):
            assert "\x1b" not in text
            assert "\nHost: evil" not in text

    def written(self) -> str:
        """Everything that was written to disk, but for the token itself and the kubeconfig."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and path not in (self.token, self.folder / "kubeconfig")]
        return "\n".join(path.read_bytes().decode("latin-1") for path in files)


@contextlib.asynccontextmanager
async def site(cluster: Cluster, folder: Path, *, proxied: Any = "require", listen: str = "127.0.0.1") -> AsyncIterator[Site]:
    space = f"shop-{os.urandom(3).hex()}"
    await cluster.make_namespace(space)
    async with FakeNetBird() as fake, TlsBackend(proxied=proxied) as backend:
        await cluster.must("PATCH", LEASE, {"spec": {"holderIdentity": ""}}, kind="application/merge-patch+json")  # a test that failed leaves its own
        made = Site(folder, cluster, fake, await fake.add_proxy((listen, 0)), backend, space)
        await made.lead_to("traefik")
        try:
            yield made
        finally:
            for one in made.processes:
                if one.returncode is None:
                    one.kill()
                await one.wait()


async def until(check: Callable[[], Any], within_s: float = 10.0) -> float:
    """Seconds until it holds; ``check`` may be a coroutine function."""
    began = time.monotonic()
    while True:
        found = check()
        if await found if isinstance(found, Awaitable) else found:
            return time.monotonic() - began
        assert time.monotonic() - began < within_s, "not in time"
        await asyncio.sleep(0.01)


async def ends(process: asyncio.subprocess.Process, within_s: float = 4.0) -> int:
    process.terminate()
    async with asyncio.timeout(within_s):
        return await process.wait()


def holder(found: dict[str, Any]) -> str:
    return str(found["spec"].get("holderIdentity") or "")

"""The control plane of a real Kubernetes for tests and drills: etcd, API servers, and the controllers and the scheduler where they are wanted.

The programs come from ``KUBEBUILDER_ASSETS`` (as envtest names that folder) or from ``script/kube-assets``. There is no kubelet and no
image ever runs; ``edgekeeper.lab.kubelet`` plays one. Every process dies with the thread that started it, so start a cluster from a thread
that lasts as long: the main one of a test run does.

Measured (2026-11-30, Kubernetes 1.20.2 on two cores): ready after 3 to 5 s, 318 MB for an API server, 42 MB for etcd, about 100 MB for both controllers.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.host import process
from edgekeeper.host.authority import Authority
from edgekeeper.lab.kubeask import Answer, ask
from edgekeeper.lab.netns import Net

ADMIN = "admin"
"""The user who may do everything, in the group ``system:masters``."""
CONTROLLERS = "disruption,endpoint,endpointslice,replicaset,deployment,statefulset,daemonset,garbagecollector,namespace,podgc,nodelifecycle"
"""Those of the controller manager that a test has to do with: evictions, slices, workloads, and nodes that are gone."""
_READY_S = 45.0
_DAYS = 90
_GATES = "--feature-gates=EndpointSliceTerminatingCondition=true,EndpointSliceNodeName=true"
"""Off until Kubernetes 1.22, and unknown to newer ones, which do it always."""
_REQUIRED = ("etcd", "kube-apiserver")
_MANAGERS = ("kube-controller-manager", "kube-scheduler")


def assets(*, controllers: bool = False) -> Path:
    """The folder of the programs; MissingError names what makes it."""
    said = os.environ.get("KUBEBUILDER_ASSETS")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(said) if said else Path(os.environ.get("EDGEKEEPER_KUBE") or f"{cache}/edgekeeper/kube") / "bin"
    missing = [name for name in (*_REQUIRED, *(_MANAGERS if controllers else ())) if not os.access(folder / name, os.X_OK)]
    if missing:
        what = f"{', '.join(missing)} not found in {folder}"
        if said:
            msg = f"{what}, which KUBEBUILDER_ASSETS names; add what is missing, or leave it unset and run script/kube-assets"
        else:
            msg = f"{what}; run script/kube-assets, or name a folder that has them in KUBEBUILDER_ASSETS"
        raise MissingError(msg)
    return folder


class Cluster:
    """One control plane, for one test run or one test; its methods may be awaited from any event loop.

    ``apis`` are the addresses of its API servers, ``host:port`` (port 0: any that is free); all share one etcd. ``users`` are more users
    by name, with their groups; with ``rbac`` they may do only what roles grant. ``watch_cache=False`` lets a watch and a ``continue`` token
    expire as soon as etcd is compacted. ``flags`` go to every API server. With ``net``, all lives in that namespace, and so must who asks.
    """

    def __init__(
        self,
        folder: Path,
        *,
        apis: Sequence[str] = ("127.0.0.1:0",),
        users: Mapping[str, Sequence[str]] | None = None,
        rbac: bool = False,
        watch_cache: bool = True,
        flags: Sequence[str] = (),
        names: Sequence[str] = (),
        net: Net | None = None,
        namespace: str = "",
    ) -> None:
        self.folder = folder
        self._net = net
        self._namespace = namespace
        self._rbac = rbac
        self._flags = (*(() if watch_cache else ("--watch-cache=false",)), *flags)
        self._users = {ADMIN: ("system:masters",), **{name: tuple(groups) for name, groups in (users or {}).items()}}
        self.tokens = {name: secrets.token_hex(16) for name in self._users}
        """Each user's bearer token."""
        self._names = tuple(names)
        self._wanted = tuple(apis)
        self._apis: list[tuple[str, int]] = []
        self._etcd = self._peer = ""
        self._running: dict[str, process.Process] = {}
        self._bin = Path()
        self.version: tuple[int, int] = (0, 0)
        """Of the API server's program: ``(1, 20)``."""

    # --- life

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> Self:
        """Start etcd and every API server; returns when each says that it is ready. MissingError: a program is missing; StepFailedError: one did not come up."""
        self._bin = assets()
        self.folder.mkdir(parents=True, exist_ok=True)
        said = (await process.run([str(self._bin / "kube-apiserver"), "--version"], 20.0)).output
        found = re.search(r"v(\d+)\.(\d+)", said)
        self.version = (int(found[1]), int(found[2])) if found else (0, 0)
        ports = iter(self._free_ports(2 + len(self._wanted)))
        self._etcd = f"127.0.0.1:{next(ports)}"
        for wanted in self._wanted:
            host, _, port = wanted.rpartition(":")
            free = next(ports)
            self._apis.append((host.strip("[]"), int(port) or free))
        self._write_files()
        try:
            self._peer = f"http://127.0.0.1:{next(ports)}"
            await self.start_etcd()
            for index in range(len(self._apis)):
                self._spawn_api(index)
            for index in range(len(self._apis)):
                await self._ready(index)
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """As ``end``, for who has an event loop."""
        self.end()

    def end(self) -> None:
        """End all of it at once; what it stored goes, its logs stay. Safe to call again."""
        for name in reversed(list(self._running)):
            self._end(name)
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    async def start_controllers(self, controllers: str = CONTROLLERS, *, grace_s: int = 8) -> None:
        """Start the controller manager and the scheduler, with the administrator's rights; a node is unreachable ``grace_s`` after its last lease."""
        assets(controllers=True)
        config = str(self.kubeconfig(self.folder / "controllers.kubeconfig"))
        common = ["--kubeconfig", config, "--leader-elect=false", "--secure-port=0", *(["--port=0"] if self.version < (1, 23) else [])]
        evict = ["--pod-eviction-timeout=20s"] if self.version < (1, 27) else []
        nodes = ["--node-monitor-period=1s", f"--node-monitor-grace-period={grace_s}s", *evict]
        self._spawn(
            "kube-controller-manager",
            [
                self._program("kube-controller-manager"),
                *common,
                f"--controllers={controllers}",
                "--use-service-account-credentials=false",
                *self._gates,
                *nodes,
            ],
        )
        self._spawn("kube-scheduler", [self._program("kube-scheduler"), *common])

    async def start_kubelet(self, nodes: Sequence[str] = ("node-a", "node-b")) -> None:
        """Start the test kubelet of ``edgekeeper.lab.kubelet`` for these nodes; returns when they are registered."""
        token = self.folder / "kubelet.token"
        token.touch(mode=0o600)
        token.write_text(self.tokens[ADMIN], encoding="ascii")
        options = [f"--server={self.url}", f"--ca={self.ca_file}", f"--token-file={token}", *(f"--node={node}" for node in nodes)]
        self._spawn("kubelet", [sys.executable, "-m", "edgekeeper.lab.kubelet", *options])
        for node in nodes:
            while (await self.request("GET", f"/api/v1/nodes/{node}")).status != 200:
                self._must_run("kubelet")
                await asyncio.sleep(0.05)

    # --- where it is

    @property
    def url(self) -> str:
        """The first API server's address."""
        return self.urls[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of all of them, ``https://host:port``."""
        return tuple(f"https://{f'[{host}]' if ':' in host else host}:{port}" for host, port in self._apis)

    @property
    def ca_file(self) -> Path:
        """The authority that signed their certificates, PEM."""
        return self.folder / "ca.crt"

    def kubeconfig(self, path: Path, user: str = ADMIN, *, server: str = "", namespace: str = "default") -> Path:
        """Write a kubeconfig for a user (``server``: another address than the first one's); the path."""
        authority = base64.b64encode(self.ca_file.read_bytes()).decode()
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {"server": server or self.url, "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user, "namespace": namespace}}],
            "current-context": "lab",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")  # JSON is YAML
        return path

    def pid(self, name: str) -> int:
        """The process of ``etcd``, ``api-0``, ``kube-controller-manager`` ...; 0 when it does not run."""
        found = self._running.get(name)
        return found.pid if found is not None else 0

    def log(self, name: str) -> str:
        """What a process has written so far."""
        path = self.folder / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    # --- faults

    def freeze(self, api: int = 0) -> None:
        """The black hole: the kernel goes on accepting connections, and nothing is answered."""
        self._running[f"api-{api}"].signal(signal.SIGSTOP)

    def thaw(self, api: int = 0) -> None:
        """It goes on where it was."""
        self._running[f"api-{api}"].signal(signal.SIGCONT)

    def kill(self, api: int = 0) -> None:
        """A crash: connections end at once, new ones are refused. ``start_api`` brings it back."""
        self._end(f"api-{api}")

    def kill_named(self, name: str) -> None:
        """As ``kill``, for ``etcd``, ``kube-controller-manager`` or ``kube-scheduler``."""
        self._end(name)

    async def start_api(self, api: int = 0) -> None:
        """Start an API server again that was killed, at the same address; returns when it is ready."""
        self._spawn_api(api)
        await self._ready(api)

    async def compact(self) -> int:
        """Let etcd forget all history; the revision that is its oldest now.

        Who asks for an older one gets 410; an API server with a watch cache notices only when it has none of it in memory either.
        """
        host, _, port = self._etcd.rpartition(":")
        at = (host, int(port))
        key = base64.b64encode(b"\0").decode()
        seen = await ask(self._socket, at, "POST", "/v3/kv/range", {"key": key, "limit": 1})
        revision = int(seen.body.get("header", {}).get("revision", 0))
        done = await ask(self._socket, at, "POST", "/v3/kv/compaction", {"revision": revision, "physical": True})
        if done.status != 200 and "compacted" not in json.dumps(done.body):
            msg = f"etcd did not compact (status {done.status}); nothing was forgotten"
            raise StepFailedError(msg)
        return revision

    # --- asking it without the product's client

    async def request(
        self, method: str, path: str, body: Any = None, *, user: str = ADMIN, api: int = 0, kind: str = "application/json", deadline_s: float = 10.0
    ) -> Answer:
        """One request on a connection of its own; MissingError when no answer came in time. ``kind`` is the content type of the body."""
        trust = ssl.create_default_context(cafile=str(self.ca_file))
        return await ask(self._socket, self._apis[api], method, path, body, tls=trust, token=self.tokens[user], kind=kind, deadline_s=deadline_s)

    async def must(self, method: str, path: str, body: Any = None, *, user: str = ADMIN, api: int = 0, kind: str = "application/json") -> dict[str, Any]:
        """As ``request``, for what cannot fail: the object; StepFailedError for any other status than 2xx."""
        answer = await self.request(method, path, body, user=user, api=api, kind=kind)
        if answer.status // 100 != 2:
            msg = f"{method} {path} was answered with {answer.status}: {answer.body.get('message', '')}; the test stops"
            raise StepFailedError(msg)
        return answer.body

    async def make_namespace(self, name: str) -> str:
        """A new namespace; its name."""
        await self.must("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    # --- inside

    @property
    def _gates(self) -> tuple[str, ...]:
        return (_GATES,) if self.version < (1, 22) else ()

    def _free_ports(self, count: int) -> list[int]:
        socks: list[socket.socket] = []
        try:
            for _ in range(count):
                socks.append(self._socket())
                socks[-1].bind(("127.0.0.1", 0))
            return [sock.getsockname()[1] for sock in socks]
        finally:
            for sock in socks:
                sock.close()

    def _write_files(self) -> None:
        authority = Authority("kubernetes of the lab", time.time(), _DAYS)
        hosts = dict.fromkeys(["kubernetes.default.svc", "localhost", "127.0.0.1", "::1", *(host for host, _ in self._apis), *self._names])
        server = authority.issue(tuple(hosts))
        accounts = authority.issue(("service-accounts",))
        rows = [f'{self.tokens[name]},{name},{number},"{",".join(groups)}"' for number, (name, groups) in enumerate(self._users.items(), 1)]
        files = {
            "ca.crt": authority.own.certificate,
            "api.crt": server.certificate,
            "api.key": server.key,
            "accounts.crt": accounts.certificate,
            "accounts.key": accounts.key,
            "tokens.csv": "\n".join(rows) + "\n",
        }
        for name, text in files.items():
            path = self.folder / name
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")

    async def start_etcd(self) -> None:
        """Start etcd (again): with what it stored, if that was not removed from the folder ``etcd``."""
        client = f"http://{self._etcd}"
        argv = [
            f"--data-dir={self.folder / 'etcd'}",
            *(f"--{name}-client-urls={client}" for name in ("listen", "advertise")),
            *(f"--{name}-peer-urls={self._peer}" for name in ("listen", "initial-advertise")),
            f"--initial-cluster=default={self._peer}",
        ]
        known = (await process.run([str(self._bin / "etcd"), "--help"], 20.0)).output
        self._spawn("etcd", [self._program("etcd"), *argv, *(["--unsafe-no-fsync"] if "unsafe-no-fsync" in known else [])])

    def _spawn_api(self, index: int) -> None:
        host, port = self._apis[index]
        at = self.folder
        argv = [
            self._program("kube-apiserver"),
            f"--etcd-servers=http://{self._etcd}",
            f"--bind-address={host}",
            f"--advertise-address={host}",
            f"--secure-port={port}",
            f"--tls-cert-file={at / 'api.crt'}",
            f"--tls-private-key-file={at / 'api.key'}",
            f"--token-auth-file={at / 'tokens.csv'}",
            f"--authorization-mode={'RBAC' if self._rbac else 'AlwaysAllow'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={at / 'accounts.crt'}",
            f"--service-account-signing-key-file={at / 'accounts.key'}",
            "--service-cluster-ip-range=198.51.100.0/24",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
            *self._gates,
            *self._flags,
        ]
        self._spawn(f"api-{index}", argv)

    def _spawn(self, name: str, argv: Sequence[str]) -> None:
        """Start one; KILL comes to it when the thread that called us is gone, however it went."""
        argv = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
        inside = self._net.argv(self._namespace, argv) if self._net is not None else argv
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self._running[name] = process.spawn(inside, self.folder / f"{name}.log", env)

    def _end(self, name: str) -> None:
        found = self._running.pop(name)
        handle = os.pidfd_open(found.pid)
        try:
            found.signal(signal.SIGKILL)
            select.select([handle], [], [], 10.0)
        finally:
            os.close(handle)
        found.alive()  # takes its exit code
        found.close()

    async def _ready(self, index: int) -> None:
        name = f"api-{index}"
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            for other in ("etcd", name):
                self._must_run(other)
            with contextlib.suppress(MissingError):
                if (await self.request("GET", "/readyz", api=index, deadline_s=2.0)).status == 200:
                    return
            await asyncio.sleep(0.05)
        msg = f"{name} of the lab's Kubernetes is not ready after {_READY_S:g} s ({self._tail(name)}); the cluster is not started"
        raise StepFailedError(msg)

    def _program(self, name: str) -> str:
        return str(self._bin / name)

    def _must_run(self, name: str) -> None:
        if not self._running[name].alive():
            msg = f"{name} of the lab's Kubernetes ended ({self._tail(name)}); the test stops"
            raise StepFailedError(msg)

    def _tail(self, name: str) -> str:
        return " | ".join(self.log(name).strip().split("\n")[-6:])[-1200:]

    def _socket(self, family: int = socket.AF_INET) -> socket.socket:
        sock = self._net.socket(self._namespace, family=family) if self._net is not None else socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        return sock

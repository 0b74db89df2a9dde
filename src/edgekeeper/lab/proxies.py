"""What stands at the edge in drills of HAProxy: edgekeeper by its command line, or a plain HAProxy as Debian's unit runs it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgekeeper.errors import StepFailedError
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.cluster import API, WEB, Cluster, servers, web_servers
from edgekeeper.lab.faults import workers_in
from edgekeeper.lab.outcome import Side
from edgekeeper.lab.plain_haproxy import Plain, Service, config
from edgekeeper.lab.product import Product

OPS_PORT = 8086


class PlainProxy:
    """HAProxy with the config of ``lab.plain_haproxy``, master and worker, reloaded as ``systemctl reload`` does."""

    def __init__(self, cluster: Cluster, count: int = 3, *, web: bool = False, check: str | None = "https", **changes: Any) -> None:
        self.cluster = cluster
        self.stage = cluster.stage
        self.socket = self.stage.folder / "admin.sock"
        self.file = self.stage.folder / "haproxy.cfg"
        services = [Service("api", API, servers(count), check=check)]
        if web:
            services.append(Service("web", WEB, web_servers(count), mode="http", check="http"))
        self.plain = replace(Plain(tuple(services), str(self.socket)), **changes)
        self.actor: Actor | None = None
        self._count = count
        self._web = web

    def write(self) -> None:
        """Write the config that the next start or reload reads."""
        self.file.write_text(config(self.plain), encoding="utf-8")

    async def start(self) -> Actor:
        """Start it; returns at once."""
        self.write()
        master = self.stage.folder / "master.sock"
        argv = [self.stage.engine.binary, "-Ws", "-f", str(self.file), "-p", str(self.stage.folder / "haproxy.pid"), "-S", str(master)]
        self.actor = await self.stage.spawn("edge", "haproxy", argv)
        return self.actor

    async def up(self) -> None:
        """Start it and wait until the client is answered by every server."""
        await self.start()
        await self.cluster.all_serve(self._count)
        if self._web:
            await self.cluster.all_serve(self._count, WEB, tls=False)

    def listen_too(self, listen: str) -> None:
        """One frontend more, from the next reload on."""
        self.plain = replace(self.plain, services=(*self.plain.services, Service("extra", listen, servers(self._count))))

    async def new_worker(self, number: int) -> None:
        """Change an idle timeout and reload; returns when another worker runs."""
        self.plain = replace(self.plain, idle=f"{3600 + number}s")
        before = set(workers_in(self.stage))
        await self.reload()
        await self.stage.until("another worker runs", lambda: _other(self, before), timeout_s=10.0, every=0.02)
        await asyncio.sleep(0.2)  # a master that is signalled before its worker is ready may miss the signal

    async def reload(self) -> bool:
        """Write the config, have it checked, and signal the master, as Debian's unit does; whether the check passed."""
        self.write()
        check = await self.stage.spawn("edge", "check", [self.stage.engine.binary, "-c", "-f", str(self.file)])
        if await check.wait(10.0):
            return False
        if self.actor is not None:
            self.actor.signal(signal.SIGUSR2)
        return True


class ProductProxy(Product):
    """``edgekeeper lb run`` in the edge namespace."""

    def __init__(self, cluster: Cluster, count: int = 3, *, web: bool = False) -> None:
        self.cluster = cluster
        self._count = count
        self._web = web
        self.services: list[dict[str, Any]] = [_service("k8s-api", API, servers(count), kind="kube-apiserver")]
        if web:
            self.services.append(_service("web", WEB, web_servers(count), kind="http"))
        if cluster.stage.quick:
            # The default follows what the servers need at the first start, which on a machine that runs a whole test suite is anything.
            for service in self.services:
                service["health"] = {"timeout": "500ms"}
        section = {"services": self.services, "debounce": "200ms", "engine": {"binary": cluster.stage.engine.binary}}
        super().__init__(cluster.stage, "lb", section, OPS_PORT)

    async def up(self) -> None:
        """Start it and wait until the status names an engine and the client is answered by every server."""
        await self.start()
        await self.stage.until("edgekeeper is ready", self.ready, timeout_s=20.0)
        await self.cluster.all_serve(self._count)
        if self._web:
            await self.cluster.all_serve(self._count, WEB, tls=False)
        config = (self.stage.folder / "state" / "lb" / "current" / "haproxy.cfg").read_text(encoding="utf-8")
        given = next((line.split()[-1] for line in config.splitlines() if line.strip().startswith("timeout check")), "-")
        self.stage.note(f"edgekeeper runs HAProxy and gives a check {given}")

    @property
    def socket(self) -> Path:
        """The stats socket of the HAProxy that it runs."""
        found = sorted((self.stage.folder / "run").rglob("admin-*.sock"), key=lambda path: path.lstat().st_mtime)
        if not found:
            msg = f"there is no stats socket of HAProxy below {self.stage.folder / 'run'}; the drill stops"
            raise StepFailedError(msg)
        return found[-1]

    def listen_too(self, listen: str) -> None:
        """One service more, from the next reload on."""
        self.services.append(_service("extra", listen, servers(self._count), kind="tcp"))

    async def new_worker(self, number: int) -> None:
        """Change an idle timeout and reload; returns when another worker runs."""
        self.services[0]["timeouts"] = {"client": f"{3600 + number}s"}
        before = set(workers_in(self.stage))
        self.reload()
        await self.stage.until("another worker runs", lambda: _other(self, before), timeout_s=10.0, every=0.02)


Proxy = PlainProxy | ProductProxy


def proxy(cluster: Cluster, *, web: bool = False, **plain: Any) -> Proxy:
    """Who stands at the edge on this side; the rest is for the plain one."""
    return ProductProxy(cluster, web=web) if cluster.stage.side is Side.PRODUCT else PlainProxy(cluster, web=web, **plain)


async def _other(edge: Proxy, before: set[int]) -> bool:
    return bool(set(workers_in(edge.stage)) - before)


def _service(name: str, listen: str, members: Sequence[tuple[str, str]], kind: str) -> dict[str, Any]:
    return {"name": name, "listen": listen, "kind": kind, "members": {"static": [f"{who}={address}" for who, address in members]}}

"""Two real kube-apiservers on one etcd behind a load balancer, and one of them freezes under the clients that are pinned to it.

What the nodes of a cluster lived through: a watch that never ends and never tells anything again, and a lease that is not renewed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import ssl
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.lab import held
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.cluster import API, API_PORT, admin, server_at
from edgekeeper.lab.cluster import Cluster as Servers
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.hold import SERVER_NAME
from edgekeeper.lab.kube import Cluster, assets
from edgekeeper.lab.kubeask import ask
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.product import command
from edgekeeper.lab.proxies import PlainProxy, ProductProxy, Proxy
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT, MEMBERS

NAMESPACE = LEASE = "pinned"
FROZEN, WELL = 0, 1
_EVERY_S = 0.2
"""One Ingress is made so often, through the server that is well."""
_WITHIN_S = 4.0
_LEASE_S = 15.0
_HOLD_S = 2.0
_INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


def kubectl() -> str:
    """A kubectl beside the other programs, else the machine's; empty when there is none."""
    found = assets() / "kubectl"
    return str(found) if os.access(found, os.X_OK) else shutil.which("kubectl") or ""


@dataclass(slots=True)
class World:
    """What goes on in the cluster, made and seen through the server that is well: no client's view."""

    kube: Cluster
    made: list[tuple[str, float]] = field(default_factory=list)
    renewed: list[float] = field(default_factory=list)

    async def make(self) -> None:
        """One Ingress more, again and again."""
        spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
        while True:
            name = f"e-{len(self.made)}"
            body = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name}, "spec": spec}
            moment = time.monotonic()
            await self.kube.must("POST", _INGRESSES, body, api=WELL)
            self.made.append((name, moment))
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """When the Lease was renewed, to a twentieth of a second."""
        last = ""
        while True:
            lease = await self.kube.request("GET", f"{_LEASES}/{LEASE}", api=WELL)
            said = str(lease.body.get("spec", {}).get("renewTime", ""))
            if said and said != last:
                last = said
                self.renewed.append(time.monotonic())
            await asyncio.sleep(0.05)


def served_again(seen: dict[str, float], made: list[tuple[str, float]], moment: float, end: float) -> float:
    """Seconds from a moment until a client learned of anything that was made after it; until the end where it did not."""
    later = [seen[name] for name, at in made if at >= moment and name in seen]
    return min(later, default=end) - moment


async def _start(stage: Stage) -> tuple[Cluster, Servers]:
    """The control plane in the members' namespace; the first server is the one that will freeze."""
    addresses = tuple(f"{address}:{API_PORT}" for address in MEMBERS[:2])
    flags = ("--goaway-chance=0",)
    # Whoever has no name may ask for the health and the version, as a HAProxy's check does: only with roles.
    kube = Cluster(stage.folder / "kube", apis=addresses, rbac=True, names=(SERVER_NAME, FRONT), flags=flags, net=stage.net, namespace="members")
    stage.closing.append(kube.end)
    await kube.start()
    await kube.must("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await kube.must("POST", _LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}})
    spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    await kube.must("POST", _INGRESSES, {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "before"}, "spec": spec})
    return kube, Servers(stage)


async def _clients(stage: Stage, kube: Cluster) -> Actor:
    config = kube.kubeconfig(stage.folder / "client.kubeconfig", server=f"https://{API}", namespace=NAMESPACE)
    argv = [sys.executable, "-m", "edgekeeper.lab.kubeclients", "--kubeconfig", str(config), "--namespace", NAMESPACE, "--lease", LEASE]
    actor = await stage.spawn("client", "kubeclients", [*argv, "--kubectl", kubectl(), "--out", str(stage.folder / "seen.jsonl")])

    async def begun() -> bool:
        actor.must_run()
        return b"\n" in await asyncio.to_thread(actor.log.read_bytes)

    await stage.until("the reflector, the renewer and kubectl work", begun, timeout_s=30.0)
    return actor


def _seen(path: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        who, what, moment = json.loads(line)
        found.setdefault(who, {})[what] = float(moment)
    return found


def frozen(*, guard: bool = False) -> Script:
    """All clients are pinned to one of two servers (the other was away when they came); it is stopped with SIGSTOP."""

    async def script(stage: Stage) -> Measured:
        kube, servers = await _start(stage)
        edge: Proxy = (
            ProductProxy(servers, 2)
            if stage.side is Side.PRODUCT and not guard
            else PlainProxy(servers, 2, inter="1s" if guard else "2s", fall=2 if guard else 3)
        )
        await edge.start()
        await stage.until("the client is answered through the edge", lambda: _answers(stage, kube), timeout_s=30.0)
        if guard and stage.side is Side.PRODUCT:
            argv = [*command(), "lb", "guard", "--socket", str(edge.socket), "--hold", f"{_HOLD_S:g}s", "--state-dir", str(stage.folder / "guard")]
            await stage.spawn("edge", "guard", argv)
        await _until_said(stage, edge, "UP")
        kube.kill(WELL)
        await _until_said(stage, edge, "DOWN")
        actor = await _clients(stage, kube)
        load = await servers.hold("--ping", "30", "--ping-timeout", "15", clients=2, duration=120.0, ca_file=kube.ca_file)
        await kube.start_api(WELL)
        await _until_said(stage, edge, "UP")
        stage.note("cp2 is back; the clients came while it was away")
        world = World(kube)
        works = [asyncio.create_task(world.make()), asyncio.create_task(world.look())]
        try:
            await asyncio.sleep(2.0)
            stage.note(f"{await _sessions(edge, 'cp1')} sessions are with cp1, {await _sessions(edge, 'cp2')} with cp2")
            moment = time.monotonic()
            kube.freeze(FROZEN)
            stage.place(moment, "cp1 is frozen: its kernel takes connections, nothing answers")
            with contextlib.suppress(EdgekeeperError):
                down = await stage.until("HAProxy says that cp1 is DOWN", lambda: _says(edge, "cp1", "DOWN"), every=0.02)
                stage.note(f"HAProxy says that cp1 is DOWN, after {down:.1f} s")
            await asyncio.sleep(max(0.0, moment + (30.0 if stage.side is Side.PLAIN else 8.0 if stage.quick else 12.0) - time.monotonic()))
        finally:
            end = time.monotonic()
            for work in works:
                work.cancel()
            ends = await asyncio.gather(*works, return_exceptions=True)
        for error in ends:
            if isinstance(error, EdgekeeperError):
                raise error
        warm = await load.stop()
        actor.must_run()
        await actor.stop()
        return _measured(stage, world, warm, (moment, end))

    return script


def _measured(stage: Stage, world: World, warm: held.Held, span: tuple[float, float]) -> Measured:
    moment, end = span
    seen = _seen(stage.folder / "seen.jsonl")
    renewals = [*(at for at in world.renewed if at < end), end]
    again: dict[str, float] = {who: served_again(seen[who], world.made, moment, end) for who in ("reflector", "kubectl") if who in seen}
    again["lease"] = next((at for at in renewals if at > moment), end) - moment
    again["http2"] = min(held.after(warm, moment), end - moment)
    for who, seconds in again.items():
        stage.note(
            f"{who}: served again {seconds:.1f} s after the freeze" if moment + seconds < end else f"{who}: not served again within {end - moment:.0f} s"
        )
    settled = [name for name, at in world.made if at < end - 1.0]
    figures: dict[str, Any] = {f"{who}_s": round(seconds, 2) for who, seconds in again.items()}
    figures["served_s"] = round(max(again.values()), 2)
    figures["lease_age_s"] = round(max((b - a for a, b in itertools.pairwise(renewals)), default=end - moment), 2)
    figures["missed"] = sum(name not in seen.get("reflector", {}) for name in settled)
    figures["asked"] = len(settled)
    figures["unanswered"] = figures["missed"]
    return Measured(figures, held.tally(warm).outage)


async def _answers(stage: Stage, kube: Cluster) -> bool:
    """Whether a client is answered through the edge."""
    host, _, port = API.rpartition(":")
    tls = ssl.create_default_context(cafile=str(kube.ca_file))
    with contextlib.suppress(MissingError):
        return (await ask(lambda family: stage.net.socket("client", family=family), (host, int(port)), "GET", "/readyz", tls=tls, deadline_s=2.0)).status == 200
    return False


async def _says(edge: Proxy, name: str, state: str) -> bool:
    return (await server_at(edge.socket, name))[1].startswith(state)


async def _sessions(edge: Proxy, name: str) -> int:
    """How many sessions a server has; HAProxy's own count."""
    rows = [line.split(",") for line in (await admin(edge.socket, "show stat")).splitlines()]
    return sum(int(fields[4] or 0) for fields in rows if len(fields) > 4 and fields[1] == name)


async def _until_said(stage: Stage, edge: Proxy, state: str) -> None:
    """Wait until HAProxy says so of the second server."""
    await stage.until(f"HAProxy says that cp2 is {state}", lambda: _says(edge, "cp2", state), timeout_s=30.0)


KUBELET = Drill(
    "lb-kubelet",
    "two real kube-apiservers on one etcd; the one to which a watch, a lease renewer, kubectl and an HTTP/2 client are pinned freezes",
    (
        Case(
            "defaults",
            "SIGSTOP: its kernel goes on taking connections",
            frozen(),
            (
                Promise("served_s", "from the freeze until the last client is served again", _WITHIN_S, "s"),
                Promise("lease_age_s", "the longest time between two renewals of the lease", _LEASE_S, "s"),
                Promise("missed", "objects that the reflector never learned of", 0, "objects"),
            ),
            headline="served_s",
            unit="s",
            ci=True,
            members=2,
            most_runs=3,
        ),
        Case(
            "guard",
            "the same behind a HAProxy that edgekeeper does not own, with inter 1s fall 2 and without the directive; edgekeeper lb guard beside it",
            frozen(guard=True),
            (
                Promise("served_s", "from the freeze until the last client is served again", 3.0 + _HOLD_S + 2.0, "s"),
                Promise("lease_age_s", "the longest time between two renewals of the lease", _LEASE_S, "s"),
                Promise("missed", "objects that the reflector never learned of", 0, "objects"),
            ),
            headline="served_s",
            unit="s",
            members=2,
            most_runs=3,
        ),
    ),
    engine="haproxy",
)

__all__ = ["KUBELET", "served_again"]

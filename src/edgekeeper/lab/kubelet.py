"""A test kubelet: registers nodes, keeps their leases, and plays the pods that are bound to them. No image ever runs.

``python -m edgekeeper.lab.kubelet --server https://127.0.0.1:6443 --ca ca.crt --token-file token --node node-a --node node-b``

A bound pod is Running and Ready at once, with an address of its own, and one that is being deleted is gone at once. A test has it
otherwise by annotations, on the pod or in its template, also while it runs:

- ``lab.example/address``: its address (Kubernetes 1.20 takes one from 127.0.0.0/8, newer ones do not);
- ``lab.example/ready-after``: seconds from Running to Ready;
- ``lab.example/ready``: ``false``: Running and not Ready, until it says otherwise;
- ``lab.example/gone-after``: seconds from its deletion until it is gone;
- ``lab.example/wedged``: ``true``: it does not end, however often it is asked to.

A Node with ``lab.example/dead: "true"`` is a machine that lost its power: no lease, no pod of it changes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgekeeper.errors import MissingError
from edgekeeper.host import http

MARK = "lab.example/"
_EVERY_S = 0.15
_LEASE_S = 2.0
_LEASE_WHOLE_S = 40
_DEADLINE_S = 5.0
_MERGE = "application/merge-patch+json"
_POOL = tuple(f"{net}.{n}" for net in ("203.0.113", "192.0.2") for n in range(1, 255))
HOST = "198.51.100.254"
"""The address of every node."""


@dataclass(slots=True)
class Seen:
    """What the kubelet remembers of a pod, by the monotonic clock: since when it runs, and since when it is being deleted."""

    address: str
    running: float | None = None
    leaving: float | None = None
    told: dict[str, Any] = field(default_factory=dict)


class Kubelet:
    """Plays the kubelets of some nodes until it is cancelled; an API server that does not answer is asked again."""

    def __init__(self, server: str, ca_file: Path, token: str, nodes: Sequence[str]) -> None:
        self._server = server
        self._trust = http.Trust(str(ca_file))
        self._token = token
        self._nodes = tuple(nodes)
        self._seen: dict[str, Seen] = {}
        self._renewed = -_LEASE_S

    async def run(self) -> None:
        """Register the nodes, then play."""
        registered = False
        while True:
            with contextlib.suppress(MissingError):
                if not registered:
                    for node in self._nodes:
                        await self._register(node)
                    registered = True
                await self.step(time.monotonic())
            await asyncio.sleep(_EVERY_S)

    async def step(self, now: float) -> None:
        """One look at everything (``now``: monotonic seconds)."""
        nodes = await self._items("/api/v1/nodes")
        alive = {meta["name"] for meta in (n["metadata"] for n in nodes) if meta["name"] in self._nodes and said(meta, "dead") != "true"}
        if now - self._renewed >= _LEASE_S:
            self._renewed = now
            for node in alive:
                await self._renew(node)
        pods = await self._items("/api/v1/pods?fieldSelector=spec.nodeName!=")
        self._seen = {uid: seen for uid, seen in self._seen.items() if uid in {pod["metadata"]["uid"] for pod in pods}}
        for pod in pods:
            if pod["spec"]["nodeName"] in alive and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                await self._play(pod, now)

    async def _play(self, pod: dict[str, Any], now: float) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        seen = self._seen.get(meta["uid"])
        if seen is None:
            known = pod["status"].get("podIP") or said(meta, "address") or self._free()
            seen = self._seen[meta["uid"]] = Seen(known)
        if meta.get("deletionTimestamp"):
            seen.leaving = now if seen.leaving is None else seen.leaving
            if said(meta, "wedged") != "true" and now - seen.leaving >= float(said(meta, "gone-after") or 0):
                await self._ask("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
            return
        seen.running = now if seen.running is None else seen.running
        ready = said(meta, "ready") != "false" and now - seen.running >= float(said(meta, "ready-after") or 0)
        status = pod_status(pod, said(meta, "address") or seen.address, ready=ready, stamp=stamp())
        if status is not None:
            await self._ask("PATCH", f"{path}/status", {"status": status}, _MERGE)

    def _free(self) -> str:
        used = {seen.address for seen in self._seen.values()}
        return next((address for address in _POOL if address not in used), _POOL[-1])

    async def _register(self, node: str) -> None:
        room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node, "kubernetes.io/os": "linux"}},
            "status": {
                "capacity": room,
                "allocatable": room,
                "addresses": [{"type": "InternalIP", "address": HOST}, {"type": "Hostname", "address": node}],
                "conditions": [_condition("Ready", on=True, stamp=stamp(), reason="KubeletReady")],
            },
        }
        await self._ask("POST", "/api/v1/nodes", body)

    async def _renew(self, node: str) -> None:
        """Its lease, and the Ready condition that the node controller sets to Unknown while there was none."""
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": node, "leaseDurationSeconds": _LEASE_WHOLE_S, "renewTime": stamp(micro=True)}
        if (await self._ask("PATCH", f"{path}/{node}", {"spec": spec}, _MERGE)).status == 404:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node}, "spec": spec}
            await self._ask("POST", path, body)
        ready = _condition("Ready", on=True, stamp=stamp(), reason="KubeletReady")
        await self._ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready]}}, "application/strategic-merge-patch+json")

    async def _items(self, path: str) -> list[dict[str, Any]]:
        answer = await self._ask("GET", path)
        return json.loads(answer.text).get("items") or [] if answer.status == 200 else []

    async def _ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> http.Response:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        content = None if body is None else json.dumps(body).encode()
        return await http.request(method, self._server + path, deadline_s=_DEADLINE_S, headers=headers, trust=self._trust, body=content)


def said(meta: dict[str, Any], what: str) -> str:
    """What the annotation of this name says; empty without one."""
    return str((meta.get("annotations") or {}).get(MARK + what, ""))


def pod_status(pod: dict[str, Any], address: str, *, ready: bool, stamp: str) -> dict[str, Any] | None:
    """The status that a pod should have, or None when it has it."""
    now = pod["status"]
    conditions = {c["type"]: c["status"] for c in now.get("conditions") or ()}
    wanted = "True" if ready else "False"
    if now.get("phase") == "Running" and conditions.get("Ready") == wanted and now.get("podIP") == address:
        return None
    since = now.get("startTime") or stamp
    return {
        "phase": "Running",
        "hostIP": HOST,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": since,
        "conditions": [
            _condition("Initialized", on=True, stamp=since),
            _condition("PodScheduled", on=True, stamp=since),
            _condition("ContainersReady", on=ready, stamp=stamp),
            _condition("Ready", on=ready, stamp=stamp),
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "none",
                "restartCount": 0,
                "ready": ready,
                "started": True,
                "state": {"running": {"startedAt": since}},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def _condition(kind: str, *, on: bool, stamp: str, reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": "True" if on else "False", "lastTransitionTime": stamp, **({"reason": reason} if reason else {})}


def stamp(*, micro: bool = False) -> str:
    """Now, as Kubernetes writes it; with six digits after the second where it insists on them (a Lease's times)."""
    moment = dt.datetime.fromtimestamp(time.time(), dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.kubelet", description="Plays the kubelets of a Kubernetes that is a control plane only.")
    parser.add_argument("--server", required=True, help="https://host:port")
    parser.add_argument("--ca", type=Path, required=True, help="the authority of its certificate, PEM")
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--node", action="append", required=True, help="a node's name; may be given again")
    args = parser.parse_args()
    kubelet = Kubelet(args.server, args.ca, args.token_file.read_text(encoding="ascii").strip(), args.node)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(kubelet.run())


if __name__ == "__main__":
    main()

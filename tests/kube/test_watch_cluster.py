"""``edgekeeper watch run`` on two nodes whose services are pods: each is cured in the cluster, and never both at once, by a Lease or by order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgekeeper.lab.kube import Cluster

NODES = ("edge-a", "edge-b")
SELECTOR = {"app": "proxy"}
AGAIN_S = 1.0
"""How long a new pod takes until its service answers."""


def ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


class Nodes:
    """Two nodes that watch one service each; a service is well while its file is there."""

    def __init__(self, folder: Path, kubeconfig: str, namespace: str, cure: Any) -> None:
        self.folder = folder
        at = dict(zip(NODES, ports(len(NODES)), strict=True))
        nodes = {node: {"address": "127.0.0.1", "ops": f"http://127.0.0.1:{port}"} for node, port in at.items()}
        self.processes: list[subprocess.Popen[bytes]] = []
        for number, node in enumerate(NODES):
            self.mend(node)
            probe = {"command": ["test", "-e", str(self.well(node))], "every": "250ms", "rounds": 2, "grace": "0s"}
            watch = {
                "name": "proxy", "probe": probe, "cure": cure(number, self.well(node)),
                "group": {"name": "mesh", "members": list(NODES), "lease": "mesh"},
            }  # fmt: skip
            root = {
                "node": node, "nodes": nodes, "ops": {"listen": f"127.0.0.1:{at[node]}"}, "run_dir": str(folder / node / "run"),
                "state_dir": str(folder / node / "state"), "kubernetes": {"kubeconfig": kubeconfig, "namespace": namespace, "timeout": "1s"}, "watch": [watch],
            }  # fmt: skip
            (folder / f"{node}.yaml").write_text(yaml.safe_dump(root))

    def well(self, node: str) -> Path:
        return self.folder / f"well-{node}"

    def mend(self, node: str) -> None:
        self.well(node).touch()

    def breaks(self) -> None:
        for node in NODES:
            self.well(node).unlink()

    def journal(self, node: str) -> list[dict[str, Any]]:
        file = self.folder / node / "state" / "journal.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def spans(self) -> list[tuple[float, float]]:
        """From the cure to its proof, on each node."""
        found = []
        for node in NODES:
            at = {entry["event"]: entry["mono"] for entry in self.journal(node)}
            if {"watch.cured", "watch.proved"} <= at.keys():
                found.append((at["watch.cured"], at["watch.proved"]))
        return sorted(found)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        try:
            for node in NODES:
                log = (self.folder / f"{node}.log").open("wb")
                argv = [sys.executable, "-m", "edgekeeper", "--config", str(self.folder / f"{node}.yaml"), "watch", "run"]
                self.processes.append(subprocess.Popen(argv, stderr=log, stdout=log, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}))
                log.close()
            yield
        finally:
            for process in self.processes:
                process.terminate()
            for process in self.processes:
                process.wait(15)

    async def cured(self, within_s: float) -> list[tuple[float, float]]:
        began = time.monotonic()
        while len(self.spans()) < len(NODES):
            logs = "".join((self.folder / f"{node}.log").read_text()[-2000:] for node in NODES)
            assert time.monotonic() - began < within_s, logs
            await asyncio.sleep(0.1)
        return self.spans()


async def follows(cluster: Cluster, namespace: str, nodes: Nodes) -> None:
    """The services: each is well again a while after its pod is another one."""
    known: dict[str, str] = {}
    while True:
        for pod in (await cluster.must("GET", f"/api/v1/namespaces/{namespace}/pods"))["items"]:
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            if known.setdefault(name, uid) != uid:
                known[name] = uid
                await asyncio.sleep(AGAIN_S)
                nodes.mend(NODES[int(name[-1])])
        await asyncio.sleep(0.1)


def test_two_that_are_down_at_once_are_cured_one_after_the_other_by_a_lease(controllers: Cluster, namespace: str, tmp_path: Path) -> None:
    async def story() -> None:
        await controllers.must("POST", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", {"metadata": {"name": "mesh"}, "spec": {}})
        template = {"metadata": {"labels": SELECTOR}, "spec": {"containers": [{"name": "proxy", "image": "none"}]}}
        spec = {"replicas": 2, "serviceName": "proxy", "selector": {"matchLabels": SELECTOR}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "proxy"}, "spec": spec}
        await controllers.must("POST", f"/apis/apps/v1/namespaces/{namespace}/statefulsets", body)
        kubeconfig = str(controllers.kubeconfig(tmp_path / "config"))
        nodes = Nodes(tmp_path, kubeconfig, namespace, lambda number, _: {"kubernetes": {"pod": f"{namespace}/proxy-{number}"}, "stop_timeout": "0s"})
        following = asyncio.create_task(follows(controllers, namespace, nodes))
        try:
            with nodes.running():
                await asyncio.sleep(4)  # both watch, and hear each other
                nodes.breaks()
                first, second = await nodes.cured(40)
        finally:
            following.cancel()
        assert second[0] >= first[1] - 0.05, "the second cure began before the first was proved"
        assert second[0] - first[1] < 4.0, "and not long after"
        whys = [entry["why"] for node in NODES for entry in nodes.journal(node) if entry["event"] == "watch.suppressed"]
        assert any("holds the Lease" in why or "the group's Lease is asked for" in why for why in whys), whys

    asyncio.run(story())


def test_without_the_cluster_the_order_decides_and_an_alarm_says_so(cluster: Cluster, tmp_path: Path) -> None:
    async def story() -> None:
        kubeconfig = str(cluster.kubeconfig(tmp_path / "config", server="https://127.0.0.1:9"))
        nodes = Nodes(tmp_path, kubeconfig, "edgekeeper", lambda _, well: {"command": ["sh", "-c", f"sleep 1; touch {well}"]})
        with nodes.running():
            await asyncio.sleep(4)
            nodes.breaks()
            first, second = await nodes.cured(30)
        assert second[0] >= first[1] - 0.05
        alarms = [entry["why"] for node in NODES for entry in nodes.journal(node) if entry["event"] == "alarm.raised"]
        assert any("cannot be asked for, so the order of the members decides" in why for why in alarms), alarms

    asyncio.run(story())


@pytest.mark.parametrize("word", ["proxy", "edge/proxy/x"])
def test_a_cure_that_is_not_written_well_is_a_mistake_of_the_config(tmp_path: Path, word: str) -> None:
    file = tmp_path / "edgekeeper.yaml"
    file.write_text(yaml.safe_dump({"watch": [{"name": "proxy", "probe": "tcp://192.0.2.1:1", "cure": {"kubernetes": {"rollout": word}}}]}))
    ended = subprocess.run([sys.executable, "-m", "edgekeeper", "check", str(file)], capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert "like edge/deployment/proxy" in ended.stderr

"""Members from a real cluster: the slices of a Service as the real controllers write them, and nodes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.dns import MembersFrom
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.members import LbMembersFrom
from edgekeeper.errors import MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.lab.kube import Cluster
from edgekeeper.membership.follow import Follower
from edgekeeper.membership.sources import source_of
from edgekeeper.model.backend import Membership
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Source

LABELS = {"app": "dns"}
SERVICE = {"metadata": {"name": "dns"}, "spec": {"selector": LABELS, "ports": [{"name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP"}]}}


def command(config: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "edgekeeper", "--config", str(config), *argv], capture_output=True, text=True, timeout=30, check=False)
    assert "Traceback" not in done.stderr
    return done


def engine(name: str) -> str:
    folder = Path(os.environ.get("EDGEKEEPER_ENGINES", str(Path.home() / ".cache/edgekeeper/engines")))
    binary = folder / "testing" / "bin" / name
    assert binary.exists(), f"{binary} is missing; run script/engines testing"
    return str(binary)


def reached(cluster: Cluster, **more: Any) -> Kubernetes:
    return Kubernetes.model_validate({"kubeconfig": str(cluster.kubeconfig(cluster.folder / "members.kubeconfig")), **more})


class Hands:
    """What a test does to one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.core = f"/api/v1/namespaces/{namespace}"
        self.apps = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self.slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"

    async def write(self, *endpoints: dict[str, Any], name: str = "dns-a", new: bool = False) -> None:
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "dns"}},
            "addressType": "IPv4",
            "ports": [{"name": "dns", "port": 5353, "protocol": "UDP"}],
            "endpoints": list(endpoints),
        }
        await self.cluster.must("POST" if new else "PUT", self.slices if new else f"{self.slices}/{name}", body)

    async def deploy(self, replicas: int, strategy: dict[str, Any], **annotations: str) -> None:
        marks = {f"lab.example/{name.replace('_', '-')}": value for name, value in annotations.items()}
        template = {"metadata": {"labels": LABELS, "annotations": marks}, "spec": {"containers": [{"name": "dns", "image": "none"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template, "strategy": strategy}
        await self.cluster.must("POST", self.apps, {"metadata": {"name": "dns"}, "spec": spec})
        await self.cluster.must("POST", f"{self.core}/services", SERVICE)

    async def roll(self) -> None:
        patch = {"spec": {"template": {"metadata": {"annotations": {"lab.example/rolled": "1"}}}}}
        await self.cluster.must("PATCH", f"{self.apps}/dns", patch, kind="application/merge-patch+json")


def endpoint(last: int, *, ready: bool = True, serving: bool | None = None, terminating: bool | None = None) -> dict[str, Any]:
    conditions = {"ready": ready, "serving": serving, "terminating": terminating}
    return {"addresses": [f"192.0.2.{last}"], "conditions": {name: value for name, value in conditions.items() if value is not None}}


def source(cluster: Cluster, namespace: str, **more: Any) -> Source:
    wanted = MembersFrom.model_validate({"endpointslice": f"{namespace}/dns"})
    return source_of(wanted, SystemClock(), slice_port="dns", cluster=reached(cluster, **more))


@contextlib.asynccontextmanager
async def watching(source: Source) -> AsyncIterator[Callable[[list[int]], Awaitable[tuple[Membership, float]]]]:
    """A source in use: wait until it names these hosts; the membership, and after how many seconds."""
    async with contextlib.aclosing(source):
        seen = await source.read()

        async def until(hosts: list[int], timeout_s: float = 10.0) -> tuple[Membership, float]:
            nonlocal seen
            began = time.monotonic()
            async with asyncio.timeout(timeout_s):
                while [int(m.host.rpartition(".")[2]) for m in seen.members] != hosts:
                    await source.changed()
                    seen = await source.read()
            return seen, time.monotonic() - began

        yield until


class TestSlices:
    """Slices that the test writes: every change is an event of its own."""

    def test_each_change_is_seen_at_once_and_only_who_is_ready_or_else_serves_is_a_member(self, cluster: Cluster, namespace: str) -> None:
        async def story() -> None:
            hands = Hands(cluster, namespace)
            await hands.write(endpoint(1), endpoint(2, ready=False), new=True)
            async with watching(source(cluster, namespace)) as until:
                await until([1])
                await hands.write(endpoint(3), new=True, name="dns-b")
                seen, took = await until([1, 3])
                assert seen.members[0].port == 5353
                assert seen.source == f"Service {namespace}/dns"
                assert not seen.by_person
                assert took < 1.0
                await hands.write(name="dns-b")  # the server sends "endpoints": null
                await until([1])
                # A slice whose only change is a condition.
                await hands.write(endpoint(1, ready=False, serving=True, terminating=True), endpoint(2))
                assert (await until([2]))[1] < 1.0
                await hands.write(endpoint(1, ready=False, serving=True, terminating=True), endpoint(2, ready=False, serving=False, terminating=True))
                seen, took = await until([1])
                assert took < 1.0
                assert seen.notes == ("none of 2 endpoints is ready; the 1 that still serves is used",)
                await hands.write(endpoint(1, ready=False, serving=False))
                seen, _ = await until([])
                assert seen.notes == ("the only endpoint is not ready, and none serves",)
                await cluster.must("DELETE", hands.slices)
                seen, _ = await until([])
            assert len(asyncio.all_tasks()) == 1  # the watch ended with its reader

        asyncio.run(story())

    def test_a_service_that_is_not_there_names_nobody_and_says_so(self, cluster: Cluster, namespace: str) -> None:
        async def story() -> Membership:
            async with contextlib.aclosing(source(cluster, namespace)) as reader:
                return await reader.read()

        seen = asyncio.run(story())
        assert (seen.members, seen.notes) == ((), ("it has no EndpointSlice",))

    def test_while_the_api_is_a_black_hole_the_last_full_set_stays_with_its_age_and_then_goes_on(
        self, clusters: Callable[..., Cluster], tmp_path: Path
    ) -> None:
        cluster = clusters()
        alarms: dict[str, str | None] = {}
        hands = Hands(cluster, "default")
        wanted = MembersFrom.model_validate({"endpointslice": "default/dns"})

        def made() -> Follower:
            return Follower(
                wanted, tmp_path / "memory.json", SystemClock(), Nowhere(), role="dns", alarm=alarms.__setitem__, changed=lambda: None,
                slice_port="dns", cluster=reached(cluster, silence="5s", timeout="1s"),
            )  # fmt: skip

        async def follow(follower: Follower, done: Callable[[], bool], timeout_s: float) -> float:
            task = asyncio.create_task(follower.follow())
            try:
                return await _so(done, timeout_s)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        async def story() -> None:
            await hands.write(endpoint(1), endpoint(2), new=True)
            follower = made()
            await follow(follower, lambda: len(follower.members) == 2, 5.0)
            # Over a bootstrap: a start while the API says nothing knows the members of before.
            cluster.freeze()
            again = made()
            again.remember()
            assert await follow(again, lambda: "cannot be read" in (alarms.get("membership") or ""), 6.0) < 3.0
            assert len(again.members) == 2
            assert (alarms["membership"] or "").endswith("the last full set of 2 of an earlier run stays")
            cluster.thaw()
            work = asyncio.create_task(again.follow())
            try:
                await _so(lambda: alarms["membership"] is None, 15.0)
                cluster.freeze()
                took = await _so(lambda: bool(alarms["membership"]), 25.0)
                # Silent for 5 s (a watch that has nothing to say is heard each 10 s), and one question of 1 s.
                assert took < 18.0
                assert "s old stays" in (alarms["membership"] or "")
                cluster.thaw()
                await hands.write(endpoint(1), endpoint(3), new=False)
                await _so(lambda: [m.host[-1] for m in again.members] == ["1", "3"], 10.0)
                await _so(lambda: alarms["membership"] is None, 10.0)
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

        asyncio.run(story())


class TestDeployments:
    """Slices that the real controllers write while a Deployment is rolled."""

    def test_a_rolling_update_is_followed_without_a_hold_and_never_below_its_replicas(self, controllers: Cluster, namespace: str) -> None:
        seen, decisions = asyncio.run(self._rolled(controllers, namespace, 3, {"type": "RollingUpdate"}, ready_after="0.3", gone_after="1"))
        assert min(len(hosts) for hosts in seen) == 3
        assert seen[0].isdisjoint(seen[-1])
        assert set(decisions) == {"act"}

    def test_where_all_are_replaced_at_once_nobody_is_dropped_before_another_serves(self, controllers: Cluster, namespace: str) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "100%"}}
        seen, _ = asyncio.run(self._rolled(controllers, namespace, 3, strategy, ready_after="1", gone_after="2"))
        assert all(seen)
        assert seen[0].isdisjoint(seen[-1])

    @staticmethod
    async def _rolled(cluster: Cluster, namespace: str, replicas: int, strategy: dict[str, Any], **annotations: str) -> tuple[list[set[str]], list[str]]:
        hands = Hands(cluster, namespace)
        await hands.deploy(replicas, strategy, **annotations)
        told = Nowhere()
        seen: list[set[str]] = []
        wanted = MembersFrom.model_validate({"endpointslice": f"{namespace}/dns"})
        follower = Follower(
            wanted, cluster.folder / f"{namespace}.json", SystemClock(), told, role="dns", alarm=lambda name, why: None,
            changed=lambda: seen.append({m.host for m in follower.members}), slice_port="dns", cluster=reached(cluster),
        )  # fmt: skip
        work = asyncio.create_task(follower.follow())
        try:
            await _so(lambda: len(follower.members) == replicas, 20.0)
            first = {m.host for m in follower.members}
            assert all(m.name.startswith("dns-") and m.port == 5353 for m in follower.members)
            seen[:], told.entries[:] = [first], []
            await hands.roll()
            await _so(lambda: len(follower.members) == replicas and first.isdisjoint(m.host for m in follower.members), 30.0)
            await asyncio.sleep(0.5)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        return seen, [e.decision for e in told.entries]


class TestNodes:
    def test_nodes_with_the_label_are_members_ready_or_not(self, cluster: Cluster) -> None:
        async def story() -> None:
            await self._node(cluster, "cp-1", "192.0.2.31", ready="True")
            await self._node(cluster, "cp-2", "192.0.2.32", ready="False")
            wanted = LbMembersFrom.model_validate({"nodes": {"label": "lab.example/role=cp"}})
            async with watching(source_of(wanted, SystemClock(), 6443, cluster=reached(cluster))) as until:
                seen, _ = await until([31, 32])
                assert [(m.name, m.port) for m in seen.members] == [("cp-1", 6443), ("cp-2", 6443)]
                await self._node(cluster, "cp-3", "192.0.2.33", ready="True")
                await until([31, 32, 33])
                for name in ("cp-1", "cp-2", "cp-3"):
                    await cluster.must("DELETE", f"/api/v1/nodes/{name}")
                await until([])

        asyncio.run(story())

    @staticmethod
    async def _node(cluster: Cluster, name: str, address: str, *, ready: str) -> None:
        status = {"addresses": [{"type": "InternalIP", "address": address}], "conditions": [{"type": "Ready", "status": ready}]}
        await cluster.must("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"lab.example/role": "cp"}}, "status": status})


class TestCommands:
    @pytest.mark.engine
    def test_members_and_check_work_with_and_without_the_cluster(self, clusters: Callable[..., Cluster], tmp_path: Path) -> None:
        cluster = clusters()
        asyncio.run(Hands(cluster, "default").write(endpoint(1), endpoint(2, ready=False), new=True))
        tree = {
            "node": "edge-a",
            "run_dir": str(tmp_path / "run"),
            "state_dir": str(tmp_path / "state"),
            "kubernetes": {"kubeconfig": str(cluster.kubeconfig(tmp_path / "kubeconfig")), "timeout": "1s"},
            "dns": {
                "listen": ["127.0.0.1:5300"],
                "members": {"endpointslice": "default/dns"},
                "proxy_protocol": "off",
                "engine": {"binary": engine("dnsdist")},
            },
        }
        config = tmp_path / "edgekeeper.yaml"
        config.write_text(json.dumps(tree))

        def run(*argv: str) -> subprocess.CompletedProcess[str]:
            return command(config, *argv)

        done = run("dns", "members", "-o", "json")
        assert [(row["address"], row["source"]) for row in json.loads(done.stdout)["members"]] == [("192.0.2.1:5353", "present")]
        rendered = run("dns", "render", "--check")
        assert rendered.returncode == 0
        assert "192.0.2.1:5353" in rendered.stdout
        cluster.kill()
        done = run("dns", "members")
        assert done.returncode == MissingError.exit_code
        done = run("check")
        assert done.returncode == 0
        assert "dns.members.endpointslice: the cluster is not asked by a check; its members are not judged here" in done.stdout + done.stderr
        (tmp_path / "kubeconfig").unlink()
        done = run("dns", "members")
        assert done.returncode == MissingError.exit_code
        assert len(done.stderr.splitlines()) == 1

    @pytest.mark.engine
    def test_a_load_balancer_of_api_servers_is_rendered_from_their_slice_or_their_nodes(self, clusters: Callable[..., Cluster], tmp_path: Path) -> None:
        cluster = clusters()
        asyncio.run(self._control_plane(cluster))
        service = {"name": "k8s-api", "listen": "127.0.0.1:6443", "kind": "kube-apiserver"}
        for members in ({"endpointslice": "default/kubernetes"}, {"nodes": {}}):
            tree = {
                "run_dir": str(tmp_path / "run"),
                "state_dir": str(tmp_path / "state"),
                "kubernetes": {"kubeconfig": str(cluster.kubeconfig(tmp_path / "kubeconfig"))},
                "lb": {"services": [{**service, "members": members}], "engine": {"binary": engine("haproxy")}},
            }
            (tmp_path / "edgekeeper.yaml").write_text(json.dumps(tree))
            done = command(tmp_path / "edgekeeper.yaml", "lb", "render", "--check")
            assert done.returncode == 0, done.stderr
            assert {line.split()[2] for line in done.stdout.splitlines() if line.split()[:1] == ["server"]} == {"192.0.2.31:6443", "192.0.2.32:6443"}

    @staticmethod
    async def _control_plane(cluster: Cluster) -> None:
        label = {"node-role.kubernetes.io/control-plane": ""}
        addresses = ("192.0.2.31", "192.0.2.32")
        for number, address in enumerate(addresses, 1):
            status = {"addresses": [{"type": "InternalIP", "address": address}]}
            await cluster.must("POST", "/api/v1/nodes", {"metadata": {"name": f"cp-{number}", "labels": label}, "status": status})
        body = {
            "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        }
        await cluster.must("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", body)


class Nowhere:
    """A journal that is only looked at."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)


async def _so(true: Callable[[], bool], timeout_s: float) -> float:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < timeout_s, f"not within {timeout_s:g} s"
        await asyncio.sleep(0.02)
    return time.monotonic() - began

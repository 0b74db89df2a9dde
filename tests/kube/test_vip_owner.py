"""Who owns the VIPs of a cluster: kube-vip's Leases and MetalLB's statuses on a real API server, written here as those two write them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgekeeper.cli.main import run
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.root import Root
from edgekeeper.errors import MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import connect
from edgekeeper.lab.kube import Cluster
from edgekeeper.model.entry import Entry
from edgekeeper.ops.metrics import Metrics
from edgekeeper.runtime import Ground
from edgekeeper.vip.observer import Observer
from edgekeeper.vip.owner_cluster import Asked, Followed

LEASE_S = 3
STATUS_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicel2statuses.metallb.io"},
    "spec": {
        "group": "metallb.io",
        "scope": "Namespaced",
        "names": {"kind": "ServiceL2Status", "listKind": "ServiceL2StatusList", "plural": "servicel2statuses", "singular": "servicel2status"},
        "versions": [
            {
                "name": "v1beta1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}  # fmt: skip


async def all_of(works: Iterable[Callable[[], Awaitable[None]]]) -> None:
    await asyncio.gather(*(work() for work in works))


def now(ahead_s: float = 0.0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=ahead_s, microseconds=1)).isoformat(timespec="microseconds").replace("+00:00", "Z")


class World:
    """A namespace with a Service and what moves its address."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path, address: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.address = address
        self.config = str(cluster.kubeconfig(folder / "config"))
        self.kubernetes = Kubernetes.model_validate({"kubeconfig": self.config})

    async def service(self, name: str, **annotations: str) -> None:
        where = f"/api/v1/namespaces/{self.namespace}/services"
        body = {"metadata": {"name": name, "annotations": annotations}, "spec": {"type": "LoadBalancer", "ports": [{"port": 53}]}}
        await self.cluster.must("POST", where, body)
        status = {"status": {"loadBalancer": {"ingress": [{"ip": self.address}]}}}
        await self.cluster.must("PATCH", f"{where}/{name}/status", status, kind="application/merge-patch+json")

    async def lease(self, name: str, holder: str, *, ahead_s: float = 0.0) -> None:
        """Made or renewed as kube-vip does, by a clock that is so far ahead."""
        where = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        spec = {"holderIdentity": holder, "leaseDurationSeconds": LEASE_S, "renewTime": now(ahead_s), "acquireTime": now(ahead_s - 100), "leaseTransitions": 1}
        there = await self.cluster.request("GET", f"{where}/{name}")
        if there.status == 404:
            await self.cluster.must("POST", where, {"metadata": {"name": name}, "spec": spec})
        else:
            await self.cluster.must("PATCH", f"{where}/{name}", {"spec": spec}, kind="application/merge-patch+json")

    async def renewing(self, name: str, holder: str, *, ahead_s: float = 0.0) -> None:
        while True:
            await self.lease(name, holder, ahead_s=ahead_s)
            await asyncio.sleep(0.5)

    async def asked(self, provider: str) -> Any:
        async with connect(self.kubernetes) as api:
            return (await Asked(api, provider, [self.address], SystemClock()).read()).get(self.address)


@pytest.fixture
def world(cluster: Cluster, namespace: str, tmp_path: Path) -> World:
    return World(cluster, namespace, tmp_path, f"192.0.2.{int(namespace[-2:], 16) % 250 + 1}")


@contextlib.asynccontextmanager
async def while_it_goes_on(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("ahead_s", [0.0, 3600.0, -3600.0])
def test_the_holder_of_a_services_lease_owns_its_address_whatever_its_clock_says(world: World, ahead_s: float) -> None:
    async def story() -> None:
        await world.service("dns")
        async with while_it_goes_on(world.renewing("kubevip-dns", "node-a", ahead_s=ahead_s)):
            await asyncio.sleep(0.2)  # it has been made
            found = await world.asked("kube-vip")
            assert found.node == "node-a"
            assert found.age_s < LEASE_S

    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.mark.parametrize("ahead_s", [3600.0, -3600.0])
def test_a_dead_holder_owns_nothing_whatever_its_clock_said(world: World, ahead_s: float) -> None:
    async def story() -> None:
        await world.service("dns")
        await world.lease("kubevip-dns", "node-a", ahead_s=ahead_s)
        begun = SystemClock().monotonic()
        found = await world.asked("kube-vip")
        assert found.node is None
        assert "has not been renewed for" in found.why
        assert SystemClock().monotonic() - begun < LEASE_S + 3

    asyncio.run(story())


def test_the_address_that_only_an_annotation_asks_for_and_a_lease_of_another_name(world: World) -> None:
    async def story() -> None:
        await world.service("dns", **{"kube-vip.io/leaseName": "common", "kube-vip.io/loadbalancerIPs": "2001:db8::53", "kube-vip.io/vipHost": "node-b"})
        await world.lease("common", "node-a")
        async with connect(world.kubernetes) as api:
            found = await Asked(api, "kube-vip", [world.address, "2001:db8::53"], SystemClock()).read()
        assert found["2001:db8::53"].node == found[world.address].node == "node-a"
        assert "still names node-b" in found[world.address].why

    asyncio.run(story())


async def statuses(world: World) -> str:
    """MetalLB's kind, known to the cluster."""
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await world.cluster.request("POST", kinds, STATUS_CRD)
    where = f"/apis/metallb.io/v1beta1/namespaces/{world.namespace}/servicel2statuses"
    for _ in range(100):
        if (await world.cluster.request("GET", where)).status == 200:
            return where
        await asyncio.sleep(0.1)
    pytest.fail("the kind did not come")


def test_metallbs_status_names_the_node_and_two_of_them_name_none(world: World) -> None:
    async def story() -> None:
        where = await statuses(world)
        await world.service("dns")
        status = {"node": "node-a", "serviceName": "dns", "serviceNamespace": world.namespace}
        head = {"apiVersion": "metallb.io/v1beta1", "kind": "ServiceL2Status"}
        assert (await world.asked("metallb")).node is None
        await world.cluster.must("POST", where, {**head, "metadata": {"name": "l2-a"}, "status": status})
        found = await world.asked("metallb")
        assert found.node == "node-a"
        assert found.since is not None
        await world.cluster.must("POST", where, {**head, "metadata": {"name": "l2-b"}, "status": {**status, "node": "node-b"}})
        assert (await world.asked("metallb")).node is None
        await world.cluster.must("DELETE", f"{where}/l2-a")
        assert (await world.asked("metallb")).node == "node-b"

    asyncio.run(story())


def test_followed_it_is_known_within_a_second_that_a_vip_moved_and_within_its_duration_that_its_holder_died(world: World) -> None:
    async def story() -> None:
        clock = SystemClock()
        await world.service("dns")
        await world.lease("kubevip-dns", "node-a")
        async with connect(world.kubernetes) as api:
            source = Followed(api, "kube-vip", [world.address], clock, lambda: None)
            with pytest.raises(MissingError, match="not known yet"):
                await source.read()

            async def until(node: str | None, within_s: float) -> None:
                end = clock.monotonic() + within_s
                while True:
                    try:
                        if (await source.read())[world.address].node == node:
                            return
                    except MissingError:
                        pass
                    assert clock.monotonic() < end, f"{node} was not seen in {within_s} s"
                    await asyncio.sleep(0.05)

            async with while_it_goes_on(all_of(source.works.values())):
                await until("node-a", 3)
                await world.lease("kubevip-dns", "node-b")
                await until("node-b", 1)
                await until(None, LEASE_S + 1)
                await world.lease("kubevip-dns", "node-a")
                await until("node-a", 1)
                await world.cluster.must("DELETE", f"/api/v1/namespaces/{world.namespace}/services/dns")
                end = clock.monotonic() + 2
                while world.address in await source.read():
                    assert clock.monotonic() < end
                    await asyncio.sleep(0.05)

    asyncio.run(story())


class Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)


def config(world: World, provider: str = "kube-vip") -> dict[str, Any]:
    vip = {"name": "dns", "address": f"{world.address}/32", "vrid": 53, "probe": "none"}
    return {"node": "node-a", "kubernetes": {"kubeconfig": world.config}, "vip": {"provider": provider, "vips": [vip]}}


def test_the_role_looks_on_and_tells_each_move_once(world: World, tmp_path: Path) -> None:
    async def story() -> None:
        await world.service("dns")
        root, journal, metrics = Root.model_validate(config(world)), Kept(), Metrics()
        role = Observer(root, Ground("node-a", tmp_path, SystemClock(), journal, metrics))
        running = asyncio.create_task(role.run())
        for holder in ("node-a", "node-b"):
            async with while_it_goes_on(world.renewing("kubevip-dns", holder)):
                for _ in range(100):
                    await asyncio.sleep(0.05)
                    if role.status().details["vips"][0]["owner"] == holder:
                        break
                vip = role.status().details["vips"][0]
                assert vip["owner"] == holder
                assert vip["lease_age_s"] < LEASE_S
                assert role.status().verdict.ok
        role.end(leave=False)
        await asyncio.wait_for(running, 5)
        moves = [(entry.object, entry.data["from"], entry.data["to"]) for entry in journal.entries if entry.event == "vip.master_changed"]
        assert moves == [("dns", None, "node-a"), ("dns", "node-a", "node-b")]

    asyncio.run(story())


def test_the_command_shows_the_owners_and_its_exit_code_says_whether_all_are_known(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "edgekeeper.yaml"
    file.write_text(yaml.safe_dump(config(world)))
    asyncio.run(world.service("dns"))
    assert run(["--config", str(file), "vip", "owner"]) == 6
    assert "neither a Lease nor Service" in capsys.readouterr().err
    asyncio.run(world.lease("kubevip-dns", "node-a"))
    assert run(["--config", str(file), "vip", "owner", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["vips"][0]["owner"] == "node-a"
    asyncio.run(world.lease("kubevip-dns", "node-a"))
    assert run(["--config", str(file), "vip", "owner"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["dns", "node-a"]


def test_an_api_that_is_away_is_an_unknown_owner(world: World, tmp_path: Path) -> None:
    async def story() -> None:
        nobody = Kubernetes.model_validate({"kubeconfig": world.config, "timeout": "500ms"})
        async with connect(nobody, server="https://127.0.0.1:9") as api:
            with pytest.raises(MissingError):
                await Asked(api, "kube-vip", [world.address, "2001:db8::53"], SystemClock()).read()

    asyncio.run(story())

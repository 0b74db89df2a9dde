"""A group's Lease on a real API server: who has it, who waits, and what is said when the server is silent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.ops import Ops
from edgekeeper.host.clock import SystemClock
from edgekeeper.lab.kube import Cluster
from edgekeeper.watch.grouplease import AGAIN_S, TRY_S, GroupLease
from edgekeeper.watch.siblings import Siblings

WAIT_S = 3.0


def member(cluster: Cluster, namespace: str, folder: Path, node: str, timeout: str = "5s") -> GroupLease:
    kubernetes = Kubernetes.model_validate({"kubeconfig": str(cluster.kubeconfig(folder / "config")), "namespace": namespace, "timeout": timeout})
    return GroupLease("mesh", kubernetes, node, SystemClock(), WAIT_S)


@contextlib.asynccontextmanager
async def following(*leases: GroupLease) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(lease.follow()) for lease in leases]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(check: Callable[[], bool], within_s: float) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < within_s, f"not within {within_s} s"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def made(cluster: Cluster, namespace: str) -> str:
    where = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    await cluster.must("POST", where, {"metadata": {"name": "mesh"}, "spec": {}})
    return where


def test_one_has_it_the_other_waits_for_the_proof_and_no_longer_than_so(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    async def story() -> None:
        await made(cluster, namespace)
        a, b = (member(cluster, namespace, tmp_path, node) for node in ("edge-a", "edge-b"))
        async with following(a, b):
            await until(lambda: a.why == b.why == "", 5)
            a.want()
            await until(lambda: a.standing == "held", 1)
            b.want()
            await until(lambda: b.standing == "waits", TRY_S + 1)
            assert b.why == f"edge-a holds the Lease {namespace}/mesh"
            a.cures()
            await asyncio.sleep(0.5)
            assert b.standing == "waits"
            a.rest()
            await until(lambda: b.standing == "held", 1)
            assert a.standing == ""
            b.cures()
            a.want()
            took = await until(lambda: a.standing == "held", WAIT_S + 2)
            assert took > WAIT_S - 0.5, "b was not proved, and is waited for"
            assert b.standing == ""

    asyncio.run(story())


def test_a_lease_that_is_not_there_is_made_before_anybody_wants_it(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    async def story() -> None:
        lease = member(cluster, namespace, tmp_path, "edge-a")
        async with following(lease):
            await asyncio.sleep(WAIT_S + 0.5)
            lease.want()
            await until(lambda: lease.standing == "held", 1)

    asyncio.run(story())


def test_without_an_answer_the_order_decides_and_is_told_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with Cluster(tmp_path / "cluster") as cluster:
            namespace = await cluster.make_namespace("edge")
            await made(cluster, namespace)
            lease = member(cluster, namespace, tmp_path, "edge-a")
            siblings = Siblings("edge-a", {}, Ops.model_validate({}), SystemClock())
            place = siblings.place("proxy", "mesh", ("edge-a", "edge-b"), WAIT_S, lease)
            async with following(lease):
                await until(lambda: lease.why == "", 5)
                cluster.freeze()
                began = time.monotonic()
                why = await place.may(able=True)
                assert why is not None
                assert lease.standing == "asking"
                while await place.may(able=True) is not None:
                    assert time.monotonic() - began < TRY_S + 1.5
                assert lease.standing == "away"
                assert "cannot be asked for, so the order of the members decides" in str(place.doubt())
                cluster.thaw()
                await until(lambda: lease.standing == "held", AGAIN_S + 2)
                assert await place.may(able=True) is None
                place.cures()
                place.rests()
                await until(lambda: lease.standing == "", 1)

    asyncio.run(story())


def test_where_there_is_no_way_to_the_cluster_the_order_decides(tmp_path: Path) -> None:
    async def story() -> None:
        lease = GroupLease("mesh", Kubernetes.model_validate({"kubeconfig": str(tmp_path / "none")}), "edge-a", SystemClock(), WAIT_S)
        lease.want()
        assert lease.standing == "away"
        with pytest.raises(Exception, match="none"):
            await lease.follow()
        assert lease.standing == "away"

    asyncio.run(story())

"""A real Kubernetes for tests: one for the whole run, and clusters of a test's own where it breaks them. Missing programs fail, never skip.

What ``script/kube-assets`` builds is 1.20 with ``policy/v1`` and ``discovery.k8s.io/v1``. It cannot show watch lists (``sendInitialEvents``), a
budget's ``unhealthyPodEvictionPolicy``, the condition ``DisruptionTarget``, ``Retry-After`` of a refused eviction, zones and hints of an
EndpointSlice, admission policies: for those point ``KUBEBUILDER_ASSETS`` at newer programs.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from edgekeeper.errors import EdgekeeperError
from edgekeeper.lab.kube import Cluster


def started(cluster: Cluster) -> Cluster:
    try:
        return asyncio.run(cluster.start())
    except EdgekeeperError as err:
        pytest.fail(str(err), pytrace=False)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One etcd and one API server, shared by all tests: each works in a ``namespace`` of its own, and none breaks it."""
    made = started(Cluster(tmp_path_factory.mktemp("kube")))
    yield made
    asyncio.run(made.stop())


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """A namespace that no other test uses, in the shared cluster."""
    return asyncio.run(cluster.make_namespace(f"t-{secrets.token_hex(4)}"))


@pytest.fixture(scope="session")
def controllers(cluster: Cluster) -> Cluster:
    """The shared cluster with its controllers, its scheduler, and the nodes ``node-a`` and ``node-b`` of a test kubelet."""
    asyncio.run(cluster.start_controllers())
    asyncio.run(cluster.start_kubelet())
    return cluster


@pytest.fixture
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Cluster]]:
    """Clusters of a test's own: ``clusters(rbac=True, users={"watcher": ()})``, the arguments of ``lab.kube.Cluster``; 4 s each."""
    made: list[Cluster] = []

    def make(**options: Any) -> Cluster:
        made.append(Cluster(tmp_path_factory.mktemp("kube"), **options))
        return started(made[-1])

    yield make
    for one in made:
        asyncio.run(one.stop())

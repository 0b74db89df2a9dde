"""``deploy/kubernetes/rbac``: each role can do all that it does with these rights, needs every one of them, and has no other."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from edgekeeper.config.expose import Expose
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.members import EndpointSliceSource, NodesSource
from edgekeeper.config.watch import KubernetesCure
from edgekeeper.doctor.collect_cluster import inventory
from edgekeeper.doctor.facts import Unknown
from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose.kinds import Remark
from edgekeeper.expose.sources.together import sources_of
from edgekeeper.expose.tell import Teller
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.errors import Forbidden
from edgekeeper.kube.lease import Election, Term
from edgekeeper.kube.objects import (
    DaemonSet,
    Deployment,
    EndpointSlice,
    Event,
    HTTPRoute,
    Ingress,
    Lease,
    LeaseSpec,
    Node,
    ObjectMeta,
    ObjectReference,
    Pod,
    Service,
    ServiceCIDR,
    ServiceL2Status,
    StatefulSet,
    TLSRoute,
)
from edgekeeper.lab.kube import Cluster
from edgekeeper.membership.cluster import endpoint_slices, nodes
from edgekeeper.vip.owner_cluster import Asked
from edgekeeper.watch.cures.kubernetes import PodsCure, RolloutCure

from .conftest import started

RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac"
ROLES = ("dns", "lb", "vip", "watch", "expose")
ROLE_KINDS = ("Role", "ClusterRole")
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
REFUSED = re.compile(r'cannot (\w+) resource "([^"]+)"')


class Right(NamedTuple):
    """One verb on one resource in one rule of one document of a manifest."""

    document: int
    rule: int
    group: str
    resource: str
    verb: str


def documents(role: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((RBAC / f"{role}.yaml").read_text(encoding="utf-8")))


def rights(role: str) -> list[Right]:
    found = []
    for d, document in enumerate(documents(role)):
        if document["kind"] in ROLE_KINDS:
            for r, rule in enumerate(document["rules"]):
                found += [Right(d, r, g, s, v) for g, s, v in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])]
    return found


def account(role: str) -> str:
    return f"system:serviceaccount:edgekeeper:edgekeeper-{role}"


LESS = [(role, n) for role in ROLES for n in range(len(rights(role)))]


def less(role: str, n: int) -> list[dict[str, Any]]:
    """The manifest's roles and bindings for another user, without one right."""
    gone, changed = rights(role)[n], []
    for d, document in enumerate(documents(role)):
        made = copy.deepcopy(document)
        if "roleRef" in made:
            made["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"{role}-{n}"}]
            made["roleRef"]["name"] += f"-{n}"
        elif made["kind"] in ROLE_KINDS:
            made["rules"] = [
                {**rule, "apiGroups": [g], "resources": [s], "verbs": [v]}
                for r, rule in enumerate(made["rules"])
                for g, s, v in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
                if Right(d, r, g, s, v) != gone
            ]
        else:
            continue
        made["metadata"]["name"] += f"-{n}"
        changed.append(made)
    return changed


async def put(cluster: Cluster, document: dict[str, Any]) -> None:
    path = PATHS[document["kind"]].format(document["metadata"].get("namespace"))
    assert (await cluster.request("POST", path, document)).status in (201, 409)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with RBAC, the manifests applied, and for each right a user that has all of the role's but this one."""
    users = {account(role): ("system:serviceaccounts", "system:authenticated") for role in ROLES} | {f"{role}-{n}": () for role, n in LESS}
    made = started(Cluster(tmp_path_factory.mktemp("rbac"), rbac=True, users=users))

    async def fill() -> None:
        for namespace in ("dns-example", "lb-example", "watch-example", "web-example"):
            await made.make_namespace(namespace)
        for role in ROLES:
            for document in documents(role):
                await put(made, document)
        await asyncio.gather(*(put(made, document) for role, n in LESS for document in less(role, n)))

    try:
        asyncio.run(fill())
        yield made
    finally:
        asyncio.run(made.stop())


def wanted(cluster: Cluster, folder: Path, user: str) -> Kubernetes:
    return Kubernetes(kubeconfig=str(cluster.kubeconfig(folder / "kubeconfig", user=user)))


Call = Callable[[Api], Awaitable[object]]


def follow(kind: Any, namespace: str | None = None) -> list[Call]:
    async def watch(api: Api) -> None:
        async with contextlib.aclosing(api.watch(kind, namespace=namespace, version="0", window_s=1)) as events:
            async for _ in events:
                break

    return [lambda api: api.list(kind, namespace=namespace), watch]


def lease(name: str) -> list[Call]:
    spec = LeaseSpec(holderIdentity="")
    return [
        lambda api: api.get(Lease, name, namespace="edgekeeper"),
        lambda api: api.replace(Lease(metadata=ObjectMeta(name=name, namespace="edgekeeper", resourceVersion="1"), spec=spec)),
        lambda api: api.create(Lease(metadata=ObjectMeta(name=name, namespace="edgekeeper"), spec=spec)),
    ]


def patch(kind: Any, namespace: str) -> Call:
    return lambda api: api.patch(kind, "one", {"metadata": {"annotations": {"edgekeeper.io/expose-status": "x"}}}, namespace=namespace)


def event() -> Event:
    of = ObjectReference(apiVersion="networking.k8s.io/v1", kind="Ingress", namespace="web-example", name="one")
    return Event(metadata=ObjectMeta(name="one", namespace="web-example"), involvedObject=of, reason="BadHost", message="x")


def get(kind: Any, namespace: str) -> Call:
    return lambda api: api.get(kind, "one", namespace=namespace)


CALLS: dict[str, list[Call]] = {
    "dns": follow(EndpointSlice, "dns-example"),
    "lb": [
        *follow(EndpointSlice, "lb-example"),
        *follow(Node),
        lambda api: api.list(Lease, namespace="kube-node-lease"),
        lambda api: api.list(EndpointSlice, namespace="default"),
    ],
    "vip": [*follow(Service), *follow(Lease), *follow(ServiceL2Status)],
    "watch": [
        lambda api: api.list(Pod, namespace="watch-example", labels="app=web"),
        lambda api: api.delete(Pod, "one", namespace="watch-example", uid="1"),
        *(call(kind, "watch-example") for kind in (Deployment, StatefulSet, DaemonSet) for call in (get, patch)),
        *lease("edgekeeper-watch"),
    ],
    "expose": [
        *(call for kind in (Ingress, HTTPRoute, TLSRoute, Service) for call in follow(kind)),
        *(patch(kind, "web-example") for kind in (Ingress, HTTPRoute, TLSRoute)),
        lambda api: api.get(ServiceCIDR, "kubernetes"),
        lambda api: api.create(event()),
        get(Event, "web-example"),
        patch(Event, "web-example"),
        *lease("edgekeeper-expose"),
    ],
}
"""What each role asks of a cluster. That an object is not there, or is another version, is an answer; only a right that is missing is none."""


async def refused(api: Api, role: str) -> list[str]:
    said = []
    for call in CALLS[role]:
        try:
            await call(api)
        except Forbidden as err:
            said.append(str(err))
        except EdgekeeperError:
            pass
    return said


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_does_is_allowed_and_with_one_right_less_exactly_that_is_refused(guarded, tmp_path, role):
    async def story() -> None:
        async with connect(wanted(guarded, tmp_path, account(role))) as api:
            assert await refused(api, role) == []
        for n, right in enumerate(rights(role)):
            async with connect(wanted(guarded, tmp_path, f"{role}-{n}")) as api:
                said = await refused(api, role)
            assert [match.groups() for match in map(REFUSED.search, said) if match] == [(right.verb, right.resource)], said
            assert said[0].endswith("nothing is done: apply deploy/kubernetes/rbac/ROLE.yaml of this role")

    asyncio.run(story())


RESOURCES = (
    *(("", name) for name in ("secrets", "configmaps", "pods", "pods/exec", "pods/eviction", "nodes", "services", "events", "serviceaccounts/token")),
    *(("apps", name) for name in ("deployments", "statefulsets", "daemonsets")),
    *(("networking.k8s.io", name) for name in ("ingresses", "ingresses/status", "networkpolicies", "servicecidrs")),
    *(("gateway.networking.k8s.io", name) for name in ("httproutes", "tlsroutes", "gateways")),
    ("discovery.k8s.io", "endpointslices"),
    ("coordination.k8s.io", "leases"),
    ("metallb.io", "servicel2statuses"),
    ("rbac.authorization.k8s.io", "clusterroles"),
)
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_no_right_beyond_what_is_written(guarded, tmp_path, role):
    everywhere = {
        (right.group, right.resource, right.verb)
        for right in rights(role)
        if (said := documents(role)[right.document])["kind"] == "ClusterRole" and "resourceNames" not in said["rules"][right.rule]
    }

    async def story() -> None:
        async with connect(wanted(guarded, tmp_path, account(role))) as api:
            for (group, resource), verb in itertools.product(RESOURCES, VERBS):
                assert await api.may(verb, group, resource) == ((group, resource, verb) in everywhere), (verb, resource)
            for namespace in ("edgekeeper", "kube-system", f"{role}-example"):
                for verb in VERBS:
                    assert not await api.may(verb, "", "secrets", namespace)
            assert not await api.may("update", "coordination.k8s.io", "leases", "kube-system")
            with pytest.raises(Forbidden):
                await api.get(Lease, "another", namespace="edgekeeper")

    asyncio.run(story())


def test_the_members_of_dns_and_lb_can_be_read(guarded, tmp_path):
    async def story() -> None:
        clock = SystemClock()
        await guarded.must("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}}})
        address = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.31"}]}}
        await guarded.must("PATCH", "/api/v1/nodes/n/status", address, kind="application/merge-patch+json")
        for role in ("dns", "lb"):
            source = endpoint_slices(EndpointSliceSource.model_validate(f"{role}-example/web"), wanted(guarded, tmp_path, account(role)), clock, "dns")
            assert (await source.read()).members == ()
            await source.aclose()
        machines = nodes(NodesSource.model_validate({}), wanted(guarded, tmp_path, account("lb")), clock, 6443)
        assert [member.host for member in (await machines.read()).members] == ["192.0.2.31"]
        await machines.aclose()
        found = await inventory(wanted(guarded, tmp_path, account("lb")), clock)
        assert isinstance(found.nodes, tuple)
        assert not isinstance(found.api_servers, Unknown) or "no endpoints" in found.api_servers.reason

    asyncio.run(story())


def test_the_owners_of_vips_can_be_read(guarded, tmp_path):
    async def story() -> None:
        async with connect(wanted(guarded, tmp_path, account("vip"))) as api:
            assert await Asked(api, "kube-vip", ["192.0.2.53"], SystemClock()).read() == {}

    asyncio.run(story())


def test_the_cures_of_a_watch_can_be_carried_out(guarded, tmp_path):
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    labels = {"app": "web"}
    spec = {"containers": [{"name": "web", "image": "none"}]}
    pod = {"metadata": {"name": "web-1", "labels": labels, "ownerReferences": [controller]}, "spec": {**spec, "automountServiceAccountToken": False}}
    workload = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}}

    async def story() -> None:
        clock, rights = SystemClock(), wanted(guarded, tmp_path, account("watch"))
        await guarded.must("POST", "/api/v1/namespaces/watch-example/pods", pod)
        await guarded.must("POST", "/apis/apps/v1/namespaces/watch-example/deployments", workload)
        pods = PodsCure(KubernetesCure(label="watch-example/app=web"), rights, "n", clock, grace_s=0, deadline_s=0.1)
        assert await pods.rehearse() is None
        rollout = RolloutCure("watch-example/deployment/web", rights, clock, deadline_s=0.1)
        assert await rollout.rehearse() is None
        assert "within 0.1 s its controller has not seen it yet" in (await rollout.apply() or "")
        assert "within 0.1 s 0 of 1 new pods are ready" in (await pods.apply() or "")
        assert (await guarded.request("GET", "/api/v1/namespaces/watch-example/pods/web-1")).status == 404
        await led(rights, "edgekeeper-watch")

    asyncio.run(story())


async def until(check: Callable[[], object]) -> None:
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < 10
        await asyncio.sleep(0.02)


async def led(rights: Kubernetes, name: str) -> None:
    done = asyncio.Event()

    async def work(term: Term) -> None:
        term.check()
        done.set()

    async with connect(rights) as api:
        await Election(api, name, "edgekeeper", "n", SystemClock()).lead(work, wait_s=5)
    assert done.is_set()


def test_expose_can_follow_tell_and_lead(guarded, tmp_path):
    said = {
        "owner": "home",
        "netbird": {"url": "https://netbird.example", "token_env": "T"},
        "targets": {"default": {"service": "web-example/ingress"}},
        "sources": {"httproute": True, "tlsroute": True},
    }
    expose = Expose.model_validate(said)
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    ingress = {
        "metadata": {"name": "web", "labels": {"edgekeeper.io/public": "true"}},
        "spec": {"rules": [{"host": "www.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]},
    }

    async def story() -> None:
        path = "/apis/networking.k8s.io/v1/namespaces/web-example/ingresses"
        await guarded.must("POST", path, ingress)
        await guarded.must("POST", "/api/v1/namespaces/web-example/services", {"metadata": {"name": "ingress"}, "spec": {"ports": [{"port": 443}]}})
        rights = wanted(guarded, tmp_path, account("expose"))
        async with connect(rights) as api:
            source = sources_of(expose, SystemClock(), api)
            teller = Teller(api, SystemClock(), prefix=expose.prefix, kind_of=source.kind_of)
            tasks = [asyncio.create_task(source.run()), asyncio.create_task(teller.run())]
            await until(lambda: source.snapshot().whole and source.snapshot().places)
            (claim,) = source.snapshot().claims
            teller.remark([Remark(claim.origin, "HostTaken", "www.example is somebody else's")])
            teller.status({claim.origin: {"www.example": "active"}}, source.status_of)
            await until(lambda: (teller.events and teller.statuses) or teller.untold)
            assert (teller.untold, teller.events, teller.statuses) == ("", 1, 1)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert (await guarded.must("GET", f"{path}/web"))["metadata"]["annotations"] == {"edgekeeper.io/expose-status": '{"www.example":"active"}'}
        await led(rights, "edgekeeper-expose")

    asyncio.run(story())

"""What objects of a real cluster ask for, as expose sees it, and what it tells them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from edgekeeper.config.expose import Expose
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.expose.kinds import Origin, Place, Remark
from edgekeeper.expose.sources.kubernetes import KubernetesSource
from edgekeeper.expose.tell import Teller
from edgekeeper.expose.wishes import wishes
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import Api, connect
from edgekeeper.lab.kube import Cluster

PUBLIC = {"edgekeeper.io/public": "true"}


def expose(namespace: str, **more: Any) -> Expose:
    said = {
        "owner": "home",
        "netbird": {"url": "https://netbird.example", "token_env": "T"},
        "targets": {"default": "192.0.2.1"},
        "sources": {"namespaces": [namespace]},
    }
    return Expose.model_validate({**said, **more})


def api_of(cluster: Cluster, tmp_path) -> Api:
    return connect(Kubernetes.model_validate({"kubeconfig": str(cluster.kubeconfig(tmp_path / "kubeconfig"))}))


@contextlib.asynccontextmanager
async def following(source: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(source.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(check: Callable[[], Any], timeout_s: float = 10.0) -> float:
    """Seconds until it is true, looked at each time that the loop is free."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < timeout_s, "not in time"
        await asyncio.sleep(0.002)
    return time.monotonic() - began


def ingress(name: str, *hosts: str | None, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [{**({"host": host} if host else {}), "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}} for host in hosts]
    spec = {"rules": rules} if rules else {"defaultBackend": backend}
    meta = {"name": name, "labels": PUBLIC if labels is None else labels, "annotations": annotations or {}}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": spec}


class Room:
    """The paths of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.ingresses = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses"
        self.core = f"/api/v1/namespaces/{namespace}"
        self.gateway = "/apis/gateway.networking.k8s.io/{version}/namespaces/" + namespace

    async def label(self, name: str, value: str | None) -> None:
        await self.merge(f"{self.ingresses}/{name}", {"metadata": {"labels": {"edgekeeper.io/public": value}}})

    async def merge(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await self.cluster.must("PATCH", path, body, kind="application/merge-patch+json")


def test_an_ingress_is_seen_within_a_fifth_of_a_second_and_is_gone_with_its_label(cluster, namespace, tmp_path):
    async def story() -> None:
        there = Room(cluster, namespace)
        async with api_of(cluster, tmp_path) as api:
            source = KubernetesSource(api, expose(namespace), SystemClock())
            assert not source.snapshot().whole
            async with following(source):
                await until(lambda: source.snapshot().whole)
                assert source.snapshot().claims == ()
                took = []
                for turn in range(5):
                    await cluster.must("POST", there.ingresses, ingress(f"web-{turn}", f"www-{turn}.example"))
                    took.append(await until(lambda: len(source.snapshot().claims) == turn + 1))  # noqa: B023
                assert sorted(took)[-2] < 0.2, took  # one of them may meet a busy machine
                await there.label("web-0", None)
                await until(lambda: len(source.snapshot().claims) == 4)
                assert "www-0.example" not in wishes(source.snapshot().claims, expose(namespace)).by_host
                await there.label("web-0", "true")
                await until(lambda: len(source.snapshot().claims) == 5)
                assert source.snapshot().whole

    asyncio.run(story())


def test_of_objects_with_fields_that_are_null_or_left_out_every_one_is_kept(cluster, namespace, tmp_path):
    async def story() -> None:
        there = Room(cluster, namespace)
        await cluster.must("POST", there.ingresses, ingress("all", None))
        await cluster.must("POST", there.ingresses, ingress("none"))
        await cluster.must("POST", there.ingresses, ingress("both", None, "www.example", annotations={"kubernetes.io/ingress.class": "old"}))
        nulls = ingress("nulls", "api.example") | {"status": None}
        nulls["metadata"] |= {"annotations": None, "finalizers": None}
        nulls["spec"] |= {"tls": None, "ingressClassName": None}
        await cluster.must("POST", there.ingresses, nulls)
        async with api_of(cluster, tmp_path) as api:
            source = KubernetesSource(api, expose(namespace), SystemClock())
            async with following(source):
                await until(lambda: source.snapshot().whole)
                hosts = {claim.origin.name: (claim.hosts, claim.klass) for claim in source.snapshot().claims}
                assert hosts == {"all": (("",), ""), "none": ((), ""), "both": (("", "www.example"), "old"), "nulls": (("api.example",), "")}
                assert all(abs(claim.origin.created - time.time()) < 60 and claim.origin.uid for claim in source.snapshot().claims)

    asyncio.run(story())


def test_what_is_written_onto_objects_wakes_nobody_and_can_be_read_back(cluster, namespace, tmp_path):
    async def story() -> None:
        there = Room(cluster, namespace)
        for name, host in (("one", "one.example"), ("two", "two.example")):
            await cluster.must("POST", there.ingresses, ingress(name, host))
        async with api_of(cluster, tmp_path) as api:
            source = KubernetesSource(api, expose(namespace), SystemClock())
            async with following(source):
                await until(lambda: len(source.snapshot().claims) == 2 and source.snapshot().whole)
                await source.changed()
                origins = {claim.origin.name: claim.origin for claim in source.snapshot().claims}
                one, two = origins["one"], origins["two"]
                teller = Teller(api, SystemClock(), prefix="edgekeeper.io", kind_of=source.kind_of)
                async with following(teller):
                    teller.status({one: {"one.example": "active"}, two: {"two.example": "conflict"}}, source.status_of)
                    await until(lambda: source.status_of(one) == '{"one.example":"active"}' and source.status_of(two) == '{"two.example":"conflict"}')
                    assert teller.statuses == 2
                    teller.status({one: {"one.example": "active"}, two: {"two.example": "conflict"}}, source.status_of)
                    await asyncio.sleep(0.3)
                    assert teller.statuses == 2  # what is there already is not written again
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.3):
                            await source.changed()
                    teller.status({one: {}}, source.status_of)  # not published any more; and no object that asks any more
                    await until(lambda: source.status_of(one) == source.status_of(two) == "")
                    assert not teller.untold
                raw = await cluster.must("GET", f"{there.ingresses}/two")
                assert "edgekeeper.io/expose-status" not in (raw["metadata"].get("annotations") or {})

    asyncio.run(story())


def test_a_remark_is_one_event_on_its_object_however_often_and_by_whomever_it_is_said(cluster, namespace, tmp_path):
    async def story() -> None:
        there = Room(cluster, namespace)
        made = await cluster.must("POST", there.ingresses, ingress("web", "*.example"))
        origin = Origin("Ingress", namespace, "web", made["metadata"]["uid"], 1.0)
        remarks = (Remark(origin, "WildcardHost", '"*.example" is a wildcard'), Remark(Origin("File", "", "www.example"), "NoTarget", "nobody's to be told on"))
        async with api_of(cluster, tmp_path) as api:
            for turn in (1, 2):  # the second one is another process, after a restart
                teller = Teller(api, SystemClock(), prefix="edgekeeper.io", kind_of=KubernetesSource(api, expose(namespace), SystemClock()).kind_of)
                async with following(teller):
                    for _ in range(3):
                        teller.remark(remarks)
                    await until(lambda: teller.events == 1)  # noqa: B023
                    # as `kubectl describe ingress web` asks
                    selector = f"involvedObject.name=web,involvedObject.namespace={namespace},involvedObject.kind=Ingress,involvedObject.uid={origin.uid}"
                    found = (await cluster.must("GET", f"{there.core}/events?fieldSelector={selector}"))["items"]
                    assert [(event["reason"], event["type"], event["source"]["component"]) for event in found] == [("WildcardHost", "Warning", "edgekeeper")]
                    assert found[0]["count"] >= turn

    asyncio.run(story())


def test_a_fresh_full_list_counts_only_when_the_cluster_answered_it(clusters, tmp_path):
    cluster = clusters()

    async def story() -> None:
        there = Room(cluster, "default")
        await cluster.must("POST", there.ingresses, ingress("web", "www.example"))
        async with api_of(cluster, tmp_path) as api:
            api.timeout_s = 1.0
            source = KubernetesSource(api, expose("default"), SystemClock())
            async with following(source):
                assert not await source.relist()
                await until(lambda: source.snapshot().whole)
                assert source.snapshot().lists == 1
                assert await source.relist()
                assert source.snapshot().lists == 2
                cluster.freeze()
                try:
                    assert not await source.relist()
                    assert source.snapshot().relisted
                finally:
                    cluster.thaw()
                assert source.snapshot().lists == 2
                assert [claim.hosts for claim in source.snapshot().claims] == [("www.example",)]

    asyncio.run(story())


def crd(kind: str, *versions: str) -> dict[str, Any]:
    """The smallest definition of a kind that admits anything."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}
    group = "gateway.networking.k8s.io"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": name, "served": True, "storage": index == 0, "schema": schema} for index, name in enumerate(versions)],
        },
    }


def test_routes_are_followed_in_the_version_that_there_is_and_their_absence_is_told(clusters, tmp_path):
    cluster = clusters()
    wanted = expose("default", sources={"httproute": True, "tlsroute": True, "namespaces": ["default"]}, targets={"public": "192.0.2.1"})
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    async def story() -> None:
        there = Room(cluster, "default")
        async with api_of(cluster, tmp_path) as api:
            source = KubernetesSource(api, wanted, SystemClock(), look_s=0.2)
            async with following(source):
                await until(lambda: source.snapshot().whole)
                assert source.snapshot().absent == ("HTTPRoute", "TLSRoute")
                assert await source.relist()
                await cluster.must("POST", definitions, crd("HTTPRoute", "v1beta1"))
                await cluster.must("POST", definitions, crd("TLSRoute", "v1alpha2"))
                await until(lambda: source.snapshot().whole and not source.snapshot().absent)

                parents = [{"name": "internal"}, {"name": "public", "kind": "Gateway"}]
                await route(there, "v1beta1", "HTTPRoute", "web", {"hostnames": ["www.example"], "parentRefs": parents})
                await route(there, "v1beta1", "HTTPRoute", "odd", {"hostnames": "not a list", "parentRefs": [None, {"name": 7}]})
                await route(there, "v1alpha2", "TLSRoute", "pass", {"hostnames": ["pass.example", 5, None], "parentRefs": [{"name": "public"}]})
                await until(lambda: len(source.snapshot().claims) == 3)
                said = {claim.origin.name: (claim.origin.kind, claim.hosts, claim.klass) for claim in source.snapshot().claims}
                assert said == {
                    "web": ("HTTPRoute", ("www.example",), "public"),
                    "odd": ("HTTPRoute", (), ""),
                    "pass": ("TLSRoute", ("pass.example", ""), "public"),
                }
                assert set(wishes(source.snapshot().claims, wanted).by_host) == {"www.example", "pass.example"}
                teller = Teller(api, SystemClock(), prefix="edgekeeper.io", kind_of=source.kind_of)
                origin = next(claim.origin for claim in source.snapshot().claims if claim.origin.name == "pass")
                async with following(teller):
                    teller.status({origin: {"pass.example": "active"}}, source.status_of)
                    teller.remark([Remark(origin, "Published", "pass.example is published", warning=False)])
                    await until(lambda: source.status_of(origin) == '{"pass.example":"active"}' and teller.events == 1)
                assert await source.relist()

    asyncio.run(story())


async def route(there: Room, version: str, kind: str, name: str, spec: dict[str, Any]) -> None:
    path = f"{there.gateway.format(version=version)}/{kind.lower()}s"
    body = {"apiVersion": f"gateway.networking.k8s.io/{version}", "kind": kind, "metadata": {"name": name, "labels": PUBLIC}, "spec": spec}

    async def tried() -> bool:
        return (await there.cluster.request("POST", path, body)).status == 201

    for _ in range(50):  # a new kind takes a moment
        if await tried():
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"{kind} {name} could not be made")


def test_the_place_of_a_class_is_the_address_of_its_service(cluster, namespace, tmp_path):
    targets = {
        "inside": {"service": f"{namespace}/ingress", "port": 8443},
        "outside": {"service": f"{namespace}/ingress", "address": "load-balancer"},
        "six": {"service": f"{namespace}/ingress", "family": "ipv6"},
        "nobody": {"service": f"{namespace}/nobody"},
        "default": "192.0.2.1",
    }

    async def story() -> None:
        there = Room(cluster, namespace)
        async with api_of(cluster, tmp_path) as api:
            source = KubernetesSource(api, expose(namespace, targets=targets), SystemClock())
            async with following(source):
                await until(lambda: source.snapshot().whole)
                body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ingress"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]}}
                made = await cluster.must("POST", f"{there.core}/services", body)
                await until(lambda: "inside" in source.snapshot().places)
                seen = source.snapshot()
                assert dict(seen.places) == {"inside": Place(made["spec"]["clusterIP"], 8443), "default": Place("192.0.2.1", 443)}
                assert "no IPv4 load-balancer address" in seen.unplaced["outside"]
                assert "is not there" in seen.unplaced["nobody"]
                assert "no IPv6 cluster address" in seen.unplaced["six"]
                balancer = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example"}, {"ip": "198.51.100.7"}]}}}
                await there.merge(f"{there.core}/services/ingress/status", balancer)
                await until(lambda: source.snapshot().places.get("outside") == Place("198.51.100.7", 443))
                await cluster.must("DELETE", f"{there.core}/services/ingress")
                await until(lambda: set(source.snapshot().places) == {"default"})

    asyncio.run(story())

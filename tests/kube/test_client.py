"""Each question of the client, and each way to say who asks, to a real API server."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.errors import MissingError
from edgekeeper.host.authority import Authority
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.errors import Absent, Conflict, Forbidden, Invalid, Unreachable
from edgekeeper.kube.objects import EndpointSlice, Event, HTTPRoute, Ingress, Lease, LeaseSpec, Node, ObjectMeta, ObjectReference, ServiceCIDR, key
from edgekeeper.lab.kube import Cluster

Story = Callable[[Api], Coroutine[Any, Any, None]]


def tell(story: Story, config: Kubernetes) -> None:
    async def told() -> None:
        async with connect(config) as api:
            await story(api)

    asyncio.run(told())


@pytest.fixture
def config(cluster, tmp_path) -> Kubernetes:
    return Kubernetes(kubeconfig=str(cluster.kubeconfig(tmp_path / "kubeconfig")))


def web(namespace: str, name: str = "web") -> Ingress:
    return Ingress.from_dict({"metadata": {"name": name, "namespace": namespace}, "spec": {"rules": [{"host": "a.example"}]}})


def test_an_object_is_made_read_changed_and_deleted(config, namespace):
    async def story(api: Api) -> None:
        made = await api.create(web(namespace))
        assert (key(made), made.apiVersion, made.kind) == ((namespace, "web"), "networking.k8s.io/v1", "Ingress")
        with pytest.raises(Conflict, match="already exists"):
            await api.create(web(namespace))
        made.metadata.labels = {"a": "b"}
        newer = await api.replace(made)
        with pytest.raises(Conflict, match="modified"):
            await api.replace(made)
        assert (await api.get(Ingress, "web", namespace=namespace)) == newer
        with pytest.raises(Conflict):
            await api.delete(Ingress, "web", namespace=namespace, uid="00000000-0000-0000-0000-000000000000")
        await api.delete(Ingress, "web", namespace=namespace, uid=made.metadata.uid, dry_run=True)
        assert await api.get(Ingress, "web", namespace=namespace) is not None
        await api.delete(Ingress, "web", namespace=namespace, uid=made.metadata.uid, grace_s=0)
        assert await api.get(Ingress, "web", namespace=namespace) is None
        with pytest.raises(Absent):
            await api.delete(Ingress, "web", namespace=namespace)

    tell(story, config)


def test_nothing_is_written_in_a_dry_run(config, namespace):
    async def story(api: Api) -> None:
        assert (await api.create(web(namespace), dry_run=True)).metadata.uid
        assert not (await api.list(Ingress, namespace=namespace)).items
        with pytest.raises(Invalid, match="Invalid value"):
            await api.create(web(namespace, "no_name"), dry_run=True)

    tell(story, config)


def test_the_four_kinds_of_patches(config, namespace):
    async def story(api: Api) -> None:
        await api.create(web(namespace))
        where: dict[str, Any] = {"namespace": namespace}
        await api.patch(Ingress, "web", {"metadata": {"annotations": {"a.example/x": "1", "a.example/y": "2"}}}, **where)
        await api.patch(Ingress, "web", [{"op": "test", "path": "/metadata/name", "value": "web"}, {"op": "remove", "path": "/metadata/annotations/a.example~1x"}],
                        how="json", **where)  # fmt: skip
        got = await api.patch(Ingress, "web", {"metadata": {"labels": {"l": "1"}}}, how="strategic", **where)
        assert (got.metadata.annotations, got.metadata.labels) == ({"a.example/y": "2"}, {"l": "1"})
        await api.patch(Ingress, "web", {"metadata": {"annotations": {"a.example/z": "1"}}}, how="apply", owner="one", **where)
        other = {"metadata": {"annotations": {"a.example/z": "2"}}}
        with pytest.raises(Conflict, match="conflict"):
            await api.patch(Ingress, "web", other, how="apply", owner="two", **where)
        assert (await api.patch(Ingress, "web", other, how="apply", owner="two", force=True, **where)).metadata.annotations["a.example/z"] == "2"
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
        assert (await api.patch(Ingress, "web", status, subresource="status", **where)).status.loadBalancer.ingress[0].ip == "192.0.2.7"

    tell(story, config)


def test_lists_by_namespace_label_and_field_in_pages_of_any_size(config, namespace):
    async def story(api: Api) -> None:
        for index in range(5):
            one = web(namespace, f"w-{index}")
            one.metadata.labels = {"odd": str(index % 2)}
            await api.create(one)
        for chunk in (1, 2, 500, 0):
            assert [key(one)[1] for one in (await api.list(Ingress, namespace=namespace, chunk=chunk)).items] == [f"w-{i}" for i in range(5)]
        assert len((await api.list(Ingress, namespace=namespace, labels="odd=1")).items) == 2
        assert len((await api.list(Ingress, namespace=namespace, fields="metadata.name=w-3")).items) == 1
        everywhere = await api.list(Ingress)
        assert {key(one) for one in everywhere.items} >= {(namespace, "w-0")}
        assert int(everywhere.version) > 0

    tell(story, config)


def test_slices_without_endpoints_leases_events_and_nodes(config, namespace):
    async def story(api: Api) -> None:
        await api.create(EndpointSlice(addressType="IPv4", endpoints=[], metadata=ObjectMeta(name="s", namespace=namespace)))
        assert not (await api.list(EndpointSlice, namespace=namespace)).items[0].endpoints
        lease = await api.create(Lease(metadata=ObjectMeta(name="l", namespace=namespace), spec=LeaseSpec(holderIdentity="me", leaseDurationSeconds=15)))
        assert lease.spec.holderIdentity == "me"
        about = ObjectReference(kind="Ingress", name="web", namespace=namespace)
        event = Event(involvedObject=about, metadata=ObjectMeta(generateName="web.", namespace=namespace), reason="Told", message="hello", type="Normal")
        assert (await api.create(event)).metadata.name.startswith("web.")
        node = await api.create(Node(metadata=ObjectMeta(name=f"n-{namespace}")))
        assert (await api.get(Node, key(node)[1])).metadata.uid == node.metadata.uid
        await api.delete(Node, key(node)[1])

    tell(story, config)


def test_a_kind_that_is_not_installed_is_absent_wherever_it_is_asked_for(config, namespace):
    async def story(api: Api) -> None:
        with pytest.raises(Absent):
            await api.list(HTTPRoute)
        with pytest.raises(Absent):
            await api.list(ServiceCIDR)
        assert await api.get(HTTPRoute, "r", namespace=namespace) is None

    tell(story, config)


def test_one_that_hangs_is_left_after_the_deadline_and_the_next_question_goes_to_the_next(clusters, tmp_path):
    cluster: Cluster = clusters(apis=("127.0.0.1:0", "127.0.0.1:0"))
    config = Kubernetes(kubeconfig=str(cluster.kubeconfig(tmp_path / "k")), servers=(cluster.urls[1],), timeout=1.0)

    async def story(api: Api) -> None:
        version = await api.version()
        assert version.startswith("v1.")
        cluster.freeze(0)
        try:
            async with api.at(cluster.urls[0]) as own:  # a new connection hangs in its TLS handshake
                began = time.monotonic()
                with pytest.raises(Unreachable, match=r"within 1 s"):
                    await own.version()
                assert time.monotonic() - began < 1.5
            with pytest.raises(Unreachable, match=r"within 1 s"):
                await api.version()
            assert api.server == cluster.urls[1]
            assert await api.version() == version
            async with connect(config) as fresh:  # as a command does, which asks once
                assert not (await fresh.list(Ingress)).items
                assert fresh.server == cluster.urls[1]
            async with api.at(cluster.urls[1]) as own:
                assert await own.may("list", "", "pods")
        finally:
            cluster.thaw(0)

    tell(story, config)


def test_after_a_silence_the_next_question_opens_a_new_connection(cluster, config):
    """Behind a balancer the open one stays with the server that hangs."""

    async def story(_: Api) -> None:
        connections = 0
        hangs = asyncio.Event()
        host, _, port = cluster.url.removeprefix("https://").rpartition(":")

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, may_hang: bool) -> None:
            try:
                while data := await reader.read(65536):
                    if may_hang and hangs.is_set():
                        await asyncio.sleep(60)
                    writer.write(data)
            finally:
                writer.close()

        async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            there = await asyncio.open_connection(host, int(port))
            first = connections <= 2
            await asyncio.gather(pump(reader, there[1], may_hang=first), pump(there[0], writer, may_hang=first), return_exceptions=True)

        proxy = await asyncio.start_server(through, "127.0.0.1", 0)
        where = f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        async with connect(Kubernetes(kubeconfig=config.kubeconfig, timeout=0.5), server=where) as api:
            await asyncio.gather(api.version(), api.version())  # two idle connections
            assert connections == 2
            await api.version()
            assert connections == 2
            hangs.set()
            with pytest.raises(Unreachable):
                await api.version()
            assert await api.version()
            assert connections == 3
        proxy.close()

    tell(story, config)


def written(path: Path, cluster: Cluster, user: dict[str, Any], **about: Any) -> Kubernetes:
    text = Path(cluster.ca_file).read_bytes()
    place = {"server": cluster.url, "certificate-authority-data": base64.b64encode(text).decode(), **about}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {name: value for name, value in place.items() if value is not None}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return Kubernetes(kubeconfig=str(path))


def test_a_token_that_is_replaced_in_its_file_is_used_from_the_next_question_on(cluster, tmp_path):
    token = tmp_path / "token"
    token.write_text(cluster.tokens["admin"])

    async def story(api: Api) -> None:
        assert await api.may("get", "", "pods")
        assert api.namespace == "shop"
        token.write_text("wrong")
        with pytest.raises(Forbidden, match="does not know who asks"):
            await api.may("get", "", "pods")
        token.write_text(cluster.tokens["admin"] + "\n")
        assert await api.may("get", "", "pods")

    tell(story, written(tmp_path / "k", cluster, {"tokenFile": "token"}))


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_program_gives_the_token_and_is_asked_again_when_it_is_refused(cluster, tmp_path, version):
    program = tmp_path / "login"
    program.write_text(
        '#!/bin/sh\necho run >> "$RUNS"\necho "a complaint" >&2\n'
        'printf \'{"apiVersion":"client.authentication.k8s.io/%s","kind":"ExecCredential","status":{"token":"%s"}}\' "$1" "$(cat "$TOKEN")"\n'
    )
    program.chmod(0o755)
    (tmp_path / "token").write_text(cluster.tokens["admin"])
    env = [{"name": "RUNS", "value": str(tmp_path / "runs")}, {"name": "TOKEN", "value": str(tmp_path / "token")}]
    user = {"exec": {"apiVersion": f"client.authentication.k8s.io/{version}", "command": "./login", "args": [version], "env": env, "interactiveMode": "Never"}}

    def runs() -> int:
        return len((tmp_path / "runs").read_text().splitlines())

    async def story(api: Api) -> None:
        await asyncio.gather(*(api.may("get", "", "pods") for _ in range(5)))
        assert runs() == 1
        (tmp_path / "token").write_text("wrong")
        assert await api.may("get", "", "pods")
        assert runs() == 1
        api._access.login._header = "Bearer stale"  # type: ignore[attr-defined]
        with pytest.raises(Forbidden):
            await api.may("get", "", "pods")
        (tmp_path / "token").write_text(cluster.tokens["admin"])
        await asyncio.gather(*(api.may("get", "", "pods") for _ in range(5)))
        assert runs() == 3

    tell(story, written(tmp_path / "k", cluster, user))


def test_a_server_whose_certificate_is_not_the_clusters_gets_no_token(cluster, tmp_path):
    stranger = tmp_path / "stranger.crt"
    stranger.write_text(Authority("somebody else", time.time(), 2).own.certificate)

    async def story(api: Api) -> None:
        with pytest.raises(Unreachable, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
            await api.version()

    user = {"token": cluster.tokens["admin"]}
    tell(story, written(tmp_path / "k", cluster, user, **{"certificate-authority-data": None, "certificate-authority": "stranger.crt"}))
    tell(story, written(tmp_path / "k", cluster, user, **{"tls-server-name": "other.example"}))

    async def trusting(api: Api) -> None:
        assert await api.version()

    tell(trusting, written(tmp_path / "k", cluster, user, **{"tls-server-name": "localhost"}))
    tell(trusting, written(tmp_path / "k", cluster, user, **{"certificate-authority-data": None, "insecure-skip-tls-verify": True}))


def test_a_client_certificate_says_who_asks_and_a_missing_right_is_named(clusters, tmp_path):
    authority = Authority("clients", time.time(), 2)
    (tmp_path / "clients.crt").write_text(authority.own.certificate)
    pair = authority.issue(["carol"])
    cluster: Cluster = clusters(rbac=True, flags=(f"--client-ca-file={tmp_path}/clients.crt",))
    (tmp_path / "own.crt").write_text(pair.certificate)
    (tmp_path / "own.key").write_text(pair.key)
    data = {
        f"client-{name}-data": base64.b64encode(text.encode()).decode()
        for name, text in (("certificate", pair.certificate), ("key", pair.key))
    }  # fmt: skip

    async def story(api: Api) -> None:
        with pytest.raises(Forbidden, match=r'list ingresses\.networking.k8s.io.*"carol" cannot list.*deploy/kubernetes/rbac/'):
            await api.list(Ingress)
        assert not await api.may("list", "networking.k8s.io", "ingresses")
        assert not await api.may("create", "", "pods/eviction", "shop")

    tell(story, written(tmp_path / "k", cluster, {"client-certificate": "own.crt", "client-key": "own.key"}))
    tell(story, written(tmp_path / "k", cluster, data))

    stranger = Authority("others", time.time(), 2).issue(["carol"])

    async def renewed(api: Api) -> None:
        """As a kubelet's certificate is, under the same name."""
        with pytest.raises(Forbidden, match="does not know who asks"):
            await api.may("list", "", "pods")
        (tmp_path / "own.crt").write_text(pair.certificate)
        (tmp_path / "own.key").write_text(pair.key)
        assert not await api.may("list", "", "pods")

    (tmp_path / "own.crt").write_text(stranger.certificate)
    (tmp_path / "own.key").write_text(stranger.key)
    tell(renewed, written(tmp_path / "k", cluster, {"client-certificate": "own.crt", "client-key": "own.key"}))

    async def broken(api: Api) -> None:
        with pytest.raises(MissingError, match=r"client certificate for https://.* cannot be used"):
            await api.version()

    tell(broken, written(tmp_path / "k", cluster, {**data, "client-key-data": base64.b64encode(b"no key").decode()}))

"""A copy of the cluster while its API dies, hangs, forgets and comes back: with real API servers."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.objects import EndpointSlice, Ingress, ObjectMeta
from edgekeeper.kube.reflector import Reflector
from edgekeeper.lab.kube import Cluster

SPACE = "shop"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two API servers on one etcd, which these tests break one at a time; what etcd has compacted is forgotten at once."""
    made = Cluster(tmp_path_factory.mktemp("kube"), apis=("127.0.0.1:0", "127.0.0.1:0"), watch_cache=False)

    async def start() -> None:
        await made.start()
        await made.make_namespace(SPACE)

    asyncio.run(start())
    yield made
    asyncio.run(made.stop())


async def until(what: str, check: Callable[[], Any], timeout_s: float = 20.0) -> float:
    """Wait for it; how long it took in seconds."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < timeout_s, f"not within {timeout_s:g} s: {what}"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


def wanted(cluster: Cluster, **options: Any) -> Kubernetes:
    return Kubernetes(kubeconfig=str(cluster.kubeconfig(cluster.folder / "kubeconfig")), **options)


@contextlib.asynccontextmanager
async def copied(api: Api, kind: Any = Ingress, **options: Any) -> AsyncIterator[Reflector[Any, str]]:
    """A running copy of which version each object has."""
    copy: Reflector[Any, str] = Reflector(api, kind, clock=SystemClock(), project=lambda obj: str(obj.metadata.resourceVersion), namespace=SPACE, **options)
    running = asyncio.create_task(copy.run())
    try:
        await until("the copy is full", lambda: copy.synced)
        yield copy
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def shop(name: str) -> Ingress:
    return Ingress.from_dict({"metadata": {"name": name, "namespace": SPACE}, "spec": {"rules": [{"host": f"{name}.example"}]}})


def names(copy: Reflector[Any, Any]) -> set[str]:
    return {name for _, name in copy.items}


def story(tell: Callable[[Api], Awaitable[None]], config: Kubernetes) -> None:
    async def told() -> None:
        async with connect(config) as api:
            await tell(api)

    asyncio.run(told())


class Refusing:
    """In the place of a dead API server: takes connections, counts them, and ends each."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.came: list[float] = []

    async def _one(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came.append(time.monotonic())
        writer.transport.abort()

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._one, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await self.server.wait_closed()


def test_a_server_that_hangs_is_noticed_within_its_silence_and_another_one_is_asked(pair):
    async def tell(api: Api) -> None:
        async with copied(api) as copy, api.at(pair.urls[1]) as other:
            await other.create(shop("before"))
            await until("the event before", lambda: "before" in names(copy))
            pair.freeze(0)
            began = time.monotonic()
            try:
                oldest = 0.0
                for index in range(200):
                    await other.create(shop(f"while-{index}"))
                    await asyncio.sleep(0.1)
                    oldest = max(oldest, copy.stale_s() or 0.0)
                    if "while-0" in names(copy):
                        break
                took = time.monotonic() - began
                print(f"a black hole was left after {took:.1f} s; the copy was {oldest:.1f} s old")  # noqa: T201
                assert took < api.silence_s + 2
                assert oldest < api.silence_s + 2
                await until("all of them", lambda: names(copy) >= {f"while-{i}" for i in range(index + 1)}, 2)
                assert api.server == pair.urls[1]
                assert copy.lists == 1, "it went on from where it was"
                await until("the copy says that all is well", lambda: copy.why == "", 3)
            finally:
                pair.thaw(0)
                for one in (await other.list(Ingress, namespace=SPACE)).items:
                    await other.delete(Ingress, one.metadata.name, namespace=SPACE)

    story(tell, wanted(pair, servers=pair.urls))


def test_while_the_api_is_down_it_is_asked_seldom_and_no_deletion_is_lost_when_it_has_forgotten(pair):
    async def tell(api: Api) -> None:
        async with copied(api) as copy, api.at(pair.urls[1]) as other, copied(api, EndpointSlice) as slices:
            for name in ("stays", "goes", "changes"):
                await api.create(shop(name))
            await until("three", lambda: names(copy) == {"stays", "goes", "changes"})
            stays, changes = copy.items[SPACE, "stays"], copy.items[SPACE, "changes"]
            pair.kill(0)
            async with Refusing(int(pair.urls[0].rpartition(":")[2])) as dead:
                await asyncio.sleep(2)
                await other.delete(Ingress, "goes", namespace=SPACE)
                await other.patch(Ingress, "changes", {"metadata": {"labels": {"a": "b"}}}, namespace=SPACE)
                await other.create(shop("comes"))
                await other.create(EndpointSlice(addressType="IPv4", endpoints=[], metadata=ObjectMeta(name="empty", namespace=SPACE)))
                await pair.compact()
                await asyncio.sleep(8)
                came = len(dead.came)
            print(f"two copies asked a dead API {came} times in 10 s")  # noqa: T201
            assert came <= 2 * (10 + 4)
            assert names(copy) == {"stays", "goes", "changes"}, "what is old stays, and its age is told"
            assert (copy.stale_s() or 0) > 9
            assert copy.why
            await pair.start_api(0)
            took = await until("what happened meanwhile", lambda: names(copy) == {"stays", "changes", "comes"} and names(slices) == {"empty"}, 10)
            print(f"{took:.1f} s after it was back the copy was right, after {copy.lists} lists")  # noqa: T201
            assert copy.items[SPACE, "stays"] == stays
            assert copy.items[SPACE, "changes"] != changes
            await until("the copy says that all is well", lambda: not copy.why, 3)
            for name in ("stays", "changes", "comes"):
                await api.delete(Ingress, name, namespace=SPACE)
            await until("none", lambda: not copy.items)

    story(tell, wanted(pair))


def test_an_expired_version_loses_no_deletion_while_the_server_lives(pair):
    """The watch is cut, not the server: it comes back with a version that etcd has compacted, and is told so in the stream."""

    async def tell(api: Api) -> None:
        async with api.at(pair.urls[0]) as own, copied(own) as copy:
            await api.create(shop("goes"))
            await until("it is there", lambda: names(copy) == {"goes"})
            pair.freeze(0)
            async with api.at(pair.urls[1]) as other:
                await other.delete(Ingress, "goes", namespace=SPACE)
                await other.create(shop("comes"))
                await pair.compact()
                pair.kill(0)
                await pair.start_api(0)
                await until("the deletion", lambda: names(copy) == {"comes"}, 8)
                assert copy.lists == 2
                await other.delete(Ingress, "comes", namespace=SPACE)

    story(tell, wanted(pair))


def test_pages_that_expire_between_them_are_one_full_list(pair):
    async def tell(api: Api) -> None:
        for index in range(6):
            await api.create(shop(f"p-{index}"))
        ask = api._ask
        asked = 0

        async def compacted(*words: Any, **more: Any) -> Any:
            nonlocal asked
            asked += words[0] == "GET"
            if asked == 2 and words[0] == "GET":
                await api.patch(Ingress, "p-0", {"metadata": {"labels": {"a": "b"}}}, namespace=SPACE)
                await pair.compact()
            return await ask(*words, **more)

        api._ask = compacted  # type: ignore[method-assign]
        listed = await api.list(Ingress, namespace=SPACE, chunk=2)
        assert [one.metadata.name for one in listed.items] == [f"p-{index}" for index in range(6)]
        assert asked == 3, "two pages, of which one came too late, and all"
        for index in range(6):
            await api.delete(Ingress, f"p-{index}", namespace=SPACE)

    story(tell, wanted(pair))


def test_windows_without_events_cost_no_list_and_the_copy_is_never_old(pair):
    async def tell(api: Api) -> None:
        seen: list[float] = []
        real = api.watch

        def short(*words: Any, **more: Any) -> Any:
            return real(*words, **{**more, "window_s": 1})

        api.watch = short  # type: ignore[method-assign]
        async with copied(api) as copy:
            for _ in range(35):
                await asyncio.sleep(0.1)
                seen.append(copy.stale_s() or 0.0)
            assert copy.lists == 1
        assert max(seen) < 3

    story(tell, wanted(pair))


def test_a_cluster_made_anew_is_seen_by_a_copy_of_before_though_its_watch_goes_on_in_good_order(clusters):
    """Its versions begin anew, so a watch from a version of before tells nothing until they get there."""
    cluster: Cluster = clusters()

    async def tell(api: Api) -> None:
        await cluster.make_namespace(SPACE)
        well, ask, watch = asyncio.Event(), api._ask, api.watch
        well.set()

        async def held(*words: Any, **more: Any) -> Any:
            await well.wait()
            return await ask(*words, **more)

        async def watched(*words: Any, **more: Any) -> Any:
            await well.wait()
            async with contextlib.aclosing(watch(*words, **more)) as events:
                async for event in events:
                    yield event

        api._ask, api.watch = held, watched  # type: ignore[assignment, method-assign] -- as behind a balancer without a server: one failure, and a wait
        async with api.at(cluster.url) as own, copied(api) as copy:
            for index in range(20):
                await own.create(shop(f"before-{index}"))
            await until("all of them", lambda: len(copy.items) == 20)
            well.clear()
            cluster.kill()
            cluster.kill_named("etcd")
            shutil.rmtree(cluster.folder / "etcd")
            await cluster.start_etcd()
            await cluster.start_api()
            await cluster.make_namespace(SPACE)
            await own.create(shop("after"))
            well.set()
            await until("what is there now", lambda: names(copy) == {"after"}, 5)
            await until("the copy says that all is well", lambda: copy.why == "", 3)

    story(tell, wanted(cluster))


def test_where_nobody_listens_the_copy_says_so_and_is_never_called_full(tmp_path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    file = tmp_path / "kubeconfig"
    file.write_text(f"clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\ncontexts: [{{name: c, context: {{cluster: c}}}}]\ncurrent-context: c\nusers: []\n")

    async def tell(api: Api) -> None:
        copy: Reflector[Any, str] = Reflector(api, Ingress, clock=SystemClock(), project=lambda _: "x")
        running = asyncio.create_task(copy.run())
        await until("it says why", lambda: copy.why, 5)
        running.cancel()
        assert url in copy.why
        assert copy.stale_s() is None
        assert not copy.synced

    story(tell, Kubernetes(kubeconfig=str(file)))

from __future__ import annotations

import asyncio
from types import SimpleNamespace as Thing
from typing import Any

from edgekeeper.config.expose import Expose
from edgekeeper.expose.kinds import Claim, Origin
from edgekeeper.expose.sources.followed import GONE_S
from edgekeeper.expose.sources.kubernetes import KubernetesSource
from edgekeeper.kube.errors import Absent, Unreachable

CLAIM = Claim(Origin("HTTPRoute", "a", "web"), ("www.example",))


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Server:
    """Stands for the API: has the versions of a kind that it is told, or is away."""

    def __init__(self) -> None:
        self.has: set[str] = set()
        self.away = False

    async def pages(self, kind: Any, **_: Any):
        if self.away:
            raise Unreachable("no answer")
        if kind._api_info.resource.version not in self.has:
            raise Absent("no such kind")
        yield Thing(items=[], version="1")


def source_on(server: Server, clock: Clock, target: Any = "192.0.2.1") -> KubernetesSource:
    expose = Expose.model_validate(
        {
            "owner": "home",
            "netbird": {"url": "https://netbird.example", "token_env": "T"},
            "targets": {"default": target},
            "sources": {"ingress": False, "httproute": True},
        }
    )
    return KubernetesSource(server, expose, clock, silence_s=15.0)


def copy(age: float = 0.0, why: str = "") -> Any:
    return Thing(items={("a", "web"): CLAIM}, synced=True, why=why, stale_s=lambda: age)


def test_a_copy_that_was_not_heard_of_lately_is_not_whole_and_says_so():
    source = source_on(Server(), Clock())
    assert (source.snapshot().whole, source.snapshot().lists) == (False, 0)
    source._followed[0]._shown = copy(29.0)
    assert (source.snapshot().whole, source.snapshot().lists) == (True, 1)
    source._followed[0]._shown = copy(31.0)
    now = source.snapshot()
    assert (now.whole, now.lists, now.claims, now.stale_s) == (False, 1, (CLAIM,), 31.0)
    assert "31 s ago" in now.why


def test_there_is_no_first_view_before_the_services_and_their_network_were_asked_for():
    source = source_on(Server(), Clock(), {"service": "web/web"})
    source._followed[0]._shown = copy()
    assert (source.snapshot().whole, source.snapshot().lists) == (False, 0)
    source._network_asked = True
    assert "Services of web" in source.snapshot().why
    source._fronts["web"].why = "no right"  # then it is told, and the rest goes on
    assert (source.snapshot().whole, source.snapshot().lists) == (True, 1)


def test_the_version_that_the_cluster_has_is_followed():
    async def story() -> None:
        server = Server()
        kind = source_on(server, Clock())._followed[0]
        server.has = {"v1beta1"}
        assert (await kind._which())._api_info.resource.version == "v1beta1"
        server.has = {"v1beta1", "v1"}
        assert (await kind._which())._api_info.resource.version == "v1"

    asyncio.run(story())


def test_a_kind_that_vanishes_is_believed_to_be_gone_only_after_a_while_and_one_that_is_not_heard_of_never():
    async def story() -> None:
        server, clock = Server(), Clock()
        source = source_on(server, clock)
        kind = source._followed[0]
        kind._shown = copy(40.0)
        server.away = True
        clock.now += 10 * GONE_S
        assert await kind._which() is None
        assert source.snapshot().claims == (CLAIM,)
        server.away = False
        await kind._which()
        clock.now += GONE_S - 1
        await kind._which()
        assert (source.snapshot().claims, source.snapshot().absent, source.snapshot().whole) == ((CLAIM,), (), False)
        clock.now += 1
        await kind._which()
        assert (source.snapshot().claims, source.snapshot().absent, source.snapshot().whole) == ((), ("HTTPRoute",), True)
        server.has = {"v1"}
        await kind._which()
        assert (source.snapshot().absent, source.snapshot().whole) == ((), False)

    asyncio.run(story())


def test_a_fresh_list_that_says_something_else_than_the_watch_does_not_count(monkeypatch):
    async def story() -> None:
        monkeypatch.setattr("edgekeeper.expose.sources.followed._CATCHING_UP_S", 0.0)
        server = Server()
        server.has = {"v1"}
        source = source_on(server, Clock())
        kind = source._followed[0]
        kind._shown = copy()
        assert not await source.relist()
        assert "begun anew" in source.snapshot().relisted
        assert kind._anew.is_set()
        kind._shown.items.clear()
        assert await source.relist()

    asyncio.run(story())

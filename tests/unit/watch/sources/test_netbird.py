"""The sight of a proxy's log, judged by what Docker tells of its container."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from edgekeeper.errors import MissingError
from edgekeeper.host.docker import Docker, Which
from edgekeeper.model.container import Container
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.netbird import NetbirdSource

LINE = b"a line\n"


class Inner:
    """A source that tells these sights, one a turn of the loop, and hands over a line after each."""

    def __init__(self, *sights: Sight) -> None:
        self._sights = sights

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        for sight in self._sights:
            state(sight)
            arrived(LINE, 0.0)
            for _ in range(5):
                await asyncio.sleep(0)


class Told:
    """Docker, with an environment for each time it is asked; None: it does not answer."""

    def __init__(self, *envs: tuple[str, ...] | None) -> None:
        self.envs = list(envs)

    async def find(self, which: Which) -> Container:
        env = self.envs.pop(0)
        if env is None:
            msg = "nobody listens"
            raise MissingError(msg)
        return Container("id", "netbird-proxy", "netbirdio/reverse-proxy:0.74.4", "running", 1, "", "", False, 10, env, ())


def follow(docker: Told, *sights: Sight, health: str | None = None) -> list[Sight]:
    told: list[Sight] = []
    lines: list[bytes] = []

    async def work() -> None:
        source = NetbirdSource(Inner(*sights), cast("Docker", docker), Which(name="netbird-proxy"), health)
        await source.follow(lambda chunk, _: lines.append(chunk), told.append)
        await asyncio.sleep(0)
        left: set[asyncio.Task[Any]] = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
        assert not left

    asyncio.run(work())
    assert lines == [LINE] * len(sights)
    return told


def test_a_proxy_that_hides_its_warnings_is_not_seen() -> None:
    told = follow(Told(("NB_PROXY_CLIENT_LOG_LEVEL=error", "NB_PROXY_TOKEN=made-up-secret")), Sight(True, "it is followed", 1.0))
    assert [sight.seeing for sight in told] == [True, False]
    assert "hides the lines" in told[-1].why
    assert told[-1].started == 1.0
    assert "made-up-secret" not in str(told)


def test_of_one_that_is_seen_the_version_is_told_and_asked_once_a_start() -> None:
    docker = Told((), ())
    told = follow(docker, Sight(True, "it is followed", 1.0), Sight(True, "it lags", 1.0), Sight(False, "it is gone"), Sight(True, "it is followed", 2.0))
    assert not docker.envs
    assert all(sight.seeing for sight in (told[0], told[1], told[2], told[-1]))
    assert told[1].why == "it is followed; proxy 0.74.4 does not heal a wedge of its routes itself; since 0.75.1 it mostly does"
    assert told[2].why.startswith("it lags; ")
    assert told[3] == Sight(False, "it is gone")


def test_a_restart_with_another_level_is_seen_again() -> None:
    told = follow(Told(("NB_PROXY_CLIENT_LOG_LEVEL=error",), ("NB_PROXY_CLIENT_LOG_LEVEL=warn",)), Sight(True, "x", 1.0), Sight(True, "x", 2.0))
    assert [sight.seeing for sight in told][-1] is True
    assert told[1].seeing is False


def test_a_docker_that_does_not_answer_changes_nothing() -> None:
    sight = Sight(True, "it is followed", 1.0)
    assert follow(Told(None), sight) == [sight]


def test_a_health_document_that_is_elsewhere_is_told() -> None:
    env = ("NB_PROXY_HEALTH_ADDRESS=:9090",)
    told = follow(Told(env), Sight(True, "x", 1.0), health="http://127.0.0.1:8080/healthz")
    assert told[-1].why.endswith("say guard: {health: {url: http://127.0.0.1:9090/healthz}}")
    assert "say guard" not in follow(Told(env), Sight(True, "x", 1.0), health="http://127.0.0.1:9090/healthz")[-1].why

"""The sweep over a real HAProxy with the directive: what it leaves in old workers and in a service's twin is ended, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.journal import FileJournal
from edgekeeper.lb.brake import Manner
from edgekeeper.lb.sweep import EVERY_S, Sweeper

from .balancer import Balancer, balancer

pytestmark = pytest.mark.engine


def play(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 50))


def on(stage: Balancer, name: str) -> list[Any]:
    return [s for s in stage.sessions if s.server == name]


def new_sweeper(stage: Balancer, manner: Manner) -> Sweeper:
    return Sweeper(Admin(stage.master), manner, SystemClock(), FileJournal(stage.folder, "edge-a", SystemClock()))


async def sweep_on(sweeper: Sweeper) -> None:
    while True:
        await sweeper.sweep()
        await asyncio.sleep(EVERY_S)


@pytest.mark.parametrize("version", ["2.6", "3.0", "3.2"])
def test_old_workers_are_swept_within_a_second_of_down(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path, directive=True) as stage:
            old = await stage.open(6)
            await stage.reload()
            await stage.open(6)
            sweeper = new_sweeper(stage, Manner())
            sweeping = asyncio.create_task(sweep_on(sweeper))
            stage.servers["cp1"].mode = "hole"
            down = await stage.until_state(lambda found: found["cp1"].status.startswith("DOWN"))
            await stage.until(lambda: all(s.ended for s in on(stage, "cp1")))
            assert all(s.ended_at - down < 1.0 for s in old if s.server == "cp1")
            await asyncio.sleep(2 * EVERY_S)
            assert sweeper.cuts_per_minute == sweeper.total == 2, "those of the current worker HAProxy has ended"
            for session in [*on(stage, "cp2"), *on(stage, "cp3")]:
                assert await session.ask() == session.server
            sweeping.cancel()

    play(work)


@pytest.mark.parametrize("version", ["2.6", "3.2"])
def test_a_haproxy_that_was_seen_not_to_cut_is_helped(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path) as stage:
            await stage.open(6)
            sweeper = new_sweeper(stage, Manner(cuts_itself=False))
            sweeping = asyncio.create_task(sweep_on(sweeper))
            stage.servers["cp1"].mode = "hole"
            down = await stage.until_state(lambda found: found["cp1"].status.startswith("DOWN"))
            await stage.until(lambda: all(s.ended for s in on(stage, "cp1")))
            assert all(s.ended_at - down < 1.0 for s in on(stage, "cp1"))
            sweeping.cancel()

    play(work)


@pytest.mark.parametrize("version", ["2.6", "3.2"])
def test_sessions_in_a_twin_stay_while_all_are_down_and_go_once_another_has_settled(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path, directive=True, twins=("api-open",)) as stage:
            sweeper = new_sweeper(stage, Manner({"api-open": "api"}, settle_s=1.0))
            for server in stage.servers.values():
                server.mode = "unready"
            await stage.until_state(lambda found: all(s.status.startswith("DOWN") for s in found.values()))
            await stage.open(6)
            sweeping = asyncio.create_task(sweep_on(sweeper))
            await asyncio.sleep(2)
            assert not any(s.ended for s in stage.sessions)
            assert len(sweeper.held) == 3
            stage.servers["cp1"].mode = stage.servers["cp2"].mode = "ok"
            up = await stage.until_state(lambda found: found["cp1"].status.startswith("UP") and found["cp2"].status.startswith("UP"))
            await stage.until(lambda: all(s.ended for s in on(stage, "cp3")))
            assert all(0.4 < s.ended_at - up < 1.0 + 2 * EVERY_S for s in on(stage, "cp3"))
            for session in [*on(stage, "cp1"), *on(stage, "cp2")]:
                assert await session.ask() == session.server
            sweeping.cancel()

    play(work)

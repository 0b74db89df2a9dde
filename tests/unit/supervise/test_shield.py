"""What a role wraps around the steps that clients could feel: around those, around nothing else, and left whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.world import FEWER, ONE, WIDER, World

from edgekeeper.host.process import Finished
from edgekeeper.ports import Change, Cost
from edgekeeper.supervise.shield import Step, unshielded


class Watched:
    """A world whose shield writes down when it is up, beside what happens to the engine."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.said = World(folder, monkeypatch), list[str]()
        self.world.actor._shield = self.shield
        reload, run = self.world.hands.reload, self.world.crew.stop

        async def reloaded(*words: object) -> str | None:
            self.said.append("reload")
            return await reload(*words)  # type: ignore[arg-type]

        async def stopped(*words: object) -> str:
            self.said.append("stop")
            return await run(*words)  # type: ignore[arg-type]

        spawn = self.world.crew.start

        def started(*words: object, **named: object) -> object:
            self.said.append("start")
            return spawn(*words, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(self.world.hands, "reload", reloaded)
        monkeypatch.setattr(self.world.crew, "stop", stopped)
        monkeypatch.setattr(self.world.crew, "start", started)

    @contextlib.asynccontextmanager
    async def shield(self, step: Step) -> AsyncIterator[None]:
        self.said.append(f"<{step}")
        try:
            yield
        finally:
            self.said.append(f"{step}>")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path, monkeypatch)


def test_start_reload_and_stop_are_shielded(watched: Watched) -> None:
    world = watched.world
    world.engine.uncertain = Cost.RELOAD
    world.engine.change = lambda old, new: Change(Cost.NOTHING if old == new else Cost.RELOAD, "other", "x")  # type: ignore[method-assign]

    async def story() -> None:
        await world.begin()
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.in_force(WIDER))

    world.play(story)
    assert watched.said == ["<start", "start", "start>", "<reload", "reload", "reload>", "<stop", "stop", "stop>"]


def test_what_touches_no_client_is_not_shielded(watched: Watched) -> None:
    """A check, also one that refuses, and a live change."""
    world = watched.world

    async def story() -> None:
        await world.begin()
        before = len(watched.said)
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.in_force(FEWER))
        assert world.actor.how == "live"
        world.checks = [Finished(1, "no")]
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.supervisor.state.refused)
        assert watched.said[before:] == []

    world.play(story)


def test_an_exchange_and_a_start_after_an_exit_are_starts(watched: Watched) -> None:
    world = watched.world

    async def story() -> None:
        await world.begin()
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.in_force(WIDER))
        assert watched.said[3:] == ["<start", "start", "stop", "start>"]

    world.play(story)


def test_a_step_that_fails_leaves_its_shield(watched: Watched) -> None:
    world = watched.world
    world.spawns = [OSError("no such program")]

    async def story() -> None:
        world.supervisor.want(ONE, urgent=True)
        await world.until(lambda: "start>" in watched.said)
        assert watched.said[:3] == ["<start", "start", "start>"]

    world.play(story)


def test_leaving_the_engine_to_the_next_supervisor_is_no_stop(watched: Watched) -> None:
    world = watched.world

    async def work() -> None:
        task = asyncio.create_task(world.supervisor.run())
        await world.begin()
        world.supervisor.end(leave=True)
        await asyncio.wait_for(task, 5)

    asyncio.run(work())
    assert watched.said == ["<start", "start", "start>"]


def test_without_a_shield_nothing_happens_around_a_step() -> None:
    async def work() -> None:
        async with unshielded(Step.STOP):
            pass

    asyncio.run(work())

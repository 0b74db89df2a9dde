"""The supervisor over an engine that reads its files again without losing a client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.fakes.world import FEWER, ONE, WIDER, World

from edgekeeper.ports import Change, Cost
from edgekeeper.supervise.crew import Found, Hand


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_an_engine_that_reloads_is_reloaded_where_another_would_be_exchanged(world: World) -> None:
    world.engine.uncertain = Cost.RELOAD

    async def story() -> None:
        await world.begin()
        world.hands.lives = ["web-c is not there"]
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.in_force(FEWER))
        assert (len(world.started), world.actor.how) == (1, "reload")
        assert world.crew.applying is None
        world.hands.lives, world.hands.reloads = ["no"], ["a port is taken", None]
        world.supervisor.want(ONE, urgent=True)
        await world.until(lambda: world.supervisor.state.refused)
        await world.until(lambda: world.in_force(FEWER))
        assert len(world.started) == 1
        current = world.stage.current()
        assert current is not None
        assert world.crew.serving is not None
        assert current.name == world.crew.serving.generation
        assert world.supervisor.last_change["why"].endswith("is in force and answers")

    world.play(story)
    assert [why for event, why in ((str(e.event), e.why) for e in world.journal) if "a port is taken" in why]


def test_a_reload_that_was_interrupted_is_done_again_at_the_next_render_and_not_before(world: World) -> None:
    world.engine.uncertain = Cost.RELOAD
    world.engine.change = lambda old, new: Change(Cost.NOTHING if old == new else Cost.RELOAD, "other", "x")  # type: ignore[method-assign]
    never = asyncio.Event()

    async def hang(*_: object) -> None:
        await never.wait()

    async def work() -> None:
        task = asyncio.create_task(world.supervisor.run())
        await world.begin()
        world.hands.reload = hang  # type: ignore[method-assign, assignment]
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.crew.applying is not None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        del world.hands.reload  # type: ignore[method-assign]
        process = world.alive[0]
        unit = world.new()
        world.supervisor.actor.crew.find = lambda: Found(Hand(process, applied[0], 1.0), (), applied[1])  # type: ignore[method-assign, arg-type, assignment]
        again = asyncio.create_task(unit.run())
        await world.until(lambda: unit.adopted)
        assert "a reload was interrupted" in unit.why
        unit.want(WIDER)
        await world.until(lambda: world.in_force(WIDER))
        assert world.actor.how == "reload"
        assert world.alive == [process]
        unit.end(leave=True)
        await again

    applied: list[str] = []
    real = world.crew.save

    def save() -> None:
        real()
        if world.crew.applying is not None and world.crew.serving is not None:
            applied[:] = [world.crew.serving.generation, world.crew.applying]

    world.crew.save = save  # type: ignore[method-assign]
    asyncio.run(work())


def test_an_engine_that_is_in_doubt_is_brought_up_to_date_though_nothing_else_is_wanted(world: World) -> None:
    world.engine.uncertain = Cost.RELOAD

    async def story() -> None:
        world.supervisor.doubt("nothing is wanted yet")
        await world.begin()
        assert world.actor.how == "start"
        world.supervisor.doubt("its socket is gone")
        world.supervisor.doubt("its socket is gone")
        world.clock.now += 10
        await world.until(lambda: world.actor.how == "reload")
        await world.until(lambda: world.in_force(ONE))
        assert len(world.started) == 1

    world.play(story)
    assert [e.data["change"] for e in world.journal if e.data.get("how") == "reload"] == ["its socket is gone"]


def test_a_running_engine_whose_generation_was_damaged_is_still_known_and_gets_a_whole_one(world: World) -> None:
    async def story() -> None:
        await world.begin()
        assert world.crew.serving is not None
        folder = world.stage.path(world.crew.serving.generation)
        (folder / "engine.json").write_text("somebody was here")
        assert world.actor.running_intent() == ONE
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.in_force(FEWER))
        assert (len(world.started), world.actor.how) == (1, "live")

    world.play(story)

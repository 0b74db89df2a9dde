"""The whole supervisor over an engine in memory: real files and decisions, no process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.world import FEWER, ONE, WIDER, World

from edgekeeper.errors import StepFailedError
from edgekeeper.host.process import Finished
from edgekeeper.supervise import act, crew
from edgekeeper.supervise.decide import STEADY_S
from edgekeeper.supervise.loop import intent_digest


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_it_starts_and_stops_what_is_wanted(world: World) -> None:
    async def story() -> None:
        await world.begin()
        assert len(world.alive) == 1
        assert world.stage.current() is not None

    world.play(story)
    assert world.alive == []
    assert world.decisions() == [("engine.proved", "act"), ("engine.stopped", "act")]


def test_leaving_leaves_the_engine(world: World) -> None:
    async def story() -> None:
        await world.begin()
        world.supervisor.end(leave=True)
        await world.settle()
        assert len(world.alive) == 1

    async def work() -> None:
        task = asyncio.create_task(world.supervisor.run())
        await story()
        await task

    asyncio.run(work())
    assert world.decisions()[-1] == ("handover.done", "act")


def test_a_live_change_keeps_the_process_and_its_files_agree(world: World) -> None:
    async def story() -> None:
        await world.begin()
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.in_force(FEWER))
        assert len(world.started) == 1
        current = world.stage.current()
        assert current is not None
        assert world.crew.serving is not None
        assert current.name == world.crew.serving.generation
        assert current.digest == intent_digest(world.engine, FEWER)

    world.play(story)


def test_the_first_change_acts_at_once_and_the_next_waits_for_the_debounce_or_for_a_person(world: World) -> None:
    async def story() -> None:
        await world.begin()
        world.supervisor.want(FEWER)
        await world.settle()
        assert not world.in_force(FEWER)
        world.clock.now += 5
        await world.until(lambda: world.in_force(FEWER))
        world.supervisor.want(ONE, urgent=True)
        await world.until(lambda: world.in_force(ONE))

    world.play(story)


def test_an_urgent_word_without_news_does_not_hurry_a_later_change(world: World) -> None:
    async def story() -> None:
        await world.begin()
        world.supervisor.want(ONE, urgent=True)
        await world.settle()
        world.supervisor.want(FEWER)
        await world.settle()
        assert not world.in_force(FEWER)

    world.play(story)


@pytest.mark.parametrize("manner", ["overlap", "plain"])
def test_a_replacement_is_one_exchange_and_not_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manner: str) -> None:
    """The end of the old one, which was stopped on purpose, is not an unexpected exit."""
    world = World(tmp_path, monkeypatch, manner)

    async def story() -> None:
        await world.begin()
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.in_force(WIDER))
        for _ in range(5):
            world.clock.now += 1
            await world.settle()
        assert len(world.started) == 2
        assert len(world.alive) == 1
        assert world.in_force(WIDER)

    world.play(story)
    assert ("engine.exited", "act") not in world.decisions()
    assert [c for c in world.counts if c[0] == "restarts"] == [("restarts", "other"), ("restarts", "listeners")]
    assert world.counts.count(("drained", "")) == (1 if manner == "plain" else 0)


def test_a_replacement_that_is_not_proven_leaves_the_old_one_and_its_files(world: World) -> None:
    async def story() -> None:
        await world.begin()
        first = world.alive
        world.hands.proofs = ["it does not answer"]
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.supervisor.state.refused)
        assert world.alive == first
        assert world.in_force(ONE)
        current = world.stage.current()
        assert current is not None
        assert current.digest == intent_digest(world.engine, ONE)

    world.play(story)


def test_a_plain_replacement_that_is_not_proven_comes_back_with_the_last_good_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, "plain")

    async def story() -> None:
        await world.begin()
        world.hands.proofs = ["it does not answer"]
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.supervisor.state.refused and world.in_force(ONE))
        await world.settle()
        assert len(world.started) == 3
        assert len(world.alive) == 1

    world.play(story)
    assert ("engine.exited", "act") not in world.decisions()


@pytest.mark.parametrize(
    "answer", [Finished(1, "error: line 3"), Finished(-11, ""), Finished(0, ""), StepFailedError("it did not end within 20 s")], ids=range(4)
)
def test_what_the_validator_does_not_accept_touches_nothing(world: World, answer: Finished | Exception) -> None:
    async def story() -> None:
        await world.begin()
        before = world.stage.linked()
        world.checks = [answer]
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.supervisor.state.refused)
        assert len(world.started) == 1
        assert world.stage.linked() == before
        assert world.in_force(ONE)
        assert len(list((world.folder / "state" / "generations").iterdir())) == 1

    world.play(story)
    assert ("config.refused", "refuse") in world.decisions()


@pytest.mark.parametrize("error", [StepFailedError("the disk is full"), OSError(28, "No space left on device")], ids=["ours", "os"])
@pytest.mark.parametrize("step", ["write", "swap"])
def test_a_disk_that_is_full_is_a_refusal_and_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch, step: str, error: Exception) -> None:
    async def story() -> None:
        await world.begin()

        def full(*_: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(world.stage, step, full)
            world.supervisor.want(FEWER, urgent=True)
            await world.until(lambda: world.supervisor.state.refused)
        assert world.in_force(ONE)
        assert len(world.alive) == 1
        world.clock.now += 31
        await world.until(lambda: world.in_force(FEWER))
        assert len(world.started) == 1

    world.play(story)


def test_an_engine_that_ends_is_started_again_ever_more_slowly(world: World) -> None:
    async def story() -> None:
        await world.begin()
        for wait in (0.5, 1, 2):
            world.alive[0].end(-9)
            await world.until(lambda: world.supervisor.state.restart_at is not None)
            assert world.supervisor.state.restart_at == world.clock.now + wait
            await world.settle()
            assert world.alive == []
            assert world.crew.serving is None
            world.clock.now += wait
            await world.until(lambda: world.in_force(ONE))
        world.clock.now += STEADY_S
        world.alive[0].end(1)
        await world.until(lambda: world.supervisor.state.restart_at is not None)
        assert world.supervisor.state.restart_at == world.clock.now + 0.5

    world.play(story)
    assert world.decisions().count(("engine.exited", "act")) == 4


def test_an_engine_that_dies_during_a_live_change_is_started_once(world: World) -> None:
    async def story() -> None:
        await world.begin()
        world.hands.during_live = lambda: world.alive[0].end(-9)
        world.hands.lives = ["the connection was lost"]
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.supervisor.state.running and len(world.started) == 2)
        for _ in range(5):
            world.clock.now += 1
            await world.settle()
        assert len(world.started) == 2
        assert len(world.alive) == 1

    world.play(story)


def test_a_live_change_that_fails_becomes_a_replacement(world: World) -> None:
    async def story() -> None:
        await world.begin()
        world.hands.lives = ["ns-b is still there"]
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.in_force(FEWER))
        assert len(world.started) == 2
        assert len(world.alive) == 1
        assert world.crew.applying is None

    world.play(story)


def test_a_replacement_is_never_given_the_seat_of_the_one_that_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live change fails, and no fresh credentials can be written: the old one goes on alone."""

    async def story() -> None:
        await world.begin()
        world.hands.lives = ["half of it"]
        real, calls = world.stage.write, []

        def write(*args: Any) -> Any:
            calls.append(1)
            if len(calls) > 1:
                raise StepFailedError("No space left on device")
            return real(*args)

        monkeypatch.setattr(world.stage, "write", write)
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.supervisor.state.refused)
        assert len(world.started) == 1
        assert len(world.alive) == 1
        assert world.supervisor.state.running

    world.play(story)


def test_a_dead_engine_comes_back_with_old_credentials_when_no_fresh_ones_can_be_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StepFailedError("No space left on device")

    async def story() -> None:
        await world.begin()
        monkeypatch.setattr(world.stage, "write", full)
        world.alive[0].end(-9)
        await world.until(lambda: world.supervisor.state.restart_at is not None)
        world.clock.now += 1
        await world.until(lambda: world.in_force(ONE))
        assert "with the credentials of 000001-" in world.actor.how

    world.play(story)


def test_what_a_half_done_live_change_left_is_put_right_also_when_it_was_taken_back(world: World) -> None:
    """Neither the change nor the replacement worked: what the engine holds is not certain."""

    async def story() -> None:
        await world.begin()
        world.hands.lives, world.hands.proofs = ["half of it"], ["no answer"]
        world.supervisor.want(FEWER, urgent=True)
        await world.until(lambda: world.supervisor.state.refused)
        assert len(world.alive) == 1
        world.supervisor.want(ONE, urgent=True)
        await world.until(lambda: len(world.started) == 3 and world.in_force(ONE))
        assert len(world.alive) == 1
        assert world.crew.applying is None

    world.play(story)


def test_without_a_source_the_last_accepted_configuration_runs(world: World) -> None:
    async def first() -> None:
        await world.begin()

    world.play(first)
    world.new()

    async def again() -> None:
        world.supervisor.unreadable("the file is gone")
        await world.until(lambda: world.supervisor.state.running)
        assert len(world.alive) == 1

    world.play(again)


def test_a_generation_of_another_version_runs_as_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its document cannot be read; the validator accepted its files, so it must run rather than nothing."""
    monkeypatch.setattr(act, "SURVIVE_S", 0.0)

    async def first() -> None:
        await world.begin()

    world.play(first)
    name = world.stage.linked()
    world.new()

    def unreadable(_: str) -> Any:
        raise ValueError("a field is unknown")

    monkeypatch.setattr(world.engine, "load", unreadable)

    async def again() -> None:
        world.supervisor.unreadable("the source is away")
        await world.until(lambda: world.supervisor.state.running)
        assert world.stage.linked() == name
        assert len(world.alive) == 1

    world.play(again)


def test_a_damaged_current_generation_is_never_run(world: World) -> None:
    async def first() -> None:
        await world.begin()
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.in_force(WIDER))

    world.play(first)
    damaged = world.stage.linked()
    assert damaged is not None
    (world.stage.path(damaged) / "engine.json").write_text("torn")
    world.new()
    world.checks = [Finished(1, "the machine is ill")]  # so that no fresh copy can be made

    async def again() -> None:
        world.supervisor.unreadable("the source is away")
        await world.until(lambda: world.supervisor.state.running)
        assert world.stage.linked() != damaged
        assert world.crew.serving is not None
        assert world.stage.linked() == world.crew.serving.generation

    world.play(again)


@pytest.mark.parametrize("error", [StepFailedError("no descriptor is left"), OSError(24, "Too many open files")], ids=["ours", "os"])
def test_a_program_that_cannot_be_started_is_tried_again(world: World, error: Exception) -> None:
    world.spawns = [error]

    async def story() -> None:
        world.supervisor.want(ONE)
        await world.until(lambda: world.supervisor.state.restart_at is not None)
        world.clock.now += 1
        await world.until(lambda: world.in_force(ONE))

    world.play(story)


def test_a_record_that_cannot_be_written_stops_nobody_from_serving(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StepFailedError("No space left on device")

    monkeypatch.setattr(crew, "write_text", full)

    async def story() -> None:
        await world.begin()
        world.supervisor.want(WIDER, urgent=True)
        await world.until(lambda: world.in_force(WIDER))
        assert len(world.alive) == 1

    world.play(story)

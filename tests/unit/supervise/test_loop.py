"""The whole supervisor over an engine in memory: real files and decisions, no process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.errors import StepFailedError
from edgekeeper.host.process import Finished
from edgekeeper.model.entry import Entry
from edgekeeper.supervise import act, crew, loop, replace
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.decide import STEADY_S
from edgekeeper.supervise.loop import Supervisor, intent_digest
from edgekeeper.supervise.stage import Stage

from ...fakes.pair import FakeEngine, Intent, MemoryHands, MemoryProcess

ONE = Intent(("127.0.0.1:53",), ("ns-a", "ns-b"))
FEWER = Intent(("127.0.0.1:53",), ("ns-a",))
WIDER = Intent(("127.0.0.1:53", "127.0.0.1:54"), ("ns-a", "ns-b"))


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


class World:
    """A supervisor with everything around it in memory, but for the files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, manner: str = "overlap") -> None:
        self.folder, self.manner = folder, manner
        self.clock, self.engine, self.hands = Clock(), FakeEngine(), MemoryHands()
        self.started: list[MemoryProcess] = []
        self.checks: list[Finished | Exception] = []
        self.journal: list[Entry] = []
        self.counts: list[tuple[str, str]] = []
        self.spawns: list[Exception] = []
        monkeypatch.setattr(crew, "spawn", self._spawn)
        monkeypatch.setattr(crew, "marked", lambda *_: [])
        monkeypatch.setattr(act.process, "run", self._check)
        monkeypatch.setattr(loop, "TICK_S", 0.0)
        monkeypatch.setattr(replace, "SETTLE_S", 0.0)
        self.new()

    def new(self) -> Supervisor:
        """Another supervisor over the same files."""
        self.crew = Crew(self.folder / "run", "fake:test")
        self.stage = Stage(self.folder / "state")
        self.actor = Actor(self.engine, self.hands, self.stage, self.crew, self.clock, manner=self.manner, stop_timeout_s=1.0, drain=self._drain)
        self.supervisor = Supervisor("fake", self.engine, self.actor, self.clock, self, debounce_s=5.0, count=self._count)
        return self.supervisor

    def write(self, entry: Entry) -> None:
        self.journal.append(entry)

    def _count(self, what: str, labels: dict[str, str]) -> None:
        self.counts.append((what, next(iter(labels.values()))))

    async def _drain(self) -> None:
        self.counts.append(("drained", ""))

    def _spawn(self, *_: object) -> Any:
        if self.spawns:
            raise self.spawns.pop(0)
        self.started.append(MemoryProcess())
        return self.started[-1]

    async def _check(self, *_: object) -> Finished:
        answer = self.checks.pop(0) if self.checks else Finished(0, "Configuration OK")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def play(self, story: Callable[[], Awaitable[None]]) -> None:
        """Run the supervisor and a story beside it, then stop both."""

        async def work() -> None:
            task = asyncio.create_task(self.supervisor.run())
            try:
                await story()
            finally:
                self.supervisor.end(leave=False)
                await asyncio.wait_for(task, 5)

        asyncio.run(work())

    async def until(self, true: Callable[[], object]) -> None:
        for _ in range(3000):
            if true():
                return
            await asyncio.sleep(0)
        raise AssertionError(self.supervisor.state, self.supervisor.why)

    async def settle(self) -> None:
        for _ in range(60):
            await asyncio.sleep(0)

    async def begin(self, intent: Intent = ONE) -> None:
        self.supervisor.want(intent)
        await self.until(lambda: self.in_force(intent))

    def in_force(self, intent: Intent) -> bool:
        state = self.supervisor.state
        return state.running and state.changing is None and state.good == intent_digest(self.engine, intent)

    @property
    def alive(self) -> list[MemoryProcess]:
        return [p for p in self.started if p.alive()]

    def decisions(self) -> list[tuple[str, str]]:
        return [(str(e.event), e.decision) for e in self.journal]


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


@pytest.mark.parametrize("answer", [Finished(1, "error: line 3"), Finished(-11, ""), Finished(0, ""), StepFailedError("it did not end within 20 s")], ids=range(4))
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

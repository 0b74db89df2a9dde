"""The log of one watch at work: a flood, a source that is blind or dies, a log that is silent, a start that it tells of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.fakes.turned import WALL_S
from tests.unit.watch.onstage import LINE, Stage, end, now, tell

from edgekeeper.errors import StepFailedError
from edgekeeper.watch.fingerprint import Burst
from edgekeeper.watch.patrol import Patrol
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.state import Phase, Policy


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_in_a_flood_only_the_last_lines_are_thought_about(stage: Stage) -> None:
    stage.policy = Policy(burst=Burst(3, 2, 10.0))

    async def story(patrol: Patrol) -> None:
        fed: list[str] = []
        feed = patrol._feed
        patrol._feed = lambda event: (fed.append(type(event).__name__), feed(event))  # type: ignore[method-assign,assignment,return-value]
        stage.line(LINE.replace(b"KEY", b"ONE") * 2)
        assert patrol.state.phase is Phase.QUIET
        stage.line(LINE * 1000)
        assert patrol.state.phase is Phase.ARMED
        assert fed.count("Hit") == 2 + 1 + 3
        assert patrol.state.last_hit == now()

    tell(stage, story)


def test_a_flood_of_lines_does_not_keep_the_rounds_from_being_asked(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        async def flood() -> None:
            while True:
                stage.line(LINE * 10)
                await asyncio.sleep(0.01)

        flooding = asyncio.create_task(flood())
        before = len(stage.service.asked)
        await asyncio.sleep(1.9)
        assert 3 <= len(stage.service.asked) - before <= 5, "each 500 ms while it is armed, no more and no less"
        stage.service.well = False
        await asyncio.sleep(1.2)
        assert len(stage.service.begun) == 1
        await end(flooding)

    tell(stage, story)


def test_a_log_that_cannot_be_followed_is_told_after_a_moment_and_seen_again(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        assert stage.service.see is not None
        stage.service.see(Sight(seeing=False, why="there is no such container"))
        await asyncio.sleep(1)
        assert stage.alarms == {}
        await asyncio.sleep(4)
        assert "there is no such container" in stage.alarms["blind"]
        stage.service.well = False
        await asyncio.sleep(6)
        assert len(stage.service.begun) == 1, "the probe goes on alone"
        stage.service.see(Sight(seeing=True, why="it is followed"))
        await asyncio.sleep(1)
        assert stage.alarms == {}
        assert (stage.journal.events()[0], stage.journal.events()[-1]) == ("blind", "sees")

    tell(stage, story)


@pytest.mark.parametrize("ill", [StepFailedError("no"), RuntimeError("a bug")])
def test_a_source_that_dies_is_blindness_and_is_followed_again(stage: Stage, ill: BaseException) -> None:
    stage.service.ill = ill

    async def story(patrol: Patrol) -> None:
        await asyncio.sleep(4)
        assert "blind" in stage.alarms
        stage.service.ill = None
        await asyncio.sleep(10)
        assert (stage.alarms, patrol.sight.seeing) == ({}, True)
        assert stage.service.followed >= 2

    tell(stage, story)


def test_a_silent_log_is_an_alarm_where_it_should_never_be_silent(tmp_path: Path) -> None:
    made = Stage(tmp_path, blind_after_s=60.0)

    async def story(patrol: Patrol) -> None:
        await asyncio.sleep(70)
        assert "no line at all for 60 s" in made.alarms["silent"]
        made.line(b"INFO nothing special\n")
        await asyncio.sleep(1.1)
        assert made.alarms == {}

    tell(made, story)


def test_a_start_of_the_service_is_known_from_its_source_and_gives_it_grace(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        assert stage.service.see is not None
        stage.service.well = False
        stage.service.see(Sight(seeing=True, why="it is followed", started=WALL_S + now()))
        await asyncio.sleep(9)
        assert stage.service.begun == []
        await asyncio.sleep(4)
        assert len(stage.service.begun) == 1

    tell(stage, story)


def test_a_service_that_answers_now_and_then_is_told_though_never_confirmed(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        for i in range(40):
            stage.service.well = i % 2 == 0
            await asyncio.sleep(1.0)
        assert "now and then" in stage.alarms["flaps"]
        assert stage.service.begun == []
        stage.service.well = True
        await asyncio.sleep(70)
        assert stage.alarms == {}
        stage.service.well = False
        await asyncio.sleep(4)
        assert "flaps" not in stage.alarms, "it is down, which is another matter"
        assert len(stage.service.begun) == 1
        stage.guard.why = "the management is unreachable"
        await asyncio.sleep(10)
        stage.service.well = False
        await asyncio.sleep(30)
        stage.service.well = True
        await asyncio.sleep(30)
        assert "flaps" not in stage.alarms, "it was down for a while, and is well"

    tell(stage, story)

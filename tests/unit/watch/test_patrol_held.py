"""What holds a cure back is told as it is now; and what somebody stops in the middle of a trouble stays stopped."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.turned import WALL_S, TurnedClock
from tests.unit.watch.onstage import Service, Stage, tell

from edgekeeper.errors import StepFailedError
from edgekeeper.host import budgets
from edgekeeper.watch.patrol import HELD_EVERY_S, OUTSTANDING, STOOD_S, Patrol
from edgekeeper.watch.report import item
from edgekeeper.watch.state import Policy


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_another_reason_of_the_guard_is_shown_and_told_to_the_journal_once_only(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.guard.why = "the management is unreachable"
        stage.wedge()
        await asyncio.sleep(10)
        for left in range(9, 5, -1):
            stage.guard.why = f"cures are paused for another {left} s"
            await asyncio.sleep(1)
        for told in (patrol.why, stage.alarms["wanted"]):
            assert "cures are paused for another" in told
        assert stage.journal.events() == ["armed", "confirmed", "suppressed"]

    tell(stage, story)


def test_two_reasons_that_alternate_are_told_now_and_then(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        told = []
        alarm = stage.alarms
        stage.wedge()
        for i in range(120):
            stage.guard.why = "dockerd does not answer" if i % 2 else "dockerd broke off"
            await asyncio.sleep(0.5)
            told.append(alarm.get("wanted"))
        changes = sum(a != b for a, b in itertools.pairwise(told))
        assert 2 <= changes <= 60 / HELD_EVERY_S + 1

    tell(stage, story)


def test_a_store_that_says_no_each_time_does_not_show_a_cure_that_is_under_way(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        time.sleep(0.01)
        raise StepFailedError("budgets.json cannot be written: No space left on device")

    monkeypatch.setattr(budgets, "spend", full)

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(2)
        for _ in range(50):
            shown = item(patrol, TurnedClock(), None, None)
            assert (shown["state"], "No space left" in shown["why"], shown["cures"]) == ("wanted", True, 0)
            await asyncio.sleep(0.1)

    tell(stage, story)


def test_a_probe_that_cannot_ask_cures_nothing_and_is_an_alarm(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.service.known = False
        stage.wedge()
        await asyncio.sleep(20)
        assert stage.service.begun == []
        assert "that says nothing of it" in stage.alarms["probe"]
        stage.service.known = True
        await asyncio.sleep(2)
        assert (len(stage.service.begun), stage.alarms) == (1, {})

    tell(stage, story)


class Stoppable(Service):
    """A service that somebody may stop: what was stopped is left alone unless a cure may have left it so."""

    stopped = False

    async def ready(self, *, ours: bool, since: float) -> str | None:
        return "somebody stopped it" if self.stopped and not ours else None


def test_what_somebody_stops_after_a_cure_that_did_not_help_is_not_started_again(stage: Stage) -> None:
    stage.service = service = Stoppable(helps=False)
    stage.journal._service = service
    stage.cures = [service]

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(6)
        assert len(service.begun) == 1
        assert json.loads(stage.memory.read_text())["ours"] is False
        service.stopped = True
        await asyncio.sleep(40)
        assert len(service.begun) == 1
        assert "somebody stopped it" in stage.alarms["wanted"]

    tell(stage, story)


def test_what_a_cure_left_stopped_that_failed_is_cured_again(stage: Stage) -> None:
    stage.service = service = Stoppable(fails="it was stopped, and does not start")
    stage.journal._service = service
    stage.cures = [service]

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(1)
        service.stopped = True
        await asyncio.sleep(20)
        assert len(service.begun) == 3

    tell(stage, story)


@pytest.mark.parametrize("broken", ["guard", "cure"])
def test_a_bug_in_what_is_asked_before_a_cure_forbids_it_and_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    async def fails(**_: object) -> None:
        raise KeyError("a bug with a secret")

    monkeypatch.setattr(stage.guard if broken == "guard" else stage.service, "forbids" if broken == "guard" else "ready", fails)

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(5)
        assert (stage.service.begun, stage.journal.events()) == ([], ["armed", "confirmed", "suppressed"])
        assert "could not be found out: KeyError" in stage.alarms["wanted"]
        assert "secret" not in stage.alarms["wanted"]
        monkeypatch.undo()
        await asyncio.sleep(1)
        assert len(stage.service.begun) == 1

    tell(stage, story)


def test_what_was_decided_before_a_freeze_is_not_done_after_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    real = budgets.spend

    def frozen(*given: Any) -> Any:
        answer = real(*given)
        loop: Any = asyncio.get_running_loop()
        loop.now += STOOD_S + 1  # SIGSTOP, and somebody mends the service meanwhile
        stage.service.well = True
        return answer

    monkeypatch.setattr(budgets, "spend", frozen)

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(20)
        assert (stage.service.begun, patrol.cures) == ([], 0)
        assert "this process stood still for 6 s" in stage.journal.of("suppressed")[0].why
        assert stage.journal.events()[-1] in {"cancelled", "disarmed"}

    tell(stage, story)


def test_a_service_that_hangs_for_long_is_not_asked_more_and_more(stage: Stage) -> None:
    stage.service.answers_s = 1000.0

    async def story(patrol: Patrol) -> None:
        await asyncio.sleep(60)
        assert len(stage.service.asked) == OUTSTANDING

    tell(stage, story)


class Placed:
    """A place in a group that is always its own turn, and knows whether a wish was announced."""

    def __init__(self) -> None:
        self.able: list[bool] = []

    async def may(self, *, able: bool) -> str | None:
        self.able.append(able)
        return None

    def outdated(self, asked: float) -> str | None:
        return None

    def cures(self) -> None: ...
    def rests(self) -> None: ...
    def wakes(self, *, awake: bool) -> None: ...


@pytest.mark.parametrize(("shadow", "guard", "announced"), [(True, None, False), (False, "the management is unreachable", False), (False, None, True)])
def test_a_wish_is_announced_by_who_could_act_only(tmp_path: Path, shadow: bool, guard: str | None, announced: bool) -> None:
    stage = Stage(tmp_path, policy=Policy(shadow=shadow))
    stage.place = place = Placed()
    stage.guard.why = guard

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(5)
        assert place.able
        assert any(place.able) == announced

    tell(stage, story)


class Noted(Service):
    """A service whose cure keeps since when the evidence is."""

    since: float = 0.0

    async def ready(self, *, ours: bool, since: float) -> str | None:
        self.since = since
        return None


def test_a_cure_is_told_since_when_the_evidence_is_that_confirmed(stage: Stage) -> None:
    stage.service = service = Noted()
    stage.journal._service = service
    stage.cures = [service]

    async def story(patrol: Patrol) -> None:
        began = stage.wedge()
        await asyncio.sleep(0.7)
        assert service.begun
        assert abs(service.since - (WALL_S + began)) < 0.01, "a start between the two failed rounds is one since"

    tell(stage, story)

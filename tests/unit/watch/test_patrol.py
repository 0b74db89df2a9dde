"""One watch at work: what is told, counted, remembered and done, and what a death, a freeze, a full disk or a bug makes of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.turned import turned
from tests.unit.watch.onstage import LINE, Service, Stage, end, now, tell

from edgekeeper.errors import StepFailedError
from edgekeeper.host import budgets
from edgekeeper.watch.patrol import Patrol
from edgekeeper.watch.state import Phase, Policy


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_wedge_is_armed_confirmed_counted_told_cured_and_proved(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        began = stage.wedge()
        assert json.loads(stage.memory.read_text())["line"].startswith("WARN couldn't"), "a successor would not know"
        await asyncio.sleep(4)
        assert stage.journal.events() == ["armed", "confirmed", "cured", "proved"]
        assert stage.service.begun[0] - began < 0.6
        ((act, begun),) = [(entry, begun) for entry, begun in stage.journal.entries if entry.decision == "act"]
        assert begun == 0, "it was told before it was done"
        assert (act.object, act.data["step"]) == ("mesh", "restart it")
        assert "2 of 3 left in quick succession" in act.why
        low, high = stage.journal.of("proved")[0].data["recovered_s"]
        assert 0.4 < low < high < 3.0
        assert not stage.memory.exists()
        assert stage.counted == ["watch.armed", "watch.confirmed", "watch.cured", "watch.proved"]
        assert (patrol.state.phase, patrol.cures, stage.alarms) == (Phase.QUIET, 1, {})
        assert len(patrol.spent_ages_s(9)) == 1

    tell(stage, story)


def test_a_thousand_forged_lines_over_a_healthy_service_cure_nothing_and_are_one_entry(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        for _ in range(10):
            stage.line(LINE * 100)
            stage.line(b"GET path=/couldn't fetch peer state\n" * 10)
            await asyncio.sleep(0.3)
        await asyncio.sleep(12)
        assert stage.journal.events() == ["armed", "disarmed"]
        assert stage.journal.of("disarmed")[0].data["failed"] == 0
        assert (stage.service.begun, patrol.state.phase) == ([], Phase.QUIET)

    tell(stage, story)


def test_without_a_line_three_rounds_confirm_and_the_entry_says_so(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.service.well = False
        await asyncio.sleep(6)
        assert stage.journal.events() == ["confirmed", "cured", "proved"]
        assert "without any line" in stage.journal.of("cured")[0].why
        assert "line" not in stage.journal.of("confirmed")[0].data

    tell(stage, story)


def test_what_the_guard_forbids_is_told_once_stays_wanted_and_is_done_when_it_gives_way(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.guard.why = "the management is unreachable"
        stage.wedge()
        await asyncio.sleep(30)
        assert stage.journal.events() == ["armed", "confirmed", "suppressed"]
        assert "the management is unreachable" in stage.alarms["wanted"]
        stage.guard.why = None
        await asyncio.sleep(0.6)
        assert (stage.journal.events()[3:], stage.alarms) == (["cured"], {})

    tell(stage, story)


def test_a_good_answer_cancels_what_was_wanted_and_its_alarm(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.guard.why = "the management is unreachable"
        stage.wedge()
        await asyncio.sleep(2)
        stage.service.well = True
        await asyncio.sleep(1)
        assert stage.journal.events()[3:] == ["cancelled"]
        assert (patrol.state.phase, stage.alarms) == (Phase.ARMED, {})

    tell(stage, story)


def test_no_cure_is_begun_that_cannot_be_counted_and_that_is_told_once(stage: Stage) -> None:
    stage.store = stage.folder / "gone" / "budgets.json"

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(20)
        assert stage.service.begun == []
        assert stage.journal.events() == ["armed", "confirmed", "suppressed"]
        assert str(stage.store) in stage.alarms["wanted"]
        stage.store.parent.mkdir()
        await asyncio.sleep(1.1)
        assert (len(stage.service.begun), stage.alarms) == (1, {})

    tell(stage, story)


def test_a_store_that_refuses_at_the_last_moment_is_told_once_too(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    real = budgets.spend

    def full(*_: Any) -> Any:
        raise StepFailedError("budgets.json cannot be written: No space left on device")

    monkeypatch.setattr(budgets, "spend", full)

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(20)
        assert (stage.service.begun, patrol.state.phase) == ([], Phase.WANTED)
        assert stage.journal.events() == ["armed", "confirmed", "suppressed"]
        assert "No space left on device" in stage.alarms["wanted"]
        monkeypatch.setattr(budgets, "spend", real)
        await asyncio.sleep(1.1)
        assert (len(stage.service.begun), stage.alarms) == (1, {})

    tell(stage, story)


@pytest.mark.parametrize("fails", ["there is no socket", StepFailedError("no"), RuntimeError("a bug"), OSError(5, "Input/output error")])
def test_a_cure_that_cannot_be_carried_out_leaves_the_watch_at_work(stage: Stage, fails: Any) -> None:
    async def story(patrol: Patrol) -> None:
        stage.service.fails = fails
        stage.wedge()
        await asyncio.sleep(4)
        stage.service.fails = None
        await asyncio.sleep(90)
        assert "not_proved" in stage.journal.events()
        assert stage.journal.events()[-1] == "proved"
        assert patrol.state.phase is Phase.QUIET

    tell(stage, story)


def test_a_cure_that_forgets_its_deadline_is_given_up(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.service.takes_s = 10_000
        stage.wedge()
        await asyncio.sleep(710)
        assert stage.journal.events()[:4] == ["armed", "confirmed", "cured", "not_proved"]
        assert "did not end within 700 s" in stage.journal.of("not_proved")[0].why

    tell(stage, story)


def test_a_cure_that_took_long_and_failed_is_not_tried_again_over_a_service_that_is_well_meanwhile(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.service.takes_s, stage.service.fails = 60.0, "it did not end within 60 s"
        stage.wedge()
        await asyncio.sleep(30)
        stage.service.well = True
        await asyncio.sleep(120)
        assert len(stage.service.begun) == 1
        assert patrol.state.phase is Phase.QUIET

    tell(stage, story)


def test_the_last_step_is_tried_after_the_lighter_one_did_not_help_on_the_same_spending(stage: Stage) -> None:
    light = Service(helps=False)
    light.name = "restart its clients"
    stage.cures = [light, stage.service]
    stage.policy = Policy(steps=2)

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(30)
        assert [entry.data["step"] for entry in stage.journal.of("cured")] == ["restart its clients", "restart it"]
        assert stage.journal.events()[-1] == "proved"
        assert len(patrol.spent_ages_s(9)) == 1

    tell(stage, story)


def test_a_round_that_a_frozen_process_read_late_says_nothing(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.line()
        stage.service.well, stage.service.answers_s = False, 5.0  # the round asked now is answered after a freeze
        await asyncio.sleep(0.7)
        stage.service.well = False
        await asyncio.sleep(20)
        assert stage.service.begun == []
        assert "confirmed" not in stage.journal.events()

    tell(stage, story)


def test_wanted_before_a_freeze_is_asked_again_before_it_is_cured(stage: Stage) -> None:
    async def story(patrol: Patrol) -> None:
        stage.guard.why = "the management is unreachable"
        stage.wedge()
        await asyncio.sleep(5)
        stage.guard.why, stage.service.well, stage.service.answers_s = None, True, 0.2
        loop: Any = asyncio.get_running_loop()
        loop.now += 60  # the machine slept, the service healed, and everything is due at once
        await asyncio.sleep(3)
        assert stage.service.begun == []
        assert "cancelled" in stage.journal.events()

    tell(stage, story)


def test_who_is_ended_waits_for_the_cure_that_is_under_way_and_asks_nothing_more(stage: Stage) -> None:
    async def story() -> None:
        task = asyncio.create_task(stage.patrol().run())
        await asyncio.sleep(1)
        stage.wedge()
        await asyncio.sleep(1)
        assert (len(stage.service.begun), stage.service.ended) == (1, [])
        assert json.loads(stage.memory.read_text())["curing"] is True, "were it killed now, its successor would cure again at once"
        began = now()
        await end(task)
        assert (len(stage.service.ended), now() - began < 2.1) == (1, True)
        asked = len(stage.service.asked)
        await asyncio.sleep(5)
        assert len(stage.service.asked) == asked
        assert json.loads(stage.memory.read_text())["curing"] is True

    turned(story())


def test_a_watch_that_takes_the_place_of_one_in_a_long_cure_begins_with_the_proof(stage: Stage) -> None:
    stage.service.takes_s = 20.0

    async def story() -> None:
        task = asyncio.create_task(stage.patrol().run())
        await asyncio.sleep(1)
        stage.wedge()
        await asyncio.sleep(1)
        fresh = stage.patrol()  # of a config that was read again
        await end(task)
        task = asyncio.create_task(fresh.run())
        await asyncio.sleep(5)
        assert (len(stage.service.begun), stage.journal.events()) == (1, ["armed", "confirmed", "cured", "armed", "proved"])
        await end(task)

    turned(story())


@pytest.mark.parametrize("after_s", [0.1, 1.5])
def test_a_successor_of_one_that_died_armed_or_wanted_cures_once(stage: Stage, after_s: float) -> None:
    async def story() -> None:
        stage.guard.why = "the management is unreachable"
        task = asyncio.create_task(stage.patrol().run())
        await asyncio.sleep(1)
        stage.wedge()
        await asyncio.sleep(after_s)
        kept = stage.memory.read_text()
        await end(task)
        stage.memory.write_text(kept)
        stage.guard.why = None
        task = asyncio.create_task(stage.patrol().run())
        await asyncio.sleep(20)
        assert len(stage.service.begun) == 1
        assert "armed again" in stage.journal.of("armed")[1].why
        assert stage.journal.events()[-1] == "proved"
        assert not stage.memory.exists()
        await end(task)

    turned(story())


def test_a_successor_of_one_that_died_during_a_cure_proves_it_before_it_cures_again(stage: Stage) -> None:
    async def story() -> None:
        stage.memory.write_text(
            json.dumps({"schema": 1, "line": "WARN couldn't fetch peer state", "curing": True, "ours": True, "step": 0, "since_s": 0, "boot_id": ""})
        )
        stage.service.well = False
        task = asyncio.create_task(stage.patrol().run())
        await asyncio.sleep(5)
        stage.service.well = True  # the cure that the dead one had begun has ended
        await asyncio.sleep(5)
        assert stage.service.begun == []
        assert stage.journal.events() == ["armed", "proved"]
        await end(task)
        stage.memory.write_text(
            json.dumps({"schema": 1, "line": "WARN couldn't fetch peer state", "curing": True, "ours": True, "step": 0, "since_s": 0, "boot_id": ""})
        )
        stage.service.well = False
        task = asyncio.create_task(stage.patrol().run())
        await asyncio.sleep(20)
        assert len(stage.service.begun) == 1, "it did not help, or never happened"
        await end(task)

    turned(story())


def test_a_watch_that_had_no_probe_is_not_made_to_cure_by_a_restart(stage: Stage) -> None:
    stage.policy = Policy(probed=False)
    stage.memory.write_text(
        json.dumps({"schema": 1, "line": "WARN couldn't fetch peer state", "curing": False, "ours": False, "step": 0, "since_s": 0, "boot_id": ""})
    )

    async def story(patrol: Patrol) -> None:
        await asyncio.sleep(20)
        assert (stage.service.begun, patrol.state.phase) == ([], Phase.QUIET)

    tell(stage, story)


def test_a_memory_that_cannot_be_written_is_an_alarm_and_the_work_goes_on(stage: Stage) -> None:
    stage.folder = stage.folder / "gone"

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(0.1)
        assert "would forget that the watch is armed" in stage.alarms["memory"]
        await asyncio.sleep(5)
        assert (len(stage.service.begun), stage.alarms) == (1, {})

    tell(stage, story)


def test_in_shadow_it_tells_and_does_nothing(stage: Stage) -> None:
    stage.policy = Policy(shadow=True)

    async def story(patrol: Patrol) -> None:
        stage.wedge()
        await asyncio.sleep(20)
        assert stage.journal.events() == ["armed", "confirmed", "suppressed"]
        assert (stage.service.begun, stage.store.exists()) == ([], False)

    tell(stage, story)

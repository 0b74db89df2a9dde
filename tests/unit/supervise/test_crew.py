from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.pair import MemoryProcess

from edgekeeper.errors import StepFailedError
from edgekeeper.supervise import crew as unit
from edgekeeper.supervise.crew import Crew, Hand


class Machine:
    """The processes of a machine that never starts one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[MemoryProcess] = []
        self.environments: list[dict[str, str]] = []
        self.strays: list[MemoryProcess] = []
        monkeypatch.setattr(unit, "spawn", self._spawn)
        monkeypatch.setattr(unit, "marked", lambda *_: [(p.pid, p.started) for p in self.strays])
        monkeypatch.setattr(unit.Process, "find", self._find)

    def _spawn(self, _argv: object, _log: object, environment: dict[str, str]) -> Any:
        self.made.append(MemoryProcess())
        self.environments.append(environment)
        return self.made[-1]

    def _find(self, pid: int, started: int) -> Any:
        return next((p for p in self.made if (p.pid, p.started) == (pid, started) and p.alive()), None)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture
def crew(tmp_path: Path, machine: Machine) -> Crew:
    return Crew(tmp_path, "dns:/state")


def again(crew: Crew) -> Crew:
    return Crew(crew.folder, "dns:/state")


def test_who_serves_and_who_stands_beside_is_found_again(crew: Crew, machine: Machine) -> None:
    old = crew.start(["x"], "000001-a", 5.0, beside=False)
    new = crew.start(["x"], "000002-b", 6.0, beside=True)
    found = again(crew).find()
    assert found.serving is not None
    assert (found.serving.process.pid, found.serving.generation, found.serving.since) == (old.process.pid, "000001-a", 5.0)
    assert [h.process.pid for h in found.others] == [new.process.pid]
    crew.promote()
    found = again(crew).find()
    assert found.serving is not None
    assert found.serving.process.pid == new.process.pid
    assert [h.process.pid for h in found.others] == [old.process.pid]


def test_an_engine_is_marked_in_its_environment_and_inherits_no_word_of_ours(crew: Crew, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEKEEPER_SECRET", "x")
    monkeypatch.setenv("LANG", "C")
    crew.start(["x"], "000001-a", 5.0, beside=False)
    told = machine.environments[0]
    assert {k: v for k, v in told.items() if k.startswith("EDGEKEEPER")} == {"EDGEKEEPER_ENGINE": "dns:/state", "EDGEKEEPER_GENERATION": "000001-a"}
    assert told["LANG"] == "C"


def test_the_one_beside_serves_when_the_other_is_gone(crew: Crew, machine: Machine) -> None:
    crew.start(["x"], "000001-a", 5.0, beside=False)
    new = crew.start(["x"], "000002-b", 6.0, beside=True)
    crew.applying = "000003-c"
    crew.save()
    machine.made[0].end(-9)
    found = again(crew).find()
    assert found.serving is not None
    assert found.serving.process.pid == new.process.pid
    assert found.applying is None, "what was under way was under way in the one that is gone"
    assert found.others == ()


def test_a_stray_of_ours_is_found_without_a_record(crew: Crew, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    crew.start(["x"], "000001-a", 5.0, beside=False)
    machine.strays = machine.made[:]
    (crew.folder / "engine.json").unlink()
    monkeypatch.setattr(unit, "_generation_of", lambda _: "000001-a")
    found = again(crew).find()
    assert found.serving is not None
    assert (found.serving.process.pid, found.serving.generation) == (machine.made[0].pid, "000001-a")


def test_the_workers_of_an_engine_are_its_own_affair(crew: Crew, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have their master's environment; to end them as strays would end who is connected."""
    for _ in range(4):
        crew.start(["x"], "000001-a", 5.0, beside=False)
    master, worker, old, stranger = machine.made
    machine.strays = machine.made[:]
    parents = {worker.pid: master.pid, old.pid: master.pid, master.pid: 1, stranger.pid: 1}
    monkeypatch.setattr(unit, "parent", parents.__getitem__)
    (crew.folder / "engine.json").unlink()
    found = again(crew).find()
    assert found.serving is not None
    assert [found.serving.process.pid, *(h.process.pid for h in found.others)] == [master.pid, stranger.pid]


def test_one_that_is_in_the_record_is_no_stray(crew: Crew, machine: Machine) -> None:
    crew.start(["x"], "000001-a", 5.0, beside=False)
    machine.strays = machine.made[:]
    assert again(crew).find().others == ()


RECORDS = [
    "",
    "{",
    "[]",
    "5",
    '{"schema": 9}',
    '{"schema": 1, "serving": 5}',
    '{"schema": 1, "serving": {"pid": "x", "started": 1, "generation": "a"}}',
    '{"schema": 1, "serving": {"pid": 1}}',
]


@pytest.mark.parametrize("text", RECORDS, ids=range(len(RECORDS)))
def test_a_damaged_record_means_that_nobody_is_known(crew: Crew, text: str) -> None:
    (crew.folder / "engine.json").write_text(text)
    assert again(crew).find().serving is None


def test_what_an_unfinished_change_needs_is_kept(crew: Crew, machine: Machine) -> None:
    crew.start(["x"], "000001-a", 5.0, beside=False)
    crew.applying, crew.steering = "000002-b", ("127.0.0.1:53",)
    crew.save()
    assert crew.in_use == {"000001-a", "000002-b"}
    found = again(crew).find()
    assert (found.applying, found.steering) == ("000002-b", ("127.0.0.1:53",))
    crew.moved_on("000002-b")
    assert crew.in_use == {"000002-b"}
    assert again(crew).find().applying is None


def test_who_is_stopped_is_forgotten(crew: Crew, machine: Machine) -> None:
    hand = crew.start(["x"], "000001-a", 5.0, beside=False)
    assert asyncio.run(crew.stop(hand, 1)) == "ended on TERM"
    assert crew.serving is None
    assert json.loads((crew.folder / "engine.json").read_text())["serving"] is None


def test_a_record_that_must_come_first_is_an_error_and_one_that_comes_after_is_not(crew: Crew, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StepFailedError("No space left on device")

    monkeypatch.setattr(unit, "write_text", full)
    with pytest.raises(StepFailedError):
        crew.save()
    hand = crew.start(["x"], "000001-a", 5.0, beside=False)
    crew.moved_on("000002-b")
    assert isinstance(crew.serving, Hand)
    asyncio.run(crew.stop(crew.serving, 1))
    assert hand.process.alive() is False


def test_the_record_is_private(crew: Crew, machine: Machine) -> None:
    crew.start(["x"], "000001-a", 5.0, beside=False)
    assert (crew.folder / "engine.json").stat().st_mode & 0o077 == 0
    assert crew.folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text",
    ['{"schema": 1, "serving": {"pid": 99999999999999999999, "started": 1, "generation": "x"}}', '{"schema": 1, "serving": {"pid": 1e999, "started": 1}}'],
)
def test_a_record_with_numbers_that_no_process_has_names_nobody(tmp_path: Path, text: str) -> None:
    crew = Crew(tmp_path, "dns:/nobody")
    (tmp_path / "engine.json").write_text(text)
    assert crew.find().serving is None


def test_of_a_record_only_what_has_the_right_kind_counts(crew: Crew) -> None:
    crew.start(["x"], "000001-a", 5.0, beside=False)
    record = json.loads((crew.folder / "engine.json").read_text())
    (crew.folder / "engine.json").write_text(json.dumps({**record, "applying": {"a": 1}, "steering": 5}))
    found = again(crew).find()
    assert (found.applying, found.steering) == (None, ())
    (crew.folder / "engine.json").write_text(json.dumps({**record, "steering": ["192.0.2.1:53", 7]}))
    assert again(crew).find().steering == ("192.0.2.1:53",)


def test_a_folder_that_was_wiped_is_made_again_before_a_process_is_started_and_its_record_comes_back(crew: Crew) -> None:
    crew.folder.rmdir()
    crew.start(["x"], "000001-a", 5.0, beside=False)
    (crew.folder / "engine.json").unlink()
    crew.folder.rmdir()
    crew.keep()
    assert again(crew).find().serving is not None

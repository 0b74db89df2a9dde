from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.pair import MemoryProcess

from edgekeeper.errors import EdgekeeperError, MissingError, StepFailedError
from edgekeeper.supervise import crew as crew_unit
from edgekeeper.supervise import replace as unit
from edgekeeper.supervise.crew import Crew, Hand
from edgekeeper.supervise.replace import Exchange, Exchanged, exchange, release

SHARED = ("127.0.0.1:53",)


class Stage:
    """An exchange whose every step is written down."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.refusal: str | None = None
        self.fails: dict[str, Exception] = {}
        self.names: dict[int, str] = {}
        monkeypatch.setattr(crew_unit, "spawn", self._spawn)
        monkeypatch.setattr(unit, "SETTLE_S", 0.0)
        monkeypatch.setattr(unit.steer, "sockets", lambda *_: [1, 2])
        monkeypatch.setattr(unit.steer, "attach", self._attach)
        monkeypatch.setattr(unit.steer, "detach", self._detach)
        monkeypatch.setattr(MemoryProcess, "stop", self._stop)
        self.crew = Crew(folder, "x")
        self.old = self.crew.start([], "000001-a", 0, beside=False)
        self.steps.clear()

    def _do(self, what: str) -> None:
        self.steps.append(what)
        if what in self.fails:
            raise self.fails[what]

    def name(self, pid: int) -> str:
        return self.names.setdefault(pid, "old" if not self.names else "new")

    def _spawn(self, *_: object) -> Any:
        made = MemoryProcess()
        self.name(made.pid)
        self._do(f"start {self.name(made.pid)}")
        return made

    def _attach(self, pid: int, _listens: object, _count: object, first: dict[str, int]) -> None:
        self._do(f"{'hold on' if first[SHARED[0]] == 0 else 'steer to'} {self.name(pid)}")

    def _detach(self, pid: int, _listens: object) -> int:
        self._do(f"detach {self.name(pid)}")
        return 1

    @property
    def _stop(self) -> Any:
        stage = self

        async def stop(self: MemoryProcess, _deadline_s: float) -> str:
            stage._do(f"stop {stage.name(self.pid)}")
            self.end(0)
            return "ended on TERM"

        return stop

    def run(self, manner: str) -> Exchanged:
        async def prove(hand: Hand) -> str | None:
            self._do(f"prove {self.name(hand.process.pid)}")
            return self.refusal

        async def drain() -> None:
            self._do("drain")

        start = lambda beside: self.crew.start([], "000002-b", 0, beside=beside)  # noqa: E731
        return asyncio.run(exchange(self.crew, Exchange(start, prove, SHARED, 1.0, drain), manner))

    @property
    def serving(self) -> str:
        return self.name(self.crew.serving.process.pid) if self.crew.serving else "nobody"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


WAYS = {
    "plain": ["drain", "stop old", "start new", "prove new"],
    "overlap": ["start new", "prove new", "stop old"],
    "steer": ["hold on old", "start new", "prove new", "steer to new", "stop old", "detach new"],
}


@pytest.mark.parametrize("manner", WAYS)
def test_the_order_of_each_manner(stage: Stage, manner: str) -> None:
    assert stage.run(manner) == Exchanged(None, manner)
    assert stage.steps == WAYS[manner]
    assert stage.serving == "new"
    assert (stage.crew.beside, stage.crew.steering) == (None, ())


@pytest.mark.parametrize(
    ("manner", "steps"), [("overlap", ["start new", "prove new", "stop new"]), ("steer", ["hold on old", "start new", "prove new", "stop new", "detach old"])]
)
def test_a_refused_new_one_leaves_the_old_one_serving_and_nothing_attached(stage: Stage, manner: str, steps: list[str]) -> None:
    stage.refusal = "no answer"
    assert stage.run(manner) == Exchanged("no answer", manner)
    assert stage.steps == steps
    assert stage.serving == "old"
    assert (stage.crew.beside, stage.crew.steering) == (None, ())


@pytest.mark.parametrize("error", [MissingError("ptrace rights over the engine are missing"), OSError(1, "Operation not permitted")])
def test_where_traffic_cannot_be_held_it_overlaps_and_says_so(stage: Stage, error: Exception) -> None:
    stage.fails = {"hold on old": error}
    done = stage.run("steer")
    assert (done.refusal, done.manner) == (None, "overlap")
    assert "traffic cannot be steered" in done.note
    assert "overlapping instead" in done.note
    assert stage.steps == ["hold on old", "detach old", *WAYS["overlap"]]


def test_where_traffic_cannot_be_steered_both_share_it_and_it_says_so(stage: Stage) -> None:
    stage.fails = {"steer to new": MissingError("gone")}
    done = stage.run("steer")
    assert done.refusal is None
    assert "both share it" in done.note
    assert stage.serving == "new"
    assert stage.steps[-1] == "detach new"


def test_a_program_that_cannot_be_detached_is_remembered_for_the_next_time(stage: Stage) -> None:
    stage.fails = {"detach new": OSError(1, "Operation not permitted")}
    done = stage.run("steer")
    assert "may still be attached" in done.note
    assert stage.crew.steering == SHARED
    stage.fails = {}
    assert stage.crew.serving is not None
    assert release(stage.crew, stage.crew.serving) == ""
    assert stage.crew.steering == ()


@pytest.mark.parametrize("manner", ["overlap", "steer"])
def test_a_new_one_that_cannot_even_be_started_leaves_no_program_attached(stage: Stage, manner: str) -> None:
    stage.fails = {"start new": MissingError("it is not installed")}
    with pytest.raises(EdgekeeperError):
        stage.run(manner)
    assert stage.serving == "old"
    assert stage.crew.steering == ()
    assert stage.steps[-1] == ("detach old" if manner == "steer" else "start new")


def test_what_an_earlier_exchange_left_beside_is_stopped_first(stage: Stage) -> None:
    stage.crew.start([], "000002-x", 0, beside=True)
    stage.steps.clear()
    stage.run("overlap")
    assert stage.steps == ["stop new", *WAYS["overlap"]]
    assert stage.crew.beside is None


def test_a_record_that_cannot_be_written_before_holding_means_overlap(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that nobody knows of would outlive a killed supervisor."""

    def full(*_: object, **__: object) -> None:
        raise StepFailedError("No space left on device")

    monkeypatch.setattr(crew_unit, "write_text", full)
    done = stage.run("steer")
    assert done.manner == "overlap"
    assert "hold on old" not in stage.steps

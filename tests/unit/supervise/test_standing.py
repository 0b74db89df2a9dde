from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ports import Cost
from edgekeeper.supervise.decide import Refused, Rendered, State
from edgekeeper.supervise.standing import WEDGED_S, Standing, details, exchanged, standing, verdict, wedged

READY = Verdict(Health.OK, "2 of 3 servers up")


def test_a_supervisor_is_read_whole_whether_its_engine_runs_or_not() -> None:
    refused = Refused(Rendered("d2", Cost.RELOAD), "the disk is full", 30.0)
    hand = SimpleNamespace(process=SimpleNamespace(pid=7), since=5.0, generation="3-d1")
    made: Any = SimpleNamespace(
        actor=SimpleNamespace(crew=SimpleNamespace(serving=hand)),
        state=State(running=True, live="d1", refused=refused),
        why="so",
        adopted=True,
        last_change={"ok": True},
    )
    now = standing(cast("Any", made))
    assert now == Standing(True, "so", 7, 5.0, "3-d1", "d1", "the disk is full", True, {"ok": True})
    told = details(now, {"config": "no"}, {"version": "3.2"})
    assert told["engine"] == {"pid": 7, "since": 5.0, "generation": "3-d1", "digest": "d1", "running": True, "version": "3.2"}
    assert (told["refused"], told["adopted"], told["alarms"], told["last_change"]) == ("the disk is full", True, {"config": "no"}, {"ok": True})
    made.actor.crew.serving = None
    assert standing(cast("Any", made)).pid is None


def test_what_is_not_as_wanted_is_told_beside_what_is_well() -> None:
    well, held = Standing(True, "so"), Standing(True, "so", refused="the port is taken")
    assert verdict(well, READY, {}) == READY
    assert verdict(held, READY, {"config": "no"}).why == (
        "2 of 3 servers up; a change is refused, what ran before still runs: the port is taken; 1 alarm(s), config: no"
    )
    ill = Verdict(Health.BAD, "haproxy is not running: it ended")
    assert verdict(held, ill, {"config": "no"}) == ill


def test_a_silent_engine_is_an_alarm_only_while_it_runs_and_not_at_once() -> None:
    running = Standing(True, "so", pid=7)
    assert wedged("haproxy", running, WEDGED_S - 0.1) is None
    assert wedged("haproxy", Standing(False, "so"), 60) is None
    assert "haproxy (pid 7) runs and does not answer" in (wedged("haproxy", running, WEDGED_S) or "")


def test_another_program_in_its_place_is_an_alarm() -> None:
    assert exchanged("haproxy", "/usr/sbin/haproxy", same=True) is None
    assert "/usr/sbin/haproxy is another program" in (exchanged("haproxy", "/usr/sbin/haproxy", same=False) or "")

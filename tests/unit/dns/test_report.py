"""What ``/status`` says of the role: a person who reads one line must learn what is not as it should be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from edgekeeper.dns.report import Report, Reported
from edgekeeper.engines.dnsdist.view import EngineView, Server
from edgekeeper.ports import Cost
from edgekeeper.supervise.decide import Refused, Rendered, State


def role(*, running: bool = True, refused: str | None = None, **alarms: str) -> Any:
    state = State(running=running, refused=Refused(Rendered("d2", Cost.LIVE), refused, 30.0) if refused else None)
    inputs = SimpleNamespace(members=(), follower=SimpleNamespace(why="", read_at=None), zones={}, certificate=None)
    return SimpleNamespace(
        draining=False,
        clock=SimpleNamespace(monotonic=lambda: 1.0, wall=lambda: 1.0),
        alarms=SimpleNamespace(raised=alarms),
        supervisor=SimpleNamespace(actor=SimpleNamespace(crew=SimpleNamespace(serving=None)), state=state, why="it ended", last_change={}, adopted=False),
        inputs=inputs,
        built=SimpleNamespace(features=SimpleNamespace(text="2.1.3"), engine=SimpleNamespace(renderer="yaml")),
    )


def said(made: Any) -> str:
    report = Report(cast("Reported", made))
    report.looked(EngineView(servers=(Server("", "ns-a", "192.0.2.1:53", (), "up", 0, 0),)), 1.0)
    return report.status().verdict.why


def test_a_change_that_is_refused_is_told_where_people_look_first() -> None:
    assert said(role()) == "1 of 1 backends up"
    assert said(role(refused="the disk is full")) == "1 of 1 backends up; a change is refused, what ran before still runs: the disk is full"
    both = said(role(refused="the disk is full", membership="it cannot be read"))
    assert both.endswith("the disk is full; 1 alarm(s), membership: it cannot be read")


def test_what_is_not_ready_says_why_and_nothing_else() -> None:
    assert said(role(running=False, refused="x", membership="y")) == "dnsdist is not running: it ended"

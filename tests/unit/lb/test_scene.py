from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tests.fakes.haproxy_cli import COLUMNS, FakeAdmin, FakeHaproxy, Held

from edgekeeper.host.clock import SystemClock
from edgekeeper.lb.decide import Condition
from edgekeeper.lb.scene import Scene, View, end_sessions


class Weightless(FakeHaproxy):
    """``cp2`` has ``weight 0`` in the configuration: HAProxy calls it UP and sends nobody there."""

    def _rows(self, pid: int) -> Iterator[str]:
        for row in super()._rows(pid):
            cells = row.split(",")
            if cells[COLUMNS["svname"]] == "cp2":
                cells[COLUMNS["weight"]] = "0"
            yield ",".join(cells)


def see(haproxy: FakeHaproxy) -> View:
    return asyncio.run(Scene(FakeAdmin(haproxy), SystemClock()).see())


def test_a_server_of_weight_0_is_no_place_to_go() -> None:
    """Else the last server that takes clients would be put into MAINT."""
    view = see(Weightless({"cp1": "UP", "cp2": "UP"}, {10: []}))
    assert [(s.server, s.condition) for s in view.servers if s.backend == "api"] == [("cp1", Condition.UP), ("cp2", Condition.OUT)]


def test_a_server_that_is_up_by_now_keeps_its_sessions() -> None:
    haproxy = FakeHaproxy({"cp1": "DOWN", "cp2": "UP"}, {10: [Held("0x1", "192.0.2.1:1", "cp1")], 11: [Held("0x2", "192.0.2.1:2", "cp1")]})
    view = see(haproxy)
    haproxy.statuses["cp1"] = "UP"
    for workers in ((10,), (11,), (10, 11)):
        assert asyncio.run(end_sessions(view, "api", "cp1", workers)).total == 0
    assert not haproxy.ended

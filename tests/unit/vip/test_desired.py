"""What follows from what is known: able to take a VIP, ready, and what a person should be told."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.fakes.keepalived import FEATURES, topology

from edgekeeper.model.verdict import Health
from edgekeeper.vip.desired import advice, can_take, ready, without_ops


def test_only_a_node_that_lacks_nothing_can_take_a_vip() -> None:
    good = {"running": True, "drained": False, "bad": False, "told": "BACKUP", "link": True}
    assert can_take(**good)  # type: ignore[arg-type]
    assert can_take(**{**good, "told": "MASTER"})  # type: ignore[arg-type]
    for key, bad in (("running", False), ("drained", True), ("bad", True), ("link", False), *product(["told"], ["FAULT", "STOP", "UNKNOWN"])):
        assert not can_take(**{**good, key: bad})  # type: ignore[arg-type]


def test_ready_when_keepalived_runs_and_has_said_something() -> None:
    assert ready(running=True, why="", states={"dns": "MASTER", "web": "BACKUP"}).health is Health.OK
    assert ready(running=False, why="it exited", states={"dns": "MASTER"}).health is Health.BAD
    assert "it exited" in ready(running=False, why="it exited", states={}).why
    assert ready(running=True, why="", states={}).health is Health.BAD


def told(version: str = "2.3.4", *, hmac_asked: bool = False, user: str = "keepalived_script", probe: Any = None, **said: Any) -> list[str]:
    wanted = topology({"probe": probe or {"tcp": "127.0.0.1:80"}}, **said)
    return list(advice(wanted, FEATURES[version], legacy=said.get("legacy", False), hmac_asked=hmac_asked, user=user, budget_s=5.0))


def test_the_sums_are_shown() -> None:
    service, node = told()
    assert "within 4.01 s by the track script alone (1 s x 3 looks + 1 s timeout + 0.0078 s skew; budget 5 s)" in service
    assert "after 3.01 s (three adverts and 0.0078 s skew)" in node


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"hmac_asked": True}, "keepalived 2.3.4 cannot sign its adverts (2.4 can)"),
        ({"probe": "none"}, "v0: nothing asks the service"),
        ({"user": "root"}, "track script and FIFO reader run as root"),
    ],
)
def test_what_a_person_should_mend_is_said_and_nothing_else(said: dict[str, Any], what: str) -> None:
    found = told(**said)[2:]
    assert [what in line for line in found] == [True]


def test_what_nobody_asked_for_or_can_be_done_is_not_said() -> None:
    assert len(told(hmac_asked=True, legacy=True)) == 2
    assert len(told("2.4.3", hmac_asked=True)) == 2


def test_who_has_no_ops_address() -> None:
    assert without_ops([]) is None
    assert str(without_ops(["b"])).startswith("b has no ops address")
    assert str(without_ops(["b", "c"])).startswith("b, c have no ops address")

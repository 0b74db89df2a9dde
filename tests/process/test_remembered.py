"""What a new supervisor must know from the start: it changes nothing in the running engine before it has asked everybody."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .edge import Client, Edge, edge, until


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Edge]:
    with edge(tmp_path) as found:
        yield found


def test_a_member_that_drains_itself_stays_out_over_a_restart_and_a_reload(made: Edge) -> None:
    run = made.run()
    pid = made.wait_ready()["engine"]["pid"]
    made.tell("ns-b", "draining on")
    until(lambda: made.held() == {"ns-a", "ns-c"}, "ns-b is out")
    until(lambda: made.status()["last_change"].get("kind") == "membership", "the change is finished")
    generation = made.status()["engine"]["generation"]
    with Client(made.port) as client:
        run.kill()
        run.wait()
        run = made.run()
        until(lambda: made.status().get("adopted") and "unchanged" in made.status()["last_decision"], "adopted and unchanged")
        run.send_signal(signal.SIGHUP)
        until(lambda: "SIGHUP" in made.said(), "it was heard")
        for _ in range(40):
            status = made.status()
            assert (status["engine"]["pid"], status["engine"]["generation"]) == (pid, generation)
            assert made.held() == {"ns-a", "ns-c"}
        made.tell("ns-b", "draining off")
        until(lambda: len(made.held()) == 3, "it is back once it says so")
    assert client.lost == 0


def test_a_loss_during_an_outage_of_the_supervisor_is_no_order_to_delete_everybody(made: Edge) -> None:
    run = made.run()
    made.wait_ready()
    run.kill()
    run.wait()
    made.members.write_text("members: []\n")
    made.run()
    until(lambda: "names no members" in made.status().get("alarms", {}).get("membership", ""), "it is an alarm")
    until(lambda: made.held() == {"ns-a", "ns-b", "ns-c"}, "all are still there")

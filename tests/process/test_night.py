"""``edgekeeper dns run`` as a bad night finds it: folders wiped, files damaged, a reload that would take every member out of service."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .edge import Edge, answered, edge, until


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Edge]:
    with edge(tmp_path) as found:
        yield found


def state(made: Edge, name: str) -> str:
    """The engine's word about a member; "gone" when nobody says anything."""
    return str(next((b["state"] for b in made.status().get("backends", ()) if b["name"] == name), "gone"))


def test_a_run_dir_that_was_wiped_keeps_no_engine_down_and_lets_no_second_master_in(made: Edge) -> None:
    made.run()
    pid = made.wait_ready()["engine"]["pid"]
    shutil.rmtree(made.folder / "run")
    until((made.folder / "run" / "dns" / "engine.json").exists, "commands beside the supervisor find the engine again")
    second = made.run()
    assert second.wait(20) == 4
    assert "is already running" in made.said()
    other = made.config.with_name("other.yaml")
    other.write_text(made.config.read_text().replace(f"run_dir: {made.folder}/run", f"run_dir: {made.folder}/run2"))
    done = subprocess.run([sys.executable, "-m", "edgekeeper", "--config", str(other), "dns", "run"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 4
    assert "state_dir" in done.stderr
    assert made.engines() == [pid]
    shutil.rmtree(made.folder / "run")
    os.kill(pid, signal.SIGKILL)
    until(lambda: made.engines() not in ([], [pid]) and answered(made.port), "a new engine serves")


def test_a_members_file_that_is_a_fifo_freezes_nobody(made: Edge) -> None:
    run = made.run()
    made.wait_ready()
    made.members.unlink()
    os.mkfifo(made.members)
    until(lambda: "is not a file" in made.status().get("alarms", {}).get("membership", ""), "the alarm says what is wrong")
    assert answered(made.port)
    run.terminate()
    assert run.wait(20) == 0


def test_a_reload_forgets_neither_who_drains_nor_who_was_drained(made: Edge) -> None:
    run = made.run()
    made.wait_ready()
    made.tell("ns-b", "draining on")
    until(lambda: state(made, "ns-b") == "absent", "ns-b is out of service")
    drained = made.folder / "state" / "dns" / "drained.json"
    drained.write_text('{"names": ["ns-c"]}')
    until(lambda: state(made, "ns-c") == "absent", "ns-c is out of service")
    drained.write_text("{torn")
    until(lambda: "drained" in made.status().get("alarms", {}), "the damage is told")
    run.send_signal(signal.SIGHUP)
    until(lambda: "reading the config again" in made.said(), "the signal is heard")
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert (state(made, "ns-b"), state(made, "ns-c")) == ("absent", "absent")
        time.sleep(0.05)


def test_who_is_drained_stays_so_over_a_restart_with_a_damaged_file(made: Edge) -> None:
    run = made.run()
    made.wait_ready()
    command = [sys.executable, "-m", "edgekeeper", "--config", str(made.config), "dns", "drain", "ns-c"]
    assert subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    (made.folder / "state" / "dns" / "drained.json").write_text("{torn")
    run.terminate()
    assert run.wait(20) == 0
    made.run()
    made.wait_ready()
    assert "damaged" in made.status()["alarms"]["drained"]
    assert made.held() == {"ns-a", "ns-b"}


def test_identity_that_nobody_proved_cannot_be_required_by_a_reload(made: Edge) -> None:
    made.tell("ns-c", "identity another")
    run = made.run()
    made.wait_ready()
    made.extra = "  identity: require\n"
    made.write_config()
    run.send_signal(signal.SIGHUP)
    until(lambda: "never answered their name: ns-c" in made.status().get("alarms", {}).get("config", ""), "the reload is refused")
    made.tell("ns-c", "identity ns-c")
    until(lambda: '"ns-c"' in (made.folder / "state" / "dns" / "answered.json").read_text(), "what was heard is remembered at once")
    run.send_signal(signal.SIGHUP)
    until(lambda: "config" not in made.status().get("alarms", {"config": ""}), "now it is taken")
    until(lambda: len(made.held()) == 3 and made.ready(), "all serve")


def test_a_member_that_never_said_its_name_keeps_no_edge_down_that_required_it_before(tmp_path: Path) -> None:
    with edge(tmp_path, extra="  identity: require\n") as made:
        run = made.run()
        made.wait_ready()
        with made.members.open("a") as file:
            file.write(f"  - ns-d=127.0.0.1:{made.spare}\n")
        until(lambda: state(made, "ns-d") == "down", "the new one is held, and dead")
        run.kill()
        run.wait()
        for pid in made.engines():
            os.kill(pid, signal.SIGKILL)
        made.run()
        made.wait_ready()
        assert answered(made.port)

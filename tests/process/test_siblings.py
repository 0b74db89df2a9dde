"""Two members of a group, each a real ``edgekeeper watch run``: they are never cured at once, and each probes the other."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .edge import free_ports, until

WAIT_S = 4.0
CURE = 'takes=$(cat $0/cure-takes); echo "begin $1 $(cut -d" " -f1 /proc/uptime)" >> $0/cures; sleep $takes; touch $0/up-$1; echo "end $1 $(cut -d" " -f1 /proc/uptime)" >> $0/cures'


class Listener:
    """A TCP service that accepts while it is ``up``."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket: socket.socket | None = None

    def up(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, args=(self._socket,), daemon=True).start()

    def down(self) -> None:
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                listening.accept()[0].close()
            except OSError:
                return


class Member:
    """A node with its watch; the service behind it is well while the file ``up-NODE`` is there, and the cure makes that file."""

    def __init__(self, name: str, folder: Path, ports: dict[str, int], **watch: Any) -> None:
        self.name, self.folder = name, folder
        self.url = f"http://127.0.0.1:{ports[name]}"
        self.up = folder / f"up-{name}"
        self.up.touch()
        self.config = folder / f"{name}.json"
        self.state = folder / name / "state"
        probe = {"command": ["test", "-e", str(self.up)], "every": "200ms", "timeout": "500ms", "rounds": 2, "grace": "0s"}
        section = {
            "name": "proxy",
            "probe": probe,
            "cure": [{"command": ["sh", "-c", CURE, str(folder), name], "timeout": "30s"}],
            "proof": {"within": "3s"},
            "group": {"name": "mesh", "members": list(ports), "wait": f"{WAIT_S}s"},
        }
        nodes = {node: {"address": "127.0.0.1", "ops": f"http://127.0.0.1:{port}"} for node, port in ports.items()}
        root = {
            "node": name,
            "nodes": nodes,
            "run_dir": str(folder / name / "run"),
            "state_dir": str(self.state),
            "ops": {"listen": f"127.0.0.1:{ports[name]}"},
        }
        self.config.write_text(json.dumps({**root, "watch": [{**section, **watch}]}))
        self.run: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / f"{self.name}.log").open("ab") as log:
            argv = [sys.executable, "-m", "edgekeeper", "--config", str(self.config), "watch", "run"]
            self.run = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)

    def signal(self, number: signal.Signals) -> None:
        assert self.run is not None
        os.kill(self.run.pid, number)

    def stop(self) -> None:
        if self.run is not None:
            self.run.send_signal(signal.SIGCONT)
            self.run.kill()
            self.run.wait()

    def watch(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self.url}/status?role=watch", timeout=1) as answer:
                found: dict[str, Any] = json.load(answer)["roles"]["watch"]["watches"][0]
        except OSError:
            return {}
        return found

    def journal(self, event: str) -> list[dict[str, Any]]:
        file = self.state / "journal.jsonl"
        entries = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [entry for entry in entries if entry["event"] == event]


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Member, Member]]:
    """Both run, are well, and hear each other."""
    ports = dict(zip(("edge-a", "edge-b"), free_ports(2), strict=True))
    (tmp_path / "cure-takes").write_text("0.5")
    members = tuple(Member(name, tmp_path, ports, **getattr(request, "param", {})) for name in ports)
    for member in members:
        member.start()
    try:
        for member in members:
            until(lambda m=member: (m.watch().get("probe") or {}).get("ok"), f"{member.name} is well", 15)
        yield members[0], members[1]
    finally:
        for member in members:
            member.stop()


def cures(folder: Path) -> list[tuple[str, str, float]]:
    file = folder / "cures"
    rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [(what, who, float(at)) for what, who, at in rows]


def begun(folder: Path, who: str) -> float | None:
    return next((at for what, name, at in cures(folder) if (what, name) == ("begin", who)), None)


def test_two_that_die_at_the_same_time_are_cured_one_after_the_other_the_second_after_the_proof_of_the_first(
    pair: tuple[Member, Member], tmp_path: Path
) -> None:
    (tmp_path / "cure-takes").write_text("1.5")
    for member in pair:
        member.up.unlink()
    until(lambda: len(cures(tmp_path)) == 4, f"both are cured: {cures(tmp_path)}")
    first, second = sorted(pair, key=lambda member: begun(tmp_path, member.name) or 0.0)  # who has found out first, when the other does not want yet
    told = [(what, who) for what, who, _ in cures(tmp_path)]
    assert told == [("begin", first.name), ("end", first.name), ("begin", second.name), ("end", second.name)]
    assert 0 < cures(tmp_path)[2][2] - cures(tmp_path)[1][2] < 2.5  # its proof, and the next look
    held = until(lambda: second.journal("watch.suppressed"), "that it waits is journaled")
    assert first.name in held[0]["why"]
    until(lambda: all(member.watch()["state"] == "quiet" and not member.watch()["curing"] for member in pair), "all is quiet again")


@pytest.mark.parametrize(("victim", "other"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_is_lost_in_the_middle_of_its_cure_is_waited_for_no_longer_than_so(
    pair: tuple[Member, Member], tmp_path: Path, victim: int, other: int, how: signal.Signals
) -> None:
    lost, left = pair[victim], pair[other]
    (tmp_path / "cure-takes").write_text("12")
    lost.up.unlink()
    began = until(lambda: begun(tmp_path, lost.name), "the first cure begins")
    (tmp_path / "cure-takes").write_text("0.1")
    time.sleep(0.7)  # long enough for the other to have read of it
    lost.signal(how)
    left.up.unlink()
    then = until(lambda: begun(tmp_path, left.name), f"the other goes on: {left.watch()}", WAIT_S + 4)
    assert then - began >= WAIT_S - 0.2
    until(lambda: left.journal("watch.proved"), "it is well")


@pytest.mark.parametrize("pair", [{"budget": {"burst": 1, "every": "1h"}}], indirect=True)
def test_a_cure_of_one_counts_in_the_budget_of_both_also_after_a_kill(pair: tuple[Member, Member], tmp_path: Path) -> None:
    first, second = pair
    first.up.unlink()
    until(lambda: first.journal("watch.proved"), "the first is cured")
    time.sleep(0.7)  # long enough for the other to have read of it
    second.up.unlink()
    held = until(lambda: second.journal("watch.suppressed"), "the second is held back")
    assert held[0]["data"]["held_by"] == "budget"
    second.stop()
    second.start()
    until(lambda: second.watch().get("held_by") == "budget", f"it is held back again: {second.watch()}")
    assert begun(tmp_path, "edge-b") is None


def test_each_member_is_judged_by_what_the_other_finds_and_by_itself_when_there_is_none(tmp_path: Path) -> None:
    names = ("edge-a", "edge-b")
    *ops, service_a, service_b = free_ports(4)
    ports = dict(zip(names, ops, strict=True))
    services = {name: Listener(port) for name, port in zip(names, (service_a, service_b), strict=True)}
    group = {"name": "mesh", "members": {name: f"tcp://127.0.0.1:{service.port}" for name, service in services.items()}, "wait": f"{WAIT_S}s"}
    members = []
    for name in names:
        (tmp_path / "cure-takes").write_text("0")
        member = Member(name, tmp_path, ports, group=group)
        config = json.loads(member.config.read_text())
        config["watch"][0]["probe"] |= {"from": "peer"}  # its own way to the service stays well: the file is there
        member.config.write_text(json.dumps(config))
        members.append(member)
        services[name].up()
        member.start()
    a, b = members
    try:
        for member, teller in ((a, "edge-b"), (b, "edge-a")):
            until(lambda m=member, t=teller: f"asked by {t}" in ((m.watch().get("probe") or {}).get("why") or ""), f"{member.name} is told", 15)
        services["edge-a"].down()
        gone = time.monotonic()
        until(lambda: begun(tmp_path, "edge-a"), f"the first is cured for what the other found: {a.watch()}")
        assert time.monotonic() - gone < 4.0
        services["edge-a"].up()
        until(lambda: a.journal("watch.proved"), "and proved by what the other finds")
        assert begun(tmp_path, "edge-b") is None
        b.stop()
        until(lambda: "so this node asked itself" in a.watch()["probe"]["why"], "nobody is heard, so it asks itself", 10)
        assert a.watch()["probe"]["ok"]
    finally:
        for member in members:
            member.stop()
        for service in services.values():
            service.down()

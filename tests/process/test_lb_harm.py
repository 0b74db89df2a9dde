"""``edgekeeper lb run`` on a real HAProxy when something breaks: a process, a disk, a member, somebody's hand."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fleet import SUITES, Fleet, fleet, until

pytestmark = pytest.mark.engine


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path) as found:
        yield found


def test_a_frozen_supervisor_hurts_nobody_and_keeps_others_out(made: Fleet) -> None:
    run = made.run()
    made.wait_up()
    with made.load() as load:
        run.send_signal(signal.SIGSTOP)
        second = made.run()
        assert second.wait(20) == 4
        assert "kill -CONT" in made.said()
        made.made["web-c"].hangs = True  # HAProxy itself takes it out
        until(lambda: made.answers() and made.answers() and made.answers(), "the others answer")
        time.sleep(1.5)
        before = len(load.failed)
        time.sleep(1)
        assert len(load.failed) == before, "nobody is sent to the dead one any more"
        run.send_signal(signal.SIGCONT)
        until(lambda: made.states().get("web-c", "").startswith("DOWN"), "the supervisor sees it")


@pytest.mark.parametrize("suite", SUITES)
def test_a_killed_master_or_worker_is_followed_by_a_new_one_in_under_two_seconds(tmp_path: Path, suite: str) -> None:
    with fleet(tmp_path, suite) as made:
        made.run()
        for who in ("master", "worker"):
            pid = made.wait_up()["engine"]["pid"]
            os.kill(pid if who == "master" else made.worker(), signal.SIGKILL)
            begun = time.monotonic()
            until(lambda pid=pid: made.masters() not in ([], [pid]) and made.answers(), f"it serves again after the death of its {who}")
            assert time.monotonic() - begun < 2
            until(lambda: len(made.masters()) == 1 and len(made.engines()) == 2, "one master and its worker are left")
            until(lambda pid=pid: made.status().get("engine", {}).get("pid") == made.masters()[0], "the supervisor knows")
            until(lambda: {worker["pid"] for worker in made.workers()} | set(made.masters()) == set(made.engines()), "and sees its worker")
        assert "signal 9" in made.said()


def test_an_old_worker_is_counted_and_the_sessions_that_it_has_on_a_dead_server_are_ended(made: Fleet) -> None:
    run = made.run()
    made.wait_up()
    kept = {}
    while len(kept) < 3:
        connection = made.connection()
        kept.setdefault(connection.ask(), connection)
    made.listen = [made.port, made.spare]
    made.changed(run)
    until(lambda: len(made.workers()) == 2, "the old worker is counted")
    made.made["web-a"].hangs = True
    begun = time.monotonic()
    until(kept["web-a"].cut, "the session of the dead server is ended")
    assert time.monotonic() - begun < 1.3 + 1.5, "detection and a second, on a busy machine"
    assert kept["web-b"].ask() == "web-b"
    assert kept["web-c"].ask() == "web-c"
    until(lambda: "lb.sessions_freed" in (made.folder / "state/journal.jsonl").read_text(), "and told")


def test_a_server_that_was_taken_out_by_a_reload_keeps_nobody_for_long(tmp_path: Path) -> None:
    """The old worker has its sessions, and nobody checks it any more."""
    with fleet(tmp_path) as made:
        made.service = "    fail_open: true\n"
        made.write_config()
        made.run()
        made.wait_up()
        kept = {}
        while len(kept) < 3:
            connection = made.connection()
            kept.setdefault(connection.ask(), connection)
        made.write_members(["web-b", "web-c"])
        until(lambda: made.held() == {"web-b", "web-c"}, "it is gone")
        begun = time.monotonic()
        until(kept["web-a"].cut, "its client is sent to another")
        assert time.monotonic() - begun < 8
        assert kept["web-b"].ask() == "web-b"
        assert kept["web-c"].ask() == "web-c"


@pytest.mark.parametrize("suite", SUITES)
def test_a_wiped_run_dir_hurts_nobody_and_heals(tmp_path: Path, suite: str) -> None:
    with fleet(tmp_path, suite) as made:
        made.run()
        pid = made.wait_up()["engine"]["pid"]
        with made.load() as load:
            shutil.rmtree(made.folder / "run" / "lb")
            why = until(lambda: made.status().get("alarms", {}).get("socket gone"), "an alarm says that the socket is gone")
            assert "serves on" in why
            until(lambda: "socket gone" not in made.status()["alarms"] and made.ready(), f"it is there again\n{made.said()[-2000:]}")
            made.write_members(["web-a", "web-b"])
            until(lambda: made.held() == {"web-a", "web-b"}, "and HAProxy can be changed")
        assert load.failed == []
        assert made.masters() == [pid]


def test_generations_that_are_damaged_or_lost_do_not_keep_haproxy_from_being_changed(made: Fleet) -> None:
    run = made.run()
    pid = made.wait_up()["engine"]["pid"]
    run.kill()
    run.wait()
    with (made.folder / "state/lb/current/haproxy.cfg").open("a") as file:
        file.write("# somebody was here\n")
    with made.load() as load:
        run = made.run()
        until(lambda: made.status().get("adopted") and made.ready(), "it is adopted")
        until(lambda: made.status()["last_change"].get("how") == "files only", "what was damaged is whole again")
        made.listen = [made.port, made.spare]
        made.changed(run)
        assert made.answers(made.spare)
        assert made.masters() == [pid]
        run.kill()
        run.wait()
    assert load.failed == []
    shutil.rmtree(made.folder / "state/lb/generations")
    made.run()
    until(lambda: made.ready() and made.status()["refused"] is None, f"it is ready\n{made.said()[-2000:]}")
    until(lambda: len(made.masters()) == 1, "one HAProxy serves")
    assert made.answers(made.spare)


def test_a_full_state_dir_refuses_the_change_and_hurts_nobody(made: Fleet) -> None:
    run = made.run()
    pid = made.wait_up()["engine"]["pid"]
    worker = made.worker()
    generations = made.folder / "state/lb/generations"
    hidden = generations.rename(made.folder / "hidden")
    generations.write_text("no folder")  # as root, no mode and no full disk keeps a test from writing
    made.listen = [made.port, made.spare]
    made.write_config()
    run.send_signal(signal.SIGHUP)
    until(lambda: made.status().get("refused"), f"it is refused\n{made.said()[-2000:]}")
    assert made.answers()
    assert (made.masters(), made.worker()) == ([pid], worker)
    generations.unlink()
    hidden.rename(generations)
    assert run.poll() is None


def test_the_last_accepted_configuration_runs_when_the_source_is_gone(made: Fleet) -> None:
    run = made.run()
    made.wait_up()
    run.send_signal(signal.SIGTERM)
    run.wait(20)
    made.members.unlink()
    made.run()
    until(lambda: made.ready() and made.answers(), "it serves")
    assert "cannot be read" in made.status()["alarms"]["web membership"]


def test_a_wedged_haproxy_is_not_ready_and_an_alarm_says_what_to_do(made: Fleet) -> None:
    made.run()
    pid = made.wait_up()["engine"]["pid"]
    everyone = made.engines()
    for each in everyone:
        os.kill(each, signal.SIGSTOP)
    said = until(lambda: made.status()["alarms"].get("engine wedged"), "an alarm about the wedged engine")
    assert f"kill -KILL {pid}" in said
    assert not made.ready()
    os.kill(pid, signal.SIGKILL)
    until(made.answers, "a new one answers")
    until(lambda: "engine wedged" not in made.status()["alarms"], "and the alarm is cleared")
    until(lambda: len(made.engines()) == 2, f"nobody of the old ones is left: {made.engines()}, {everyone}")


def test_a_haproxy_that_is_missing_too_old_or_something_else_is_told(made: Fleet) -> None:
    for text, said in (
        ("echo HAProxy version 2.4.22-1 2023/02/14", "older than 2.6"),
        ("echo nginx version: nginx/1.22", "is not HAProxy's"),
        ("exit 0", "is not HAProxy's"),
    ):
        fake = made.folder / "fake"
        fake.write_text(f"#!/bin/sh\n{text}\n")
        fake.chmod(0o755)
        made.binary = str(fake)
        made.write_config()
        run = made.run()
        assert run.wait(20) == 6
        assert said in made.said()
    made.binary = "/nowhere/haproxy"
    made.write_config()
    assert made.run().wait(20) == 6
    assert "install HAProxy" in made.said()


def test_two_members_that_haproxy_could_not_tell_apart_are_refused_with_both_names(made: Fleet) -> None:
    run = made.run()
    made.wait_up()
    port = made.member_ports[0]
    made.members.write_text(f"members:\n  - {{host: 127.0.0.1, port: {port}}}\n  - {{name: 127.0.0.1_{port}, host: 127.0.0.1, port: {made.member_ports[1]}}}\n")
    why = until(lambda: made.status().get("refused"), "it is refused")
    assert "would be called" in why
    assert made.answers()
    assert run.poll() is None


def test_a_port_that_is_taken_between_preflight_and_start_is_told_and_tried_again(tmp_path: Path) -> None:
    with fleet(tmp_path) as made, socket.create_server(("127.0.0.1", made.port)) as thief:
        run = made.run()
        said = until(lambda: made.status().get("refused"), "it is refused")
        assert str(made.port) in said
        assert made.engines() == []
        thief.close()
        run.send_signal(signal.SIGHUP)
        assert run.poll() is None

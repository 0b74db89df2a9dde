"""``edgekeeper lb run`` on a real HAProxy: what an operator does to it, and what must not follow."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
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


def cli(made: Fleet, *words: str) -> subprocess.CompletedProcess[str]:
    """A command beside the supervisor."""
    return subprocess.run([sys.executable, "-m", "edgekeeper", "--config", str(made.config), *words], capture_output=True, text=True, check=False, timeout=60)


def changed(made: Fleet, run: subprocess.Popen[bytes], how: str = "reload") -> None:
    """Have the config as it is now read, and wait until it is in force."""
    before = made.status()["last_change"].get("at")
    made.write_config()
    run.send_signal(signal.SIGHUP)
    until(lambda: made.status().get("last_change", {}).get("at", before) != before, f"the config is in force\n{made.said()[-3000:]}")
    last = made.status()["last_change"]
    assert (last["ok"], last["how"]) == (True, how), last


@pytest.mark.parametrize("suite", SUITES)
def test_members_and_services_change_and_supervisors_die_and_no_request_fails(tmp_path: Path, suite: str) -> None:
    with fleet(tmp_path, suite) as made:
        run = made.run()
        pid = made.wait_up()["engine"]["pid"]
        kept = made.connection()
        assert kept.ask().startswith("web-")
        with made.load() as load:
            made.write_members(["web-a", "web-b"])
            until(lambda: made.held() == {"web-a", "web-b"}, "web-c is gone")
            made.write_members(["web-a", "web-b", "web-d"])
            made.wait_up(["web-a", "web-b", "web-d"])
            made.write_members(["web-a", "web-b", "web-d"], web_a="weight: 7", web_d="drain: true")
            until(lambda: made.servers().get("web-a", {}).get("weight") == 7, "the weight changed")
            assert made.servers()["web-d"]["weight"] == 0
            assert made.status()["last_change"]["how"] == "live"
            worker = made.worker()
            made.listen = [made.port, made.spare]
            changed(made, run)
            assert made.answers(made.spare).startswith("web-")
            until(lambda: made.worker() != worker, "another worker serves")
            run.kill()
            run.wait()
            assert made.answers()
            made.run()
            until(lambda: made.status().get("adopted"), "the next supervisor adopts HAProxy")
            until(lambda: "unchanged" in made.status()["last_decision"], "and changes nothing")
        assert made.status()["engine"]["pid"] == pid
        assert made.masters() == [pid]
        assert load.failed == []
        assert load.names == {"web-a", "web-b", "web-c", "web-d"}
        assert kept.ask().startswith("web-"), "who was connected before all of that still is"


def test_a_service_with_three_backends_changes_its_members_by_reload(tmp_path: Path) -> None:
    with fleet(tmp_path, extra="") as made:
        made.service = "    fail_open: true\n    patience: 1s\n"
        made.write_config()
        made.run()
        made.wait_up()
        pid = made.masters()
        with made.load() as load:
            made.write_members(["web-a", "web-b", "web-d"])
            made.wait_up(["web-a", "web-b", "web-d"])
            assert made.status()["last_change"]["how"] == "reload"
            made.write_members(["web-a", "web-b", "web-d"], web_a="weight: 7")
            until(lambda: made.servers().get("web-a", {}).get("weight") == 7, "the weight changed")
            assert made.status()["last_change"]["how"] == "live"
        assert load.failed == []
        assert made.masters() == pid


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


def test_term_stops_old_workers_too_and_quit_leaves_them_all(made: Fleet) -> None:
    run = made.run()
    pid = made.wait_up()["engine"]["pid"]
    kept = made.connection()
    assert kept.ask()
    made.listen = [made.port, made.spare]
    changed(made, run)
    until(lambda: len(made.workers()) == 2, "the old worker is counted")
    everyone = made.engines()
    assert len(everyone) == 3
    run.send_signal(signal.SIGQUIT)
    assert run.wait(20) == 0
    assert made.engines() == everyone
    assert kept.ask()
    run = made.run()
    until(lambda: made.status().get("adopted"), "it is adopted")
    until(lambda: len(made.workers()) == 2, "with its old worker")
    assert made.masters() == [pid]
    run.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    assert run.wait(20) == 0
    assert time.monotonic() - begun < 5
    assert made.engines() == []


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


def test_what_kills_a_worker_is_not_passed_on(made: Fleet) -> None:
    run = made.run()
    pid = made.wait_up()["engine"]["pid"]
    worker = made.worker()
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        run.send_signal(number)
    until(lambda: made.said().count("signal.received") == 3, "all three were heard")
    assert made.masters() == [pid]
    assert made.worker() == worker
    assert made.answers()


def test_a_config_with_five_mistakes_changes_nothing_and_names_all_five(made: Fleet) -> None:
    run = made.run()
    before = made.wait_up()
    files = sorted(p.name for p in (made.folder / "state/lb/generations").iterdir())
    good = made.config.read_text()
    bad = good.replace("kind: tcp", "kind: ftp").replace("fall: 2", "fall: 0").replace("timeouts:", "timeout:").replace("debounce: 100ms", "debounce: fast")
    bad += "  stats: 0.0.0.0:8404\n  bogus: 1\n"
    made.config.write_text(bad)
    run.send_signal(signal.SIGHUP)
    why = until(lambda: made.status()["alarms"].get("config"), "the mistakes are an alarm")
    for word in ("ftp", "fall", "timeout", "fast", "bogus"):
        assert word in why, why
    assert "stays" in why
    made.config.write_text(good)
    run.send_signal(signal.SIGHUP)
    until(lambda: "config" not in made.status()["alarms"], "and no longer")
    assert made.status()["engine"]["pid"] == before["engine"]["pid"]
    assert sorted(p.name for p in (made.folder / "state/lb/generations").iterdir()) == files
    assert made.answers()


def test_a_members_file_with_a_mistake_or_without_members_keeps_the_last_full_set(made: Fleet) -> None:
    made.run()
    made.wait_up()
    for bad in ("members: [\n", "members: []\n", "members: [web-a=192.0.2.1]\n", "\xff\xfe", ""):
        made.members.write_text(bad, encoding="latin-1")
        until(lambda: any("membership" in name for name in made.status()["alarms"]), f"an alarm about {bad!r}")
        assert len(made.held()) == 3
        made.write_members(made.names[:3])
        until(lambda: not any("membership" in name for name in made.status()["alarms"]), "well again")


def test_a_taken_port_is_refused_before_haproxy_is_touched(made: Fleet) -> None:
    run = made.run()
    pid = made.wait_up()["engine"]["pid"]
    worker = made.worker()
    with made.load() as load:
        made.listen = [made.port, made.ops]
        made.write_config()
        run.send_signal(signal.SIGHUP)
        why = until(lambda: made.status()["refused"], "it is refused")
        assert str(made.ops) in why
        assert f"by process {run.pid}" in why
    assert load.failed == []
    assert made.masters() == [pid]
    assert made.worker() == worker
    made.listen = [made.port]
    made.write_config()
    run.send_signal(signal.SIGHUP)
    until(lambda: made.status()["refused"] is None, "taken back")


def test_a_listener_moves_between_one_address_and_all_of_them(made: Fleet) -> None:
    """The old worker listens on the port until the new one does: that is not somebody else's port."""
    run = made.run()
    made.wait_up()
    text = made.config.read_text()
    with made.load() as load:
        for listen in (f'"0.0.0.0:{made.port}"', f'"0.0.0.0:{made.port}", "[::]:{made.port}"', f'"127.0.0.1:{made.port}"'):
            before = made.status()["last_change"]["at"]
            made.config.write_text(text.replace(f'"127.0.0.1:{made.port}"', listen))
            run.send_signal(signal.SIGHUP)
            until(lambda before=before: made.status()["last_change"]["at"] != before, f"{listen} is in force\n{made.said()[-2000:]}")
            assert made.status()["refused"] is None
    assert not [why for why in load.failed if "Reset" not in why[1]], "a closed listener may reset who it has not taken yet; nobody is refused"


def test_an_old_worker_is_counted_and_the_sessions_that_it_has_on_a_dead_server_are_ended(made: Fleet) -> None:
    run = made.run()
    made.wait_up()
    kept = {}
    while len(kept) < 3:
        connection = made.connection()
        kept.setdefault(connection.ask(), connection)
    made.listen = [made.port, made.spare]
    changed(made, run)
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
        changed(made, run)
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


def test_nothing_is_readable_by_others_and_no_secret_is_told(made: Fleet) -> None:
    made.run()
    made.wait_up()
    sockets = 0
    for file in [*(made.folder / "state/lb").rglob("*"), *(made.folder / "run/lb").rglob("*")]:
        mode = file.lstat().st_mode
        if file.is_symlink():
            continue
        assert mode & 0o007 == 0, f"{file} may be used by others: {oct(mode)}"
        if stat.S_ISSOCK(mode):
            sockets += 1
            assert stat.S_IMODE(mode) == 0o600, file
    assert sockets == 2
    assert stat.S_IMODE((made.folder / "state/lb").stat().st_mode) & 0o077 == 0


def test_check_and_render_judge_without_touching_anything(made: Fleet) -> None:
    checked = cli(made, "check")
    assert checked.returncode == 0, checked.stderr
    assert "HAProxy 3.2" in checked.stdout + checked.stderr
    assert "a hung member is DOWN" in checked.stdout + checked.stderr
    rendered = cli(made, "lb", "render", "--check")
    assert rendered.returncode == 0, rendered.stderr
    assert "on-marked-down shutdown-sessions" in rendered.stdout
    assert "accepts it" in rendered.stderr
    out = made.folder / "out"
    assert cli(made, "lb", "render", "--dir", str(out)).returncode == 0
    assert (out / "haproxy.cfg").read_text() == rendered.stdout
    assert not (made.folder / "state").exists() or not list((made.folder / "state").iterdir())
    made.config.write_text(made.config.read_text().replace("kind: tcp", "kind: http\n    certificate: /nowhere/chain.pem"))
    refused = cli(made, "lb", "render", "--check")
    assert refused.returncode == 2
    assert "/nowhere/chain.pem" in refused.stderr
    assert cli(made, "check").returncode == 2


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


def test_an_adopting_supervisor_does_not_change_anything(made: Fleet) -> None:
    run = made.run()
    made.wait_up()
    before = (made.folder / "state/lb/current").readlink()
    everyone = made.engines()
    for _ in range(3):
        run.kill()
        run.wait()
        run = made.run()
        until(lambda: made.status().get("adopted"), "adopted")
        until(lambda: "unchanged" in made.status()["last_decision"], "and unchanged")
    assert (made.folder / "state/lb/current").readlink() == before
    assert made.engines() == everyone
    assert json.loads((made.folder / "run/lb/engine.json").read_text())["applying"] is None

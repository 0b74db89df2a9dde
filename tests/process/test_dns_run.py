"""``edgekeeper dns run`` on a real dnsdist: what an operator does to it, and what must not follow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .edge import Client, Edge, answered, edge, until

SUITES = ("debian12", "debian13", "testing")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Edge]:
    with edge(tmp_path) as found:
        yield found


def cli(made: Edge, *words: str) -> subprocess.CompletedProcess[str]:
    """A command beside the supervisor."""
    return subprocess.run([sys.executable, "-m", "edgekeeper", "--config", str(made.config), *words], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("suite", SUITES)
def test_members_change_without_a_restart_and_a_killed_supervisor_is_followed_by_one_that_adopts(tmp_path: Path, suite: str) -> None:
    with edge(tmp_path, suite) as made:
        first = made.run()
        pid = made.wait_ready()["engine"]["pid"]
        with Client(made.port) as client:
            made.write_members(["ns-a", "ns-b"])
            until(lambda: made.held() == {"ns-a", "ns-b"}, "ns-c is gone")
            made.write_members(["ns-a", "ns-b", "ns-c"])
            until(lambda: made.held() == {"ns-a", "ns-b", "ns-c"}, "ns-c is back")
            assert made.status()["engine"]["pid"] == pid
            first.kill()
            first.wait()
            assert answered(made.port)
            made.run()
            begun = time.monotonic()
            until(lambda: made.status().get("adopted"), "the next supervisor adopts the engine")
            status = made.status()
            assert status["engine"]["pid"] == pid
            assert time.monotonic() - begun < 5
            until(lambda: len(made.held()) == 3, "all members are held")
        assert client.lost == 0, f"{client.lost} of {client.asked}"
        assert made.engines() == [pid]


def test_a_frozen_supervisor_hurts_nobody_and_keeps_others_out(made: Edge) -> None:
    run = made.run()
    made.wait_ready()
    with Client(made.port) as client:
        run.send_signal(signal.SIGSTOP)
        second = made.run()
        assert second.wait(20) == 4
        assert "kill -CONT" in made.said()
        run.send_signal(signal.SIGCONT)
        made.write_members(["ns-a", "ns-b"])
        until(lambda: made.held() == {"ns-a", "ns-b"}, "it goes on where it stood")
    assert client.lost == 0


def test_term_stops_both_and_quit_leaves_the_engine(made: Edge) -> None:
    run = made.run()
    pid = made.wait_ready()["engine"]["pid"]
    run.send_signal(signal.SIGQUIT)
    assert run.wait(20) == 0
    assert made.engines() == [pid]
    assert answered(made.port)
    run = made.run()
    until(lambda: made.status().get("adopted"), "it is adopted")
    run.send_signal(signal.SIGTERM)
    assert run.wait(20) == 0
    assert made.engines() == []


def test_signals_that_kill_dnsdist_are_not_passed_on(made: Edge) -> None:
    run = made.run()
    pid = made.wait_ready()["engine"]["pid"]
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        run.send_signal(number)
    until(lambda: made.said().count("signal.received") == 3, "all three were heard")
    assert made.engines() == [pid]
    assert answered(made.port)


def test_a_config_with_mistakes_changes_nothing(made: Edge) -> None:
    run = made.run()
    before = made.wait_ready()
    files = sorted(p.name for p in (made.folder / "state/dns/generations").iterdir())
    good = made.config.read_text()
    for bad in ("dns: [", good.replace("listen:", "lisen:"), "\0\1\2", good.replace("proxy_protocol: off", "")):
        made.config.write_text(bad)
        run.send_signal(signal.SIGHUP)
        until(lambda: "config" in made.status()["alarms"], "the mistake is an alarm")
        made.config.write_text(good)
        run.send_signal(signal.SIGHUP)
        until(lambda: "config" not in made.status()["alarms"], "and no longer")
    assert made.status()["engine"]["pid"] == before["engine"]["pid"]
    assert sorted(p.name for p in (made.folder / "state/dns/generations").iterdir()) == files
    assert answered(made.port)


def test_a_members_file_with_a_mistake_or_without_members_keeps_the_last_full_set(made: Edge) -> None:
    made.run()
    made.wait_ready()
    for bad in ("members: [\n", "members: []\n", "members: [ns-a=192.0.2.1:0]\n", "\xff\xfe"):
        made.members.write_text(bad, encoding="latin-1")
        until(lambda: "membership" in made.status()["alarms"], f"an alarm about {bad!r}")
        assert len(made.held()) == 3
        made.write_members(made.names)
        until(lambda: "membership" not in made.status()["alarms"], "well again")


def test_a_taken_port_is_refused_before_the_engine_is_touched(made: Edge) -> None:
    run = made.run()
    pid = made.wait_ready()["engine"]["pid"]
    made.listen = [made.port, made.ops]
    made.write_config()
    run.send_signal(signal.SIGHUP)
    why = until(lambda: made.status()["refused"], "it is refused")
    assert str(made.ops) in why
    assert made.engines() == [pid]
    assert answered(made.port)


def test_a_wedged_engine_is_not_ready_and_an_alarm_says_what_to_do(made: Edge) -> None:
    made.run()
    pid = made.wait_ready()["engine"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    said = until(lambda: made.status()["alarms"].get("engine wedged"), "an alarm about the wedged engine")
    assert f"kill -KILL {pid}" in said
    assert not made.ready()
    os.kill(pid, signal.SIGKILL)
    until(lambda: answered(made.port, timeout_s=0.2), "a new one answers")
    until(lambda: "engine wedged" not in made.status()["alarms"], "and the alarm is cleared")


def test_a_dead_engine_is_started_again(made: Edge) -> None:
    made.run()
    pid = made.wait_ready()["engine"]["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: answered(made.port, timeout_s=0.2), "it answers again")
    assert until(lambda: made.status()["engine"]["pid"], "it runs") != pid
    assert "signal 9" in made.said()


def test_the_last_accepted_configuration_runs_when_the_source_is_gone(made: Edge) -> None:
    run = made.run()
    made.wait_ready()
    run.send_signal(signal.SIGTERM)
    run.wait(20)
    made.members.unlink()
    made.run()
    made.wait_ready()
    assert answered(made.port)
    assert "cannot be read" in made.status()["alarms"]["membership"]


def test_drain_is_live_and_remembered_and_never_takes_the_last_one(made: Edge) -> None:
    run = made.run()
    pid = made.wait_ready()["engine"]["pid"]
    with Client(made.port) as client:
        for name in ("ns-a", "ns-b"):
            done = cli(made, "dns", "drain", name)
            assert done.returncode == 0, done.stderr
        assert made.held() == {"ns-c"} or until(lambda: made.held() == {"ns-c"}, "two are out")
        last = cli(made, "dns", "drain", "ns-c")
        assert last.returncode == 3
        assert "--force" in last.stderr
        assert cli(made, "dns", "drain", "nobody").returncode == 3
        run.kill()
        run.wait()
        made.run()
        until(lambda: made.status().get("adopted"), "adopted")
        assert made.held() == {"ns-c"}
        assert cli(made, "dns", "undrain", "ns-a").returncode == 0
        until(lambda: made.held() == {"ns-a", "ns-c"}, "one is back")
    assert client.lost == 0
    assert made.status()["engine"]["pid"] == pid


def test_a_member_that_says_that_it_drains_is_taken_out(made: Edge) -> None:
    made.run()
    made.wait_ready()
    assert made.tell("ns-b", "draining on") == "ok"
    until(lambda: made.held() == {"ns-a", "ns-c"}, "ns-b is out")
    assert made.tell("ns-b", "draining off") == "ok"
    until(lambda: len(made.held()) == 3, "ns-b is back")


def test_flush_and_members_speak_with_the_running_engine(made: Edge) -> None:
    made.run()
    made.wait_ready()
    assert cli(made, "dns", "flush", "example.").returncode == 0
    assert cli(made, "dns", "flush", "--all").returncode == 0
    assert cli(made, "dns", "flush").returncode == 2
    assert cli(made, "dns", "flush", 'x")os.exit(1)--').returncode == 2
    rows = json.loads(cli(made, "dns", "members", "-o", "json").stdout)["members"]
    assert [(r["name"], r["source"], r["engine"]) for r in rows] == [("ns-a", "present", "up"), ("ns-b", "present", "up"), ("ns-c", "present", "up")]


def test_no_secret_leaves_its_file(made: Edge) -> None:
    secret = "s3cret-of-the-proxy-protocol-tlv-0123456789"
    (made.folder / "proxy.secret").write_text(secret)
    (made.folder / "proxy.secret").chmod(0o600)
    made.config.write_text(made.config.read_text().replace("proxy_protocol: off", f"proxy_protocol: {{secret_file: {made.folder}/proxy.secret}}"))
    out = made.folder / "api.key"
    run = made.run(wrapper=(sys.executable, "-m", "edgekeeper", "--debug"))
    until(made.status, "it runs")
    until(lambda: made.status()["engine"]["pid"], "dnsdist runs")
    made.write_members(["ns-a"])
    pages = json.dumps(made.status()) + made.page("/metrics") + made.page("/healthz/ready")
    seat = json.loads((made.folder / "state/dns/current/generation.json").read_text())["document"]["seat"]
    secrets = [secret, seat["console_key"], seat["api_key"], seat["password"]]
    run.send_signal(signal.SIGTERM)
    run.wait(20)
    seen = pages + made.said() + (made.folder / "run/dns/engine.log").read_text() + (made.folder / "state/journal.jsonl").read_text()
    for value in secrets:
        assert value not in seen
    for file in [*(made.folder / "state/dns").rglob("*"), *(made.folder / "run/dns").rglob("*")]:
        if file.is_file() and any(value.encode() in file.read_bytes() for value in secrets):
            assert file.stat().st_mode & 0o077 == 0, f"{file} may be read by others"
    assert not out.exists()


def test_a_secret_that_others_may_read_is_refused(made: Edge) -> None:
    (made.folder / "proxy.secret").write_text("x" * 40)
    (made.folder / "proxy.secret").chmod(0o644)
    made.config.write_text(made.config.read_text().replace("proxy_protocol: off", f"proxy_protocol: {{secret_file: {made.folder}/proxy.secret}}"))
    checked = cli(made, "check")
    assert checked.returncode == 2
    assert "chmod 600" in checked.stderr


def test_the_api_key_is_handed_out_with_its_mode(made: Edge) -> None:
    run = made.run(wrapper=(sys.executable, "-m", "edgekeeper"))
    made.wait_ready()
    run.send_signal(signal.SIGTERM)
    run.wait(20)
    out = made.folder / "api.key"
    log = (made.folder / "key.log").open("wb")
    run = subprocess.Popen(
        [sys.executable, "-m", "edgekeeper", "--config", str(made.config), "dns", "run", "--api-key-out", str(out), "--api-key-group", "root"],
        stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    try:
        until(out.exists, "the key is there")
        assert out.stat().st_mode & 0o777 == 0o640
        assert len(out.read_text().strip()) == 64
    finally:
        run.send_signal(signal.SIGTERM)
        run.wait(20)
        log.close()


def test_an_adopting_supervisor_does_not_change_anything(made: Edge) -> None:
    run = made.run()
    made.wait_ready()
    before = (made.folder / "state/dns/current").readlink()
    for _ in range(3):
        run.kill()
        run.wait()
        run = made.run()
        until(lambda: made.status().get("adopted"), "adopted")
        until(lambda: "unchanged" in made.status()["last_decision"], "and unchanged")
    assert (made.folder / "state/dns/current").readlink() == before

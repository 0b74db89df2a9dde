"""``edgekeeper lb run`` on a real HAProxy: what an operator does to it, and what must not follow."""

from __future__ import annotations

import json
import signal
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekeeper.lab.certs import Authority

from .fleet import SUITES, Fleet, fleet, until

pytestmark = pytest.mark.engine


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path) as found:
        yield found


def cli(made: Fleet, *words: str) -> subprocess.CompletedProcess[str]:
    """A command beside the supervisor."""
    return subprocess.run([sys.executable, "-m", "edgekeeper", "--config", str(made.config), *words], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("suite", SUITES)
def test_members_and_services_change_and_supervisors_die_and_no_request_fails(tmp_path: Path, suite: str) -> None:
    with fleet(tmp_path, suite) as made:
        run = made.run()
        pid = made.wait_up()["engine"]["pid"]
        while (kept := made.connection()).ask() == "web-c":  # who will leave
            continue
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
            made.changed(run)
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
        assert load.names >= {"web-a", "web-b"}
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


def test_term_stops_old_workers_too_and_quit_leaves_them_all(made: Fleet) -> None:
    run = made.run()
    pid = made.wait_up()["engine"]["pid"]
    kept = made.connection()
    assert kept.ask()
    made.listen = [made.port, made.spare]
    made.changed(run)
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


def test_a_renewed_certificate_is_served_and_half_a_one_is_not(tmp_path: Path) -> None:
    authority, pem = Authority(tmp_path), tmp_path / "web.pem"

    def renewed() -> str:
        folder = authority.issue()
        return (folder / "tls.crt").read_text() + (folder / "tls.key").read_text()

    def served() -> str:
        return ssl.get_server_certificate(("127.0.0.1", made.port), timeout=3)

    pem.write_text(renewed())
    with fleet(tmp_path, kind="http") as made:
        made.service = f"    certificate: {pem}\n"
        made.write_config()
        made.run()
        pid = made.wait_up()["engine"]["pid"]
        first = served()
        pem.write_text(renewed()[:300])
        refused = until(lambda: made.status().get("refused"), "half a certificate is refused")
        assert "web.pem" in refused
        assert served() == first
        made.write_members(["web-a", "web-b"])  # another change is not held up by it
        pem.write_text(renewed())
        until(lambda: served() != first, f"the new one is served\n{made.said()[-2000:]}", 40)
        until(lambda: made.status().get("refused") is None, "and nothing is refused any more")
        assert made.masters() == [pid]

"""The self-test on every version: it passes, it can fail, it is quick, and it leaves nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from edgekeeper.host import process
from edgekeeper.host.clock import SystemClock
from edgekeeper.lb import canary
from edgekeeper.model.verdict import Health

SUITES = {"2.6": "debian12", "3.0": "debian13", "3.2": "testing"}
pytestmark = pytest.mark.engine


def binary(version: str) -> str:
    prefix = Path(os.environ.get("EDGEKEEPER_ENGINES") or Path.home() / ".cache" / "edgekeeper" / "engines")
    return str(prefix / SUITES[version] / "bin" / "haproxy")


@pytest.mark.parametrize("version", list(SUITES))
def test_the_directive_works_and_its_absence_is_seen(version: str) -> None:
    began = time.monotonic()
    good = asyncio.run(canary.self_test(binary(version)))
    assert good.health is Health.OK, good.why
    assert time.monotonic() - began < 3
    assert good.evidence["version"].startswith(version)
    bad = asyncio.run(canary.self_test(binary(version), cut=False))
    assert bad.health is Health.BAD, bad.why
    assert "does not end the sessions of a server that is DOWN" in bad.why
    assert time.monotonic() - began < 6
    assert not [pid for pid, _ in process.marked("EDGEKEEPER_CANARY", "1") if process.parent(pid) == os.getpid()]


def test_what_is_no_haproxy_is_unknown_and_never_good() -> None:
    for path in ("/bin/false", "/bin/cat", "/nonexistent/haproxy"):
        assert asyncio.run(canary.self_test(path)).health is Health.UNKNOWN


def test_what_a_killed_tester_left_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(canary, "_LEFTOVER_S", 0.0)
    old = tmp_path / f"{canary._FOLDER}old"
    old.mkdir()
    (old / "haproxy.cfg").write_text("x")
    left = subprocess.Popen(["sleep", "60"], env={"EDGEKEEPER_CANARY": "1"})
    try:
        end = time.monotonic() + 5.0
        while not (ours := [(pid, started) for pid, started in process.marked("EDGEKEEPER_CANARY", "1") if pid == left.pid]):
            assert time.monotonic() < end  # a process that begins has no environment yet
        monkeypatch.setattr(process, "marked", lambda *_: ours)  # a canary that somebody else flies right now is not ours to end
        assert asyncio.run(canary.self_test("/bin/false")).health is Health.UNKNOWN
        assert left.wait(5) == -signal.SIGTERM
        assert list(tmp_path.iterdir()) == []
    finally:
        left.kill()
        left.wait()


def test_it_is_asked_once_for_each_binary(tmp_path: Path) -> None:
    path = tmp_path / "haproxy"
    path.symlink_to(binary("3.2"))
    first = asyncio.run(canary.once(str(path), tmp_path, SystemClock()))
    began = time.monotonic()
    assert asyncio.run(canary.once(str(path), tmp_path, SystemClock())) == first
    assert time.monotonic() - began < 0.1
    path.unlink()
    path.symlink_to(binary("2.6"))
    assert asyncio.run(canary.once(str(path), tmp_path, SystemClock())).evidence["version"].startswith("2.6")

"""kill -9 of the supervisor at every step of a live change and of a reload: clients are served, the disk holds together, the next one converges."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekeeper.supervise.stage import Stage

from .fleet import Fleet, fleet, until
from .test_interruption import EVERY, WRAPPER, _environment

pytestmark = pytest.mark.engine


def _live(made: Fleet, _run: subprocess.Popen[bytes]) -> None:
    """One leaves, one comes, one weighs something else."""
    made.write_members(["web-a", "web-b", "web-d"], web_a="weight: 7")


def _reload(made: Fleet, run: subprocess.Popen[bytes]) -> None:
    made.listen = [made.port, made.spare]
    made.write_config()
    run.send_signal(signal.SIGHUP)


def _live_done(made: Fleet) -> bool:
    servers = made.servers()
    return set(servers) == {"web-a", "web-b", "web-d"} and servers["web-a"]["weight"] == 7


def _reload_done(made: Fleet) -> bool:
    return bool(made.answers(made.spare))


SCENARIOS: dict[str, tuple[Callable[[Fleet, subprocess.Popen[bytes]], None], Callable[[Fleet], bool]]] = {
    "live": (_live, _live_done),
    "reload": (_reload, _reload_done),
}


def _done(made: Fleet, name: str) -> bool:
    status = made.status()
    return any(word in status.get("last_decision", "") for word in ("is in force", "unchanged")) and SCENARIOS[name][1](made)


def _steps(folder: Path, name: str) -> list[str]:
    """All steps of an undisturbed change."""
    folder.mkdir()
    with fleet(folder) as made:
        run = made.run(wrapper=WRAPPER, env=_environment(made, 0))
        made.wait_up()
        (folder / "go").touch()
        SCENARIOS[name][0](made, run)
        until(lambda: _done(made, name), f"the undisturbed change is in force\n{made.said()[-2000:]}")
        run.send_signal(signal.SIGQUIT)
        run.wait(10)
        return (folder / "steps").read_text().splitlines()


def _interrupted(folder: Path, name: str, kill_at: int) -> None:
    folder.mkdir()
    with fleet(folder) as made:
        run = made.run(wrapper=WRAPPER, env=_environment(made, kill_at))
        pid = made.wait_up()["engine"]["pid"]
        kept = made.connection()
        assert kept.ask()
        with made.load() as load:
            (folder / "go").touch()
            SCENARIOS[name][0](made, run)
            assert run.wait(20) == -signal.SIGKILL, made.said()[-2000:]
            _files_belong_together(made)
            made.run()
            until(lambda: _done(made, name), f"the next supervisor brings the change into force\n{made.said()[-3000:]}")
            until(lambda: not made.record()["applying"] and not made.record()["beside"], f"nothing is under way\n{made.said()[-3000:]}")
            until(made.ready, "it is ready")
        assert load.failed == [], made.said()[-3000:]
        assert made.masters() == [pid]
        assert made.held() == ({"web-a", "web-b", "web-d"} if name == "live" else {"web-a", "web-b", "web-c"})
        _files_belong_together(made)
        if name == "reload":
            assert kept.ask(), "who was connected before still is"


def _files_belong_together(made: Fleet) -> None:
    stage = Stage(made.folder / "state" / "lb", readonly=True)
    link = stage.current_path.readlink()
    assert stage.read(link.name) is not None, f"{link} is damaged"
    checked = subprocess.run([made.binary, "-c", "-f", str(stage.current_path / "haproxy.cfg")], capture_output=True, text=True, check=False, timeout=20)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_killed_supervisor_hurts_nobody(tmp_path: Path, name: str) -> None:
    steps = _steps(tmp_path / "whole", name)
    assert len(steps) > 10
    for number in range(1, len(steps) + 1, EVERY):
        try:
            _interrupted(tmp_path / f"step-{number}", name, number)
        except AssertionError as err:
            pytest.fail(f"killed at step {steps[number - 1]}: {err}", pytrace=False)
        print(f"{name}: {steps[number - 1]}", file=sys.stderr)  # noqa: T201 - seen when it fails, or with -s

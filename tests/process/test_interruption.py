"""kill -9 of the supervisor at every step between writing candidates and the engine answering.

Whatever the step: clients are served throughout, what lies on disk belongs together and the real
validator accepts it, and the next supervisor ends with one engine in the wanted state.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgekeeper.host import steer
from edgekeeper.supervise.stage import Stage

from .edge import Client, Edge, answered, edge, until

WRAPPER = (sys.executable, str(Path(__file__).with_name("killed_at.py")))

OVERLAP_LOSES = 4
"""Each end of an overlapping process costs up to 3 or 4 at this rate, and an interrupted exchange ends two: the one that was
left half-way, and the old one. ``steer`` costs nothing, interrupted or not."""

SCENARIOS = {
    "live": ("", "members"),
    "overlap": ("  restart: overlap\n", "listener"),
    "steer": ("  restart: steer\n", "listener"),
}
EVERY = int(os.environ.get("EK_INTERRUPT_EVERY", "8"))
"""Every so many steps are tried here; with ``EK_INTERRUPT_EVERY=1`` all of them."""


def _change(made: Edge, kind: str, run: subprocess.Popen[bytes]) -> None:
    if kind == "members":
        made.write_members(["ns-a", "ns-b"])
    else:
        made.listen = [made.port, made.spare]
        made.write_config()
        run.send_signal(signal.SIGHUP)


def _done(made: Edge, kind: str) -> bool:
    status = made.status()
    if not any(word in status.get("last_decision", "") for word in ("is in force", "unchanged")):
        return False
    return made.held() == {"ns-a", "ns-b"} if kind == "members" else answered(made.spare, timeout_s=0.2)


def _environment(made: Edge, kill_at: int) -> dict[str, str]:
    steps = made.folder / "steps"
    return {"EK_GO": str(made.folder / "go"), "EK_KILL_AT": str(kill_at), "EK_STEPS": str(steps)}


def _steps(folder: Path, extra: str, kind: str) -> list[str]:
    """All steps of an undisturbed change."""
    folder.mkdir()
    with edge(folder, extra=extra) as made:
        run = made.run(wrapper=WRAPPER, env=_environment(made, 0))
        made.wait_ready()
        (folder / "go").touch()
        _change(made, kind, run)
        until(lambda: _done(made, kind), "the undisturbed change is in force")
        until(lambda: len(made.engines()) == 1, "the old engine has ended")
        run.send_signal(signal.SIGQUIT)
        run.wait(10)
        return (folder / "steps").read_text().splitlines()


def _interrupted(folder: Path, extra: str, kind: str, kill_at: int) -> None:
    folder.mkdir()
    with edge(folder, extra=extra) as made:
        run = made.run(wrapper=WRAPPER, env=_environment(made, kill_at))
        made.wait_ready()
        with Client(made.port) as client:
            (folder / "go").touch()
            _change(made, kind, run)
            code = run.wait(20)
            assert code == -signal.SIGKILL, made.said()[-2000:]
            _files_belong_together(made)
            made.run()
            until(lambda: _done(made, kind), f"the next supervisor brings the change into force\n{made.said()[-3000:]}")
            until(lambda: _calm(made), f"one engine is left, and nothing is under way\n{made.said()[-3000:]}")
            made.wait_ready()
        allowed = 0 if kind == "members" or "steer" in extra else OVERLAP_LOSES
        assert client.lost <= allowed, f"{client.lost} of {client.asked} lost\n{made.said()[-3000:]}"
        _files_belong_together(made)
        listens = [f"127.0.0.1:{made.port}"]
        assert steer.detach(made.engines()[0], listens) == 0, f"a steering program was left attached\n{made.said()[-3000:]}"


def _calm(made: Edge) -> bool:
    record = json.loads((made.folder / "run" / "dns" / "engine.json").read_text())
    return len(made.engines()) == 1 and not record["beside"] and not record["steering"] and not record["applying"]


def _files_belong_together(made: Edge) -> None:
    stage = Stage(made.folder / "state" / "dns", readonly=True)
    link = stage.current_path.readlink()
    assert stage.read(link.name) is not None, f"{link} is damaged"
    checked = subprocess.run(
        [made.binary, "--check-config", "-C", str(stage.current_path / "dnsdist.yml")], capture_output=True, text=True, check=False, timeout=20
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_killed_supervisor_hurts_nobody(tmp_path: Path, name: str) -> None:
    extra, kind = SCENARIOS[name]
    steps = _steps(tmp_path / "whole", extra, kind)
    assert len(steps) > 10
    first = 1
    for number in range(first, len(steps) + 1, EVERY):
        try:
            _interrupted(tmp_path / f"step-{number}", extra, kind, number)
        except AssertionError as err:
            pytest.fail(f"killed at step {steps[number - 1]}: {err}", pytrace=False)

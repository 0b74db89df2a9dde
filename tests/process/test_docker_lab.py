"""The lab's Docker daemons: real, of every version, and gone without a trace."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekeeper.lab import cgroups, netns
from edgekeeper.lab.topology import owner

from .dockers import NAMESPACE, SUITES, Docker, dockerd

pytestmark = [pytest.mark.root, pytest.mark.engine, pytest.mark.timeout(120)]

LIVES = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit())\nprint('up', flush=True)\ntime.sleep(600)"


def gone(pid: int) -> bool:
    return netns.start_time(pid) is None


@pytest.mark.parametrize("suite", SUITES)
def test_a_container_of_nothing_runs_this_machines_python_and_leaves_nothing(suite: str) -> None:
    docker = Docker(suite)
    try:
        before = set(Path("/sys/class/net").iterdir())
        docker.run("sleeper", LIVES)
        pid = int(docker("inspect", "--format", "{{.State.Pid}}", "sleeper"))
        assert b"time.sleep(600)" in Path(f"/proc/{pid}/cmdline").read_bytes(), "its pid is the machine's own"
        until(lambda: docker("logs", "sleeper") == "up")
        docker("restart", "--time", "0", "sleeper")
        until(lambda: docker("logs", "sleeper") == "up\nup")
        docker("pause", "sleeper")
        pid = int(docker("inspect", "--format", "{{.State.Pid}}", "sleeper"))
        assert set(Path("/sys/class/net").iterdir()) == before, "the host has no interface of its"
        assert not any(docker.socket in line for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines())
        name = docker.daemon.net.name[NAMESPACE]
        folder = docker.folder
    finally:
        docker.close()
    assert gone(pid), "a paused container too"
    assert not cgroups.groups(name)
    assert not (Path("/run/netns") / name).exists()
    assert not folder.exists()
    assert str(folder) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


@pytest.mark.parametrize("live", [True, False])
def test_a_daemon_that_is_started_again_has_its_containers(dockers: Callable[..., Docker], live: bool) -> None:
    docker = dockers("testing", {"live-restore": live})
    docker.run("always", LIVES, "--restart", "unless-stopped")
    pid = int(docker("inspect", "--format", "{{.State.Pid}}", "always"))
    docker.stop()
    assert gone(pid) is not live
    docker.start()
    until(lambda: docker("inspect", "--format", "{{.State.Running}}", "always") == "true")
    if live:  # without it, a daemon that was killed stops what it finds running, and takes 10 to 20 s for that
        pid = int(docker("inspect", "--format", "{{.State.Pid}}", "always"))
        docker.kill()
        docker.start()
        assert not gone(pid)
        docker("restart", "--time", "0", "always")
        assert gone(pid)


RUNNER = """
import asyncio, sys
from pathlib import Path
from edgekeeper.lab import netns
from edgekeeper.lab.docker import IMAGE, Daemon, python_argv, python_mounts
from edgekeeper.lab.netns import Net
from edgekeeper.lab.topology import Plan

async def main():
    with netns.folder(17) as folder:
        async with Net(Plan(("edge",), ()), serial=17) as net:
            docker = await Daemon(net, "edge", folder / "docker", sys.argv[1]).start()
            await docker.image()
            run = ("run", "--detach", "--restart", "always", "--network", "none")
            one = await docker.docker(*run, *python_mounts(), IMAGE, *python_argv("-c", "import time; time.sleep(600)"))
            pid = await docker.docker("inspect", "--format", "{{.State.Pid}}", one)
            print(docker.actor.pid, pid, folder, flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_whatever_ends_the_runner_no_container_stays(number: signal.Signals) -> None:
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, dockerd()], stdout=subprocess.PIPE, text=True)
    try:
        assert runner.stdout is not None
        daemon, container, folder = runner.stdout.readline().split()
        runner.stdout.close()
    finally:
        runner.send_signal(number)
        runner.wait(30)
    if number is signal.SIGKILL:
        assert not gone(int(daemon)), "kill -9 leaves it: there is something to sweep"
        assert not gone(int(container))
        asyncio.run(netns.sweep())
    assert gone(int(daemon))
    assert gone(int(container))
    assert not Path(folder).exists()
    assert not [p for p in Path("/run/netns").iterdir() if (owner(p.name) or (0, 0))[0] == runner.pid]
    assert not list(Path("/sys/fs/cgroup").glob(f"*/ekd-{runner.pid}-*"))


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.05)

"""Whatever happens to a run, the next one leaves nothing behind: no namespace, no process, no folder."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from edgekeeper.lab import netns
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.topology import edge_plan, lan_plan, owner

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]

RUNNER = """
import asyncio, os, sys
from edgekeeper.lab import netns
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.topology import edge_plan

async def main():
    with netns.folder(7) as folder:
        async with netns.Net(edge_plan(2), serial=7) as net:
            one = await Actor.start(net, "members", "sleeper", ["sleep", "600"], folder=folder)
            two = await Actor.start(net, "edge", "deaf", ["sh", "-c", "trap '' TERM HUP; while :; do sleep 600; done"], folder=folder)
            print(one.pid, two.pid, folder, flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def _root() -> None:
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces; run them as root")


def mine(pid: int) -> list[str]:
    """The namespaces that a runner made."""
    names = [p.name for p in Path("/run/netns").iterdir()] if Path("/run/netns").is_dir() else []
    return [n for n in names if (owner(n) or (0, 0))[0] == pid]


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody reaps counts)."""
    return netns.start_time(pid) is None


def start_runner(text: str = RUNNER) -> tuple[subprocess.Popen[str], list[int], Path]:
    runner = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert runner.stdout is not None
    one, two, folder = runner.stdout.readline().split()
    runner.stdout.close()
    return runner, [int(one), int(two)], Path(folder)


def test_kill_9_leaves_things_and_the_next_run_sweeps_them_and_only_them() -> None:
    other, other_pids, other_folder = start_runner()
    runner, pids, folder = start_runner()
    try:
        runner.kill()
        runner.wait()
        assert len(mine(runner.pid)) == 3, "kill -9 leaves the namespaces: there is something to sweep"
        assert not gone(pids[0])
        assert folder.exists()
        swept = asyncio.run(netns.sweep())
        assert set(swept) >= {str(folder)}
        assert mine(runner.pid) == []
        assert all(gone(p) for p in pids)
        assert not folder.exists()
        assert len(mine(other.pid)) == 3, "a live run beside it is left alone"
        assert not any(gone(p) for p in other_pids)
        assert other_folder.exists()
    finally:
        other.kill()
        other.wait()
        asyncio.run(netns.sweep())
    assert mine(other.pid) == []


SEGMENT = """
import asyncio
from edgekeeper.lab import netns
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.topology import lan_plan

async def main():
    with netns.folder(11) as folder:
        async with netns.Net(lan_plan(3, 1), serial=11) as net:
            frozen = await Actor.start(net, "edge-b", "frozen", ["sleep", "600"], folder=folder)
            net.kill("edge-b", 19)
            orphan = await Actor.start(net, "edge-a", "shell", ["sh", "-c", "setsid sleep 600 & echo $!; wait"], folder=folder)
            while not orphan.log.read_bytes():
                await asyncio.sleep(0.01)
            await net.ip("edge-a", "address", "add", "192.0.2.53/32", "dev", "lo")
            print(frozen.pid, int(orphan.log.read_text()), folder, flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_segment_of_nodes_is_swept_too_with_what_is_frozen_or_detached_in_it() -> None:
    runner, pids, folder = start_runner(SEGMENT)
    try:
        assert len(mine(runner.pid)) == 6, "three nodes, the client, members, the switch"
    finally:
        runner.kill()
        runner.wait()
        asyncio.run(netns.sweep())
    assert mine(runner.pid) == []
    assert all(gone(p) for p in pids)
    assert not folder.exists()


def test_an_interrupted_run_cleans_up_after_itself() -> None:
    runner, pids, folder = start_runner()
    runner.send_signal(signal.SIGINT)
    runner.wait(timeout=20)
    assert mine(runner.pid) == []
    assert all(gone(p) for p in pids)
    assert not folder.exists()


@pytest.mark.parametrize(("plan", "namespace", "interface"), [(edge_plan(3), "edge", "clients"), (lan_plan(3), "switch", "br0")])
def test_the_host_never_sees_an_interface(plan: object, namespace: str, interface: str) -> None:
    already = mine(os.getpid())  # a Docker daemon that tests of this process share
    before = sorted(p.name for p in Path("/sys/class/net").iterdir())

    async def look() -> tuple[list[str], str]:
        async with netns.Net(plan, serial=8) as net:  # type: ignore[arg-type]
            return sorted(p.name for p in Path("/sys/class/net").iterdir()), await net.ip(namespace, "-br", "link")

    during, inside = asyncio.run(look())
    assert during == before
    assert interface in inside
    assert mine(os.getpid()) == already


def test_a_setup_that_fails_half_way_leaves_nothing() -> None:
    already = mine(os.getpid())
    plan = edge_plan(1)
    net = netns.Net(plan, serial=9)
    net.name["members"] = net.name["client"]  # two namespaces of one name: the second cannot be made

    async def make() -> None:
        async with net:
            pass

    with pytest.raises(Exception, match="failed"):
        asyncio.run(make())
    assert mine(os.getpid()) == already


def test_stop_escalates_and_wakes_a_frozen_one() -> None:
    async def run() -> tuple[int, int, float]:
        with netns.folder(10) as folder:
            async with netns.Net(edge_plan(1), serial=10) as net:
                frozen = await Actor.start(net, "edge", "frozen", ["sleep", "600"], folder=folder)
                frozen.signal(signal.SIGSTOP)
                deaf = await Actor.start(net, "edge", "deaf", ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"], folder=folder)
                while not deaf.log.read_bytes():  # noqa: ASYNC110 - a file has no event
                    await asyncio.sleep(0.01)
                began = time.monotonic()
                return await frozen.stop(), await deaf.stop(0.5), time.monotonic() - began

    code, forced, took = asyncio.run(run())
    assert code == -signal.SIGTERM
    assert forced == -signal.SIGKILL
    assert took < 3


def test_folders_of_dead_runs_go_and_strangers_stay() -> None:
    stranger = Path(tempfile.mkdtemp(prefix="ekdx-"))
    old = Path(tempfile.gettempdir()) / "ekd-4194304-1-5-files"
    old.mkdir()
    try:
        asyncio.run(netns.sweep())
        assert not old.exists()
        assert stranger.exists()
    finally:
        with contextlib.suppress(OSError):
            old.rmdir()
        stranger.rmdir()


def test_a_folder_that_a_run_elsewhere_holds_is_left_alone() -> None:
    """A container may share the folder but not the pids: the lock tells, and it ends with the process."""
    held = Path(tempfile.gettempdir()) / "ekd-4194304-1-6-files"
    held.mkdir()
    fd = os.open(held / ".lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        asyncio.run(netns.sweep())
        assert held.exists()
    finally:
        os.close(fd)
    asyncio.run(netns.sweep())
    assert not held.exists()

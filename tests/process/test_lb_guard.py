"""``lb guard`` over a real HAProxy that is not ours: what it frees, what it marks, and what it leaves alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.engines.haproxy.stats import parse_info
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.journal import FileJournal, read_journal
from edgekeeper.lb.decide import Mark, Rules
from edgekeeper.lb.guard import Guard, Settings
from edgekeeper.lb.marks import read_marks, write_marks

from .balancer import NAMES, SHALLOW, Balancer, balancer

pytestmark = pytest.mark.engine
VERSIONS = ("2.6", "3.2")
QUICK: dict[str, Any] = {"rules": Rules(hold_s=0.5), "every_s": 0.1, "probe_every_s": 0.2, "first_byte_s": 0.4, "backends": ("api",)}
"""Everything faster than in life, so that a test takes a moment."""


def play(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 50))


def new_guard(stage: Balancer, **said: Any) -> Guard:
    folder = stage.folder / "state" / "guard"
    folder.mkdir(parents=True, exist_ok=True)
    clock = SystemClock()
    return Guard(Settings(stage.socket, **{**QUICK, **said}), folder, folder.parent, clock, FileJournal(folder.parent, "edge-a", clock))


@contextlib.asynccontextmanager
async def guarded(stage: Balancer, **said: Any) -> AsyncIterator[Guard]:
    """A guard that watches."""
    guard = new_guard(stage, **said)
    watching = asyncio.create_task(guard.watch())
    try:
        yield guard
    finally:
        guard.end()
        await watching


def journal(stage: Balancer) -> list[dict[str, Any]]:
    records, unreadable = read_journal(stage.folder / "state")
    assert not unreadable
    return [record.fields for record in records]


def events(stage: Balancer, name: str = "") -> list[str]:
    return [f["event"] for f in journal(stage) if not name or f["object"] == name]


def on(stage: Balancer, name: str) -> list[Any]:
    return [s for s in stage.sessions if s.server == name]


async def healthy_go_on(stage: Balancer, *names: str) -> None:
    """The sessions of these servers are there, and are answered by the same server as before."""
    for name in names:
        assert on(stage, name)
        for session in on(stage, name):
            assert await session.ask() == name


@pytest.mark.parametrize("version", ["2.6", "3.0", "3.2"])
def test_sessions_of_a_down_server_are_freed_within_hold_and_two_seconds(version: str, tmp_path: Path) -> None:
    """At the pace of life: hold 2 s, a look each half second; a configuration without the directive."""

    async def work() -> None:
        async with balancer(version, tmp_path) as stage, guarded(stage, rules=Rules(hold_s=2.0), every_s=0.5, probe=None):
            await stage.open(9)
            stage.servers["cp1"].mode = "hole"
            down = await stage.until_state(lambda found: found["cp1"].status.startswith("DOWN"))
            await stage.until(lambda: all(s.ended for s in on(stage, "cp1")) and "lb.sessions_freed" in events(stage))
            assert all(1.5 <= s.ended_at - down <= 4.0 for s in on(stage, "cp1"))
            await healthy_go_on(stage, "cp2", "cp3")
            (freed,) = [f for f in journal(stage) if f["event"] == "lb.sessions_freed"]
            assert freed["object"] == "api/cp1"
            assert freed["why"].startswith("api/cp1 is DOWN for 2.")
            assert freed["data"]["sessions"] == 3
            await healthy_go_on(stage, "cp2", "cp3")

    play(work)


@pytest.mark.parametrize("version", VERSIONS)
def test_never_more_than_one_of_three_is_marked_and_each_act_has_its_reason(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path, SHALLOW) as stage, guarded(stage):
            await stage.open(9)
            stage.servers["cp1"].mode = stage.servers["cp2"].mode = "hole"
            await stage.until_state(lambda found: any(s.maint for s in found.values()))
            await stage.until(lambda: all(s.ended for s in on(stage, "cp1")) or all(s.ended for s in on(stage, "cp2")))
            await stage.until(lambda: "lb.sessions_freed" in events(stage))
            ends = time.monotonic() + 2
            while time.monotonic() < ends:
                assert sum(s.maint for s in (await stage.state()).values()) == 1
                await asyncio.sleep(0.1)
            first = next(name for name, s in (await stage.state()).items() if s.maint)
            second = {"cp1": "cp2", "cp2": "cp1"}[first]
            assert not any(s.ended for s in on(stage, second)), "a server that is not marked keeps its sessions"
            assert events(stage, f"api/{first}") == ["lb.server_marked", "lb.sessions_freed"]
            held = [f for f in journal(stage) if f["event"] == "lb.held"]
            assert {(f["object"], f["decision"]) for f in held} == {(f"api/{second}", "suppress")}
            assert "one of three" not in held[0]["why"]
            assert "1 of 3 servers of api are marked already" in held[0]["why"]
            stage.servers[first].mode = "ok"
            await stage.until_state(lambda found: not found[first].maint)
            await stage.until_state(lambda found: found[second].maint)
            stage.servers[second].mode = "ok"
            await stage.until_state(lambda found: not any(s.maint for s in found.values()))
            assert not read_marks(stage.folder / "state" / "guard")
            assert all(f["why"] for f in journal(stage))
            await healthy_go_on(stage, "cp3")

    play(work)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_budget_holds_over_a_restart(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path, SHALLOW) as stage:
            for _ in range(2):
                async with guarded(stage, limit=1):
                    stage.servers["cp1"].mode = "hole"
                    await asyncio.sleep(2.0)
                    stage.servers["cp1"].mode = "ok"
                    await stage.until_state(lambda found: not found["cp1"].maint)
                    await asyncio.sleep(0.3)
            assert events(stage).count("lb.server_marked") == 1
            held = next(f["why"] for f in journal(stage) if f["event"] == "lb.held")
            assert "the budget is spent: 1 of 1 in 600 s are spent" in held

    play(work)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_probe_whose_own_way_is_broken_does_nothing_and_says_blind(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path, SHALLOW) as stage, guarded(stage):
            await stage.open(6)
            for name in NAMES:
                stage.servers[name].mode = "hole"
            await asyncio.sleep(3)
            assert not any(s.maint for s in (await stage.state()).values())
            assert not any(s.ended for s in stage.sessions)
            (blind,) = [f for f in journal(stage) if f["event"] == "lb.guard_blind"]
            assert blind["why"].startswith("blind: HAProxy holds 3 servers of api up and none answers the probe (3 black_hole)")

    play(work)


@pytest.mark.parametrize("version", VERSIONS)
def test_maint_by_a_person_is_freed_and_never_released(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path, SHALLOW) as stage, guarded(stage):
            await stage.open(6)
            await stage.admin.ask("set server api/cp1 state maint")
            await asyncio.sleep(0.3)
            assert not any(s.ended for s in on(stage, "cp1")), "MAINT alone ends none"
            await stage.until(lambda: all(s.ended for s in on(stage, "cp1")))
            await asyncio.sleep(2)
            assert (await stage.state())["cp1"].maint
            assert "lb.server_released" not in events(stage)
            await healthy_go_on(stage, "cp2", "cp3")

    play(work)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_frozen_haproxy_is_not_seen_and_nothing_is_done(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path) as stage, guarded(stage) as guard:
            await stage.open(6)
            guard._admin.deadline_s = 0.5
            stage.signal(signal.SIGSTOP)
            stage.servers["cp1"].mode = "hole"
            await stage.until(lambda: "lb.guard_blind" in events(stage))
            await asyncio.sleep(1.5)
            assert events(stage) == ["lb.guard_started", "lb.guard_blind"]
            assert "did not answer" in journal(stage)[-1]["why"]
            stage.signal(signal.SIGCONT)
            await stage.until(lambda: "lb.sessions_freed" in events(stage))
            assert events(stage)[2] == "lb.guard_sees"
            await healthy_go_on(stage, "cp2", "cp3")

    play(work)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.journal import FileJournal
from edgekeeper.lb import guard
from edgekeeper.lb.decide import Rules
sock, folder, at = sys.argv[1:]
def die(): os.kill(os.getpid(), signal.SIGKILL)
write, put = guard.write_marks, guard.Guard._set
def written(where, marks):
    done = [mark.done for mark in marks.values()]
    if at == "journal" and done == [False]: die()
    write(where, marks)
    if (at == "intent" and done == [False]) or (at == "done" and done == [True]): die()
async def set_(self, act, to, view):
    said = await put(self, act, to, view)
    if at == "set": die()
    return said
guard.write_marks, guard.Guard._set = written, set_
clock = SystemClock()
told = guard.Settings(sock, Rules(0.5), backends=("api",), every_s=0.1, probe_every_s=0.2, first_byte_s=0.4)
asyncio.run(guard.Guard(told, Path(folder), Path(folder).parent, clock, FileJournal(Path(folder).parent, "edge-a", clock)).watch())
"""


@pytest.mark.parametrize(("at", "marked"), [("journal", False), ("intent", False), ("set", True), ("done", True)])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_killed_guard_had_begun_is_adopted_or_begun_anew(version: str, at: str, marked: bool, tmp_path: Path) -> None:
    """kill -9 after the journal's entry, after the intent is on disk, after HAProxy was told, after that was written down."""

    async def work() -> None:
        async with balancer(version, tmp_path, SHALLOW) as stage:
            folder = stage.folder / "state" / "guard"
            folder.mkdir(parents=True)
            await stage.open(6)
            stage.servers["cp1"].mode = "hole"
            killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, stage.socket, str(folder), at)
            assert await asyncio.wait_for(killed.wait(), 15) == -signal.SIGKILL
            assert events(stage)[-1] == "lb.server_marked", "the journal has it before it is done"
            assert (await stage.state())["cp1"].maint is marked
            assert not on(stage, "cp1")[0].ended
            async with guarded(stage):
                await stage.until_state(lambda found: found["cp1"].maint)
                await stage.until(lambda: all(s.ended for s in on(stage, "cp1")))
                assert ("lb.mark_adopted" in events(stage)) is marked
                assert events(stage).count("lb.server_marked") == (1 if marked else 2)
                stage.servers["cp1"].mode = "ok"
                await stage.until_state(lambda found: not found["cp1"].maint)
            await healthy_go_on(stage, "cp2", "cp3")

    play(work)


def test_a_mark_that_a_reload_wiped_out_is_set_again_and_what_a_person_undid_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer("3.2", tmp_path, SHALLOW) as stage, guarded(stage):
            stage.servers["cp1"].mode = "hole"
            await stage.until_state(lambda found: found["cp1"].maint)
            await stage.reload()
            await stage.until_state(lambda found: found["cp1"].maint)
            await stage.until(lambda: events(stage, "api/cp1").count("lb.sessions_freed") == 2)
            assert events(stage, "api/cp1") == ["lb.server_marked", "lb.sessions_freed", "lb.mark_forgotten", "lb.server_marked", "lb.sessions_freed"]
            await stage.admin.ask("set server api/cp1 state ready")
            await stage.until(lambda: events(stage)[-1] == "lb.held")
            await asyncio.sleep(1.5)
            assert not (await stage.state())["cp1"].maint
            assert "somebody else has undone guard's mark" in journal(stage)[-1]["why"]

    play(work)


def test_a_guard_that_ends_leaves_its_marks_and_release_all_undoes_them(tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer("3.2", tmp_path, SHALLOW) as stage:
            async with guarded(stage):
                stage.servers["cp1"].mode = "hole"
                await stage.until_state(lambda found: found["cp1"].maint)
            assert (await stage.state())["cp1"].maint
            assert "api/cp1 stay in MAINT: the next guard adopts them" in journal(stage)[-1]["why"]
            await stage.admin.ask("set server api/cp2 state maint")
            assert await new_guard(stage).release_all() == ("api/cp1 is released",)
            found = await stage.state()
            assert (found["cp1"].maint, found["cp2"].maint) == (False, True), "what a person set stays"

    play(work)


def test_release_all_knows_the_mark_of_a_guard_that_was_killed_before_it_could_confirm_it(tmp_path: Path) -> None:
    """Else the server would stay in MAINT for ever, with nobody who knows why."""

    async def work() -> None:
        async with balancer("3.2", tmp_path, SHALLOW) as stage:
            folder = stage.folder / "state" / "guard"
            folder.mkdir(parents=True)
            pid = parse_info(await stage.admin.ask("show info")).pid
            write_marks(folder, {("api", "cp1"): Mark(time.time(), pid, done=False, why="gave no byte")})
            await stage.admin.ask("set server api/cp1 state maint")
            await stage.until_state(lambda found: found["cp1"].maint)
            assert await new_guard(stage).release_all() == ("api/cp1 is released",)
            assert not (await stage.state())["cp1"].maint
            assert read_marks(folder) == {}

    play(work)


def test_a_dry_run_says_what_it_would_do_and_does_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer("3.2", tmp_path, SHALLOW) as stage, guarded(stage, dry_run=True):
            await stage.open(3)
            stage.servers["cp1"].mode = "hole"
            await stage.admin.ask("set server api/cp2 state maint")
            await stage.until(lambda: events(stage).count("lb.held") == 2)
            await asyncio.sleep(1)
            assert not any(s.ended for s in stage.sessions)
            assert not (await stage.state())["cp1"].maint
            assert sorted(f["why"].rpartition("; ")[2] for f in journal(stage) if f["event"] == "lb.held") == [
                "it would be put into MAINT",
                "its sessions would be ended",
            ]

    play(work)


def test_a_socket_of_too_low_a_level_is_told_at_the_start(tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer("3.2", tmp_path, level="operator") as stage, guarded(stage):
            await stage.until(lambda: "lb.guard_blind" in events(stage))
            assert "level admin" in journal(stage)[-1]["why"]

    play(work)


@pytest.mark.parametrize("version", ["2.6", "3.0", "3.2"])
def test_sessions_in_a_worker_from_before_a_reload_are_freed_too(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer(version, tmp_path) as stage:
            await stage.open(6)
            await stage.reload()
            await stage.open(6)
            async with guarded(stage):
                stage.servers["cp1"].mode = "hole"
                await stage.until(lambda: all(s.ended for s in on(stage, "cp1")) and "lb.sessions_freed" in events(stage))
                freed = [f for f in journal(stage) if f["event"] == "lb.sessions_freed"]
                assert sorted(freed[0]["data"]["workers"].values()) == [2, 2]
                await healthy_go_on(stage, "cp2", "cp3")

    play(work)


def test_the_command_watches_without_a_config_and_ends_on_term(tmp_path: Path) -> None:
    async def work() -> None:
        async with balancer("3.2", tmp_path) as stage:
            await stage.open(3)
            argv = [
                sys.executable,
                "-m",
                "edgekeeper",
                "lb",
                "guard",
                "--socket",
                stage.socket,
                "--hold",
                "500ms",
                "--probe",
                "off",
                "--state-dir",
                str(tmp_path / "state"),
            ]
            guard = await asyncio.create_subprocess_exec(*argv, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
            try:
                await stage.until((tmp_path / "state" / "journal.jsonl").exists, 20)
                second = await asyncio.create_subprocess_exec(*argv, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
                _, said = await second.communicate()
                assert (second.returncode, b"is already running" in said) == (4, True)
                stage.servers["cp1"].mode = "hole"
                await stage.until(lambda: all(s.ended for s in on(stage, "cp1")))
            finally:
                guard.terminate()
                _, err = await asyncio.wait_for(guard.communicate(), 10)
            assert guard.returncode == 0
            lines = [json.loads(line) for line in err.splitlines()]
            assert [line["event"] for line in lines if line["event"].startswith("lb.")] == ["lb.guard_started", "lb.sessions_freed", "lb.guard_ended"]

    play(work)

"""Processes as the product starts, finds and ends them."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.host import process as unit
from edgekeeper.host.process import Process, marked, reply, run, spawn, start_time

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
POLITE = "import os, signal, time; signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); print('ready', flush=True); time.sleep(60)"
QUIET = "import time; print('ready', flush=True); time.sleep(60)"


def started(folder: Path, code: str, **env: str) -> Process:
    """A process that has said that it is ready."""
    log = folder / "log"
    made = spawn([sys.executable, "-I", "-S", "-c", code], log, {**os.environ, **env})
    end = time.monotonic() + 10
    while "ready" not in log.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    return made


# run --------------------------------------------------------------------------------------


def test_a_command_ends_with_its_code_and_all_it_said() -> None:
    done = asyncio.run(run(["sh", "-c", "echo out; echo err >&2; exit 3"], 5))
    assert (done.code, done.output) == (3, "out\nerr\n")
    assert asyncio.run(run(["sh", "-c", "kill -SEGV $$"], 5)).code == -signal.SIGSEGV


def test_a_command_that_is_not_there_is_told() -> None:
    with pytest.raises(MissingError, match="cannot be run: No such file"):
        asyncio.run(run(["/nowhere/dnsdist"], 5))


@pytest.mark.parametrize("command", ["sleep 60", "trap '' TERM; sleep 60 & wait", "setsid sleep 3 & sleep 60"])
def test_past_its_deadline_it_is_killed_with_its_children(command: str) -> None:
    begun = time.monotonic()
    with pytest.raises(StepFailedError, match=r"did not end within 0\.2 s; it was killed"):
        asyncio.run(run(["sh", "-c", command], 0.2))
    assert time.monotonic() - begun < 2


def test_its_output_is_cut_where_it_is_too_much() -> None:
    assert len(asyncio.run(run(["head", "-c", "1000000", "/dev/zero"], 10)).output) == 262_144


def test_one_that_floods_is_killed_before_it_has_eaten_the_memory() -> None:
    begun = time.monotonic()
    with pytest.raises(StepFailedError, match="yes wrote more than 64 MiB; it was killed"):
        asyncio.run(run(["yes"], 30))
    assert time.monotonic() - begun < 5


def test_a_script_may_write_to_its_own_outputs_by_name() -> None:
    assert "said" in asyncio.run(run(["sh", "-c", "echo said > /dev/stderr"], 5)).output


# find and stop ----------------------------------------------------------------------------


def test_a_reply_is_kept_apart_from_complaints_which_may_not_flood_either():
    done, complaints = asyncio.run(reply(["sh", "-c", 'echo "$WORD"; echo err >&2; exit 3'], 5, {**os.environ, "WORD": "out"}))
    assert (done.code, done.output, complaints) == (3, "out\n", "err\n")
    with pytest.raises(StepFailedError, match="wrote more than"):
        asyncio.run(reply(["sh", "-c", "yes >&2"], 30))


def test_it_is_known_by_pid_and_start_time_together(tmp_path: Path) -> None:
    made = started(tmp_path, QUIET)
    assert Process.find(made.pid, made.started) is not None
    assert Process.find(made.pid, made.started + 1) is None
    reused = Process.find(made.pid, made.started)
    assert reused is not None
    reused.started += 1  # as if another had the pid by now
    assert not reused.alive()
    assert made.alive()
    assert asyncio.run(made.stop(5)) == "ended on TERM"
    assert Process.find(made.pid, made.started) is None
    assert start_time(made.pid) is None


def test_one_that_ignores_term_is_killed_after_its_time(tmp_path: Path) -> None:
    made = started(tmp_path, STUBBORN)
    begun = time.monotonic()
    assert asyncio.run(made.stop(0.3)) == "did not end within 0.3 s of TERM and was killed"
    assert 0.3 <= time.monotonic() - begun < 3
    assert not made.alive()


def test_what_a_killed_one_has_started_dies_with_it_also_when_it_is_frozen(tmp_path: Path) -> None:
    """HAProxy's worker would keep the listeners of a master that is gone."""
    code = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); pid = os.fork(); print('ready' if pid else 'x', flush=True); time.sleep(60)"
    made = started(tmp_path, code)
    (worker,) = unit.children(made.pid)
    os.kill(worker, signal.SIGSTOP)
    assert asyncio.run(made.stop(0.1)).endswith("was killed")
    end = time.monotonic() + 5
    while start_time(worker) is not None:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_one_that_is_stopped_ends_on_term_all_the_same(tmp_path: Path) -> None:
    """One with a handler of its own, as engines have: the kernel ends others at once."""
    made = started(tmp_path, POLITE)
    made.signal(signal.SIGSTOP)
    while Path(f"/proc/{made.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)
    begun = time.monotonic()
    assert asyncio.run(made.stop(5)) == "ended on TERM"
    assert time.monotonic() - begun < 2


def test_one_that_is_no_child_of_ours_is_waited_for_and_stopped_too(tmp_path: Path) -> None:
    made = started(tmp_path, QUIET)
    stranger = Process.find(made.pid, made.started)
    assert stranger is not None
    assert stranger.alive()
    assert asyncio.run(stranger.stop(5)) == "ended on TERM"
    assert not stranger.alive()  # a zombie until its parent looks
    assert not made.alive()


def test_one_that_is_gone_was_already_gone_and_signals_reach_nobody(tmp_path: Path) -> None:
    made = started(tmp_path, QUIET)
    asyncio.run(made.stop(5))
    assert asyncio.run(made.stop(5)) == "was already gone"
    made.signal(signal.SIGTERM)
    made.close()
    made.signal(signal.SIGTERM)
    made.close()


def test_one_that_not_even_kill_ends_is_told_and_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = started(tmp_path, QUIET)

    async def never(_: Process) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(Process, "wait", never)
        patch.setattr(unit, "_KILL_DEADLINE_S", 0.05)
        with pytest.raises(StepFailedError, match=r"is still there 0\.05 s after KILL"):
            asyncio.run(made.stop(0.05))
    asyncio.run(made.wait())


def test_its_end_is_told_with_its_code(tmp_path: Path) -> None:
    async def both(made: Process) -> list[int | None]:
        return await asyncio.gather(made.wait(), made.wait())

    assert asyncio.run(both(spawn(["sh", "-c", "exit 4"], tmp_path / "log", os.environ))) == [4, 4]


# spawn ------------------------------------------------------------------------------------


def test_it_has_a_session_of_its_own_and_writes_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    made = started(tmp_path, QUIET)
    assert os.getsid(made.pid) == made.pid
    assert (tmp_path / "log").read_text() == "before\nready\n"
    assert Path(f"/proc/{made.pid}/fd/1").readlink() == tmp_path / "log"
    assert Path(f"/proc/{made.pid}/fd/0").readlink() == Path("/dev/null")
    asyncio.run(made.stop(5))


def test_a_program_or_a_log_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot be started: No such file"):
        spawn(["/nowhere/dnsdist"], tmp_path / "log", {})
    with pytest.raises(StepFailedError, match=r"cannot be opened .*; it is not started"):
        spawn(["true"], tmp_path / "nowhere" / "log", {})


def test_it_is_found_by_its_environment(tmp_path: Path) -> None:
    made = started(tmp_path, QUIET, EDGEKEEPER_ENGINE=f"test:{tmp_path}")
    assert marked("EDGEKEEPER_ENGINE", f"test:{tmp_path}") == [(made.pid, made.started)]
    assert marked("EDGEKEEPER_ENGINE", f"test:{tmp_path}x") == []
    asyncio.run(made.stop(5))
    assert marked("EDGEKEEPER_ENGINE", f"test:{tmp_path}") == []


def test_processes_that_come_and_go_use_up_no_descriptors(tmp_path: Path) -> None:
    def once() -> None:
        made = spawn(["true"], tmp_path / "log", os.environ)
        found = Process.find(made.pid, made.started)
        asyncio.run(made.wait())
        del found

    once()
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted
    for _ in range(5):
        once()
    assert len(os.listdir("/proc/self/fd")) <= len(before)  # noqa: PTH208


def test_an_engine_gets_all_descriptors_that_the_hard_limit_allows(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
    try:
        made = started(tmp_path, QUIET)
        soft, hard = resource.prlimit(made.pid, resource.RLIMIT_NOFILE)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 512, "ours stays as it is"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert hard == before[1]
    assert soft == min(hard, 524_288)
    asyncio.run(made.stop(5))

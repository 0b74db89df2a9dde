"""Processes: run one under a deadline, start one that outlives us, find it again, stop it for sure.

A process is known by pid and start time together, and signalled through a pidfd, so that a reused
pid is never hit. Engines get a session of their own (a supervisor's death or a terminal's hang-up
does not reach them) and write into a file, never into a pipe that somebody must drain.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.errors import MissingError, StepFailedError

_OUTPUT_LIMIT = 262_144
_OUTPUT_MOST = 64 * 2**20
"""A command that writes more is killed: one that floods takes 1.4 GB of memory a second (measured 2026-11-30)."""
_OUTPUT_LOOK_S = 0.1
_DESCRIPTORS = 524_288
"""As many as systemd allows; a container may allow a thousand times more, and what walks over them all would never end."""
_KILL_DEADLINE_S = 10.0
"""After KILL only a process that hangs in the kernel (a dead disk, NFS) is still there."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: its exit code (negative: the signal that killed it) and what it said."""

    code: int
    output: str


def installed(binary: str, name: str, package: str, key: str) -> str:
    """The path of a program; MissingError when it is not there, with Debian's package and the config's key that names another one.

    ``name`` is what people call it.
    """
    found = shutil.which(binary)
    if found is None:
        msg = f"{binary} is not installed here; install {name} (apt-get install {package}), or name it in {key}"
        raise MissingError(msg)
    return found


async def run(argv: Sequence[str], deadline_s: float, env: Mapping[str, str] | None = None) -> Finished:
    """Run a command to its end; past the deadline, or when it floods, it is killed and StepFailedError says so.

    Its output goes into memory that we read afterwards: a pipe would be held open by a child of it that
    left its session, and be waited for.
    """
    sink = os.memfd_create("edgekeeper")
    try:
        code = await _ended(argv, sink, deadline_s, env)
        return Finished(code, os.pread(sink, _OUTPUT_LIMIT, 0).decode("utf-8", "replace"))
    finally:
        os.close(sink)


async def reply(argv: Sequence[str], deadline_s: float, env: Mapping[str, str] | None = None) -> tuple[Finished, str]:
    """As ``run``, with what it said as its answer apart from its complaints, which come second."""
    sink, complaints = os.memfd_create("edgekeeper"), os.memfd_create("edgekeeper")
    try:
        code = await _ended(argv, sink, deadline_s, env, complaints=complaints)
        said, complained = (os.pread(file, _OUTPUT_LIMIT, 0).decode("utf-8", "replace") for file in (sink, complaints))
        return Finished(code, said), complained
    finally:
        os.close(sink)
        os.close(complaints)


async def _ended(
    argv: Sequence[str],
    sink: int,
    deadline_s: float,
    env: Mapping[str, str] | None,
    source: int = subprocess.DEVNULL,
    complaints: int = subprocess.STDOUT,
) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*argv, stdin=source, stdout=sink, stderr=complaints, start_new_session=True, env=env)
    except OSError as err:
        msg = f"{argv[0]} cannot be run: {err.strerror or err}"
        raise MissingError(msg) from err
    try:
        async with asyncio.timeout(deadline_s):
            return await _bounded(process, [sink] if complaints == subprocess.STDOUT else [sink, complaints], argv[0])
    except TimeoutError:
        msg = f"{argv[0]} did not end within {deadline_s:g} s; it was killed"
        raise StepFailedError(msg) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):  # it may hang in the kernel
                async with asyncio.timeout(_KILL_DEADLINE_S):
                    await process.wait()


async def _bounded(process: asyncio.subprocess.Process, sinks: Sequence[int], name: str) -> int:
    """Its exit code; StepFailedError once it has written too much. Not by a seal or a limit of the kernel's: those would end the files that it works on too."""
    waiting = asyncio.ensure_future(process.wait())
    try:
        while not (await asyncio.wait({waiting}, timeout=_OUTPUT_LOOK_S))[0]:
            if any(os.fstat(sink).st_size > _OUTPUT_MOST for sink in sinks):
                msg = f"{name} wrote more than {_OUTPUT_MOST // 2**20} MiB; it was killed"
                raise StepFailedError(msg)
        return waiting.result()
    finally:
        waiting.cancel()


async def can_run(user: str, argv: Sequence[str], deadline_s: float) -> str | None:
    """Why another user cannot run a command, or None; also None where we may not become that user, and so cannot tell."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(user)
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
            user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
        )  # fmt: skip
    except KeyError:
        return f"there is no user {user}"
    except OSError as err:
        return f"{user} cannot run {argv[0]}: {err.strerror or err}"
    try:
        async with asyncio.timeout(deadline_s):
            code = await process.wait()
    except TimeoutError:
        return f"{argv[0]} as {user} did not end within {deadline_s:g} s"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return f"{argv[0]} as {user} exits with {code}" if code else None


async def feed(argv: Sequence[str], text: str, deadline_s: float) -> int:
    """Run a command with this text on its standard input; its exit code. Past the deadline it is killed and StepFailedError says so."""
    source = os.memfd_create("edgekeeper")
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.write(source, text.encode())
        os.lseek(source, 0, os.SEEK_SET)
        return await _ended(argv, sink, deadline_s, None, source)
    finally:
        os.close(source)
        os.close(sink)


def start_time(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when there is none (a zombie counts as none)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def parent(pid: int) -> int:
    """The pid of its parent; 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def children(pid: int) -> list[int]:
    """The pids whose parent it is; none when it is gone."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and parent(int(entry.name)) == pid]


def catches(pid: int, number: int) -> bool:
    """Whether the process takes this signal: by a handler, or blocked and read from a descriptor (as keepalived does).

    A program that is still starting does neither, and would die of it.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigCgt:", "SigBlk:"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


def named(name: str) -> list[int]:
    """Pids of all running processes with this name (as the kernel has it: 15 bytes); zombies count as none."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text(encoding="utf-8", errors="replace").strip() == name and start_time(int(entry.name)) is not None:
                found.append(int(entry.name))
    return found


def same_network(pid: int) -> bool:
    """Whether the process lives in our network namespace; no, when that cannot be told."""
    try:
        return Path(f"/proc/{pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink()
    except OSError:
        return False


class Process:
    """A running process that may or may not be our child."""

    def __init__(self, pid: int, started: int, child: subprocess.Popen[bytes] | None = None) -> None:
        self._pidfd = -1
        self.pid = pid
        self.started = started
        self._child = child
        self._pidfd = os.pidfd_open(pid)
        if start_time(pid) != started and child is None:
            self.close()
            raise ProcessLookupError(pid)

    @classmethod
    def find(cls, pid: int, started: int) -> Process | None:
        """The process with this pid and start time, or None when it is gone."""
        try:
            return cls(pid, started)
        except (OSError, ProcessLookupError):
            return None

    def alive(self) -> bool:
        """Whether it still runs (a child is reaped on the way)."""
        if self._child is not None:
            return self._child.poll() is None
        return start_time(self.pid) == self.started

    def signal(self, number: int) -> None:
        """Send a signal; a process that is gone is no error."""
        if self._pidfd >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._pidfd, number)

    async def wait(self) -> int | None:
        """Wait for its end; the exit code when it was our child, else None."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        handle = os.dup(self._pidfd)
        loop.add_reader(handle, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
        return self._child.wait() if self._child is not None else None

    async def stop(self, deadline_s: float) -> str:
        """TERM, wait, KILL, wait; says which of them ended it. StepFailedError when not even KILL did."""
        if not self.alive():
            return "was already gone"
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # a stopped process acts on TERM only once it runs again
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await self.wait()
                return "ended on TERM"
        family = [child for pid in children(self.pid) if (child := Process.find(pid, start_time(pid) or 0)) is not None]
        self.signal(signal.SIGKILL)
        for child in family:  # a frozen worker would outlive its master, with the listeners
            child.signal(signal.SIGKILL)
        try:
            async with asyncio.timeout(_KILL_DEADLINE_S):
                await self.wait()
        except TimeoutError as err:
            msg = f"pid {self.pid} is still there {_KILL_DEADLINE_S:g} s after KILL (it hangs in the kernel); it is tried again"
            raise StepFailedError(msg) from err
        return f"did not end within {deadline_s:g} s of TERM and was killed"

    def close(self) -> None:
        """Let go of it; it runs on."""
        handle, self._pidfd = self._pidfd, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        """An engine that crashes all night must not use up the descriptors."""
        self.close()


def spawn(argv: Sequence[str], log: Path, env: Mapping[str, str]) -> Process:
    """Start a process in a session of its own, its output appended to ``log``; it outlives us."""
    try:
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as err:
        msg = f"{log} cannot be opened for the output of {argv[0]}: {err.strerror or err}; it is not started"
        raise StepFailedError(msg) from err
    try:
        child = subprocess.Popen(list(argv), stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, start_new_session=True, env=dict(env), close_fds=True)
    except OSError as err:
        msg = f"{argv[0]} cannot be started: {err.strerror or err}"
        raise MissingError(msg) from err
    finally:
        os.close(handle)
    _raise_descriptors(child.pid)
    try:
        return Process(child.pid, start_time(child.pid) or 0, child)
    except OSError as err:  # no descriptor is left: one that cannot be watched must not run
        child.kill()
        child.wait()
        msg = f"{argv[0]} cannot be watched: {err.strerror or err}; it was ended again"
        raise StepFailedError(msg) from err


def _raise_descriptors(pid: int) -> None:
    """Let an engine have what the hard limit allows: with the soft 1,024 that services get, its 300 members leave it none to check them with."""
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))


def marked(name: str, value: str) -> list[tuple[int, int]]:
    """Pids and start times of all processes whose environment has ``name=value``.

    This finds an engine that was started in the instant before its supervisor died.
    """
    wanted = f"{name}={value}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and (started := start_time(int(entry.name))) is not None:
            found.append((int(entry.name), started))
    return sorted(found, key=lambda pair: pair[1])

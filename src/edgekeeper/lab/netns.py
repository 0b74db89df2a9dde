"""Make and remove network namespaces; reach into one with a socket; sweep what dead runners left."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.host import netns
from edgekeeper.lab import cgroups
from edgekeeper.lab.topology import PREFIX, Plan, cable_lines, full_name, owner

_RUN = Path("/run/netns")
_STEP_S = 10.0


def start_time(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot: with the pid it names one process for good. None: no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _inside(real: str) -> list[str]:
    """What runs a command in a namespace and becomes it.

    Not ``ip -n`` or ``ip netns exec``: they remount ``/``, which fails in a chroot whose root is no mount point (a bare build root).
    """
    return ["nsenter", f"--net={_RUN / real}", "--"]


async def _ip(*args: str, inside: str | None = None, feed: str | None = None) -> str:
    process = await asyncio.create_subprocess_exec(
        *(_inside(inside) if inside is not None else ()),
        "ip",
        *args,
        stdin=asyncio.subprocess.PIPE if feed is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(feed.encode() if feed is not None else None), _STEP_S)
    if process.returncode:
        msg = f"ip {' '.join(args)} failed ({err.decode(errors='replace').strip()[:200]}); the lab needs the right to make network namespaces"
        raise StepFailedError(msg)
    return out.decode(errors="replace")


def need_ip() -> None:
    """Raise MissingError where the ``ip`` command is missing."""
    if shutil.which("ip") is None:
        msg = "the command ip is missing; install it: apt-get install iproute2"
        raise MissingError(msg)


class Net:
    """The namespaces of one drill. ``name`` maps short names to those on the machine."""

    def __init__(self, plan: Plan, serial: int = 0) -> None:
        started = start_time(os.getpid()) or 0
        self.plan = plan
        self.name = {short: full_name(os.getpid(), started, f"{serial}-{short}") for short in plan.namespaces}

    async def __aenter__(self) -> Self:
        try:
            for real in self.name.values():
                await _ip("netns", "add", real)
            for short, lines in cable_lines(self.plan, self.name).items():
                links = [line for line in lines if line.startswith("link add")]
                await _ip("-batch", "-", inside=self.name[short], feed="\n".join(links))
            for short, lines in cable_lines(self.plan, self.name).items():
                rest = [line for line in lines if not line.startswith("link add")]
                await _ip("-batch", "-", inside=self.name[short], feed="\n".join(rest))
        except BaseException:
            await self._remove()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._remove()

    async def _remove(self) -> None:
        for real in self.name.values():
            await remove(real)

    async def ip(self, short: str, *args: str) -> str:
        """Run ``ip`` inside a namespace (to pull a cable or black-hole a route)."""
        return await _ip(*args, inside=self.name[short])

    def pids(self, short: str) -> tuple[int, ...]:
        """The processes inside a namespace, oldest first."""
        space = (_RUN / self.name[short]).stat().st_ino
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "ns" / "net").stat().st_ino == space:
                    found.append(int(entry.name))
        return tuple(sorted(found))

    def kill(self, short: str, number: signal.Signals) -> None:
        """Signal every process inside a namespace, and only those."""
        for pid in self.pids(short):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def argv(self, short: str, argv: list[str]) -> list[str]:
        """The command that runs ``argv`` inside a namespace; the pid stays that of ``argv``."""
        return [*_inside(self.name[short]), *argv]

    def socket(self, short: str, kind: socket.SocketKind = socket.SOCK_STREAM, family: int = socket.AF_INET, protocol: int = 0) -> socket.socket:
        """A non-blocking socket, IPv4 unless said, that lives in a namespace, for the runner's own questions."""
        try:
            return netns.open_socket(_RUN / self.name[short], kind, family, protocol)
        except MissingError as err:
            msg = f"{err}; the drill stops"
            raise StepFailedError(msg) from None


async def remove(real: str) -> None:
    """Kill every process inside a namespace and in the control group of its name, and only those; then remove both. Idempotent."""
    if not (_RUN / real).exists():
        return
    for _ in range(20):
        pids = [int(p) for p in (await _ip("netns", "pids", real)).split() if int(p) != os.getpid()]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            break
        await asyncio.sleep(0.05)
    await cgroups.remove(real)
    # A killed process may linger as a zombie of a parent that is gone for good; the name goes anyway.
    with contextlib.suppress(StepFailedError):
        await _ip("netns", "delete", real)


def leftovers() -> list[str]:
    """Namespaces of the lab whose runner is dead."""
    names = [p.name for p in _RUN.iterdir()] if _RUN.is_dir() else []
    return sorted(name for name in names if _orphan(name))


def _orphan(name: str) -> bool:
    who = owner(name)
    return who is not None and start_time(who[0]) != who[1]


def old_folders(base: Path) -> Iterator[Path]:
    """Working folders in ``base`` whose runner is dead: no such process, and nobody holds their lock.

    The pid alone would not do: a run in a container may share the folder but not the pids.
    """
    for path in base.glob(f"{PREFIX}-*-*-*"):
        if not _orphan(path.name) or path.stat(follow_symlinks=False).st_uid != os.geteuid():
            continue
        with contextlib.suppress(OSError), _lock(path):
            yield path


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock of a working folder; BlockingIOError when another process does. It ends with the process, however that ends."""
    fd = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


async def sweep() -> tuple[str, ...]:
    """Remove what dead runners left: processes in their namespaces, the namespaces, their folders. Says what."""
    gone: list[str] = []
    for real in leftovers():
        await remove(real)
        gone.append(real)
    for folder in list(old_folders(Path(tempfile.gettempdir()))):
        shutil.rmtree(folder, ignore_errors=True)
        gone.append(str(folder))
    return tuple(gone)


@contextlib.contextmanager
def folder(serial: int, record: Path | None = None) -> Iterator[Path]:
    """A working folder for one drill's configs and logs, removed at the end (``record`` keeps a copy of it)."""
    base = Path(tempfile.gettempdir()) / full_name(os.getpid(), start_time(os.getpid()) or 0, f"{serial}-files")
    base.mkdir(mode=0o700)
    try:
        with _lock(base):
            yield base
    finally:
        if record is not None:  # also of a run that failed: that is when its logs are read
            shutil.rmtree(record, ignore_errors=True)  # an older record of the same run would mix with this one
            shutil.copytree(base, record, symlinks=True, dirs_exist_ok=True, ignore=_uncopied)
        shutil.rmtree(base, ignore_errors=True)


def _uncopied(where: str, names: list[str]) -> list[str]:
    """Sockets, pipes, devices, and the images and layers of a Docker daemon."""
    special = (n for n in names if (Path(where) / n).exists() and not (Path(where) / n).is_file() and not (Path(where) / n).is_dir())
    return [*special, *(n for n in names if n == "data" and where.endswith("-docker"))]

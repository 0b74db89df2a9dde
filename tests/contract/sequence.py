"""Numbered lines: who writes them, who follows them, and whether each arrived once.

Run as a program it is the follower or the writer of a test, so that either can be stopped or killed while the other goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

PADDING = "x" * 80
READY_S = 20.0
"""A machine that builds and tests at the same time may take seconds to start an interpreter."""


def line(number: int) -> bytes:
    """The line with this number."""
    return b"n=%08d %s\n" % (number, PADDING.encode())


def numbers(chunk: bytes) -> list[int]:
    """The numbers of whole lines, each of which must be one that ``line`` has made."""
    out = []
    for text in chunk.splitlines(keepends=True):
        number = int(text[2:10])
        assert text == line(number), text
        out.append(number)
    return out


class Child:
    """A program of a test: found by its process, and gone at the end of the test whatever happens."""

    def __init__(self, argv: list[str], env: dict[str, str] | None = None) -> None:
        self._child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})

    @property
    def pid(self) -> int:
        """Its pid."""
        return self._child.pid

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._child.send_signal(number)

    def wait(self, within_s: float = 30.0) -> int:
        """Its exit code."""
        return self._child.wait(within_s)

    def close(self) -> None:
        """Kill it, if it still runs."""
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait(10)


class Follower(Child):
    """A source in a process of its own; what it got is in a file, also after its death.

    ``spec`` says which one: ``{"kind": "file", "path": ..., "mark": ...}`` and so on, see ``_source``.
    """

    def __init__(self, spec: dict[str, Any], folder: Path, env: dict[str, str] | None = None) -> None:
        self.out = folder / "arrived"
        self._sights = folder / "sights"
        before = len(self.sights())
        super().__init__([sys.executable, __file__, "follow", json.dumps(spec), str(folder)], env)
        self._until(lambda: len(self.sights()) > before, "says nothing")

    def sights(self) -> list[tuple[bool, str]]:
        """What it has said of what it can see."""
        if not self._sights.exists():
            return []
        return [tuple(json.loads(text)) for text in self._sights.read_text(encoding="utf-8").splitlines()]

    def got(self) -> list[int]:
        """The numbers that have arrived, in their order."""
        return [int(text) for text in self.out.read_text(encoding="ascii").split()] if self.out.exists() else []

    def until_got(self, number: int, within_s: float = 20.0) -> list[int]:
        """All that has arrived, once this number is among it."""
        self._until(lambda: number in self.got(), f"has not got {number}", within_s)
        return self.got()

    def until_seeing(self, *, seeing: bool, word: str = "") -> None:
        """Wait until the newest sight is this one."""
        self._until(lambda: self.sights()[-1][0] is seeing and word in self.sights()[-1][1], f"never seeing={seeing} {word}")

    def end(self) -> None:
        """End it in order, as a restart of the service does."""
        self.signal(signal.SIGTERM)
        self.wait()

    def _until(self, true: Any, what: str, within_s: float = READY_S) -> None:
        end = time.monotonic() + within_s
        while not true():
            assert time.monotonic() < end, f"after {within_s:g} s the follower {what}; got {len(self.got())}, sights {self.sights()}"
            time.sleep(0.02)


class Writer(Child):
    """Writes ``count`` numbered lines, ``rate`` a second, rotating every ``rotate_s`` seconds in this way (see ``_ROTATIONS``)."""

    def __init__(self, way: str, path: Path, first: int, count: int, *, rate: float = 5000.0, rotate_s: float = 0.3) -> None:
        super().__init__([sys.executable, __file__, "write", way, str(path), str(first), str(count), str(rate), str(rotate_s)])


def judge(got: list[int], first: int, last: int, *, twice: bool = False) -> None:
    """Each number from ``first`` to ``last`` arrived, none twice (unless allowed), none in the wrong order, and no other."""
    counted = Counter(got)
    missed = [number for number in range(first, last + 1) if number not in counted]
    assert not missed, f"{len(missed)} were missed: {missed[:3]} ... {missed[-3:]}"
    strange = [number for number in counted if not first <= number <= last]
    assert not strange, f"these are not of now: {strange[:5]}"
    if not twice:
        double = [number for number, times in counted.items() if times > 1]
        assert not double, f"{len(double)} came twice: {double[:5]}"
        assert got == sorted(got), "they came in another order"


def _rename(path: Path, handle: int) -> int:
    for former in range(30, 0, -1):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(f"{path.name}.{former}").rename(path.with_name(f"{path.name}.{former + 1}"))
    path.rename(path.with_name(f"{path.name}.1"))
    os.write(handle, b"")
    return _again(path, handle)


def _rename_late(path: Path, handle: int) -> int:
    """As logrotate does: the new file is there at once, the writer goes on in the old one until it is told."""
    path.rename(path.with_name(f"{path.name}-{time.time_ns()}"))
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    return handle


def _copytruncate(path: Path, handle: int) -> int:
    for former in range(30, 0, -1):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(f"{path.name}.{former}").rename(path.with_name(f"{path.name}.{former + 1}"))
    shutil.copyfile(path, path.with_name(f"{path.name}.1"))
    os.ftruncate(handle, 0)
    return handle


def _recreate(path: Path, handle: int) -> int:
    path.unlink()
    return _again(path, handle)


def _link(path: Path, handle: int) -> int:
    """The name is a link, and is flipped to a new file."""
    target = path.with_name(f"real-{time.time_ns()}")
    os.close(handle)
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    new = path.with_name("new-link")
    new.symlink_to(target.name)
    new.rename(path)
    return handle


def _journal(path: Path, handle: int) -> int:
    return handle


def _again(path: Path, handle: int) -> int:
    os.close(handle)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


_ROTATIONS = {
    "rename": _rename, "rename-late": _rename_late, "copytruncate": _copytruncate, "copytruncate-holes": _copytruncate,
    "recreate": _recreate, "link": _link, "journal": _journal,
}  # fmt: skip


def entry(number: int) -> bytes:
    """The numbered line as an entry of the journal (systemd 252), every fiftieth one as bytes."""
    text = line(number)[:-1].decode()
    message: str | list[int] = text if number % 50 else list(text.encode())
    now = str(time.time_ns() // 1000)
    fields = {"__CURSOR": f"s=0;i={number:x};b=2;m=3;t={now};x=5", "__REALTIME_TIMESTAMP": now, "_BOOT_ID": "1" * 32, "_PID": "30634"}
    return json.dumps({**fields, "MESSAGE": message}).encode() + b"\n"


def _write(way: str, path: Path, first: int, count: int, rate: float, rotate_s: float) -> None:
    append = 0 if way == "copytruncate-holes" else os.O_APPEND
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | append, 0o644)
    if not append:
        os.lseek(handle, 0, os.SEEK_END)
    began = rotated = time.monotonic()
    told_at: float | None = None
    made = entry if way == "journal" else line
    for number in range(first, first + count):
        while time.monotonic() < began + (number - first) / rate:
            time.sleep(0.001)
        now = time.monotonic()
        if told_at is not None and now >= told_at:  # as the HUP of logrotate
            handle, told_at = _again(path, handle), None
        elif now - rotated >= rotate_s:
            handle, rotated = _ROTATIONS[way](path, handle), now
            told_at = now + rotate_s / 2 if way == "rename-late" else None
        os.write(handle, made(number))


def _source(spec: dict[str, Any]) -> Any:
    from edgekeeper.host.clock import SystemClock  # noqa: PLC0415 - the writer starts without it
    from edgekeeper.watch.sources.command import CommandSource  # noqa: PLC0415
    from edgekeeper.watch.sources.file import FileSource  # noqa: PLC0415
    from edgekeeper.watch.sources.journald import JournaldSource  # noqa: PLC0415

    mark = Path(spec["mark"]) if spec.get("mark") else None
    match spec["kind"]:
        case "file":
            return FileSource(spec["path"], SystemClock(), mark)
        case "journald":
            return JournaldSource(spec["unit"], SystemClock(), mark)
        case "docker":
            from edgekeeper.host.docker import Docker, Which  # noqa: PLC0415
            from edgekeeper.watch.sources.docker import DockerSource  # noqa: PLC0415

            return DockerSource(Docker(spec["socket"]), Which(name=spec["name"]), SystemClock(), mark)
        case _:
            return CommandSource(spec["argv"], SystemClock())


async def _follow(source: Any, folder: Path) -> None:
    """Follow until TERM; also imported by tests of other sources, which have a program of their own."""
    out = os.open(folder / "arrived", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sights = os.open(folder / "sights", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def arrived(chunk: bytes, _: float) -> None:
        os.write(out, "".join(f"{number}\n" for number in numbers(chunk)).encode())

    def state(sight: Any) -> None:
        os.write(sights, (json.dumps([sight.seeing, sight.why]) + "\n").encode())

    task = asyncio.ensure_future(source.follow(arrived, state))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


if __name__ == "__main__":
    if sys.argv[1] == "follow":
        asyncio.run(_follow(_source(json.loads(sys.argv[2])), Path(sys.argv[3])))
    else:
        _write(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6]), float(sys.argv[7]))

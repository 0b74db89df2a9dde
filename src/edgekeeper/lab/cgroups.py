"""Control groups of the lab: the containers of a Docker daemon are found by theirs, and ended, wherever their network is.

A daemon of the lab is told to put its containers below a group that is named like its network namespace (``cgroup-parent``). A container
may have a network of its own, so the processes inside that namespace are not all there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_TRIES = 40


def groups(name: str) -> tuple[Path, ...]:
    """The groups of a name: one in each hierarchy (version 1), or one (version 2)."""
    return tuple(sorted(p for p in (*_ROOT.glob(f"*/{name}"), _ROOT / name) if p.is_dir()))


def pids(name: str) -> frozenset[int]:
    """The processes in a group and below it."""
    found: set[int] = set()
    for group in groups(name):
        for file in group.rglob("cgroup.procs"):
            with contextlib.suppress(OSError, ValueError):
                found |= {int(word) for word in file.read_text(encoding="ascii").split()}
    return frozenset(found - {0})


async def remove(name: str) -> None:
    """Kill every process of a group and remove it, with all below it. Idempotent."""
    for _ in range(_TRIES):
        running = pids(name)
        for pid in running:
            # One that is frozen (docker pause) dies when it is thawed, so the freezer is opened first.
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _thaw(name)
        if not running and _removed(name):
            return
        await asyncio.sleep(0.05)


def _thaw(name: str) -> None:
    for group in groups(name):
        for file, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            for found in group.rglob(file):
                with contextlib.suppress(OSError):
                    found.write_text(word, encoding="ascii")


def _removed(name: str) -> bool:
    """Remove the empty folders, deepest first; whether none is left."""
    for group in groups(name):
        for folder in sorted((p for p in group.rglob("*") if p.is_dir()), key=lambda p: len(p.parts), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()
    return not groups(name)

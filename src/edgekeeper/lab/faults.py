"""What a drill does to a machine, and how it looks at the processes on its stage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgekeeper.lab.stage import Stage


def engines_in(stage: Stage, namespace: str = "edge") -> tuple[int, ...]:
    """Pids of the engine's processes in a namespace of this stage (and no other)."""
    return programs_in(stage, namespace, stage.engine.name)


def programs_in(stage: Stage, namespace: str, name: str) -> tuple[int, ...]:
    """Pids of the processes in a namespace whose program has this name."""
    found = []
    for pid in stage.net.pids(namespace):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.path.basename(argv[0]) == name.encode():  # noqa: PTH119 - bytes, as the kernel gives them
            found.append(pid)
    return tuple(found)


def workers_in(stage: Stage) -> tuple[int, ...]:
    """Pids of the engine's worker processes: those whose parent is a process of the engine too."""
    found = engines_in(stage)
    return tuple(pid for pid in found if _parent(pid) in found)


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


async def take_host(stage: Stage, address: str) -> None:
    """A member's machine is gone at once: nobody holds its address, packets to it vanish until ARP notices."""
    await stage.net.ip("members", "address", "delete", f"{address}/24", "dev", "edge")

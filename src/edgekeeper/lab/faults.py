"""What a drill does to processes and cables, and how it looks at the processes on its stage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgekeeper.lab.stage import Stage


def engines_in(stage: Stage) -> tuple[int, ...]:
    """Pids of the dnsdist processes in the edge namespace of this stage (and no other)."""
    space = (Path("/run/netns") / stage.net.name["edge"]).stat().st_ino
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
            here = (entry / "ns" / "net").stat().st_ino
        except OSError:
            continue
        if here == space and os.path.basename(argv[0]) == b"dnsdist":  # noqa: PTH119 - bytes, as the kernel gives them
            found.append(int(entry.name))
    return tuple(found)


async def black_hole(stage: Stage, address: str) -> None:
    """Packets from the edge to one member vanish without an error, as behind a dead cable."""
    await stage.net.ip("edge", "route", "add", "blackhole", f"{address}/32")


async def heal(stage: Stage, address: str) -> None:
    """Undo ``black_hole``."""
    await stage.net.ip("edge", "route", "delete", "blackhole", f"{address}/32")


async def pull_cable(stage: Stage, namespace: str, interface: str) -> None:
    """Take one end of a cable down."""
    await stage.net.ip(namespace, "link", "set", interface, "down")

"""What a watch that is not quiet leaves for its successor, should this process die: what armed it, since when, and whether a cure was begun."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Memory:
    """The line that armed the watch (empty: failed rounds of the probe told of it), and what had been done by then.

    ``curing``: this ``step`` of a cure was begun and is not proved yet. ``ours``: a cure of ours may have left the service stopped.
    ``since_s`` is when the first sign came, in seconds since the boot ``boot_id``.
    """

    line: str = ""
    curing: bool = False
    ours: bool = False
    step: int = 0
    since_s: float = 0.0
    boot_id: str = ""


def file(folder: Path, name: str) -> Path:
    """Where the watch of this name keeps it."""
    return folder / f"armed-{name}.json"


def recall(path: Path) -> Memory | None:
    """What was left, or None; a file that cannot be read counts as a sign that something was wrong: the probe will tell."""
    if not path.exists():
        return None
    try:
        found = json.loads(read_text(path))
        if found["schema"] != SCHEMA:
            return Memory("something, in a file of another version")
        line, boot_id = str(found["line"]), str(found["boot_id"])
        return Memory(line, found["curing"] is True, found["ours"] is True, max(int(found["step"]), 0), float(found["since_s"]), boot_id)
    except (EdgekeeperError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return Memory("something, in a file that cannot be read any more")


def remember(path: Path, memory: Memory | None) -> str | None:
    """Leave it, or nothing with None; why it could not be written, or None. Not synced: after a crash of the machine all is new."""
    try:
        if memory is None:
            path.unlink(missing_ok=True)
        else:
            write_text(path, json.dumps({"schema": SCHEMA, **asdict(memory)}) + "\n", sync=False)
    except EdgekeeperError as err:
        return f"{err}; a restart of edgekeeper now would forget that the watch is armed"
    except OSError as err:
        return f"{path} cannot be removed: {err.strerror or err}"
    return None

"""What a watch that is not quiet leaves for its successor, should this process die: the line that armed it, and whether a cure was begun."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Memory:
    """The line (empty: nothing was wrong), and whether a cure of ours may have been left half done."""

    line: str = ""
    curing: bool = False


def file(folder: Path, name: str) -> Path:
    """Where the watch of this name keeps it."""
    return folder / f"armed-{name}.json"


def recall(path: Path) -> Memory:
    """What was left; a file that cannot be read counts as a sign that something was wrong: the probe will tell."""
    if not path.exists():
        return Memory()
    try:
        found = json.loads(read_text(path))
        if found["schema"] != SCHEMA:
            return Memory("something, in a file of another version")
        return Memory(str(found["line"]), curing=found["curing"] is True)
    except (EdgekeeperError, ValueError, KeyError, TypeError, RecursionError):
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

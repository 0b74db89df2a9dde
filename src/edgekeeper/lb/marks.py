"""The marks of guard on disk: written before a server is put into MAINT, so that none outlives its guard unknown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from edgekeeper.errors import StepFailedError, UsageError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.lb.decide import Key, Mark

NAME = "marks.json"
SCHEMA = 1


def read_marks(folder: Path) -> dict[Key, Mark]:
    """The marks that a guard left in its folder; StepFailedError when the file is there and is not one of ours.

    What cannot be read is not guessed: a server that nobody knows to be marked would stay in MAINT for ever.
    """
    path = folder / NAME
    if not path.exists():
        return {}
    try:
        kept = json.loads(read_text(path))
        if kept["schema"] != SCHEMA:
            raise ValueError(kept["schema"])  # noqa: TRY301 - one way for all that is not our file
        return {(str(m["backend"]), str(m["server"])): Mark(float(m["at"]), int(m["worker"]), bool(m["done"]), str(m["why"])) for m in kept["marks"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as err:
        msg = f"{path} is not a file of marks ({type(err).__name__}); look which servers are in MAINT, release those that should not be, and remove the file"
        raise StepFailedError(msg) from err


def write_marks(folder: Path, marks: Mapping[Key, Mark]) -> None:
    """Put all marks on the disk, or raise StepFailedError: then no server may be marked."""
    rows = [
        {"backend": backend, "server": server, "at": mark.at, "worker": mark.worker, "done": mark.done, "why": mark.why}
        for (backend, server), mark in sorted(marks.items())
    ]
    write_text(folder / NAME, json.dumps({"schema": SCHEMA, "marks": rows}, indent=1) + "\n")

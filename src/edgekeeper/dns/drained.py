"""Who is drained by a person: remembered over restarts, shared between command and supervisor by one file."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.errors import EdgekeeperError, UsageError
from edgekeeper.host.files import locked, make_folder, read_text, write_text

NAME = "drained.json"
COPY = "drained.last.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Drained:
    """Names (or addresses, for anonymous members), and whether even the last one may be missing."""

    names: frozenset[str] = frozenset()
    forced: bool = False


def read(folder: Path) -> Drained:
    """Who is drained; nobody when the file is missing. A damaged file is a UsageError, never "nobody"."""
    return _read(folder / NAME)


def recall(folder: Path) -> Drained:
    """Who was drained by the last command, for when the file itself is damaged; nobody when that is not known either."""
    try:
        return _read(folder / COPY)
    except EdgekeeperError:
        return Drained()


def _read(path: Path) -> Drained:
    if not path.exists():
        return Drained()
    try:
        record = json.loads(read_text(path))
        return Drained(frozenset(str(n) for n in record["names"]), bool(record.get("forced", False)))
    except (ValueError, KeyError, TypeError) as err:
        msg = f"{path} is damaged ({err}); whoever was drained stays so: drain or undrain a member again to write it anew"
        raise UsageError(msg) from err


def change(folder: Path, name: str, *, drain: bool, force: bool) -> Drained:
    """Add or take away a name, under a lock; the state afterwards."""
    make_folder(folder)
    with locked(folder / "drained.lock", "another drain or undrain"):
        try:
            before = read(folder)
        except EdgekeeperError:
            before = recall(folder)
        names = before.names | {name} if drain else before.names - {name}
        after = Drained(names, (before.forced or force) and bool(names) if drain else before.forced and bool(names))
        text = json.dumps({"schema": SCHEMA, "names": sorted(after.names), "forced": after.forced})
        write_text(folder / NAME, text, mode=0o600)
        with contextlib.suppress(EdgekeeperError):
            write_text(folder / COPY, text, mode=0o600)
        return after

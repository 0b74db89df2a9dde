"""Generations on disk: each whole in a folder of its own, one of them current by a single rename.

::

    STATE/generations/000007-3f2a9c1b/   0700: the engine's files and generation.json, all 0600
    STATE/current -> generations/000007-3f2a9c1b
    STATE/prev    -> generations/000006-...

No interruption leaves files that do not belong together: a folder gets its final name only when
all of it is on disk, and ``current`` names the old folder or the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host.files import make_folder, point, read_text, sync_folder, write_text

SCHEMA = 1
_NAME = re.compile(r"[0-9]{6}-[0-9a-zA-Z]{1,8}")
KEPT = 5
"""Generations that stay on disk beside those in use: enough to see what the last changes were."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation on disk: its folder's name, the digest of its intent, and both as ``dump`` wrote them."""

    name: str
    digest: str
    document: str
    made_at: float
    files: Mapping[str, str]


def files_digest(files: Mapping[str, str]) -> str:
    """SHA-256 over names and bytes."""
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name}\0{len(files[name])}\0{files[name]}".encode())
    return whole.hexdigest()


class Stage:
    """The generations of one role below its state folder."""

    def __init__(self, folder: Path, *, readonly: bool = False) -> None:
        self.folder = folder
        self._generations = folder / "generations"
        if readonly:
            return
        make_folder(folder)
        make_folder(self._generations)
        for left in self._generations.glob(".new-*"):
            shutil.rmtree(left, ignore_errors=True)

    def path(self, name: str) -> Path:
        """The folder of a generation."""
        return self._generations / name

    @property
    def current_path(self) -> Path:
        """The path through the link, as the engine is given it."""
        return self.folder / "current"

    def linked(self) -> str | None:
        """The name that the link ``current`` holds, whole or damaged."""
        with contextlib.suppress(OSError):
            return self.current_path.readlink().name
        return None

    def write(self, digest: str, document: str, files: Mapping[str, str], now: float) -> Generation:
        """Write a candidate whole; StepFailedError (a full disk, say) leaves nothing of it behind."""
        with contextlib.suppress(OSError, StepFailedError):  # somebody may have wiped the state_dir; what else is wrong is told below
            make_folder(self.folder)
            make_folder(self._generations)
        number = 1 + max((int(p.name[:6]) for p in self._every()), default=0)
        name = f"{number:06d}-{digest[:8]}"
        temp = self._generations / f".new-{name}"
        shutil.rmtree(temp, ignore_errors=True)
        record = {"schema": SCHEMA, "digest": digest, "made_at": now, "files": files_digest(files), "document": json.loads(document)}
        try:
            make_folder(temp)
            for file, text in files.items():
                write_text(temp / file, text)
            write_text(temp / "generation.json", json.dumps(record, indent=1, sort_keys=True))
            temp.rename(self.path(name))
            sync_folder(self._generations)
        except (OSError, StepFailedError) as err:
            shutil.rmtree(temp, ignore_errors=True)
            msg = f"generation {name} cannot be written: {err}; the current one stays"
            raise StepFailedError(msg) from err
        return Generation(name, digest, document, now, dict(files))

    def read(self, name: str) -> Generation | None:
        """A generation whose files are all there and belong together, else None."""
        folder = self.path(name)
        try:
            record = json.loads(read_text(folder / "generation.json"))
            names = [p.name for p in folder.iterdir() if p.name != "generation.json" and not p.name.startswith(".")]
            files = {file: read_text(folder / file) for file in names}
            if record["schema"] != SCHEMA or files_digest(files) != record["files"]:
                return None
            return Generation(name, str(record["digest"]), json.dumps(record["document"]), float(record["made_at"]), files)
        except (OSError, ValueError, KeyError, TypeError, EdgekeeperError):
            return None

    def document(self, name: str) -> str | None:
        """Intent and seat of a generation, also when its other files are damaged or gone: a running engine has read those already."""
        try:
            record = json.loads(read_text(self.path(name) / "generation.json"))
            return json.dumps(record["document"]) if record["schema"] == SCHEMA else None
        except (OSError, ValueError, KeyError, TypeError, EdgekeeperError):
            return None

    def current(self) -> Generation | None:
        """The current generation; when it is damaged, the one before."""
        for link in ("current", "prev"):
            with contextlib.suppress(OSError):
                found = self.read((self.folder / link).readlink().name)
                if found is not None:
                    return found
        return None

    def swap(self, name: str) -> None:
        """Make a generation current by one rename; the one before becomes ``prev``."""
        try:
            for link in (self.current_path, self.folder / "prev"):
                if link.exists() and not link.is_symlink():  # a backup that follows links puts a copy in its place
                    link.rename(self.folder / f"{link.name}.before-{name}")
            with contextlib.suppress(FileNotFoundError):
                before = self.current_path.readlink()
                if before.name != name:
                    point(self.folder / "prev", str(before))
            point(self.current_path, f"generations/{name}")
        except OSError as err:
            msg = f"generation {name} cannot be made current: {err.strerror or err}; the one before stays"
            raise StepFailedError(msg) from err

    def latest(self, digest: str) -> Generation | None:
        """The newest undamaged generation with this digest."""
        for folder in sorted((p for p in self._every() if p.name[7:] == digest[:8]), reverse=True):
            found = self.read(folder.name)
            if found is not None and found.digest == digest:
                return found
        return None

    def drop(self, name: str) -> None:
        """Remove a refused candidate."""
        shutil.rmtree(self.path(name), ignore_errors=True)

    def prune(self, in_use: set[str]) -> None:
        """Remove old generations, but never one that is linked or named in ``in_use``."""
        keep = set(in_use)
        for link in ("current", "prev"):
            with contextlib.suppress(OSError):
                keep.add((self.folder / link).readlink().name)
        every = sorted(p.name for p in self._every())
        for name in every[:-KEPT]:
            if name not in keep:
                self.drop(name)

    def _every(self) -> list[Path]:
        """All folders that are named as generations are; whatever else somebody put there is left alone."""
        with contextlib.suppress(OSError):
            return [p for p in self._generations.iterdir() if _NAME.fullmatch(p.name)]
        return []

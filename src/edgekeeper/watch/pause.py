"""The file by which a person holds a watch back: while it is there, the watch decides and tells, and cures nothing."""

from __future__ import annotations

from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import files
from edgekeeper.watch.forbid import Pause, pause_text, read_pause

_LIMIT = 4096


def pause_file(run_dir: str | Path, name: str) -> Path:
    """Where the pause of a watch lies. A reboot ends it: ``run_dir`` does not outlive one."""
    return Path(run_dir) / "watch" / f"pause-{name}"


def pause(path: Path, until: float | None, why: str = "") -> None:
    """Pause until a Unix time (None: until ``resume``); StepFailedError or MissingError when that cannot be written."""
    files.make_folder(path.parent)
    files.write_text(path, pause_text(Pause(until, why)))


def resume(path: Path) -> bool:
    """End a pause; False when there was none."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def read(path: Path) -> Pause | None:
    """The pause that is there now, also one that has run out. A file that is there and cannot be read is a pause: somebody meant one."""
    if not path.exists() and not path.is_symlink():
        return None
    try:
        return read_pause(files.read_text(path, _LIMIT, tolerant=True))
    except EdgekeeperError as err:
        return Pause(None, str(err)) if path.exists() else None

"""Files that are whole or absent: atomic writes, links that flip in one rename, secrets with modes; files that lines are appended to."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from edgekeeper.errors import LockHeldError, MissingError, StepFailedError, UsageError

_LIMIT = 16 * 2**20


def read_text(path: str | Path, limit: int = _LIMIT, *, tolerant: bool = False) -> str:
    """The UTF-8 text of a file; MissingError or UsageError says what is wrong with it. Never waits (for the writer of a FIFO, say).

    ``tolerant`` reads what is not UTF-8 too (a comment in Latin-1), with a mark in the place of each such byte.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                msg = f"{path} is not a file; it is not read"
                raise UsageError(msg)
            raw = file.read(limit + 1)
    except OSError as err:
        msg = f"{path} cannot be read: {err.strerror or err}"
        raise MissingError(msg) from err
    if len(raw) > limit:
        msg = f"{path} is larger than {limit} bytes; it is not read"
        raise UsageError(msg)
    try:
        return raw.decode("utf-8", "replace" if tolerant else "strict")
    except UnicodeDecodeError as err:
        msg = f"{path} is not UTF-8 text (byte {err.start}); it is not read"
        raise UsageError(msg) from err


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def write_text(path: str | Path, text: str, *, mode: int = 0o600, group: int = -1, sync: bool = True) -> None:
    """Replace a file in one step: a reader sees the old text or the new one, also after a crash."""
    path = Path(path)
    try:
        handle, temp = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), mode)
                if group >= 0:
                    os.fchown(file.fileno(), -1, group)
                if sync:
                    os.fsync(file.fileno())
            Path(temp).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temp).unlink()
            raise
        if sync:
            sync_folder(path.parent)
    except OSError as err:
        msg = f"{path} cannot be written: {err.strerror or err}; what was there stays"
        raise StepFailedError(msg) from err


def point(link: Path, target: str) -> None:
    """Make a symbolic link name ``target`` in one rename: the old target or the new, never none."""
    temp = link.with_name(f".{link.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        temp.unlink()
    temp.symlink_to(target)
    temp.replace(link)
    sync_folder(link.parent)


def open_append(path: Path, mode: int) -> tuple[int, int, bool]:
    """Open a regular file to append whole lines to it: its descriptor, its size in bytes, and whether its last line is torn.

    OSError where it cannot be opened, is a link, or is no regular file; a pipe that nobody reads is not waited for.
    """
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file")
    return handle, state.st_size, state.st_size > 0 and os.pread(handle, 1, state.st_size - 1) != b"\n"


def rotate(path: Path, keep: int) -> None:
    """Move a file aside: it becomes ``.1``, that one ``.2``, up to ``.keep``; what was there is gone. OSError when it cannot be."""
    for number in range(keep - 1, -1, -1):
        with contextlib.suppress(FileNotFoundError):
            numbered(path, number).replace(numbered(path, number + 1))


def numbered(path: Path, number: int) -> Path:
    """The file that was moved aside so often: ``path`` itself, ``path.1``..."""
    return path.with_name(f"{path.name}.{number}") if number else path


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: str | Path, mode: int = 0o700, *, ours: bool = True) -> Path:
    """A folder with exactly this mode, made with its parents where it is missing.

    One that is there and is not ``ours`` (a person named it: it may be /run, /tmp or somebody's home) keeps the mode it has.
    """
    path = Path(path)
    try:
        there = path.is_dir()
        if not there:
            path.mkdir(parents=True, exist_ok=True)
        if (ours or not there) and stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)
    except OSError as err:
        msg = f"folder {path} cannot be made: {err.strerror or err}; create it or run as its owner"
        raise MissingError(msg) from err
    return path


def read_secret(path: str | Path) -> str:
    """A secret's text without trailing line ends; refused when others than its owner may read it.

    A group other than root's may read it only if the file says so on purpose: mode 0640 is refused
    too, because a secret that is meant for a group has its own file.
    """
    path = Path(path)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as err:
        msg = f"secret {path} cannot be read: {err.strerror or err}"
        raise MissingError(msg) from err
    # Kubernetes mounts secrets 0644 in a private tmpfs; owners are told apart by the mount there.
    if mode & 0o077 and not _private_mount(path):
        msg = f"secret {path} may be read by others (mode {mode:04o}); it is not used: chmod 600 {path}"
        raise UsageError(msg)
    text = read_text(path, 65536).rstrip("\r\n")
    if not text:
        msg = f"secret {path} is empty; it is not used"
        raise UsageError(msg)
    return text


def _private_mount(path: Path) -> bool:
    """Whether the file lies behind a ``..data`` link, as in a mounted Kubernetes Secret."""
    return (path.parent / "..data").is_symlink()


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold an exclusive lock on a file, or raise LockHeldError at once and say who holds it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as err:
        msg = f"{path} cannot be locked: {err.strerror or err}; {what} is not started"
        raise MissingError(msg) from err
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            msg = f"{what} is already running (pid {holder}); this one ends. A stopped one counts as running: kill -CONT or kill -KILL {holder}"
            raise LockHeldError(msg) from err
        with contextlib.suppress(OSError):  # a full disk: then nobody is told who holds it, and it is held all the same
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)

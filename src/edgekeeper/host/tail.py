"""Log files, followed: held by their inode, their rotated siblings, and a bell that rings when there may be more to read."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from asyncinotify import Inotify, Mask, Watch

PIECE = 65536
"""Bytes that are read at once: what is done with them between two turns of the loop takes some milliseconds at most."""

_TAIL = 256
"""Bytes before a place by which it is known again."""

_LINKS = 16
_FILE = Mask.MODIFY | Mask.ATTRIB | Mask.MOVE_SELF | Mask.DELETE_SELF
_FOLDER = Mask.CREATE | Mask.MOVED_TO | Mask.MOVED_FROM | Mask.DELETE | Mask.ATTRIB | Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.ONLYDIR


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file that was reached: which file, how far, and a digest of the bytes before it."""

    device: int
    inode: int
    offset: int
    digest: str

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is."""
        return (self.device, self.inode)


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as its folder shows it: its name, which file it is, its size in bytes and its last write in nanoseconds."""

    path: Path
    identity: tuple[int, int]
    size: int
    written_ns: int


def seen(path: Path) -> Seen:
    """The regular file that a path leads to; OSError, also when it leads to something else (a folder, a FIFO, a device)."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, f"it is {_kind(found.st_mode)}, not a file")
    return Seen(path, (found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))
    return next((name for is_one, name in kinds if is_one(mode)), "a device")


def around(path: Path) -> list[Seen]:
    """The regular files in the folder of a path, and in the folder of the file that it leads to."""
    out = {}
    for folder in {path.parent, path.resolve().parent}:
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                with contextlib.suppress(OSError):
                    if entry.is_file(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        identity = (found.st_dev, found.st_ino)
                        out[identity] = Seen(Path(entry.path), identity, found.st_size, found.st_mtime_ns)
    return list(out.values())


def roads(path: Path) -> list[Path]:
    """The folders in which a change may lead a path to another file: its own, and that of each link on the way."""
    out = []
    step = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would skip the links
    for _ in range(_LINKS):
        out.append(step.parent)
        try:
            target = step.readlink()
        except OSError:
            break
        step = Path(os.path.normpath(step.parent / target))
    return out


class Held:
    """A file that is held open and read on, whatever its name is now; OSError when it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._handle = -1
        seen(path)  # what is no file is not even opened: that may already do something to it
        self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        found = os.fstat(self._handle)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise OSError(errno.EINVAL, f"it is {_kind(found.st_mode)}, not a file")
        self.identity = (found.st_dev, found.st_ino)
        self.offset = 0
        self._digest = _digest(b"")

    @property
    def handle(self) -> int:
        """Its descriptor."""
        return self._handle

    def now(self) -> Seen:
        """Its size and its last write now."""
        found = os.fstat(self._handle)
        return Seen(Path(), self.identity, found.st_size, found.st_mtime_ns)

    def go(self, offset: int) -> None:
        """Read on from there; at the beginning, a hole (the writer went on at its old place after a truncation) is passed over."""
        if offset == 0:
            with contextlib.suppress(OSError):  # no data yet, or a file system that knows no holes
                offset = os.lseek(self._handle, 0, os.SEEK_DATA)
        self.offset = offset
        self._digest = _digest(self._before(offset))

    def resume(self, place: Place) -> None:
        """Read on from a place, whatever is there now: the next reading tells when it is not what was there."""
        self.offset, self._digest = place.offset, place.digest

    def holds(self, place: Place) -> bool:
        """Whether the bytes before the place are the same here, in this file or in a copy of it."""
        return self.now().size >= place.offset and _digest(self._before(place.offset)) == place.digest

    def place(self, back: int = 0) -> Place:
        """The place that is reached, or ``back`` bytes before it."""
        offset = self.offset - back
        return Place(*self.identity, offset, _digest(self._before(offset)) if back else self._digest)

    def inside_a_line(self) -> bool:
        """Whether the byte before the place that is reached ends no line."""
        return self.offset > 0 and self._before(self.offset)[-1:] not in (b"\n", b"\0", b"")

    def read(self, limit: int = PIECE) -> bytes | None:
        """What follows, empty at the end; None when what was read before is not there any more: it was truncated, perhaps written anew since."""
        known = min(_TAIL, self.offset)
        raw = os.pread(self._handle, known + limit, self.offset - known)
        if len(raw) < known or _digest(raw[:known]) != self._digest:
            return None
        piece = raw[known:]
        if piece:
            self.offset += len(piece)
            self._digest = _digest(raw[-_TAIL:])
        return piece

    def close(self) -> None:
        """Let go of it."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        """A file that rotates for years must not use up the descriptors."""
        self.close()

    def _before(self, offset: int) -> bytes:
        known = min(_TAIL, offset)
        return os.pread(self._handle, known, offset - known)


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


class Bell:
    """Rings when files or folders have changed; where the kernel has no watches left for us, and on file systems that tell nothing, when the time is over."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._files: dict[tuple[int, int], Watch | None] = {}
        self._folders: set[Path] = set()
        with contextlib.suppress(OSError):  # a user has 128 of them
            self._inotify = Inotify(sync_timeout=0)

    @property
    def deaf(self) -> bool:
        """Whether nothing rings it but time."""
        return self._inotify is None or None in self._files.values()

    def listen(self, folders: Iterable[Path], files: Iterable[Held]) -> bool:
        """Ring for these from now on, and for no file that is not among them; whether any was new: then a change before it may have gone unheard."""
        inotify = self._inotify
        held = {one.identity: one for one in files}
        wanted = set(folders)
        new = bool(held.keys() - self._files.keys() or wanted - self._folders)
        if inotify is None:
            self._files = dict.fromkeys(held)
            return False
        for identity in self._files.keys() - held.keys():
            watch = self._files.pop(identity)
            if watch is not None:
                with contextlib.suppress(OSError):  # the file itself is gone, and its watch with it
                    inotify.rm_watch(watch)
        for identity in held.keys() - self._files.keys():
            self._files[identity] = None
            with contextlib.suppress(OSError):
                self._files[identity] = inotify.add_watch(f"/proc/self/fd/{held[identity].handle}", _FILE)
        for folder in wanted - self._folders:
            with contextlib.suppress(OSError):
                inotify.add_watch(folder, _FOLDER)
        self._folders = wanted
        return new

    async def ring(self, within_s: float) -> None:
        """Return when something has changed, or when the time is over."""
        if self._inotify is None:
            await asyncio.sleep(within_s)
            return
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[None] = loop.create_future()
        handle = self._inotify.fd
        loop.add_reader(handle, _set, rung)
        timer = loop.call_later(within_s, _set, rung)
        try:
            await rung
        finally:
            timer.cancel()
            loop.remove_reader(handle)
        while (event := self._inotify.sync_get()) is not None:  # what it says does not matter: everything is looked at again
            if event.mask & (Mask.IGNORED | Mask.Q_OVERFLOW | Mask.DELETE_SELF | Mask.MOVE_SELF):
                self._folders = set()  # a folder may be another one now

    def close(self) -> None:
        """Ring no more."""
        if self._inotify is not None:
            self._inotify.close()


def _set(rung: asyncio.Future[None]) -> None:
    if not rung.done():
        rung.set_result(None)

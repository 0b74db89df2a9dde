"""File changes as events, including the ``..data`` link that Kubernetes flips under a Secret."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from asyncinotify import Inotify, Mask

_MASK = Mask.CLOSE_WRITE | Mask.MOVED_TO | Mask.MOVED_FROM | Mask.CREATE | Mask.DELETE | Mask.ATTRIB
_Fingerprint = tuple[int, int, int, int] | None


def fingerprint(path: str | Path) -> _Fingerprint:
    """What tells a file from its successor (device, inode, size, mtime); None when it is missing."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def changes(paths: Iterable[str | Path], every_s: float = 5.0, remind_s: float | None = None) -> AsyncIterator[None]:
    """Yield each time that one of the files is another than at the call, or at the last time; never ends.

    The folders are watched, because editors and Kubernetes replace files instead of writing them;
    and a fingerprint is compared every ``every_s`` seconds, for folders that come and go and for
    file systems that report nothing (NFS). With ``remind_s`` it also yields when that much time has
    passed. Call it before the first reading, so that no change falls between the two.
    """
    files = [Path(p) for p in paths]
    return _changes(files, [fingerprint(f) for f in files], every_s, remind_s)


async def _changes(files: list[Path], seen: list[_Fingerprint], every_s: float, remind_s: float | None) -> AsyncIterator[None]:
    clock = asyncio.get_running_loop().time
    yielded = clock()
    with contextlib.ExitStack() as stack:
        inotify = None
        with contextlib.suppress(OSError):  # a machine has 128 of them for each user; without one, looking now and then must do
            inotify = stack.enter_context(Inotify())
        watched: set[Path] = set()
        while True:
            if inotify is not None:
                for folder in {f.parent for f in files} - watched:
                    with contextlib.suppress(OSError):
                        inotify.add_watch(folder, _MASK)
                        watched.add(folder)
            now = [fingerprint(f) for f in files]  # after the watch is set, so that nothing falls between
            if now != seen or (remind_s is not None and clock() - yielded >= remind_s):
                seen, yielded = now, clock()
                yield
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    if inotify is None:
                        await asyncio.sleep(every_s)
                        continue
                    event = await inotify.get()
                    if event.mask & Mask.IGNORED:
                        watched = set()

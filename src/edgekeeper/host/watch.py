"""File changes as events, including the ``..data`` link that Kubernetes flips under a Secret."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from asyncinotify import Inotify, Mask

_MASK = Mask.CLOSE_WRITE | Mask.MOVED_TO | Mask.MOVED_FROM | Mask.CREATE | Mask.DELETE | Mask.ATTRIB


def fingerprint(path: str | Path) -> tuple[int, int, int, int] | None:
    """What tells a file from its successor (device, inode, size, mtime); None when it is missing."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


async def changes(paths: Iterable[str | Path], every_s: float = 5.0) -> AsyncIterator[None]:
    """Yield each time that one of the files may have changed; never ends.

    The folders are watched, because editors and Kubernetes replace files instead of writing them;
    and a fingerprint is compared every ``every_s`` seconds, for folders that come and go and for
    file systems that report nothing (NFS).
    """
    files = [Path(p) for p in paths]
    seen = [fingerprint(f) for f in files]
    with Inotify() as inotify:
        watched: set[Path] = set()
        while True:
            for folder in {f.parent for f in files} - watched:
                with contextlib.suppress(OSError):
                    inotify.add_watch(folder, _MASK)
                    watched.add(folder)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    event = await inotify.get()
                    if event.mask & Mask.IGNORED:
                        watched = set()
            now = [fingerprint(f) for f in files]
            if now != seen:
                seen = now
                yield

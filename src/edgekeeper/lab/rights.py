"""The right to make network namespaces: root's, or that of a user namespace of one's own."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys

from edgekeeper.errors import MissingError

_UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--mount")
# Names of namespaces are files in /run, which belongs to the real root: inside there is a /run of its own.
_INSIDE = 'mount -t tmpfs tmpfs /run && exec "$@"'


def is_root() -> bool:
    """Whether this process may make namespaces as it is."""
    return os.geteuid() == 0


async def become_root_inside() -> None:
    """Start this command again inside a user namespace, where it is root; never returns. MissingError where that is not allowed."""
    if shutil.which("unshare") is None or await _fails():
        msg = "drills make network namespaces, which needs root, and user namespaces are not allowed here; run it with sudo"
        raise MissingError(msg)
    words = [*_UNSHARE, "sh", "-c", _INSIDE, "sh", sys.executable, "-m", "edgekeeper", *sys.argv[1:]]
    os.execvp(words[0], words)  # noqa: S606 - our own words, no shell reads them


async def _fails() -> bool:
    process = await asyncio.create_subprocess_exec(
        *_UNSHARE, "sh", "-c", _INSIDE, "sh", "true", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    return await process.wait() != 0

"""keepalived's FIFO reader as the supervisor sees it: whether it lives, and the state file while it does not.

keepalived starts the reader with itself and at each reload, and does not miss it in between (2.2.7 to 2.3.4).
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.vip import said


def reads(fifo: Path) -> bool | None:
    """Whether somebody reads the FIFO: the reader holds a lock on it. None when there is no FIFO."""
    try:
        handle = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def correct(file: Path, node: str, held: Mapping[str, bool]) -> bool:
    """Put the kernel's truth into the state file: who is held is MASTER, who is not is not. Whether something had to be corrected."""
    try:
        told = said.load(json.loads(read_text(file, tolerant=True)))
    except (EdgekeeperError, ValueError):
        told = {}
    now, after = time.time(), dict(told)
    for name, has in held.items():
        before = told.get(name)
        if has and (before is None or before.state != "MASTER"):
            after[name] = said.Told("MASTER", before.priority if before is not None else 0, now)
        elif not has and before is not None and before.state == "MASTER":
            after[name] = said.Told("BACKUP", before.priority, now)
    if after == told:
        return False
    write_text(file, json.dumps(said.tree(node, now, after, 0)) + "\n", mode=0o644, sync=False)
    return True

"""The engine's own log: it writes into a file, and its lines are passed on as structured events.

A file outlives every supervisor and never blocks its writer; a pipe does both (a reader that stalls
stops an engine's thread in its write).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.model.text import printable

COMPLAINT = re.compile(r"error|fatal|unable|cannot|could not|failed|ALERT", re.IGNORECASE)
CHATTER = re.compile(r"Health check for server |Server \S+ is (UP|DOWN)|has no server available|gratuitous ARP|unsolicited neighbou?r")
"""What an engine says of others while it starts: no reason why it did not."""
EVERY_S = 0.5
LIMIT = 8 * 2**20
"""The file is emptied at this size once it has been read; a line written in that instant is lost."""
CHUNK = 65536
BURST = 200
"""Lines passed on in one look; a flood is cut there and counted, so that it cannot starve the loop."""


async def follow(path: Path, pass_on: Callable[[str], None]) -> None:
    """Pass each new line on; where it stopped is kept beside the file, so that a restart repeats none."""
    mark = path.with_suffix(".offset")
    offset = _read_mark(mark)
    rest = b""
    while True:
        try:
            size = path.stat().st_size
        except OSError:
            size = 0
        if size < offset:
            offset, rest = 0, b""
        if size > offset:
            with path.open("rb") as file:
                file.seek(offset)
                chunk = file.read(min(CHUNK, size - offset))
            offset += len(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines[:BURST]:
                pass_on(line.decode("utf-8", "replace"))
            if len(lines) > BURST:
                pass_on(f"{len(lines) - BURST} more lines are in {path}")
            rest = rest[-CHUNK:]
            if offset == size and size > LIMIT:
                os.truncate(path, 0)
                offset = 0
            _write_mark(mark, offset - len(rest))
            if offset < size:
                await asyncio.sleep(0)
                continue
        await asyncio.sleep(EVERY_S)


def size(path: Path) -> int:
    """Bytes in the log now; 0 when there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def last_complaint(path: Path, start: int) -> str:
    """The last line since ``start`` that speaks of an error, else the last line; made fit for a sentence."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, size(path) - CHUNK))
            lines = [line for line in file.read(CHUNK).decode("utf-8", "replace").splitlines() if line.strip() and not CHATTER.search(line)]
    except OSError:
        return ""
    worst = [line for line in lines if COMPLAINT.search(line)] or lines
    return printable(worst[-1].strip(), 300) if worst else ""


def _read_mark(mark: Path) -> int:
    try:
        return max(0, int(read_text(mark)))
    except (EdgekeeperError, ValueError):
        return 0


def _write_mark(mark: Path, offset: int) -> None:
    try:
        write_text(mark, str(max(0, offset)), sync=False)
    except EdgekeeperError:
        return

"""The journal: one JSON line for each decision that acted or was held back, kept on disk.

A line is written by one ``write`` in append mode, so that lines of several processes never mix, and
is on the disk when ``write`` returns. A journal that cannot be written never stops the work: the loss
is logged once, counted, and told in the first line that is written again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from edgekeeper.host.files import numbered, open_append, rotate, sync_folder
from edgekeeper.log import ERROR, Event, emit, redact
from edgekeeper.model.entry import SCHEMA, Entry
from edgekeeper.ports import Clock

NAME = "journal.jsonl"
_MAX_BYTES = 8 * 2**20
_KEEP = 3
_TAIL = 2**20


class FileJournal:
    """``ports.Journal`` in ``folder/journal.jsonl``; rotated at ``max_bytes``, with ``keep`` older files."""

    def __init__(self, folder: str | Path, node: str, clock: Clock, *, max_bytes: int = _MAX_BYTES, keep: int = _KEEP) -> None:
        self.path = Path(folder) / NAME
        self.lost = 0
        """Entries that could not be written since the last that could."""
        self.lost_total = 0
        """Entries that could not be written since the start."""
        self._node = node
        self._clock = clock
        self._max_bytes = max_bytes
        self._keep = keep
        self._handle = -1
        self._broken_line = False

    def write(self, entry: Entry) -> None:
        """Put one entry on the disk. Never raises for what the disk does."""
        try:
            self._write(self._line(entry))
        except OSError as err:
            self._close()
            self.lost += 1
            self.lost_total += 1
            if self.lost == 1:
                emit(
                    Event.JOURNAL_LOST,
                    f"{self.path} cannot be written: {err.strerror or err}; entries are lost until it can, the work goes on",
                    level=ERROR,
                    path=str(self.path),
                )
            return
        if self.lost:
            emit(Event.JOURNAL_RECOVERED, f"{self.path} is written again; {self.lost} entries were lost", lost=self.lost)
            self.lost = 0

    def close(self) -> None:
        """Let go of the file; a later ``write`` opens it again."""
        self._close()

    def _line(self, entry: Entry) -> bytes:
        now = datetime.fromtimestamp(self._clock.wall(), UTC)
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "ts": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "mono": round(self._clock.monotonic(), 3),
            "node": self._node,
            "role": entry.role,
            "event": str(entry.event),
            "object": redact(entry.object),
            "decision": entry.decision,
            "why": redact(entry.why),
            "data": redact(entry.data),
        }
        if self.lost:
            record["data"]["lost_before"] = self.lost
        return json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"

    def _write(self, line: bytes) -> None:
        self._open()
        if os.fstat(self._handle).st_size + len(line) > self._max_bytes:
            self._rotate()
            self._open()
        written = os.write(self._handle, b"\n" + line if self._broken_line else line)
        if written < len(line):  # the disk is full: the next line starts on its own
            self._broken_line = True
            raise OSError(28, os.strerror(28))
        self._broken_line = False
        os.fdatasync(self._handle)

    def _open(self) -> None:
        """Have the file at the path open, also after another process rotated it."""
        if self._handle >= 0:
            with suppress(FileNotFoundError):
                ours, there = os.fstat(self._handle), self.path.stat()
                if (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino):
                    return
            self._close()
        self._handle, _, self._broken_line = open_append(self.path, 0o640)

    def _rotate(self) -> None:
        """Move the files on by one. Another process that does it right now (or is frozen in it) is left alone."""
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._handle).st_ino == self.path.stat().st_ino:
                rotate(self.path, self._keep)
                sync_folder(self.path.parent)
        except BlockingIOError:
            pass  # the file grows a little past its size instead
        finally:
            os.close(lock)

    def _close(self) -> None:
        if self._handle >= 0:
            with suppress(OSError):
                os.close(self._handle)
            self._handle = -1


@dataclass(frozen=True, slots=True)
class Record:
    """A line of the journal as it was read: its wall clock in seconds, and all of its fields."""

    ts: float
    fields: dict[str, Any]


def read_journal(folder: str | Path, since: float = 0.0, keep: int = _KEEP) -> tuple[tuple[Record, ...], int]:
    """The entries from ``since`` (Unix seconds) on, oldest first, and how many lines could not be read.

    A torn last line (the machine lost power in the middle of it) is one of those. OSError, where the
    files are there but cannot be read, is the caller's to tell.
    """
    records: list[Record] = []
    unreadable = 0
    path = Path(folder) / NAME
    for file in (numbered(path, n) for n in range(keep, -1, -1)):
        for line in _lines(file):
            record = parse_line(line)
            if record is None:
                unreadable += 1
            elif record.ts >= since:
                records.append(record)
    return tuple(records), unreadable


def parse_line(line: str) -> Record | None:
    """One line of a journal; None when it is not one (torn, foreign, from the future's schema)."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict) or fields.get("schema") != SCHEMA:
            return None
        return Record(datetime.fromisoformat(fields["ts"]).timestamp(), fields)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _lines(file: Path) -> Iterator[str]:
    try:
        with file.open("r", encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(_TAIL):
                if line.strip():
                    yield line
    except FileNotFoundError:
        return

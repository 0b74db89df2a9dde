"""The recording: one line of JSON a question, appended whole, readable while it is written."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Self

from edgekeeper.errors import MissingError, UsageError
from edgekeeper.host.files import make_folder, open_append, rotate
from edgekeeper.model.sample import SCHEMA, Sample


def line(sample: Sample) -> bytes:
    """A sample as it is recorded; ``id`` is left out where the question carried none."""
    fields = asdict(sample)
    if fields.get("id") is None:
        fields.pop("id", None)
    return (json.dumps({"schema": SCHEMA, **fields}) + "\n").encode("ascii")


class Recording:
    """Appends to a file. What cannot be written is counted and does not stop the measurement; ``why`` is the last reason, "" when all is well.

    A line goes out in one write, so that a reader sees whole lines, and several writers of one file do not mix theirs.
    With ``most_bytes`` the file is moved aside when it is as large (``.1``, up to ``.keep``) and a new one is begun. One that cannot be opened
    is a UsageError, unless ``patient``: then its folder is made, and each line tries again.
    """

    def __init__(self, path: Path, *, most_bytes: int | None = None, keep: int = 1, patient: bool = False) -> None:
        self._path = path
        self._most = most_bytes
        self._keep = keep
        self._file = -1
        self._patient = patient
        self.lost = 0
        self.why = ""
        try:
            self._open()
        except OSError as err:
            if patient:
                return
            msg = f"{path} cannot be written ({err.strerror}); nothing was asked"
            raise UsageError(msg) from None

    def _open(self) -> None:
        if self._patient:
            try:
                make_folder(self._path.parent)
            except MissingError:
                raise OSError(errno.ENOENT, f"its folder {self._path.parent} cannot be made") from None
        self._file, self._size, self._torn = open_append(self._path, 0o644)

    def _close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def write(self, sample: Sample) -> None:
        """Append one line; never raises."""
        whole = line(sample)
        try:
            if self._file < 0:
                self._open()
            elif self._most is not None and self._size >= self._most:
                self._rotate()
            data = b"\n" + whole if self._torn else whole
            written = os.write(self._file, data)
        except OSError as err:
            self.lost += 1
            self.why = f"{self._path} cannot be written ({err.strerror}); questions go on and are not recorded"
            return
        self._size += written
        if written < len(data):  # the disk became full in the middle of the line: the next one begins anew
            self._torn = True
            self.lost += 1
            self.why = f"{self._path} cannot be written (no space left on device); questions go on and are not recorded"
            return
        self._torn, self.why = False, ""

    def _rotate(self) -> None:
        rotate(self._path, self._keep)
        self._close()
        self._open()

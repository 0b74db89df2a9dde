"""Keep what was counted in a file of JSON lines (see ``report.cells_text``), to be read again beside other logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from edgekeeper.errors import RefusedError, StepFailedError
from edgekeeper.report.book import Book
from edgekeeper.report.cells_text import is_cells, lines


def only_over_its_like(path: Path, begins: Callable[[bytes], bool]) -> None:
    """RefusedError when there is a file that is no earlier one of the kind: a log that was named twice is not lost.

    Nor is a device: to replace /dev/null by a file breaks the machine, and a pipe that nobody writes to would be waited for.
    """
    if path.exists() and not path.is_file():
        msg = f"{path} is there and is no file; it is left as it is: choose another name"
        raise RefusedError(msg)
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError:
        return  # there is none, or it cannot be written either
    if head and not begins(head):
        msg = f"{path} is there and is something else; it is not overwritten: choose another name"
        raise RefusedError(msg)


def write(book: Book, path: Path) -> str:
    """Write it in one step; says so in a sentence.

    RefusedError when another kind of file is there; StepFailedError when it cannot be written: what was there stays.
    """
    only_over_its_like(path, is_cells)
    temp = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        try:
            with temp.open("xb") as file:
                for line in lines(book):
                    file.write(line)
            temp.chmod(0o640)  # addresses of clients are in it
            size = temp.stat().st_size
            temp.replace(path)
        finally:
            temp.unlink(missing_ok=True)
    except OSError as err:
        msg = f"{path} cannot be written: {err.strerror or err}; what was there stays"
        raise StepFailedError(msg) from None
    return f"{path}: what was counted was written ({size / 1024:.0f} KiB); it can be read beside other logs, or in place of its own"

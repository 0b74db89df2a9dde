"""Which files beside a log are its former ones. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Protocol, TypeVar

_STAMP = r"[.\-_][0-9][0-9TZ.:_+\-]*"


class Written(Protocol):
    """What is known of a file: which one it is, and when it was written last (nanoseconds)."""

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""

    @property
    def written_ns(self) -> int:
        """Its last write."""


File = TypeVar("File", bound=Written)


def rotated(base: str, name: str) -> bool:
    """Whether ``name`` is what rotation calls a former ``base``: app.log.1, app.log-20261130, app-2026-11-30T10-00-00.log, app.log.old.

    Compressed ones are not: what is in them was read, or is lost.
    """
    stem, dot, ending = base.rpartition(".")
    forms = [re.escape(base) + rf"(?:{_STAMP}|[.\-_](?:old|prev|bak)|~)"]
    if stem:
        forms.append(re.escape(stem) + _STAMP + re.escape(dot + ending))
    return name != base and any(re.fullmatch(form, name) for form in forms)


def next_after(written_ns: int, files: Iterable[File], done: Collection[tuple[int, int]]) -> File | None:
    """The oldest file that was written to after this moment and is not done yet: the one that followed it; None when there is none."""
    later = [file for file in files if file.written_ns > written_ns and file.identity not in done]
    return min(later, key=lambda file: file.written_ns, default=None)

"""A preview: what an engine would be run with, and what its validator said of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preview:
    """The files, the version that they are for, notes for a person, and why the validator refused."""

    files: Mapping[str, str]
    version: str
    notes: tuple[str, ...]
    refusal: str | None

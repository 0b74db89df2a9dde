"""A finding: what will hurt, shown by what, and how to mend it. One shape for every check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    CRIT = "CRIT"
    HIGH = "HIGH"
    WARN = "WARN"
    INFO = "INFO"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in a file; ``line`` counts from 1 (0: the whole file)."""

    file: str
    line: int

    def text(self) -> str:
        """``haproxy.cfg:42``, as editors and terminals make it a link."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """``id`` is stable; ``object`` names what it is about; ``evidence`` is what was seen; ``place`` where, if it is in a file."""

    id: str
    severity: Severity
    object: str
    what: str
    evidence: str
    why: str
    fix: str
    refs: tuple[str, ...] = ()
    place: Place | None = None

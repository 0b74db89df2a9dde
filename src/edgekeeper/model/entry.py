"""A journal entry: what acted or was held back, on what, and why. Schema 1, kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision: ``decision`` is act, hold, suppress, refuse or alarm; ``why`` is a sentence."""

    role: str
    event: str
    object: str
    decision: str
    why: str
    data: dict[str, Any] = field(default_factory=dict)

"""A verdict: good, bad or unknown, with the sentence that says why."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Health(StrEnum):
    """The three answers to "is it well?". Unknown is never good and never bad."""

    OK = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was judged, why, and the evidence that the sentence rests on."""

    health: Health
    why: str
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the verdict is good (unknown is not)."""
        return self.health is Health.OK


@dataclass(frozen=True, slots=True)
class EngineVerdict:
    """What a real engine said of the rendered configuration: its refusal, or None. An empty ``engine``: there was nothing to ask.

    ``notes`` tell what this engine does without; ``doubts`` what could not be judged.
    """

    engine: str
    refusal: str | None
    notes: tuple[str, ...]
    doubts: tuple[str, ...]

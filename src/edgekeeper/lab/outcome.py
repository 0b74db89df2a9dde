"""What a script is told and what it gives back: who stands at the edge, and what was measured. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from edgekeeper.measure.outages import Outage


class Side(StrEnum):
    """Who stands at the edge: edgekeeper, or the engine with the plain config that a user would write."""

    PRODUCT = "product"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of a script found: figures by name, and the outage as the client saw it."""

    figures: dict[str, float]
    outage: Outage | None = None

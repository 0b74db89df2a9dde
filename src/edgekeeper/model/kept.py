"""What is kept beside an engine's files for the next supervisor: an intent, and the seat that it was written for, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

W = TypeVar("W")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Kept(Generic[W, S]):
    """What ``dump`` writes; without a seat it tells one intent from another."""

    intent: W
    seat: S | None


class Keeper(Generic[W, S]):
    """Writes and reads what one kind of engine keeps; ``kept`` is ``Kept[Intent, Seat]``."""

    def __init__(self, kept: Any) -> None:
        self._adapter: TypeAdapter[Kept[W, S]] = TypeAdapter(kept)

    def dump(self, intent: W, seat: S | None) -> str:
        """Intent and seat as JSON."""
        return self._adapter.dump_json(Kept(intent, seat), indent=1).decode() + "\n"

    def load(self, text: str) -> tuple[W, S | None]:
        """The inverse of ``dump``; pydantic's ValidationError is a ValueError."""
        kept = self._adapter.validate_json(text)
        return kept.intent, kept.seat

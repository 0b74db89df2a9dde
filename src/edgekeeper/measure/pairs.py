"""From events to intervals: each begin with the next end of the same key. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """A begin or an end; ``of`` is whatever the caller wants to find again."""

    at: float
    key: str
    begins: bool
    of: T


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """An interval; ``end`` is None while none was seen. ``again`` counts begins that came while it was already open."""

    key: str
    begin: Event[T]
    end: Event[T] | None
    again: int = 0

    @property
    def length_s(self) -> float | None:
        """How long it lasted by the stamps; None when it is open."""
        return None if self.end is None else self.end.at - self.begin.at


def pairs(events: Iterable[Event[T]]) -> tuple[list[Pair[T]], list[Event[T]]]:
    """Intervals in the order of their begins, and the ends that had no begin.

    A begin while one of its key is open is the same interval told again. Events of the same moment keep the order in which they are
    given: with stamps of whole seconds the order of the lines is what is left.
    """
    opened: dict[str, tuple[Event[T], int]] = {}
    found: list[Pair[T]] = []
    lonely: list[Event[T]] = []
    for event in sorted(events, key=lambda e: e.at):
        known = opened.get(event.key)
        if event.begins:
            opened[event.key] = (event, 0) if known is None else (known[0], known[1] + 1)
        elif known is None:
            lonely.append(event)
        else:
            found.append(Pair(event.key, known[0], event, known[1]))
            del opened[event.key]
    found.extend(Pair(key, begin, None, again) for key, (begin, again) in opened.items())
    found.sort(key=lambda p: (p.begin.at, p.key))
    return found, lonely

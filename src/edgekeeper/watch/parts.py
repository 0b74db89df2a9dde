"""What a watch is made of, and what it uses together with the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.model.budget import Budget
from edgekeeper.ports import Clock, Journal
from edgekeeper.watch.fingerprint import Matcher
from edgekeeper.watch.seams import Asker, Cure, Guard, Source
from edgekeeper.watch.siblings import Place
from edgekeeper.watch.state import Policy


@dataclass(frozen=True, slots=True)
class Parts:
    """What a watch is made of. ``key`` names its budget: its group's, or its own."""

    name: str
    policy: Policy
    matcher: Matcher | None
    source: Source | None
    asker: Asker | None
    guards: Sequence[Guard]
    cures: Sequence[Cure]
    budget: Budget
    key: str
    blind_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """What a watch uses with the others: the store of budgets, the folder for what is remembered, and who is told.

    ``place`` is its place in the group (None: it has none); ``others_s`` are the ages of the acts that the group's other nodes told
    of; ``count`` counts an event.
    """

    store: Path
    folder: Path
    clock: Clock
    journal: Journal
    place: Place | None
    others_s: Callable[[], Sequence[float]]
    count: Callable[[str], None]
    alarm: Callable[[str, str | None], None]

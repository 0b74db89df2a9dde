"""What the watches did, made of the lines that they wrote into the journal. Pure.

A *trouble* begins when a line arms a watch, or when its probe fails without any line, and ends when it is cured, when it heals by
itself, or when it turns out that there was none. One that an earlier process left behind is taken up again by the next.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from edgekeeper.measure.share import share_text, wilson
from edgekeeper.model.time import Span

ROLE: Final = "watch"

_AGAIN_S: Final = 10.0
"""A watch that takes up what an earlier process left behind is armed at once after its start."""


class Ending(StrEnum):
    """How a trouble ended."""

    CURED = "cured"
    HEALED = "healed by itself"
    RESTARTED = "started by somebody else"
    """A cure was wanted, and somebody else started the service before it was permitted."""
    FALSE = "false alarm"
    """Lines came, and the probe never failed."""
    OPEN = "not over"
    UNKNOWN = "not known"
    """The next one began before the journal tells how this one ended."""


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the journal about a watch: when (Unix seconds), which node's which watch, and what was decided why.

    ``recovered`` is the time to recover, where a cure was proved by it.
    """

    at: float
    node: str
    watch: str
    event: str
    decision: str
    why: str
    recovered: Span | None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Trouble:
    """One trouble: when its first sign came, whether a line told of it, what was done and what held it back, and how it ended."""

    at: float
    by_line: bool
    confirmed: bool = False
    steps: int = 0
    in_vain: int = 0
    held: list[str] = field(default_factory=list)
    shadowed: bool = False
    ending: Ending = Ending.OPEN
    recovered: Span | None = None

    @property
    def real(self) -> bool:
        """Whether the service really was down, as far as is known."""
        return self.confirmed or self.steps > 0 or self.ending in {Ending.HEALED, Ending.RESTARTED}


@dataclass(frozen=True, slots=True)
class WatchHistory:
    """All troubles of one watch of one node, in their order."""

    node: str
    watch: str
    troubles: tuple[Trouble, ...]
    blind: int = 0

    def count(self, ending: Ending) -> int:
        """How many ended so."""
        return sum(trouble.ending is ending for trouble in self.troubles)

    @property
    def held(self) -> Counter[str]:
        """What held cures back, how often each."""
        return Counter(why for trouble in self.troubles for why in trouble.held)

    @property
    def recovered(self) -> tuple[Span, ...]:
        """Every time to recover."""
        return tuple(trouble.recovered for trouble in self.troubles if trouble.recovered is not None)

    @property
    def healed(self) -> tuple[int, int]:
        """How many of those that were real and are over healed by themselves, and of how many."""
        over = [trouble for trouble in self.troubles if trouble.real and trouble.ending in {Ending.HEALED, Ending.CURED}]
        return sum(trouble.ending is Ending.HEALED for trouble in over), len(over)

    def healed_text(self) -> str:
        """The share that healed by itself, as a sentence with its interval; empty when nothing is over yet."""
        hits, cases = self.healed
        if not cases:
            return ""
        cured = self.count(Ending.CURED)
        bound = "" if not cured else "; at least so many, for what was cured might have healed too"
        return f"{self.watch}: {share_text(hits, cases)} healed by themselves{bound}"

    def healed_share(self) -> tuple[float, float] | None:
        """The bounds of that share (95 %)."""
        hits, cases = self.healed
        return wilson(hits, cases) if cases else None


def median(spans: Sequence[Span]) -> Span | None:
    """The median of durations that are known within bounds lies between the medians of the bounds; None without any."""
    if not spans:
        return None
    return Span(statistics.median(s.min_s for s in spans), statistics.median(s.max_s for s in spans))


def worst(spans: Sequence[Span]) -> Span | None:
    """The longest of them lies between the largest of the bounds; None without any."""
    if not spans:
        return None
    return Span(max(s.min_s for s in spans), max(s.max_s for s in spans))


def items(lines: Iterable[tuple[float, Mapping[str, Any]]], watch: str | None = None) -> tuple[Item, ...]:
    """The journal's lines (time, fields) that are about watches, or about this one; whatever the fields hold."""
    out = []
    for at, fields in lines:
        if fields.get("role") != ROLE:
            continue
        text = {name: str(fields.get(name, "")) for name in ("node", "object", "event", "decision", "why")}
        if watch is not None and text["object"] != watch:
            continue
        said = fields.get("data")
        data = said if isinstance(said, Mapping) else {}
        recovered = _span(data.get("recovered_s"))
        out.append(Item(at, text["node"], text["object"], text["event"], text["decision"], text["why"], recovered, data))
    return tuple(out)


def lost(lines: Iterable[tuple[float, Mapping[str, Any]]]) -> int:
    """How many entries could not be written, as those after them tell."""
    told = [fields["data"].get("lost_before") for _, fields in lines if isinstance(fields.get("data"), Mapping)]
    return sum(number for number in told if isinstance(number, int) and not isinstance(number, bool) and number > 0)


def histories(found: Sequence[Item]) -> tuple[WatchHistory, ...]:
    """What became of each trouble of each watch."""
    by_watch: dict[tuple[str, str], list[Item]] = {}
    for item in found:
        if item.watch and item.event.startswith("watch."):  # an alarm's object is its own name
            by_watch.setdefault((item.node, item.watch), []).append(item)
    return tuple(WatchHistory(node, watch, _troubles(of), sum(i.event == "watch.blind" for i in of)) for (node, watch), of in sorted(by_watch.items()))


class _Ledger:
    """The troubles of one watch while its lines are read."""

    def __init__(self) -> None:
        self.all: list[Trouble] = []
        self._open: Trouble | None = None
        self._begun = float("-inf")

    def take(self, item: Item) -> None:
        """One more line, in the order of time; one that is not about a trouble is passed over."""
        take = getattr(self, f"_{item.event.removeprefix('watch.')}", None) if item.event in _TOLD else None
        if take is not None:
            take(item)

    def _trouble(self, at: float, *, by_line: bool = False) -> Trouble:
        """The one that is open; where the journal does not have its beginning, it begins here."""
        if self._open is None:
            self._open = Trouble(at, by_line)
            self.all.append(self._open)
        return self._open

    def _close(self, ending: Ending) -> None:
        if self._open is not None:
            self._open.ending, self._open = ending, None

    def _started(self, item: Item) -> None:
        self._begun = item.at

    def _armed(self, item: Item) -> None:
        if not 0 <= item.at - self._begun < _AGAIN_S:
            self._close(Ending.UNKNOWN)
        self._trouble(item.at, by_line=True)

    def _confirmed(self, item: Item) -> None:
        self._trouble(item.at).confirmed = True

    def _suppressed(self, item: Item) -> None:
        trouble, held = self._trouble(item.at), str(item.data.get("held_by") or "not said")
        trouble.held.append(held)
        trouble.shadowed = trouble.shadowed or held == "shadow"

    def _cured(self, item: Item) -> None:
        self._trouble(item.at).steps += 1

    def _not_proved(self, item: Item) -> None:
        self._trouble(item.at).in_vain += 1

    def _proved(self, item: Item) -> None:
        trouble = self._trouble(item.at)
        trouble.recovered = item.recovered or Span(0.0, max(0.0, item.at - trouble.at))
        self._close(Ending.CURED)

    def _cancelled(self, item: Item) -> None:
        self._trouble(item.at)
        self._close(Ending.RESTARTED if item.data.get("by") == "start" else Ending.HEALED)

    def _disarmed(self, item: Item) -> None:
        """Of one that was cancelled nothing more is to be told: it is closed already."""
        if self._open is not None:
            self._close(Ending.FALSE if item.data.get("failed") == 0 and not self._open.confirmed else Ending.HEALED)


_TOLD: Final = frozenset(f"watch.{what}" for what in ("started", "armed", "confirmed", "suppressed", "cured", "not_proved", "proved", "cancelled", "disarmed"))


def _troubles(of: Sequence[Item]) -> tuple[Trouble, ...]:
    ledger = _Ledger()
    for item in of:
        ledger.take(item)
    return tuple(ledger.all)


def _span(said: Any) -> Span | None:
    if not isinstance(said, Sequence) or isinstance(said, str) or len(said) != 2:
        return None
    low, high = said
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in said) or not 0 <= low <= high:
        return None
    return Span(float(low), float(high))

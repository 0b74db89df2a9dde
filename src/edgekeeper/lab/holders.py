"""Who held a VIP when, from the kernel's own news of each node: two holders, none, how often it moved, how long a shadow was up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class Change:
    """An address came to an interface of a node, or left it. ``at`` is the monotonic clock; ``interface`` empty: from all of them."""

    at: float
    node: str
    interface: str
    address: str
    present: bool


@dataclass(frozen=True, slots=True)
class Span:
    """From one moment to another the same nodes held an address; ``shadows`` have it on their loopback interface."""

    start: float
    end: float
    holders: frozenset[str]
    shadows: frozenset[str]

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Holding:
    """What became of one address in a stretch of time. Seconds; each is the longest time at a stretch, ``all_shadow_s`` the sum."""

    two_s: float
    none_s: float
    moves: int
    shadow_s: float
    last: frozenset[str]
    two_from: float | None = None
    moved_at: tuple[float, ...] = field(default=())

    def figures(self) -> dict[str, float]:
        """The figures by the names that promises use."""
        return {
            "two_owners_s": round(self.two_s, 3),
            "no_owner_s": round(self.none_s, 3),
            "owner_changes": self.moves,
            "shadow_s": round(self.shadow_s, 3),
            "owners_at_end": len(self.last),
        }


def spans(changes: Iterable[Change], address: str, start: float, end: float) -> tuple[Span, ...]:
    """The time from ``start`` to ``end``, cut where the holders of ``address`` changed."""
    places: dict[str, set[str]] = {}
    out: list[Span] = []
    since = start

    def close(until: float) -> None:
        nonlocal since
        until = min(max(until, start), end)
        if until > since:
            holders = frozenset(n for n, on in places.items() if on - {LOOPBACK})
            shadows = frozenset(n for n, on in places.items() if LOOPBACK in on)
            if out and (out[-1].holders, out[-1].shadows) == (holders, shadows):
                out[-1] = Span(out[-1].start, until, holders, shadows)
            else:
                out.append(Span(since, until, holders, shadows))
            since = until

    for change in sorted((c for c in changes if c.address == address), key=lambda c: c.at):
        close(change.at)
        on = places.setdefault(change.node, set())
        if change.present:
            on.add(change.interface)
        elif change.interface:
            on.discard(change.interface)
        else:
            on.clear()
    close(end)
    return tuple(out)


def holding(changes: Iterable[Change], address: str, start: float, end: float) -> Holding:
    """What became of an address between two moments."""
    found = spans(changes, address, start, end)
    alone = [s for s in found if len(s.holders) == 1]
    moved = tuple(b.start for a, b in pairwise(alone) if a.holders != b.holders)
    two = _longest(found, [len(s.holders) > 1 for s in found])
    return Holding(
        two_s=two[0],
        none_s=_longest(found, [not s.holders for s in found])[0],
        moves=len(moved),
        shadow_s=_longest(found, [bool(s.shadows) for s in found])[0],
        last=found[-1].holders if found else frozenset(),
        two_from=two[1],
        moved_at=moved,
    )


def _longest(found: Sequence[Span], matches: Sequence[bool]) -> tuple[float, float | None]:
    """The longest stretch of spans that match, and when it began."""
    best, began, since = 0.0, None, None
    for span, match in zip(found, matches, strict=True):
        since = (span.start if since is None else since) if match else None
        if since is not None and span.end - since > best:
            best, began = span.end - since, since
    return best, began


def worst(each: Mapping[str, Holding]) -> dict[str, float]:
    """The figures of several addresses as one: the longest times, all moves, the fewest and most owners at the end."""
    figures = [h.figures() for h in each.values()]
    out = {name: max(f[name] for f in figures) for name in ("two_owners_s", "no_owner_s", "shadow_s")}
    out["owner_changes"] = sum(f["owner_changes"] for f in figures)
    out["without_one_owner"] = sum(f["owners_at_end"] != 1 for f in figures)
    return out

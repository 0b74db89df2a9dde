"""Which snapshot counts: a source that names nobody, or suddenly half as many, is not believed at once."""

from __future__ import annotations

from dataclasses import dataclass

from edgekeeper.model.backend import Member, Membership

HOLD_S = 10.0
"""A loss of more than half from an API or DNS waits this long for one confirmation at most."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A loss that waits for confirmation, since when (monotonic seconds), and who was there before it."""

    members: tuple[Member, ...]
    since: float
    before: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Selected:
    """The snapshot in force, what is held back, the journal's verb, and the reason."""

    members: tuple[Member, ...]
    holding: Holding | None
    decision: str
    why: str


def select(current: tuple[Member, ...], fresh: Membership, holding: Holding | None, now: float) -> Selected:
    """Decide between the members in force and a fresh full snapshot.

    While a loss is held, whoever is new serves already beside those that may be lost: where everybody is replaced at
    once (a Deployment of strategy Recreate, say), the lost are dead, and waiting would leave nobody.
    """
    members = tuple(sorted(set(fresh.members)))
    if not members:
        kept = f"the last full set of {len(current)} stays" if current else "there is none to keep"
        told = f" ({'; '.join(fresh.notes)})" if fresh.notes else ""
        return Selected(current, None, "suppress", f"{fresh.source} names no members{told}; {kept}")
    if members == current:
        return Selected(current, None, "none", f"{fresh.source} says the same {len(current)} members")
    before = holding.before if holding is not None else current
    lost = _lost(before, members)
    if not fresh.by_person and len(lost) >= 2 and len(lost) * 2 > len(before):
        if holding is None or holding.members != members:
            # A view that keeps changing is not confirmed, but it cannot hold for ever either.
            since = holding.since if holding is not None else now
            if now - since < HOLD_S:
                why = f"{fresh.source} lost {len(lost)} of {len(before)} members at once; held until it says so again, {HOLD_S:g} s at most"
                return Selected(tuple(sorted({*members, *lost})), Holding(members, since, before), "hold", why)
        why = f"{fresh.source} confirmed the loss of {len(lost)} of {len(before)} members"
        return Selected(members, None, "act", why)
    return Selected(members, None, "act", _difference(current, members, fresh.source))


def hold_left(holding: Holding, now: float) -> float:
    """Seconds until the loss counts without another confirmation: by then the source must be read again."""
    return max(0.0, holding.since + HOLD_S - now)


def _lost(before: tuple[Member, ...], members: tuple[Member, ...]) -> list[Member]:
    """Those of before that are gone; one that has moved or was renamed is not: its name, or its address, is another one's now."""
    names, places = {m.name for m in members if m.name}, {(m.host, m.port) for m in members}
    return [m for m in before if m.name not in names and (m.host, m.port) not in places]


def _difference(current: tuple[Member, ...], members: tuple[Member, ...], source: str) -> str:
    before, after = {_who(m) for m in current}, {_who(m) for m in members}
    parts = [
        f"{len(labels)} {word} ({', '.join(labels[:3])}{', ...' if len(labels) > 3 else ''})"
        for word, labels in (
            ("gone", [m.label for m in current if _who(m) not in after]),
            ("new", [m.label for m in members if _who(m) not in before]),
            ("changed", [m.label for m in members if _who(m) in before and m not in current]),
        )
        if labels
    ]
    return f"{source}: {' and '.join(parts)}, {len(members)} in all"


def _who(member: Member) -> tuple[str, str, int]:
    """What makes a member the same one, whatever its weight or pools are now."""
    return member.name, member.host, member.port

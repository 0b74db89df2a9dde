"""Which snapshot counts: a source that names nobody, or suddenly half as many, is not believed at once."""

from __future__ import annotations

from dataclasses import dataclass

from edgekeeper.model.backend import Member, Membership

HOLD_S = 10.0
"""A loss of more than half from an API or DNS waits this long for one confirmation at most."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A loss that waits for confirmation, and since when (monotonic seconds)."""

    members: tuple[Member, ...]
    since: float


@dataclass(frozen=True, slots=True)
class Selected:
    """The snapshot in force, what is held back, the journal's verb, and the reason."""

    members: tuple[Member, ...]
    holding: Holding | None
    decision: str
    why: str


def select(current: tuple[Member, ...], fresh: Membership, holding: Holding | None, now: float) -> Selected:
    """Decide between the members in force and a fresh full snapshot."""
    members = tuple(sorted(set(fresh.members)))
    if not members:
        kept = f"the last full set of {len(current)} stays" if current else "there is none to keep"
        return Selected(current, None, "suppress", f"{fresh.source} names no members; {kept}")
    if members == current:
        return Selected(current, None, "none", f"{fresh.source} says the same {len(current)} members")
    there = {_who(m) for m in members}
    lost = [m for m in current if _who(m) not in there]
    if not fresh.by_person and len(lost) >= 2 and len(lost) * 2 > len(current):
        if holding is None or holding.members != members:
            # A view that keeps changing is not confirmed, but it cannot hold for ever either.
            since = holding.since if holding is not None else now
            if now - since < HOLD_S:
                why = f"{fresh.source} lost {len(lost)} of {len(current)} members at once; held until it says so again, {HOLD_S:g} s at most"
                return Selected(current, Holding(members, since), "hold", why)
        why = f"{fresh.source} confirmed the loss of {len(lost)} of {len(current)} members"
        return Selected(members, None, "act", why)
    return Selected(members, None, "act", _difference(current, members, fresh.source))


def hold_left(holding: Holding, now: float) -> float:
    """Seconds until the loss counts without another confirmation: by then the source must be read again."""
    return max(0.0, holding.since + HOLD_S - now)


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

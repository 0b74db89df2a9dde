"""What a look at a service is worth: whether a node may hold its VIP, judged beside what the peers say. Pure.

*The last one standing*: a cause that all nodes share must not take a VIP from all of them. The death or the
silence of the engine itself counts on its own evidence, unless all peers say that theirs is no better;
trouble behind a living engine counts only where a peer says that it is better off.

Imported by the track script, which starts each second: nothing heavier than ``typing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

FRESH_S = 3.0
"""A peer's word about its own death counts for so long."""

LATELY_S = 1.5
"""A peer's word that it is better off counts for so long: an older one may be of the time before the common cause. The track script needs three bad
looks a second apart, so that by the third one such a word is younger than the trouble."""

NOTICE_S = 1.0
"""A peer needs so long to notice the same cause and to say so (its own look times out after 0.4 s, and is heard a few tenths later)."""

KINDS = ("good", "members", "silent", "dead", "draining", "blind")


class Sample(NamedTuple):
    """One look at the local service.

    ``kind``: good; members (the engine answers, the service behind it does not, or has too few members); silent (nothing at all);
    dead (refused); draining (it says that it was told to); blind (the look says nothing about the service). ``usable``: members that
    the engine can use, None when they were not counted.
    """

    kind: str
    why: str
    usable: int | None = None


class Says(NamedTuple):
    """What a peer said of its own service behind the same VIP ``age_s`` seconds ago (None: never). ``can_take``: it would take the VIP now."""

    name: str
    age_s: float | None
    health: str
    usable: int | None
    can_take: bool


def verdict(sample: Sample, peers: Sequence[Says], require: int, fresh_s: float = FRESH_S, *, since_s: float | None = None) -> tuple[bool, str]:
    """Whether this look fails the node, and why.

    ``require`` members are wanted. ``since_s`` is how long the trouble has lasted here, where that is known: a peer that says that it is
    better off must have said so ``NOTICE_S`` after its beginning.
    """
    if sample.kind in ("dead", "silent"):
        return _own(sample, peers, fresh_s)
    if sample.kind == "members":
        return _behind(sample, peers, require, LATELY_S if since_s is None else min(LATELY_S, since_s - NOTICE_S))
    if sample.kind == "draining":
        return False, f"{sample.why}; a service that was told to drain does not move its VIP by itself"
    if sample.kind == "blind":
        return False, f"{sample.why}; this says nothing about the service"
    return False, sample.why


def _own(sample: Sample, peers: Sequence[Says], fresh_s: float) -> tuple[bool, str]:
    heard = [peer for peer in peers if peer.age_s is not None and peer.age_s <= fresh_s]
    if peers and len(heard) == len(peers) and all(_no_better(peer) for peer in heard):
        return False, f"{sample.why}; kept all the same: {_names(peers)} freshly say{_s(peers)} that no other node is better off"
    return True, sample.why


def _no_better(peer: Says) -> bool:
    return peer.health in ("dead", "silent") or not peer.can_take


def _behind(sample: Sample, peers: Sequence[Says], require: int, fresh_s: float) -> tuple[bool, str]:
    heard = [peer for peer in peers if peer.age_s is not None and peer.age_s <= fresh_s]
    better = [peer for peer in heard if _better(sample, peer, require)]
    if better:
        return True, f"{sample.why}; {_names(better)} {'is' if len(better) == 1 else 'are'} better off"
    if not heard:
        return False, f"{sample.why}; kept all the same: no peer was heard of lately"
    return False, f"{sample.why}; kept all the same: no peer says that it is better off"


def _better(sample: Sample, peer: Says, require: int) -> bool:
    """Counts are compared where they are the trouble; with none of its own left, a node is worse off than one that has any."""
    if not peer.can_take:
        return False
    few = sample.usable is not None and sample.usable < require
    if few and peer.usable is not None and peer.usable <= (sample.usable or 0):
        return False
    if peer.health == "good":
        return True
    return few and sample.usable == 0 and peer.health == "members" and (peer.usable or 0) > 0


def _names(peers: Iterable[Says]) -> str:
    return ", ".join(peer.name for peer in peers)


def _s(peers: Sequence[Says]) -> str:
    return "s" if len(peers) == 1 else ""


def heard(tree: object, vip: str, now: float) -> tuple[Says, ...]:
    """What ``peers.json`` says about a VIP at monotonic time ``now``; what cannot be read as it should be was never said."""
    peers = tree.get("peers") if isinstance(tree, dict) else None
    if not isinstance(peers, dict):
        return ()
    return tuple(_says(str(name), entry if isinstance(entry, dict) else {}, vip, now) for name, entry in peers.items())


def _says(name: str, entry: dict[str, object], vip: str, now: float) -> Says:
    at, vips = entry.get("mono"), entry.get("vips")
    said = vips.get(vip) if isinstance(vips, dict) else None
    age = now - at if isinstance(at, int | float) and not isinstance(at, bool) and at <= now else None
    if not isinstance(said, dict):
        return Says(name, None, "unknown", None, can_take=True)
    health, usable = said.get("health"), said.get("usable")
    return Says(
        name,
        age,
        health if isinstance(health, str) else "unknown",
        usable if isinstance(usable, int) and not isinstance(usable, bool) else None,
        said.get("can_take") is True,
    )

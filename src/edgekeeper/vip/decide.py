"""What is done about a VIP, from what is seen of it: cover it, uncover it, take it away, yield it. Pure.

A *cover* (shadow address) is the VIP once more, on the loopback interface: the node goes on answering
clients that still send to it, and claims nothing on the wire. It bridges the time between letting go
and the moment when another node's gratuitous ARP has moved the clients: 0 of 500 queries/s lost where
letting go alone lost 133 (keepalived 2.3.4, priorities 200/190).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

SETTLE_S = 0.1
"""From the peer's first advert until the cover goes: its gratuitous ARPs have moved the clients (0 lost measured at 500/s, advert_int 1 and 0.1)."""

JUST_S = 0.5
"""An address that left its interface so recently still has clients that send here."""

BOTH_S = 2.0
"""So long a node that steps back from a VIP that two owned covers it: the owner that stays learns of it only when it asks (each 0.5 s), and announces itself then."""

TWO_OWNERS_S = 0.7
"""Two nodes own a VIP for a moment at each hand-over (tens of milliseconds); longer is an alarm. Within 2 s it must be told."""


class Act(StrEnum):
    """What to do about one VIP."""

    NOTHING = "nothing"
    COVER = "cover"
    UNCOVER = "uncover"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Sight:
    """One VIP at one moment; times are seconds ago, None is never.

    ``held``: the kernel has it on its interface. ``covered``: since when the cover is up. ``left``: since when
    it is no longer held. ``peer``: the last advert of a peer that owns it, ``peer_new`` the first one of its present
    ownership. ``dead``: the local service is dead or silent. ``running``: keepalived runs. ``busy``: a hand-over is under way, which
    takes its cover away itself. ``deadline_s``: how long a cover may stay. ``advert_s``: its advert interval.
    """

    held: bool
    covered: float | None = None
    left: float | None = None
    peer: float | None = None
    peer_new: float | None = None
    dead: bool = False
    running: bool = True
    busy: bool = False
    deadline_s: float = 10.0
    advert_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and why."""

    act: Act
    why: str


def peer_owns(sight: Sight) -> bool:
    """Whether a peer announces itself as the owner now: its last advert is younger than an interval and a half."""
    return sight.peer is not None and sight.peer < 1.5 * sight.advert_s + 0.2


def decide(sight: Sight) -> Decision:
    """What to do about a VIP."""
    if sight.covered is not None:
        return _covered(sight, sight.covered)
    if not sight.running and sight.held:
        if sight.dead:
            return Decision(
                Act.REMOVE, "keepalived is gone and so is the service; the address is taken away at once, so that a peer's clients are not drawn here"
            )
        if peer_owns(sight):
            return Decision(Act.REMOVE, "keepalived is gone and a peer has announced itself as the owner; the address that was left behind is taken away")
        return Decision(Act.NOTHING, "keepalived is gone, the address stays until a peer owns it: the service still answers")
    if not sight.held and not sight.dead and sight.left is not None and sight.left < JUST_S:
        return Decision(Act.COVER, "the VIP has left its interface and its clients are not elsewhere yet")
    return Decision(Act.NOTHING, "nothing to do")


def _covered(sight: Sight, covered: float) -> Decision:
    if sight.dead:
        return Decision(Act.UNCOVER, "the local service is dead; a cover would only hide that")
    if sight.busy:
        return Decision(Act.NOTHING, "a hand-over is under way and looks after its cover")
    if sight.held and sight.running:
        if covered < SETTLE_S:
            return Decision(Act.NOTHING, "it is held again; the cover stays for a moment")
        return Decision(Act.UNCOVER, "this node holds the VIP again")
    if peer_owns(sight) and sight.peer_new is not None and sight.peer_new >= SETTLE_S:
        if sight.left is not None and sight.peer_new > sight.left and covered < BOTH_S:
            return Decision(Act.NOTHING, "both nodes owned the VIP; clients that came here stay answered until the other one has told the network")
        return Decision(Act.UNCOVER, "a peer owns the VIP and has told the network")
    if covered >= sight.deadline_s:
        return Decision(Act.UNCOVER, f"nobody took the VIP within {sight.deadline_s:g} s; the cover ends here")
    return Decision(Act.NOTHING, "waiting for an owner")


@dataclass(frozen=True, slots=True)
class Peering:
    """What is known of the peers of one VIP: how many there are, those that can take it, those that cannot and why, and those that nobody heard of lately."""

    able: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    why: str = ""
    holders: tuple[str, ...] = ()


def may_let_go(vip: str, peers: Peering, *, force: bool) -> str | None:
    """Why a VIP must not be handed over, or None."""
    if peers.able or force:
        return None
    if peers.unknown and not peers.unable:
        return f"no peer says that it could take {vip}: {', '.join(peers.unknown)} cannot be heard; give it an ops address, or say --force"
    because = f" ({peers.why})" if peers.why else ""
    told = [
        f"{', '.join(peers.unable)} cannot take it{because}" if peers.unable else "",
        f"{', '.join(peers.unknown)} cannot be heard" if peers.unknown else "",
    ]
    return f"nobody could take {vip}: {'; '.join(t for t in told if t) or 'there is no peer'}; --force does it all the same"


def settled_weight(priority: int, lowest: int, *, nopreempt: bool) -> int:
    """What a settled owner takes off its priority, so that it announces a lower one than any other node has; 0 where that cannot be.

    A node that was frozen wakes up as the owner and announces itself at once. Were its priority the higher one, the peer that took over
    would step back, whatever ``nopreempt`` says: two moves for nothing. Where backups do not preempt, nothing else comes of it: how long a
    backup waits follows from its own priority.
    """
    return priority - lowest + 1 if nopreempt and lowest > 1 else 0


def settled(*, held: bool, held_s: float, advert_s: float, contested: bool, heard_since: Sequence[bool | None]) -> bool:
    """Whether an owner has settled: nobody contests it, and every peer has been heard since it became the owner.

    ``heard_since`` says of each peer whether it was; None is one that cannot be asked. Where there is such a one, or nobody is known, three adverts must have passed.
    """
    if not held or contested or any(heard is False for heard in heard_since):
        return False
    return (bool(heard_since) and None not in heard_since) or held_s > 3 * advert_s


def contest(*, held: bool, before: bool, unheard: bool, claimed: bool) -> tuple[bool, bool]:
    """Whether an owner's VIP is contested now (a peer claims it too, or cannot be heard and may), and whether a contest has just ended with it the owner."""
    if not held:
        return False, False
    now = unheard or claimed
    return now, before and not now


def yields(*, gap_s: float, held: bool, heard_since: bool, peer_holds: bool) -> str | None:
    """Why a node that was frozen for ``gap_s`` must yield a VIP, or None.

    ``heard_since``: a peer has announced itself as the owner after the thaw; ``peer_holds``: it says so in its status. When neither is so the
    peer has stepped back, or never came: then nothing may move once more.
    """
    if held and (heard_since or peer_holds):
        return f"this node was frozen for {gap_s:.1f} s and a peer owns the VIP since; yielding until the peers are heard"
    return None


def two_owners(*, held: bool, held_s: float, adverts: int, advert_span_s: float, claims: tuple[str, ...], claims_s: float) -> str | None:
    """The alarm about two owners, or None. ``adverts`` were heard in the last ``advert_span_s`` seconds while we held it; ``claims`` are peers that say so."""
    if not held or held_s < TWO_OWNERS_S:
        return None
    if claims and claims_s >= TWO_OWNERS_S:
        return f"{', '.join(claims)} say{'s' if len(claims) == 1 else ''} that it holds the VIP too"
    if adverts >= 2 and advert_span_s >= TWO_OWNERS_S:
        return "adverts of another owner arrive while this node owns it"
    return None

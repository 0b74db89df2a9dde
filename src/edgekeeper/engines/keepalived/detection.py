"""How long keepalived takes to move a VIP once its service fails or hangs: the sum, from the figures of its config. Pure.

With I the interval, T the time that one look takes until it has failed, P the time from one look to the next
(``period``: the interval, or as many of them as a look is longer than), and S the skew of the node that takes over:

    from  (fall - 1) x P + T          the service dies just before a look
    to    I + (fall - 1) x P + T      it dies just after one

and then S where a failure means FAULT (weight 0: the owner says priority 0), or from two to three adverts and S where it only
lowers the priority (the others ignore its adverts from then on, and wait as for a dead one).

A look that keepalived ends at its ``timeout`` (SIGTERM, after 2 s SIGKILL) counts by how its program ends: died of it, or ended
with another code than 0, it has failed; a program that catches SIGTERM and ends with 0, as ``dig`` does, has **succeeded**, so that
a hang never moves anything (2.2.7 and 2.3.4: not in 14 s, not in 21 s). A look that is still running when the next one is due is
not started again: with ``timeout`` as long as ``interval`` every second one is left out (2.3.4).

Measured from the fault to FAULT, or to the move of the VIP, interval 1 and fall 3 unless said: fails at once 2.5 s (the sum with its
skew says 2.3 to 3.3); gives up by itself after 0.9 s: 3.8 s (3.2 to 4.2); takes 1.03 s, timeout 2: 6.2 s (5.3 to 6.3); interval 3, the
same: 7.7 s (7.3 to 10.3); hangs with timeout 1: 3.3 s on 2.2.7, 5.3 s on 2.3.4 (3 to 6); ignores SIGTERM: 11.3 s on 2.3.4 (9 to 12).
Interval 3, fall 10, weight -2 with priorities 101 and 100: fails at once 31.3 s (29.6 to 33.6), gives up after 2 s 34.3 s (31.6 to 35.6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgekeeper.model.vrrp import skew_s

DOWN_ADVERTS = 3
KILL_AFTER_S = 2.0
"""From SIGTERM to SIGKILL of a look that does not end (2.2.7, 2.3.4)."""


@dataclass(frozen=True, slots=True)
class Move:
    """Seconds from a fault to the move of the VIP, at least and at most (infinite: it never moves), and the sum as a person reads it."""

    least_s: float
    most_s: float
    text: str

    @property
    def is_never(self) -> bool:
        """Whether the VIP stays for ever."""
        return math.isinf(self.most_s)


def never(why: str) -> Move:
    """A fault that moves nothing."""
    return Move(math.inf, math.inf, why)


def skew(priority: int, advert_s: float, version: int = 3) -> float:
    """Seconds that a backup of this priority waits once the owner has let go. VRRPv2 counts it in whole seconds, whatever the advert interval."""
    return skew_s(priority, advert_s if version == 3 else 1.0)


def period(interval_s: float, takes_s: float) -> tuple[float, float]:
    """Least and most seconds from the begin of one look to that of the next, when one takes ``takes_s``.

    A look that ends just when the next is due may keep it from being started or not.
    """
    if interval_s <= 0:
        return takes_s, takes_s
    many = takes_s / interval_s
    return max(1, math.ceil(many)) * interval_s, (math.floor(many) + 1) * interval_s


def probe_sum(
    interval_s: float,
    fall: int,
    takes_s: float,
    skew_s: float,
    *,
    weight: int = 0,
    advert_s: float = 1.0,
    down_adverts: int = DOWN_ADVERTS,
    delay_s: float = 0.0,
    skew_least_s: float | None = None,
) -> Move:
    """How long it is from a fault of the service to the move of its VIP.

    ``takes_s``: how long one look at the dead service takes until it has failed (0: at once; the script's own limit or keepalived's
    ``timeout`` when it hangs). ``skew_s``: of the node that takes over, see ``skew``; ``skew_least_s`` where its priority is not known.
    ``weight``: 0 means FAULT, anything else that the priority is lowered, by enough (``why_stays``). ``delay_s``: its ``preempt_delay``.
    """
    short, long = period(interval_s, takes_s)
    least = (fall - 1) * short + takes_s + (skew_s if skew_least_s is None else skew_least_s)
    most = interval_s + (fall - 1) * long + takes_s + skew_s
    parts = [f"{interval_s:g} s x {fall}" if long == interval_s else f"{interval_s:g} s + {fall - 1} x {long:g} s (each look takes longer than the interval)"]
    if takes_s:
        parts.append(f"{takes_s:g} s for the last look")
    if weight:
        least += (down_adverts - 1) * advert_s + delay_s
        most += down_adverts * advert_s + delay_s
        parts.append(f"{down_adverts} x {advert_s:g} s adverts")
        if delay_s:
            parts.append(f"{delay_s:g} s preempt_delay")
    parts.append(f"{skew_s:.2g} s skew")
    return Move(round(least, 6), round(most, 6), " + ".join(parts))


def why_stays(failed: int, others: tuple[tuple[int, bool], ...]) -> str | None:
    """None when an owner whose priority has sunk to ``failed`` loses its VIP; else why not.

    ``others``: priority and ``nopreempt`` of each other node while it is well. A backup takes over only from an owner whose priority
    is lower than its own, and never with ``nopreempt``.
    """
    if any(priority > failed and not keeps for priority, keeps in others):
        return None
    best = max((priority for priority, _ in others), default=0)
    if best > failed:
        return f"{failed} is less than {best}, but nopreempt keeps every other node from taking over"
    return f"{failed} is still {'more than' if failed > best else 'as much as'} the {best} of the best other node"

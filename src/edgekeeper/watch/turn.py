"""Whose turn it is: two members of a group are never cured at once, unless both are dead and the other's proof was waited for. Pure.

There is no consensus behind this, only a fixed order and fresh evidence, after Dekker's algorithm. Who wants to cure announces it in
its status, and goes on only when it has read the status of every sibling after it was announced: of two that want at the same time
at least one has then read the other's wish. The later in the order yields, and announces that as well; the earlier goes on once it
has read so. Who has yielded announces its wish anew before it goes. Nobody waits longer than ``wait_s`` for the same sibling, nor
longer than that for each sibling in all: a member that is dead and has waited so long has nothing to lose. (A sibling that only
wants to cure is not yet waited for while it waits itself, for one that cures.)

Where a Lease of a cluster is there, it decides between those who can ask for it, and this order only between them and those who cannot: who
holds the Lease passes over the wishes of siblings that need it too, and over those that are not heard. A sibling that cannot ask for it says so,
announces its wish anew at that moment, and is dealt with as if there were no Lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from edgekeeper.watch.siblingsay import UNHEARD_S, SiblingView, SiblingWatch

WAIT_S: Final = 15.0
"""The longest wait for a sibling's proof, when the config does not say."""

ASKED_S: Final = 3.0
"""The last question to a sibling that is not heard must not be older: else this node itself stood still, and knows nothing."""

SETTLE_S: Final = 3.0
"""Who has waited long enough yields no more so much earlier: when it goes, that sibling has read so, or has begun on what it had read before."""

_BETWEEN = frozenset({"quiet", "armed", "blind", "unknown"})
"""States in which a watch that has cured a moment ago is neither curing nor known to have failed: its process was started anew since."""


@dataclass(frozen=True, slots=True)
class Mine:
    """This member's wish, in monotonic times: since when it ``wished``, and since when the siblings could read that it does not yield.

    ``yields``: it lets another one go first, and says so. ``blocked`` holds since when each sibling has been in the way.
    """

    wished: float
    announced: float
    yields: bool = False
    blocked: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether it is this member's turn, and why. ``until``: when it will be at the latest."""

    allowed: bool
    why: str
    until: float | None
    mine: Mine

    @property
    def yields(self) -> bool:
        """Whether this member lets another one go first."""
        return self.mine.yields


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """A sibling in the way until then (None: as long as anybody is waited for). ``ahead``: it goes first, so that this member yields."""

    why: str
    until: float | None = None
    ahead: bool = False
    unread: bool = False
    only_wants: bool = False


def wish(now: float) -> Mine:
    """A wish that arises now; it is announced by being shown in the status."""
    return Mine(now, now)


def turn(
    me: str,
    order: Sequence[str],
    group: str,
    mine: Mine,
    siblings: Mapping[str, SiblingView],
    now: float,
    wait_s: float = WAIT_S,
    answers: Mapping[str, float] | None = None,
    *,
    leased: bool = False,
) -> Turn:
    """Whether ``me`` may cure now; the ``mine`` of the answer must be shown in the status from now on. ``leased``: it holds the group's Lease.

    ``answers`` tells when this node asked a sibling's service itself and was answered well: a service that answers is not being
    cured by a node that cannot be heard.
    """
    others = [name for name in order if name != me]
    place = order.index(me) if me in order else len(order)
    deadline = mine.wished + wait_s * len(others)
    views = [siblings.get(name, SiblingView(name, now, why="it is not known here", mute=True)) for name in others]
    found = [
        (view.node, obstacle)
        for at, view in enumerate(views)
        if (obstacle := _obstacle(view, group, mine.announced, now, wait_s, earlier=at < place, answered_here=(answers or {}).get(view.node), leased=leased))
    ]
    settle_s = min(SETTLE_S, wait_s / 2)
    blocked: dict[str, float] = {}
    obstacles: list[tuple[_Obstacle, float]] = []
    waited: list[str] = []
    for name, obstacle in sorted(found, key=lambda each: each[1].only_wants):
        waits_itself = obstacle.only_wants and any(not other.only_wants and not other.unread for other, _ in obstacles)
        blocked[name] = now if waits_itself else mine.blocked.get(name, now)
        until = min(deadline, blocked[name] + wait_s)
        insists = now >= until - settle_s
        until = min(max(until, mine.announced + settle_s) if insists else until, obstacle.until or float("inf"))
        if now < until:
            obstacles.append((replace(obstacle, ahead=obstacle.ahead and not insists), until))
        else:
            waited.append(f"{name} was waited for {now - blocked[name]:.1f} s ({obstacle.why})")
    mine = replace(mine, blocked=blocked)
    ahead = any(o.ahead and (mine.yields or not o.unread) for o, _ in obstacles)
    latest = max((until for _, until in obstacles), default=None)
    why = "; ".join(o.why + ("" if o.unread else f", it is waited for {until - now:.1f} s more at most") for o, until in obstacles)
    if mine.yields and not ahead:
        return Turn(False, why or "it yields no more, and asks whether that is known", latest, replace(mine, yields=False, announced=now))
    if obstacles:
        return Turn(False, why, latest, replace(mine, yields=ahead))
    return Turn(True, "; ".join(waited) or "no sibling wants to cure, or does", None, mine)


def _obstacle(
    view: SiblingView, group: str, announced: float, now: float, wait_s: float, *, earlier: bool, answered_here: float | None, leased: bool
) -> _Obstacle | None:
    watches = view.of(group)
    name = view.node
    if view.answered is not None and view.asked is not None and now - view.answered < UNHEARD_S:
        if view.asked < announced:
            return _Obstacle(f"{name} is being asked whether it cures", ahead=earlier, unread=True)
        found = (_busy(name, watch, view.answered, now, wait_s, earlier=earlier, leased=leased) for watch in watches)
        return min((o for o in found if o is not None), key=lambda o: (not o.ahead, -(o.until or now + wait_s)), default=None)
    if not leased and not view.mute and (view.tried is None or view.tried < announced or now - view.tried >= ASKED_S or now - view.since < UNHEARD_S):
        return _Obstacle(f"{name} is being asked whether it cures", ahead=earlier, unread=True)
    last = view.answered
    if answered_here is not None and answered_here >= announced and (last is None or answered_here > last):
        return None
    ago = f"for {now - last:.1f} s" if last is not None else "yet"
    silent = f"{name} has not been heard {ago}" + (f" ({view.why})" if view.why else "")
    for watch in watches if last is not None else ():
        if (watch.curing or (watch.wants and not watch.yields and not leased)) and last is not None:
            until = (last - (watch.curing_s or 0.0) if watch.curing else last) + wait_s
            if now < until:
                return _Obstacle(f"{silent} and {'was curing' if watch.curing else 'wanted to cure'} then", until, ahead=earlier)
    return _Obstacle(f"{silent} and would go first", ahead=True) if earlier and not leased else None


def _busy(name: str, watch: SiblingWatch, answered: float, now: float, wait_s: float, *, earlier: bool, leased: bool) -> _Obstacle | None:
    """What a sibling that is heard does with one watch that is in the way."""
    if watch.curing:
        began = answered - (watch.curing_s or 0.0)
        if now < began + wait_s:
            return _Obstacle(f"{name} has been curing for {max(0.0, now - began):.1f} s and is not proved yet", began + wait_s, ahead=earlier)
        return None
    if watch.wants and not watch.yields and not (leased and watch.by_lease):
        if earlier:
            return _Obstacle(f"{name} wants to cure as well and goes first", ahead=True, only_wants=True)
        return _Obstacle(f"{name} wants to cure as well and has not yielded yet", only_wants=True)
    if watch.state in _BETWEEN and watch.spent_s:
        cured = answered - watch.spent_s[0]
        proved = watch.well is True and watch.probed_s is not None and watch.probed_s < watch.spent_s[0]
        if now < cured + wait_s and not proved:
            return _Obstacle(f"{name} has cured {now - cured:.1f} s ago and has not shown yet that it helped", cured + wait_s, ahead=earlier)
    return None

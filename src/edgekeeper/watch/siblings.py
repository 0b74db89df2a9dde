"""The other members of a watch's group: what they say, asked all the time, and this member's place among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from edgekeeper.config.ops import Ops, Peer
from edgekeeper.peers import UNASKED, Polling, within
from edgekeeper.ports import Clock
from edgekeeper.watch.siblingsay import EVERY_S, SiblingView, said
from edgekeeper.watch.turn import WAIT_S, Mine, Turn, turn, wish

WANTING_EVERY_S = 0.1
"""Between two questions to a sibling while a cure is wanted here: the turn is decided by what they answer."""

AWAKE_EVERY_S = 0.25
"""The same while this node is armed or proves a cure, and siblings probe it."""

PATIENCE_S = 0.4
"""How long ``may`` waits for answers that change something; who asks comes again each half second."""


class Lease(Protocol):
    """A group's Lease somewhere: ``standing`` is one of ``siblingsay.BY_LEASE``, ``away``, or "" while nothing is wanted; ``why`` the sentence."""

    why: str

    @property
    def standing(self) -> str:
        """How it stands now; ``held`` is true at the moment of the question."""

    def want(self) -> None:
        """Campaign for it, until ``rest``."""

    def cures(self) -> None:
        """A cure begins; it is given back when that is proved, or after the wait that others grant."""

    def rest(self) -> None:
        """Give it back."""

    def tell(self, news: Callable[[], None]) -> None:
        """Call this whenever it stands otherwise."""

    async def follow(self) -> None:
        """Do all of that, for ever."""


class _Watches:
    """How nodes speak of their watches."""

    role = "watch"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def every_s(self, nodes: int) -> float:  # noqa: ARG002 - a group is small
        return EVERY_S

    def unasked(self, name: str, why: str) -> SiblingView:
        return SiblingView(name, self._clock.monotonic(), why=why, mute=why != UNASKED)

    def read(self, view: SiblingView, status: int, text: str, asked: float, now: float) -> tuple[SiblingView, bool] | str:
        watches, why = said(view.node, status, text)
        return why or (SiblingView(view.node, view.since, asked, now, asked, "", view.mute, watches), True)


class Siblings:
    """The other nodes that are a member of any group, asked for ever by ``follow``; and the places of this node's watches."""

    def __init__(self, node: str, nodes: Mapping[str, Peer], ops: Ops, clock: Clock, members: Collection[str] = ()) -> None:
        self.node = node
        self.clock = clock
        self._places: dict[str, Place] = {}
        self._polling = Polling(node, _only(nodes, members), ops, clock, _Watches(clock), lambda: None)

    @property
    def views(self) -> Mapping[str, SiblingView]:
        """What is known of each of them."""
        return self._polling.views

    def rewrite(self, nodes: Mapping[str, Peer], ops: Ops, members: Collection[str]) -> None:
        """These are the nodes and the members of all groups now; what those that stay have said is kept."""
        self._polling.rewrite(_only(nodes, members), ops)

    async def follow(self) -> None:
        """Ask them for ever."""
        await self._polling.follow()

    def place(self, watch: str, group: str, members: Sequence[str], wait_s: float = WAIT_S, lease: Lease | None = None) -> Place:
        """The place of a watch of this node in its group; it takes that of a former watch of this name."""
        former = self._places.get(watch)
        self._places[watch] = place = Place(self, watch, group, tuple(members), wait_s, lease)
        place.curing_since = former.curing_since if former is not None else None  # a cure outlives the config that it was begun by
        self.pace()
        return place

    def leave(self, watch: str) -> None:
        """This watch is no more."""
        self._places.pop(watch, None)
        self.pace()

    def beside(self, place: Place) -> list[Place]:
        """The other watches of this node in the same group."""
        return [other for other in self._places.values() if other.group == place.group and other is not place]

    def spent_s(self, group: str) -> tuple[float, ...]:
        """The ages of the cures that siblings told of, youngest first; what one said last counts also when it is not heard any more."""
        now = self.clock.monotonic()
        ages: list[float] = []
        for view in self.views.values():
            if view.answered is not None:
                spent = max((watch.spent_s for watch in view.of(group)), key=len, default=())  # all its watches of a group share a budget
                ages += [age + now - view.answered for age in spent]
        return tuple(sorted(ages))

    def pace(self) -> None:
        """Ask as often as the place that needs it most."""
        self._polling.hasten(min((p.every_s for p in self._places.values() if p.every_s is not None), default=None))

    def heard(self) -> None:
        """Something is known that whoever waits for ``news`` should look at."""
        self._polling.asked.set()

    async def news(self, seconds: float) -> None:
        """Wait until a sibling was asked and has answered, or has not; at most so long."""
        self._polling.asked.clear()
        await within(self._polling.asked, seconds)


def _only(nodes: Mapping[str, Peer], members: Collection[str]) -> dict[str, Peer]:
    return {name: peer for name, peer in nodes.items() if name in members}


class Place:
    """The place of one watch of this node in its group: what it announces, and whether it may cure.

    What ``told`` gives must be served with the status as it is at each question, never from a copy made before.
    """

    def __init__(self, siblings: Siblings, watch: str, group: str, members: tuple[str, ...], wait_s: float, lease: Lease | None = None) -> None:
        self.watch, self.group, self.members, self.wait_s = watch, group, members, wait_s
        self.siblings = siblings
        self.answers: dict[str, float] = {}
        """When this node asked a sibling's service and was answered well (monotonic)."""
        self.mine: Mine | None = None
        self.curing_since: float | None = None
        self.cured_at = float("-inf")
        """When the last cure ended that was begun here."""
        self.turn: Turn | None = None
        self._awake = False
        self.lease = lease
        self._by_order = False
        if lease is not None:
            lease.tell(siblings.heard)

    async def may(self, *, able: bool) -> str | None:
        """Why this member must not cure now, or None: then ``cures`` must be called before anything else is awaited.

        Announces the wish, if it is ``able`` to follow it: who could not act anyhow must not hold up the others. Waits a moment for
        the siblings' answers.
        """
        if not able:
            self.rests()
            return None
        clock = self.siblings.clock
        self.curing_since = None
        if self.mine is None:
            self.mine = wish(clock.monotonic())
            self.siblings.pace()
        if self.lease is not None:
            self.lease.want()
        patience = clock.monotonic() + PATIENCE_S
        while True:
            now = clock.monotonic()
            held, withheld = self._leased(now)
            before = self.mine
            self.turn = turn(self.siblings.node, self.members, self.group, before, self.siblings.views, now, self.wait_s, self.answers, leased=held)
            self.mine = self.turn.mine
            if self.mine.announced != before.announced:
                self.siblings.pace()
            beside = self._beside(now) or withheld
            if self.turn.allowed and beside is None:
                return None
            if now >= patience:
                return beside or self.turn.why
            await self.siblings.news(patience - now)
            if self._withdrawn():
                return "the wish was withdrawn meanwhile"

    def _leased(self, now: float) -> tuple[bool, str | None]:
        """Whether this member holds the group's Lease, and why it waits for it. Without it the siblings must read anew that this member goes by the order."""
        standing = self.lease.standing if self.lease is not None else "away"
        if standing == "away" and self.lease is not None and not self._by_order and self.mine is not None:
            self.mine = replace(self.mine, announced=now)
            self.siblings.pace()
        self._by_order = standing == "away"
        if standing in {"held", "away"} or self.lease is None:
            return standing == "held", None
        return False, self.lease.why or "the group's Lease is asked for"

    def _withdrawn(self) -> bool:
        return self.mine is None

    def _beside(self, now: float) -> str | None:
        for other in self.siblings.beside(self):
            if other.curing_since is not None and now < other.curing_since + self.wait_s:
                return f"{other.watch} on this node has been curing for {now - other.curing_since:.1f} s and is not proved yet"
        return None

    def outdated(self, asked: float) -> str | None:
        """Why rounds that were asked until then say nothing any more, or None: another watch of this node has cured since, maybe the same service."""
        later = next((other for other in self.siblings.beside(self) if other.cured_at > asked), None)
        return f"{later.watch} on this node has cured since the last round was asked" if later is not None else None

    def cures(self) -> None:
        """A cure begins now; it stays under way until ``rests``, or until another one is wished for."""
        self.curing_since = self.siblings.clock.monotonic()
        self.mine = self.turn = None
        if self.lease is not None:
            self.lease.cures()
        self.siblings.pace()

    def rests(self) -> None:
        """Nothing is wanted, and no cure is under way: none was, or it was proved, or has failed."""
        if self.curing_since is not None:
            self.cured_at = self.siblings.clock.monotonic()
        if self.mine is not None or self.curing_since is not None:
            self.mine = self.turn = self.curing_since = None
            if self.lease is not None:
                self.lease.rest()
            self.siblings.pace()

    def wakes(self, *, awake: bool) -> None:
        """Whether the siblings' answers about this node are needed quickly: it is armed, or proves a cure."""
        if awake != self._awake:
            self._awake = awake
            self.siblings.pace()

    @property
    def every_s(self) -> float | None:
        """How often the siblings should be asked; None is as often as usual."""
        if self.mine is not None:
            return WANTING_EVERY_S
        return AWAKE_EVERY_S if self._awake else None

    def told(self) -> dict[str, Any]:
        """What the status says of it: whether it wants, yields, cures."""
        now = self.siblings.clock.monotonic()
        curing_s = None if self.curing_since is None else round(now - self.curing_since, 3)
        return {
            "group": self.group,
            "members": list(self.members),
            "wants": self.mine is not None,
            "yields": self.mine is not None and self.mine.yields,
            "curing": self.curing_since is not None,
            "curing_s": curing_s,
            "turn": self.turn.why if self.turn is not None else "",
        } | ({"lease": self.lease.standing} if self.lease is not None else {})

    def doubt(self) -> str | None:
        """What is wrong with the group as this node sees it now, for an alarm; None when nothing is."""
        now = self.siblings.clock.monotonic()
        if self.lease is not None and self.lease.standing == "away":
            return self.lease.why
        return next((why for name in self.members if name != self.siblings.node and (why := self._doubt(name, now))), None)

    def _doubt(self, name: str, now: float) -> str | None:
        view = self.siblings.views.get(name)
        if view is None:
            return f"{name} is a member of group {self.group} but not in nodes:; what it does is not known here, and a later member waits each time"
        if view.mute or (view.answered is None and now - view.since > self.wait_s) or (view.answered is not None and now - view.answered > self.wait_s):
            ago = f"for {now - view.answered:.0f} s" if view.answered is not None else "yet"
            reason = f" ({view.why})" if view.why else ""
            return f"{name} has not been heard {ago}{reason}; what it does is not known here, and a later member waits each time"
        if view.answered is None:
            return None
        watches = view.of(self.group)
        if not watches:
            return f"{name} has no watch of group {self.group}; members of a group must be the same on all nodes"
        orders = {watch.members for watch in watches} - {self.members}
        return f"{name} knows other members of group {self.group}, or another order; they must be the same on all nodes" if orders else None

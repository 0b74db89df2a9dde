"""Never two members at once while they hear each other; nobody waits for ever."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.siblingsay import SiblingView, SiblingWatch
from edgekeeper.watch.turn import SETTLE_S, Mine, Turn, turn, wish

WAIT_S = 15.0
LOOK_S = 0.5
NOW = 1000.0


def watch(**said: object) -> SiblingWatch:
    return replace(SiblingWatch(group="mesh", state="quiet", well=True, probed_s=0.5), **said)  # type: ignore[arg-type]


def view(name: str, *, ago: float = 0.1, asked: float = 0.05, **said: object) -> SiblingView:
    """A sibling that answered so long ago; asked so much before."""
    answered = NOW - ago
    return SiblingView(name, 0.0, answered - asked, answered, answered - asked, "", watches={"proxy": watch(**said)})


def lost(seen: SiblingView, why: str = "refused", *, tried: float = NOW - 0.1) -> SiblingView:
    return seen.failing(why, tried)


def ask(me: str, *siblings: SiblingView, mine: Mine | None = None, order: tuple[str, ...] = ("a", "b"), now: float = NOW, **more: object) -> Turn:
    mine = mine or wish(NOW - 0.5)
    return turn(me, order, "mesh", mine, {s.node: s for s in siblings}, now, WAIT_S, **more)  # type: ignore[arg-type]


def test_nobody_goes_on_an_answer_that_was_asked_for_before_the_wish_was_announced() -> None:
    before = ask("a", view("b", ago=0.1, asked=0.05), mine=wish(NOW - 0.12))
    assert (before.allowed, before.why) == (False, "b is being asked whether it cures")
    assert ask("a", view("b", ago=0.1, asked=0.01), mine=wish(NOW - 0.12)).allowed


@pytest.mark.parametrize("me", ["a", "b"])
def test_a_sibling_that_is_well_or_down_without_a_wish_holds_nobody_up(me: str) -> None:
    other = "b" if me == "a" else "a"
    assert ask(me, view(other)).allowed
    assert ask(me, view(other, state="wanted", well=False)).allowed  # held back by its budget, say
    assert ask(me, view(other, state="armed", well=False)).allowed


def test_the_later_yields_to_the_earlier_and_the_earlier_goes_once_it_has_read_so() -> None:
    later = ask("b", view("a", wants=True))
    assert (later.allowed, later.yields) == (False, True)
    assert later.why == "a wants to cure as well and goes first, it is waited for 14.5 s more at most"
    earlier = ask("a", view("b", wants=True))
    assert (earlier.allowed, earlier.yields) == (False, False)
    assert "b wants to cure as well and has not yielded yet" in earlier.why
    assert ask("a", view("b", wants=True, yields=True)).allowed


def test_who_has_yielded_announces_anew_before_it_goes() -> None:
    yielding = ask("b", view("a", wants=True)).mine
    again = ask("b", view("a"), mine=yielding)
    assert (again.allowed, again.yields, again.mine.announced) == (False, False, NOW)
    assert not ask("b", view("a"), mine=again.mine).allowed  # that was asked for before
    assert ask("b", replace(view("a"), asked=NOW + 0.01, answered=NOW + 0.02), mine=again.mine, now=NOW + 0.03).allowed


def test_a_cure_is_waited_for_until_its_proof_and_no_longer_than_so() -> None:
    for me, other in (("a", "b"), ("b", "a")):
        held = ask(me, view(other, curing=True, curing_s=3.0))
        assert not held.allowed
        assert held.until == pytest.approx(NOW - 0.1 - 3.0 + WAIT_S)
        assert "has been curing for 3.1 s and is not proved yet, it is waited for 11.9 s more at most" in held.why
        assert ask(me, view(other, curing=True, curing_s=WAIT_S)).allowed
        assert not ask(me, view(other, curing=True)).allowed
        assert not ask(me, view(other, state="quiet", well=False, spent_s=(2.0,))).allowed  # its process was started anew in the middle of it
        assert not ask(me, view(other, well=True, probed_s=2.5, spent_s=(2.0,))).allowed  # that answer was before the cure
        assert ask(me, view(other, well=True, probed_s=0.5, spent_s=(2.0,))).allowed
        assert ask(me, view(other, state="wanted", well=False, spent_s=(2.0,))).allowed  # it says itself that it did not help


def test_of_a_sibling_that_is_not_heard_the_first_goes_at_once_and_the_other_waits() -> None:
    gone = lost(view("b", ago=20.0))
    assert ask("a", gone).allowed
    assert ask("a", lost(SiblingView("b", 0.0))).allowed
    held = ask("b", replace(gone, node="a"))
    assert (held.allowed, held.yields) == (False, True)  # if a hears this one, it need not wait
    assert held.why.startswith("a has not been heard for 20.0 s (refused) and would go first, it is waited for 14.5 s more at most")
    waited = replace(held.mine, blocked={"a": NOW - WAIT_S + SETTLE_S}, wished=NOW - WAIT_S + SETTLE_S)
    renewed = ask("b", replace(gone, node="a"), mine=waited)
    assert (renewed.allowed, renewed.yields, renewed.mine.announced) == (False, False, NOW)  # if a hears this one, it does not begin any more
    settled = NOW + SETTLE_S
    soon, went = (ask("b", lost(replace(gone, node="a"), tried=at - 0.1), mine=renewed.mine, now=at) for at in (settled - 0.1, settled))
    assert (soon.allowed, soon.yields, went.allowed) == (False, False, True)
    late = replace(waited, blocked={"a": NOW - WAIT_S}, wished=NOW - WAIT_S)
    assert not ask("b", lost(replace(gone, node="a"), tried=NOW + 0.9), mine=ask("b", replace(gone, node="a"), mine=late).mine, now=NOW + 1.0).allowed
    assert "a was waited for 15.0 s (a has not been heard for 23.0 s (refused) and would go first)" in went.why


def test_what_was_said_last_counts_for_a_sibling_that_is_lost() -> None:
    for me, other in (("a", "b"), ("b", "a")):
        assert "was curing then" in ask(me, lost(view(other, ago=2.0, curing=True, curing_s=1.0))).why
        assert "wanted to cure then" in ask(me, lost(view(other, ago=2.0, wants=True))).why
    assert ask("a", lost(view("b", ago=2.0, wants=True, yields=True))).allowed
    assert ask("a", lost(view("b", ago=14.5, curing=True, curing_s=1.0))).allowed


def test_a_sibling_counts_as_lost_only_after_it_was_asked_in_vain_and_this_node_did_not_stand_still() -> None:
    gone = view("b", ago=20.0)
    assert ask("a", lost(gone)).allowed
    assert not ask("a", gone).allowed
    assert not ask("a", lost(gone, tried=NOW - 0.6)).allowed  # before the wish
    assert not ask("a", lost(gone, tried=NOW - 5.0), mine=wish(NOW - 6.0)).allowed  # we were frozen, or do not ask any more
    assert not ask("a", lost(SiblingView("b", NOW - 0.7))).allowed  # we have only just begun
    assert ask("a", SiblingView("b", 0.0, why="no ops address", mute=True)).allowed


def test_a_service_that_answers_this_node_is_not_being_cured_by_a_node_that_is_not_heard() -> None:
    gone = lost(replace(view("b", ago=20.0), node="a"))
    assert ask("b", gone, answers={"a": NOW - 0.2}).allowed
    assert not ask("b", gone, answers={"a": NOW - 0.7}).allowed  # before the wish


def test_nobody_is_waited_for_longer_than_so_whatever_it_says() -> None:
    mine = replace(wish(NOW - WAIT_S), blocked={"b": NOW - WAIT_S})
    assert ask("a", view("b", wants=True), mine=mine).allowed
    one_of_three = replace(wish(NOW - WAIT_S), blocked={"a": NOW - WAIT_S})
    assert ask("c", view("a", wants=True), view("b"), mine=one_of_three, order=("a", "b", "c")).allowed
    newly = wish(NOW - WAIT_S - 5.0)
    assert not ask("a", view("b", curing=True, curing_s=3.0), view("c"), mine=newly, order=("a", "b", "c")).allowed, "c had been in the way before"
    three = replace(wish(NOW - 2 * WAIT_S), blocked={"b": NOW - 1.0})
    assert ask("a", view("b", wants=True), view("c"), mine=three, order=("a", "b", "c")).allowed


def test_a_sibling_that_only_wants_is_waited_for_once_it_could_go_itself() -> None:
    mine = replace(wish(NOW - 14.0), blocked={"a": NOW - 14.0, "b": NOW - 14.0}, yields=True)
    held = ask("c", view("a", curing=True, curing_s=14.0), view("b", wants=True), mine=mine, order=("a", "b", "c"))
    assert held.mine.blocked == {"a": NOW - 14.0, "b": NOW}


# ---- all of them together, in a world of their own ---------------------------------------------


class Member:
    def __init__(self, name: str, world: World) -> None:
        self.name, self.world = name, world
        self.dead = self.frozen = False
        self.mine: Mine | None = None
        self.cure: float | None = None
        self.views = {other: SiblingView(other, -10.0) for other in world.order if other != name}

    def said(self) -> SiblingWatch:
        cure_s = None if self.cure is None else self.world.now - self.cure
        state = "curing" if self.cure is not None else "wanted" if self.mine else "quiet"
        wants, yields = self.mine is not None, self.mine is not None and self.mine.yields
        return SiblingWatch("mesh", (), state, wants, yields, self.cure is not None, cure_s, not self.dead, 0.5)

    def look(self) -> None:
        if not self.dead or self.cure is not None or self.frozen:
            return
        self.mine = self.mine or wish(self.world.now)
        found = turn(self.name, self.world.order, "mesh", self.mine, self.views, self.world.now, WAIT_S)
        self.mine = found.mine
        longest = WAIT_S * (len(self.world.order) - 1) + 2 * LOOK_S + 0.5
        assert self.world.now - self.mine.wished <= longest, f"{self.name} has waited too long: {found.why}"
        if found.allowed:
            self.world.begins(self, self.world.now - self.mine.wished)


class World:
    """Members whose questions to each other take their time or are lost, and whose cures take theirs or do not help."""

    kind: type[Member] = Member

    def __init__(self, seed: int, n: int, *, lossy: bool) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.lossy = lossy
        self.order = tuple("abc"[:n])
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.cures: list[str] = []
        self.members = {name: self.kind(name, self) for name in self.order}
        together = self.chance.random() < 0.5
        for name, member in self.members.items():
            self.at(5.0 if together else self.chance.uniform(2, 12), lambda m=member: self.dies(m))
            self.at(self.chance.uniform(0, LOOK_S), lambda m=member: self.looks(m))
            for other in self.order:
                if other != name:
                    self.at(self.chance.uniform(0, 0.5), lambda m=member, o=other: self.asks(m, o, failed=False))

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.queue, (when, self.chance.getrandbits(40), what))

    def run(self, until: float) -> None:
        while self.queue[0][0] < until:
            self.now, _, what = heapq.heappop(self.queue)
            what()

    def dies(self, member: Member) -> None:
        member.dead = True

    def looks(self, member: Member) -> None:
        member.look()
        self.at(self.now + LOOK_S, lambda: self.looks(member))

    def asks(self, member: Member, other: str, *, failed: bool) -> None:
        asked, took = self.now, self.chance.uniform(0.001, 0.3)
        if self.lossy and not failed and self.chance.random() < 0.2:
            self.at(asked + took, lambda: self.fails(member, other, asked))
            return
        self.at(asked + took * self.chance.random(), lambda: self.reads(member, other, asked, asked + took))

    def fails(self, member: Member, other: str, asked: float) -> None:
        member.views[other] = member.views[other].failing("lost", asked)
        self.at(self.now + 0.3, lambda: self.asks(member, other, failed=True))

    def reads(self, member: Member, other: str, asked: float, answered: float) -> None:
        said = self.members[other].said()

        def arrives() -> None:
            member.views[other] = SiblingView(other, -10.0, asked, answered, asked, "", watches={"proxy": said})
            if member.mine is not None:
                member.look()
            self.at(self.now + (0.1 if member.mine is not None else 0.5), lambda: self.asks(member, other, failed=False))

        self.at(answered, arrives)

    def begins(self, member: Member, waited: float) -> None:
        for other in self.members.values():
            if other.cure is not None:
                assert other.dead
                assert max(waited, self.now - other.cure) >= WAIT_S - 1e-6, f"{member.name} and {other.name} at once, after {waited:.2f} s"
        member.cure, member.mine = self.now, None
        self.cures.append(member.name)
        self.at(self.now + self.chance.choice([0.5, 3.0, 8.0, 20.0]), lambda: self.ends(member))

    def ends(self, member: Member) -> None:
        member.cure = None
        if self.chance.random() < 0.6:
            member.dead = False
            self.at(self.now + self.chance.uniform(0.5, 30), lambda: self.dies(member))


@given(st.integers(0, 2**32), st.sampled_from([2, 3]), st.booleans())
@settings(max_examples=8, deadline=None)
def test_never_two_at_once_while_they_hear_each_other_and_nobody_waits_for_ever(seed: int, n: int, lossy: bool) -> None:
    world = World(seed, n, lossy=lossy)
    world.run(70.0)
    assert set(world.cures) == set(world.order)


def test_who_holds_the_lease_passes_over_wishes_that_need_it_too_and_over_who_is_not_heard() -> None:
    for me, other in (("a", "b"), ("b", "a")):
        assert ask(me, view(other, wants=True, by_lease=True), leased=True).allowed
        assert not ask(me, view(other, wants=True), leased=True).allowed, "one that cannot ask for the Lease goes by the order"
        assert not ask(me, view(other, curing=True, curing_s=3.0, by_lease=True), leased=True).allowed
        assert ask(me, lost(view(other, ago=20.0)), leased=True).allowed
        assert not ask(me, view(other, ago=0.1, asked=0.05), mine=wish(NOW - 0.12), leased=True).allowed, "it must have been asked since"
        assert not ask(me, lost(view(other, ago=2.0, curing=True, curing_s=3.0)), leased=True).allowed
    assert not ask("b", view("a", wants=True, by_lease=True)).allowed


class Leased(Member):
    """A member that asks for the Lease of ``Cluster``, which it reaches now and then."""

    reaches = True
    lost = 0.0
    term = -100.0
    ordered = False
    standing = ""

    def campaign(self) -> str:
        """How it stands with the Lease."""
        world = self.world
        assert isinstance(world, Cluster)
        if (self.reaches and world.holder in {self.name, ""}) or (world.until <= world.now and self.reaches):
            world.holder, world.until, self.term = self.name, world.now + WAIT_S, world.now
        if world.now - self.term < WAIT_S * 2 / 3:
            return "held"
        if self.reaches:
            return "waits"
        return "asking" if world.now - self.lost < 2.0 else "away"

    def said(self) -> SiblingWatch:
        told = self.campaign() if self.mine is not None else ""
        self.flips(told)
        return replace(super().said(), by_lease=told in {"held", "waits", "asking"})

    def flips(self, standing: str) -> None:
        """Who cannot ask for it any more announces its wish anew."""
        if standing == "away" and not self.ordered and self.mine is not None:
            self.mine = replace(self.mine, announced=self.world.now)
        self.ordered = standing == "away"

    def look(self) -> None:
        if not self.dead or self.cure is not None:
            return
        self.mine = self.mine or wish(self.world.now)
        standing = self.campaign()
        self.flips(standing)
        found = turn(self.name, self.world.order, "mesh", self.mine, self.views, self.world.now, WAIT_S, leased=standing == "held")
        self.mine = found.mine
        if found.allowed and standing in {"held", "away"}:
            self.world.begins(self, self.world.now - self.mine.wished)


class Cluster(World):
    """A world with a Lease that each member reaches at times only."""

    kind = Leased

    def __init__(self, seed: int, n: int) -> None:
        self.holder, self.until = "", -1.0
        super().__init__(seed, n, lossy=False)
        for member in self.members.values():
            assert isinstance(member, Leased)
            self.at(self.chance.uniform(0, 40), lambda m=member: self.cut(m))

    def cut(self, member: Leased) -> None:
        member.reaches, member.lost = not member.reaches, self.now
        self.at(self.now + self.chance.uniform(0.5, 15), lambda: self.cut(member))

    def begins(self, member: Member, waited: float) -> None:
        super().begins(member, waited)
        begun = self.now
        self.at(self.now + WAIT_S, lambda: self.lets_go(member) if member.cure == begun else None)

    def lets_go(self, member: Member) -> None:
        assert isinstance(member, Leased)
        if member.mine is None:
            member.term = -100.0
            if self.holder == member.name and member.reaches:
                self.holder, self.until = "", -1.0

    def ends(self, member: Member) -> None:
        super().ends(member)
        self.lets_go(member)


@given(st.integers(0, 2**32), st.sampled_from([2, 3]))
@settings(max_examples=8, deadline=None)
def test_a_lease_that_each_reaches_at_times_only_never_lets_two_go_at_once(seed: int, n: int) -> None:
    world = Cluster(seed, n)
    world.run(90.0)
    assert set(world.cures) == set(world.order)

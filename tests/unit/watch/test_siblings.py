"""A member's place in its group, without a network: what siblings say is put into the views by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from edgekeeper.config.ops import Ops, Peer
from edgekeeper.watch.onbehalf import OnBehalf, PeerAsker
from edgekeeper.watch.seams import Answer
from edgekeeper.watch.siblings import PATIENCE_S, WANTING_EVERY_S, Place, Siblings
from edgekeeper.watch.siblingsay import Seen, SiblingView, SiblingWatch

NODES = {name: Peer(address="192.0.2.1", ops="http://127.0.0.1:1") for name in ("edge-a", "edge-b", "edge-z")}  # type: ignore[call-arg]


class Clock:
    """Stands still; ``now`` is set by the test."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    def passes(self) -> None:
        """As much time as anybody waits for siblings."""
        self.now += PATIENCE_S


class Scripted:
    """An asker that gives what it is told to."""

    def __init__(self, clock: Clock, *, well: bool = True) -> None:
        self.clock, self.well, self.asked = clock, well, 0

    async def ask(self) -> Answer:
        self.asked += 1
        return Answer(self.well, "it answers" if self.well else "refused", self.clock.now)


def grouped(node: str = "edge-b") -> tuple[Clock, Siblings, Place]:
    clock = Clock()
    siblings = Siblings(node, NODES, Ops(), clock, {"edge-a", "edge-b"})  # type: ignore[call-arg, arg-type]
    return clock, siblings, siblings.place("proxy", "mesh", ("edge-a", "edge-b"))


def says(siblings: Siblings, clock: Clock, watch: SiblingWatch, *, ago: float = 0.0) -> None:
    """Every sibling has said this of its watch, so long ago."""
    for name in siblings.views:
        siblings.views[name] = SiblingView(name, 0.0, clock.now - ago, clock.now - ago, clock.now - ago, "", watches={"proxy": watch})  # type: ignore[index]


async def meanwhile(waiting: Awaitable[str | None], happens: Callable[[], None], siblings: Siblings) -> str | None:
    """What is waited for, with something that happens while it waits; and the news of it."""
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    assert not task.done()
    happens()
    siblings._polling.asked.set()
    return await task


WELL = SiblingWatch("mesh", ("edge-a", "edge-b"), "quiet", well=True, probed_s=0.1)


def test_only_members_of_groups_are_asked() -> None:
    assert list(grouped()[1].views) == ["edge-a"]


def test_a_wish_is_announced_and_decided_by_the_next_answers() -> None:
    async def work() -> None:
        clock, siblings, place = grouped()
        says(siblings, clock, WELL, ago=0.1)
        assert await meanwhile(place.may(able=True), lambda: says(siblings, clock, WELL), siblings) is None
        assert (place.told()["wants"], place.told()["yields"], place.every_s) == (True, False, WANTING_EVERY_S)
        place.cures()
        clock.now += 2.0
        assert (place.told()["wants"], place.told()["curing"], place.told()["curing_s"]) == (False, True, 2.0)
        place.rests()
        assert (place.told()["curing"], place.told()["curing_s"], place.every_s) == (False, None, None)

    asyncio.run(work())


def test_who_could_not_act_withdraws_its_wish_and_holds_nobody_up() -> None:
    async def work() -> None:
        clock, siblings, place = grouped()
        clock.now += 1.0
        says(siblings, clock, SiblingWatch("mesh", state="curing", curing=True, curing_s=0.5))
        held = await meanwhile(place.may(able=True), clock.passes, siblings)
        assert "edge-a has been curing for 0.9 s" in (held or "")
        assert place.told()["yields"]
        assert await place.may(able=False) is None
        assert not place.told()["wants"]

    asyncio.run(work())


def test_a_wish_that_is_withdrawn_while_it_waits_is_not_granted() -> None:
    async def work() -> None:
        clock, siblings, place = grouped()
        says(siblings, clock, WELL, ago=0.1)

        def happens() -> None:
            place.rests()
            says(siblings, clock, WELL)

        assert await meanwhile(place.may(able=True), happens, siblings) == "the wish was withdrawn meanwhile"

    asyncio.run(work())


def test_two_watches_of_a_node_in_one_group_are_not_cured_at_once() -> None:
    async def work() -> None:
        clock, siblings, place = grouped("edge-a")
        other = siblings.place("other", "mesh", ("edge-a", "edge-b"))
        other.cures()
        says(siblings, clock, WELL)
        held = await meanwhile(place.may(able=True), clock.passes, siblings)
        assert held == "other on this node has been curing for 0.4 s and is not proved yet"
        clock.now += 15.0
        says(siblings, clock, WELL)
        assert await place.may(able=True) is None
        siblings.leave("other")
        assert siblings.beside(place) == []

    asyncio.run(work())


def test_a_cure_goes_on_while_another_config_is_taken_and_siblings_are_asked_as_often_as_it_matters() -> None:
    clock, siblings, place = grouped()
    place.cures()
    clock.now += 1.0
    again = siblings.place("proxy", "mesh", ("edge-a", "edge-b"))
    assert again.told()["curing_s"] == 1.0
    again.wakes(awake=True)
    assert again.every_s == 0.25
    again.wakes(awake=False)
    assert again.every_s is None


def test_cures_that_siblings_told_of_count_also_when_they_are_not_heard_any_more() -> None:
    clock, siblings, _ = grouped()
    says(siblings, clock, SiblingWatch("mesh", spent_s=(3.0, 50.0)))
    clock.now += 10.0
    assert siblings.spent_s("mesh") == (13.0, 60.0)
    assert siblings.spent_s("else") == ()


def test_what_is_wrong_with_a_group_is_said() -> None:
    clock, siblings, place = grouped()
    assert place.doubt() is None
    says(siblings, clock, WELL)
    assert place.doubt() is None
    says(siblings, clock, SiblingWatch("mesh", ("edge-b", "edge-a")))
    assert place.doubt() == "edge-a knows other members of group mesh, or another order; they must be the same on all nodes"
    says(siblings, clock, SiblingWatch("else"))
    assert place.doubt() == "edge-a has no watch of group mesh; members of a group must be the same on all nodes"
    clock.now += 16.0
    assert (place.doubt() or "").startswith("edge-a has not been heard for 16 s; what it does is not known here")
    assert "edge-q is a member of group mesh but not in nodes:" in (siblings.place("proxy", "mesh", ("edge-b", "edge-q")).doubt() or "")


def seen(ok: bool, age_s: float, number: int) -> SiblingWatch:
    return SiblingWatch("mesh", seen={"edge-b": Seen(ok, age_s, "it hangs", number)})


def test_what_a_sibling_found_is_the_answer_and_a_round_is_one_answer_however_often_it_is_read() -> None:
    async def work() -> None:
        clock, siblings, place = grouped()
        own = Scripted(clock)
        asker = PeerAsker(place, own, timeout_s=0.0)
        says(siblings, clock, seen(False, 0.4, 7))
        assert await asker.ask() == Answer(False, "asked by edge-a: it hangs", 999.6)
        clock.now += 0.3
        says(siblings, clock, seen(False, 0.65, 7))  # read again, by clocks that are not as exact
        assert (await asker.ask()).asked == 999.6
        says(siblings, clock, seen(True, 0.1, 8))
        assert (await asker.ask()).asked == clock.now - 0.1
        assert own.asked == 0

    asyncio.run(work())


def test_a_node_of_which_nobody_tells_asks_itself_and_says_so() -> None:
    async def work() -> None:
        clock, siblings, place = grouped()
        own = Scripted(clock)
        says(siblings, clock, seen(False, 0.4, 7))
        clock.now += 3.1
        answer = await PeerAsker(place, own, timeout_s=0.0).ask()
        assert answer.well
        assert answer.why == "no sibling tells how this node answers (none was heard for 3.1 s), so this node asked itself: it answers"
        says(siblings, clock, WELL)
        assert "edge-a does not tell how this node answers, so" in (await PeerAsker(place, own, "edge-a", timeout_s=0.0).ask()).why
        says(siblings, clock, seen(False, 9.0, 7))  # old: it does not ask any more
        assert own.asked == 2
        assert (await PeerAsker(place, own, timeout_s=0.0).ask()).well

    asyncio.run(work())


def test_siblings_are_asked_for_and_it_is_told_with_its_age_but_not_what_was_read_late() -> None:
    async def work() -> None:
        clock, _, place = grouped()
        asker = Scripted(clock, well=False)
        behalf = OnBehalf(place, {"edge-a": asker}, every_s=1.0, confirm_every_s=0.5, proof_every_s=0.25, timeout_s=1.0)
        assert behalf.told() == {}
        await behalf._ask("edge-a", asker)
        clock.now += 0.25
        assert behalf.told() == {"edge-a": {"ok": False, "age_s": 0.25, "why": "refused", "round": 1_000_000}}

        class Late(Scripted):
            async def ask(self) -> Answer:
                answer = await super().ask()
                clock.now += 20.0  # this process stood still
                return answer

        await behalf._ask("edge-a", Late(clock, well=False))
        assert behalf.told()["edge-a"]["round"] == 1_000_000
        assert place.answers == {}

    asyncio.run(work())


def test_rounds_of_before_anothers_cure_here_say_nothing_any_more() -> None:
    clock, siblings, place = grouped()
    url, elsewhere = siblings.place("url", "mesh", ("edge-a", "edge-b")), siblings.place("other", "two", ("edge-a", "edge-b"))
    place.rests()
    assert url.outdated(0.0) is None, "nothing was cured"
    place.cures()
    clock.now += 2.0
    place.rests()
    assert url.outdated(clock.now - 1.0) == "proxy on this node has cured since the last round was asked"
    assert url.outdated(clock.now + 0.1) is None
    assert elsewhere.outdated(0.0) is None
    assert place.outdated(0.0) is None, "its own cure is its own to judge"

"""A member's place in its group: what it announces, and whose turn it is."""

from __future__ import annotations

import asyncio

from tests.unit.watch.members import grouped, meanwhile, says

from edgekeeper.watch.siblings import WANTING_EVERY_S
from edgekeeper.watch.siblingsay import SiblingWatch

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

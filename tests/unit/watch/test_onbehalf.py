"""Each member asks for the others, and is judged by what they find."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.watch.members import Scripted, grouped, says

from edgekeeper.watch.onbehalf import OnBehalf, PeerAsker
from edgekeeper.watch.seams import Answer
from edgekeeper.watch.siblingsay import Seen, SiblingView, SiblingWatch

WELL = SiblingWatch("mesh", ("edge-a", "edge-b"), "quiet", well=True, probed_s=0.1)


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


def test_what_could_not_be_asked_is_not_told_of() -> None:
    async def work() -> None:
        clock, _, place = grouped()

        class Lost(Scripted):
            async def ask(self) -> Answer:
                return replace(await super().ask(), known=False)

        behalf = OnBehalf(place, {"edge-a": Scripted(clock)}, every_s=1.0, confirm_every_s=0.5, proof_every_s=0.25, timeout_s=1.0)
        await behalf._ask("edge-a", Lost(clock, well=False))
        assert behalf.told() == {}

    asyncio.run(work())


@pytest.mark.parametrize(("state", "every_s"), [("quiet", 1.0), ("blind", 1.0), ("armed", 0.5), ("wanted", 0.5), ("curing", 0.5), ("proving", 0.25)])
def test_a_sibling_is_asked_for_as_often_as_it_would_ask_itself(state: str, every_s: float) -> None:
    clock, siblings, place = grouped()
    behalf = OnBehalf(place, {"edge-a": Scripted(clock)}, every_s=1.0, confirm_every_s=0.5, proof_every_s=0.25, timeout_s=1.0)
    says(siblings, clock, SiblingWatch("mesh", state=state))
    assert behalf._period_s("edge-a") == every_s
    assert behalf._period_s("edge-q") == 1.0


def test_of_several_answers_the_freshest_counts_and_one_that_was_given_is_waited_past() -> None:
    async def work() -> None:
        clock, siblings, place = grouped()
        asker = PeerAsker(place, Scripted(clock), timeout_s=1.0)
        older, newer = SiblingWatch("mesh", seen={"edge-b": Seen(True, 0.9, "fine", 7)}), seen(False, 0.1, 8)
        siblings.views["edge-a"] = SiblingView("edge-a", 0.0, clock.now, clock.now, clock.now, "", watches={"old": older, "new": newer})  # type: ignore[index]
        assert (await asker.ask()).why == "asked by edge-a: it hangs"
        waiting = asyncio.ensure_future(asker.ask())
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.now += 0.5
        says(siblings, clock, seen(True, 0.2, 9))
        siblings._polling.asked.set()
        assert (await waiting).well

    asyncio.run(work())

"""The lead as a task has it, against a Lease in memory and on a clock that does not wait."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.fakes.turned import turned

from edgekeeper.errors import LockHeldError
from edgekeeper.kube.errors import Absent, Conflict, Forbidden, Unreachable
from edgekeeper.kube.lease import Election, Term
from edgekeeper.kube.objects import Lease, LeaseSpec, ObjectMeta
from edgekeeper.model.moment import Moment


def play(story: Callable[[], Awaitable[None]]) -> None:
    turned(story())


class Clock:
    """The loop's time, on a machine that can have slept and whose wall clock is wrong."""

    def __init__(self) -> None:
        self.slept = 0.0
        self.off = 0.0

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return self.monotonic() + self.off

    def moment(self) -> Moment:
        return Moment(self.wall(), self.monotonic() + self.slept, "one", self.monotonic())


class Api:
    """One Lease, and what can happen to a request: ``before`` and ``after`` it is done."""

    server = "https://192.0.2.1:6443"

    def __init__(self, spec: LeaseSpec | None = None) -> None:
        self.lease: Lease | None = Lease(metadata=ObjectMeta(name="one", namespace="edge", resourceVersion="1", labels={"kept": "yes"}), spec=spec)
        self.count = 1
        self.before: Callable[[], Awaitable[None]] | None = None
        self.after: Callable[[], Awaitable[None]] | None = None
        self.writes = 0
        self.wrote = 0.0
        self.passed_on = 0

    async def _around(self, do: Callable[[], Any]) -> Any:
        if self.before is not None:
            await self.before()
        await asyncio.sleep(0.01)
        answer = copy.deepcopy(do())
        if self.after is not None:
            await self.after()
        return answer

    def _put(self, lease: Lease) -> Lease:
        self.count += 1
        self.writes += 1
        self.wrote = asyncio.get_running_loop().time()
        self.lease = copy.deepcopy(lease)
        self.lease.metadata.resourceVersion = str(self.count)
        return self.lease

    async def get(self, kind, name, *, namespace):
        return await self._around(lambda: self.lease)

    async def pass_on(self):
        self.passed_on += 1

    async def create(self, lease):
        def do() -> Lease:
            if self.lease is not None:
                raise Conflict("exists")
            return self._put(lease)

        return await self._around(do)

    async def replace(self, lease):
        def do() -> Lease:
            if self.lease is None:
                raise Absent("gone")
            if lease.metadata.resourceVersion != self.lease.metadata.resourceVersion:
                raise Conflict("changed")
            return self._put(lease)

        return await self._around(do)


class Work:
    """Acts every second, each time asking the term first, unless it does not ``ask``."""

    def __init__(self, *, asks: bool = True) -> None:
        self.asks = asks
        self.acts: list[float] = []
        self.terms: list[Term] = []
        self.ended = 0.0

    async def __call__(self, term: Term) -> None:
        self.terms.append(term)
        try:
            while True:
                if self.asks:
                    term.check()
                self.acts.append(asyncio.get_running_loop().time())
                await asyncio.sleep(1)
        finally:
            self.ended = asyncio.get_running_loop().time()


async def down() -> None:
    raise Unreachable("nobody is there")


async def silent() -> None:
    await asyncio.sleep(5)
    raise Unreachable("no answer within 5 s")


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_it_leads_keeps_what_others_wrote_and_gives_up_in_order() -> None:
    async def story() -> None:
        api, work = Api(), Work()
        one = Election(api, "one", "edge", "a", Clock())
        task = asyncio.create_task(one.lead(work))
        await asyncio.sleep(60)
        assert one.leads
        assert one.holder == one.me
        assert one.me.startswith("a_")
        assert 8 < work.terms[0].left_s() <= 10 < work.terms[0].last_s() <= 15
        assert len(work.acts) == 60
        assert api.writes == 30
        assert api.lease.metadata.labels == {"kept": "yes"}
        second, other = Election(api, "one", "edge", "a", Clock()), Work()
        waiting = asyncio.create_task(second.lead(other))
        await asyncio.sleep(60)
        assert (other.acts, second.why) == ([], f"the Lease is held by {one.me}")
        await stop(task)
        assert api.lease.spec.holderIdentity == ""
        assert (one.leads, work.terms[0].left_s(), work.terms[0].last_s()) == (False, 0.0, 0.0)
        await asyncio.sleep(2.1)
        assert second.leads
        await stop(waiting)

    play(story)


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("fault", [down, silent])
def test_without_an_answer_the_work_is_stopped_before_others_may_begin_and_begun_anew_later(fault, asks) -> None:
    async def story() -> None:
        api, work, loop = Api(), Work(asks=asks), asyncio.get_running_loop()
        one = Election(api, "one", "edge", "a", Clock())
        task = asyncio.create_task(one.lead(work))
        await asyncio.sleep(20)
        assert one.leads
        cut = loop.time()
        api.before = fault
        await asyncio.sleep(60)
        assert cut + 7.5 < work.ended <= api.wrote + 10.01
        assert not one.leads
        assert one.why.startswith("n")
        api.before = None
        await asyncio.sleep(7)
        assert one.leads
        assert len(work.terms) == 2
        assert work.terms[0].left_s() == 0.0
        await stop(task)

    play(story)


def test_a_lost_answer_gives_no_term_though_the_write_was_done() -> None:
    async def story() -> None:
        api, work = Api(), Work()
        api.after = down
        one = Election(api, "one", "edge", "a", Clock())
        task = asyncio.create_task(one.lead(work))
        await asyncio.sleep(30)
        assert not work.acts
        api.after = None
        await asyncio.sleep(2.1)
        assert work.acts
        api.after = down
        await asyncio.sleep(10)
        assert not one.leads
        assert api.lease.spec.holderIdentity == one.me
        await stop(task)

    play(story)


def test_one_that_was_stopped_or_slept_sees_it_with_the_first_instruction_and_a_wall_clock_that_is_set_changes_nothing() -> None:
    async def story() -> None:
        api, work, clock = Api(), Work(), Clock()
        one = Election(api, "one", "edge", "a", clock)
        task = asyncio.create_task(one.lead(work))
        for off in (-3600.0, 3600.0, 0.0):
            await asyncio.sleep(5)
            clock.off = off
        await asyncio.sleep(20)
        assert len(work.terms) == 1
        clock.slept = 11.0
        with pytest.raises(LockHeldError, match="the lead is lost"):
            work.terms[0].check()
        assert not one.leads
        await asyncio.sleep(5)
        assert len(work.terms) == 2
        await stop(task)

    play(story)


def test_work_that_ends_ends_the_lead_as_it_did_and_releases() -> None:
    async def story() -> None:
        api = Api()
        done = []

        async def one_pass(term: Term) -> None:
            done.append(term)

        async def broken(term: Term) -> None:
            raise ZeroDivisionError

        await Election(api, "one", "edge", "a", Clock()).lead(one_pass)
        assert len(done) == 1
        assert api.lease.spec.holderIdentity == ""
        with pytest.raises(ZeroDivisionError):
            await Election(api, "one", "edge", "a", Clock()).lead(broken)
        assert api.lease.spec.holderIdentity == ""
        assert api.lease.spec.leaseTransitions == 2

    play(story)


def test_who_waits_only_for_a_while_is_told_who_holds_it_or_why_nobody_knows() -> None:
    async def story() -> None:
        api, work = Api(LeaseSpec(holderIdentity="b", leaseDurationSeconds=60)), Work()
        with pytest.raises(LockHeldError, match="Lease edge/one: the Lease is held by b; nothing is done here"):
            await Election(api, "one", "edge", "a", Clock()).lead(work, wait_s=5)
        api.before = silent
        with pytest.raises(Unreachable):
            await Election(api, "one", "edge", "a", Clock()).lead(work, wait_s=3)
        assert api.passed_on == 1, "the next question goes to another server"

        async def refused() -> None:
            raise Forbidden("no right")

        api.before = refused
        with pytest.raises(Forbidden, match="no right"):
            await Election(api, "one", "edge", "a", Clock()).lead(work, wait_s=3)
        assert (work.acts, api.writes) == ([], 0)

    play(story)


def test_work_that_does_not_end_holds_the_next_term_up() -> None:
    async def story() -> None:
        api, clock = Api(), Clock()
        running, most = 0, 0
        gate = asyncio.Event()

        async def stubborn(term: Term) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue
            running -= 1
            await asyncio.sleep(3600)

        one = Election(api, "one", "edge", "a", clock)
        task = asyncio.create_task(one.lead(stubborn))
        await asyncio.sleep(5)
        clock.slept = 30
        await asyncio.sleep(60)
        assert (most, one.leads) == (1, False)
        gate.set()
        await asyncio.sleep(10)
        assert one.leads
        await stop(task)

    play(story)


def test_an_end_in_the_middle_of_a_write_gives_up_what_that_write_may_have_got() -> None:
    async def story() -> None:
        api, work = Api(), Work()

        async def slow() -> None:
            await asyncio.sleep(1 if api.writes == 1 else 0)

        api.after = slow
        one = Election(api, "one", "edge", "a", Clock())
        task = asyncio.create_task(one.lead(work))
        await asyncio.sleep(0.5)
        assert api.lease.spec.holderIdentity == one.me
        await stop(task)
        assert api.lease.spec.holderIdentity == ""
        assert not work.acts

    play(story)


def test_the_lease_is_not_given_up_before_the_work_has_ended() -> None:
    async def story() -> None:
        api = Api()
        held: list[str] = []

        async def slow(term: Term) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(1)
                held.append(api.lease.spec.holderIdentity)

        one = Election(api, "one", "edge", "a", Clock())
        task = asyncio.create_task(one.lead(slow))
        await asyncio.sleep(5)
        await stop(task)
        assert held == [one.me]
        assert api.lease.spec.holderIdentity == ""

    play(story)


def test_an_end_without_the_api_does_not_wait_for_it() -> None:
    async def story() -> None:
        api, work, loop = Api(), Work(), asyncio.get_running_loop()
        task = asyncio.create_task(Election(api, "one", "edge", "a", Clock()).lead(work))
        await asyncio.sleep(5)
        api.before = silent
        began = loop.time()
        await stop(task)
        assert loop.time() - began <= 2.1

    play(story)

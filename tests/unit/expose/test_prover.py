"""Proofs in the background, in a time that passes by itself: who is asked when, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.fakes.journal import Journal
from tests.fakes.turned import Turned

from edgekeeper.config.expose import Expose
from edgekeeper.expose.proof import Answer, Proof
from edgekeeper.expose.prover import AT_ONCE, Prover
from edgekeeper.log import Event
from edgekeeper.model.moment import Moment

EXPOSE = Expose.model_validate(
    {"owner": "home", "netbird": {"url": "https://netbird.example", "token_env": "T"}, "targets": {"default": "192.0.2.1"}, "prove": {"within": "60s"}}
)


class Loop(Turned):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0


class Clock:
    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return 1_000_000 + self.monotonic()

    def moment(self) -> Moment:
        return Moment(self.wall(), self.monotonic(), "boot", self.monotonic())


class Asked:
    """Answers by host, from a time on; whoever is not named answers never. ``at`` is when each was asked."""

    def __init__(self, takes: float = 0.1, **answers: float) -> None:
        self.at: dict[str, list[float]] = {}
        self.answers, self.takes = answers, takes
        self.now = self.most = 0

    async def __call__(self, host: str) -> Proof:
        clock = Clock()
        self.at.setdefault(host, []).append(clock.monotonic())
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.takes)
        self.now -= 1
        ok = clock.monotonic() >= self.answers.get(host, float("inf"))
        return Proof(host, (Answer("192.0.2.1:443", ok, "" if ok else "refused", 41.0 if ok else None),))


def story(asked: Asked, tell: Callable[[Prover], Any], seconds: float) -> tuple[Prover, Journal]:
    """A prover for so many seconds; ``tell`` is a coroutine beside it."""

    async def work() -> tuple[Prover, Journal]:
        journal = Journal()
        prover = Prover(EXPOSE, Clock(), journal, asked)
        running = asyncio.create_task(prover.run())
        telling = asyncio.create_task(tell(prover))
        await asyncio.sleep(seconds)
        await telling
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return prover, journal

    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(work())


def told(journal: Journal) -> list[tuple[str, str, str]]:
    return [(entry.event, entry.decision, entry.object) for entry in journal.entries]


async def wrote(prover: Prover, *hosts: str) -> None:
    for host in hosts or ("a",):
        prover.wrote(host)


def test_a_host_is_asked_for_at_once_and_each_second_until_it_answers_and_then_no_more():
    asked = Asked(a=4.0)
    prover, journal = story(asked, wrote, 600)
    assert asked.at["a"] == pytest.approx([0.0, 1.1, 2.2, 3.4, 5.2], abs=0.3)
    assert (prover.results["a"].ok, prover.results["a"].ms) == (True, 41.0)
    assert prover.results["a"].at == pytest.approx(1_000_000 + asked.at["a"][-1] + 0.1, abs=0.01)
    assert told(journal) == [(Event.EXPOSE_PROVED, "act", "a")]
    assert journal.entries[0].why.startswith("answers in 41 ms (192.0.2.1:443), 5.")


def test_one_that_does_not_answer_in_time_is_an_alarm_once_and_is_asked_for_ever_but_ever_less():
    asked = Asked()

    async def tell(prover: Prover) -> None:
        prover.wrote("a")
        await asyncio.sleep(55)
        assert prover.results == {}
        await asyncio.sleep(60)
        assert not prover.results["a"].ok

    prover, journal = story(asked, tell, 3600)
    gaps = [after - before for before, after in pairwise(asked.at["a"])]
    assert all(after >= before - 0.01 for before, after in pairwise(gaps))
    assert gaps[-1] == pytest.approx(60.1)
    assert 55 <= len(asked.at["a"]) <= 80
    assert told(journal) == [(Event.EXPOSE_NOT_PROVED, "alarm", "a")]
    assert "s of the write: 192.0.2.1:443: refused" in journal.entries[0].why
    assert prover.results["a"].ms == 0.0


def test_it_is_told_when_it_answers_after_all():
    prover, journal = story(Asked(a=300.0), wrote, 3600)
    assert prover.results["a"].ok
    assert told(journal) == [(Event.EXPOSE_NOT_PROVED, "alarm", "a"), (Event.EXPOSE_PROVED, "act", "a")]


def test_a_host_that_is_written_again_is_asked_for_anew_and_told_of_only_when_that_is_news():
    asked = Asked(a=0.0)

    async def tell(prover: Prover) -> None:
        for _ in range(3):
            prover.wrote("a")
            await asyncio.sleep(100)
        asked.answers["a"] = float("inf")
        prover.wrote("a")
        await asyncio.sleep(30)
        assert prover.results["a"].ok  # what was known last, until it is known better

    prover, journal = story(asked, tell, 600)
    assert asked.at["a"][:4] == pytest.approx([0, 100, 200, 300])
    assert not prover.results["a"].ok
    assert told(journal) == [(Event.EXPOSE_PROVED, "act", "a"), (Event.EXPOSE_NOT_PROVED, "alarm", "a")]


def test_an_answer_that_was_asked_for_before_the_last_write_proves_nothing():
    asked = Asked(takes=2.0, a=0.0)

    async def tell(prover: Prover) -> None:
        prover.wrote("a")
        await asyncio.sleep(1)
        prover.wrote("a")
        await asyncio.sleep(1.5)
        assert prover.results == {}

    prover, _ = story(asked, tell, 60)
    assert asked.at["a"] == pytest.approx([0, 2])
    assert prover.results["a"].ok


@pytest.mark.parametrize("takes", [0.1, 5.0])
def test_one_that_is_not_published_any_more_is_forgotten_and_not_asked_for(takes):
    asked = Asked(takes=takes)

    async def tell(prover: Prover) -> None:
        prover.wrote("a")
        prover.forget("b")
        await asyncio.sleep(2)
        prover.forget("a")

    prover, journal = story(asked, tell, 600)
    assert max(asked.at["a"]) < 2
    assert (prover.results, journal.entries) == ({}, [])
    proved, _ = story(Asked(a=0.0), wrote, 60)
    assert proved.results["a"].ok
    proved.forget("a")
    assert proved.results == {}


def test_one_that_goes_while_others_are_asked_for_stops_nobody():
    async def ask(host: str) -> Proof:
        provers[0].forget("b")
        return Proof(host, (Answer("192.0.2.1:443", True, "", 41.0),))

    provers: list[Prover] = []

    async def tell(prover: Prover) -> None:
        provers.append(prover)
        prover.wrote("a")
        prover.wrote("b")

    prover, _ = story(ask, tell, 60)  # type: ignore[arg-type]
    assert list(prover.results) == ["a"]


def test_not_more_are_asked_for_at_once_than_that_and_all_in_the_end():
    hosts = [f"h{i:02}" for i in range(AT_ONCE * 3 + 1)]
    asked = Asked(**dict.fromkeys(hosts, 0.0))
    prover, journal = story(asked, lambda prover: wrote(prover, *hosts), 60)
    assert asked.most == AT_ONCE
    assert {host for host, result in prover.results.items() if result.ok} == set(hosts)
    assert len(journal.entries) == len(hosts)


def test_without_an_answer_it_is_told_how_far_it_came():
    async def nowhere(host: str) -> Proof:
        return Proof(host, (), "it has no address in the DNS; point it to the proxy")

    prover, journal = story(nowhere, wrote, 600)  # type: ignore[arg-type]
    assert prover.results["a"].ms is None
    assert journal.entries[0].why.endswith("it has no address in the DNS; point it to the proxy")

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.members import LbMembersFrom
from edgekeeper.errors import MissingError
from edgekeeper.membership import follow
from edgekeeper.membership.follow import AGAIN_S, Follower
from edgekeeper.membership.select import HOLD_S
from edgekeeper.model.backend import Member, Membership
from edgekeeper.model.entry import Entry

A, B, C = (Member(name, f"192.0.2.{number}", 6443) for number, name in enumerate(("cp1", "cp2", "cp3"), 1))
AWAY = MissingError("the API is away")


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now


class Source:
    """Says what it is told to say; the first change comes at once, the others never."""

    def __init__(self, *answers: tuple[Member, ...] | Exception) -> None:
        self.answers = list(answers)
        self.waited = 0
        self.closed = False

    async def read(self) -> Membership:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Membership(answer, "the API", 5.0, by_person=False)

    async def changed(self) -> None:
        self.waited += 1
        if self.waited > 1:
            await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.closed = True


class Made:
    """A follower with all that it is given written down."""

    def __init__(self, folder: Path, **said: Any) -> None:
        self.clock, self.entries, self.changes = Clock(), list[Entry](), 0
        self.alarms: dict[str, str] = {}
        wanted = LbMembersFrom.model_validate({"static": ["192.0.2.1"]})
        self.follower = Follower(wanted, folder / "memory.json", self.clock, self, role="lb", alarm=self._alarm, changed=self._changed, **said)

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    def _alarm(self, name: str, why: str | None) -> None:
        self.alarms.pop(name, None)
        if why is not None:
            self.alarms[name] = why

    def _changed(self) -> None:
        self.changes += 1

    def read(self, *answers: tuple[Member, ...] | Exception) -> None:
        async def work() -> None:
            source = Source(*answers)
            for _ in answers:
                await self.follower.read(source)

        asyncio.run(work())

    def told(self) -> list[tuple[str, str]]:
        return [(str(e.event), e.decision) for e in self.entries]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    return lambda **said: Made(tmp_path, **said)


def test_members_are_kept_while_the_source_is_away_and_their_age_is_told(make: Callable[..., Made]) -> None:
    made = make()
    made.read((A, B))
    made.follower.read_at = made.clock.wall() - 90
    made.read(AWAY)
    assert made.follower.members == (A, B)
    assert made.alarms["membership"] == "the members cannot be read: the API is away; the last full set of 2, 90 s old stays"
    made.read((A, B))
    assert not made.alarms
    assert made.changes == 1


def test_an_empty_source_is_an_alarm_and_one_line_in_the_journal(make: Callable[..., Made]) -> None:
    made = make()
    made.read((A, B), (), (), (), ())
    assert made.follower.members == (A, B)
    assert "names no members" in made.alarms["membership"]
    assert made.told() == [("members.kept", "suppress")]


def test_a_source_that_never_named_anybody_is_an_alarm_too(make: Callable[..., Made]) -> None:
    made = make()
    made.read(())
    assert "there is none to keep" in made.alarms["membership"]


@pytest.mark.parametrize("answer", [(), AWAY])
def test_an_earlier_run_is_remembered_so_that_a_source_that_is_empty_or_away_at_a_start_loses_nobody(
    make: Callable[..., Made], answer: tuple[Member, ...] | Exception
) -> None:
    heavy = Member("cp3", "192.0.2.3", 6443, (), 7, True)
    make().read((A, B, heavy))
    again = make()
    again.follower.remember()
    again.read(answer)
    assert again.follower.members == (A, B, heavy)
    assert again.changes == 1
    assert "last full set of 3" in again.alarms["membership"]


def test_what_is_remembered_is_read_by_a_version_that_knows_neither_weight_nor_drain(make: Callable[..., Made], tmp_path: Path) -> None:
    make().read((A,))
    assert json.loads((tmp_path / "memory.json").read_text()) == {"members": [["cp1", "192.0.2.1", 6443, []]], "names": {}}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"members": [[1]], "names": {}}', '{"members": [], "names": []}', '{"members": 5}'])
def test_a_damaged_memory_is_forgotten(make: Callable[..., Made], tmp_path: Path, text: str) -> None:
    (tmp_path / "memory.json").write_text(text)
    made = make()
    made.follower.remember()
    made.read(AWAY)
    assert made.follower.members == ()
    assert "no earlier set" in made.alarms["membership"]


def test_another_weight_is_news_and_no_loss(make: Callable[..., Made]) -> None:
    made = make()
    light = tuple(Member(m.name, m.host, m.port, (), 1) for m in (A, B, C))
    made.read((A, B, C), light)
    assert made.follower.members == light
    assert made.entries[-1].why == "the API: 3 changed (cp1, cp2, cp3), 3 in all"


def test_each_service_has_alarms_and_entries_of_its_own(make: Callable[..., Made]) -> None:
    made = make(service="k8s-api")
    made.read(())
    assert list(made.alarms) == ["k8s-api membership"]
    assert made.entries[-1].object == "k8s-api"


def test_members_beside_are_followed_along(make: Callable[..., Made]) -> None:
    made = make(beside={"example.": (B,)})
    made.read((A,))
    assert made.follower.beside == {"example.": (B,)}


def test_a_held_loss_is_looked_at_again_in_time_however_seldom_the_source_speaks(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    """The source would say something in an hour; a loss is held for ten seconds at most."""
    made = make()
    source = Source((A, B, C), (A,), AWAY, (A,))
    waits: list[float | None] = []
    real = asyncio.timeout

    def timeout(delay: float | None) -> asyncio.Timeout:
        waits.append(delay)
        if delay is not None:
            made.clock.now += delay
        return real(0 if delay is not None else None)

    monkeypatch.setattr(follow.asyncio, "timeout", timeout)
    monkeypatch.setattr(made.follower, "source", lambda: source)

    async def work() -> None:
        task = asyncio.create_task(made.follower.follow())
        for _ in range(100):
            await asyncio.sleep(0)
        assert made.follower.members == (A,)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())
    assert source.closed
    assert waits[:3] == [None, HOLD_S, AGAIN_S]
    assert [decision for _, decision in made.told()] == ["hold", "act"]

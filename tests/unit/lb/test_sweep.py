from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes.haproxy_cli import FakeAdmin, FakeHaproxy, Held

from edgekeeper.lb import sweep
from edgekeeper.lb.brake import Manner
from edgekeeper.lb.sweep import Sweeper
from edgekeeper.model.entry import Entry


class Clock:
    """Six seconds later at each look, so that no cut waits for its second try."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 6.0
        return self.now

    def wall(self) -> float:
        return self.now


class Journal:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)


def world() -> FakeHaproxy:
    """One session on each server in the current worker (10), two in an old one (11)."""
    held = {pid: [Held(f"0x{pid}{i}{k}", f"192.0.2.{i}:{pid}{k}", f"cp{i}") for i in (1, 2, 3) for k in range(pid - 9)] for pid in (10, 11)}
    return FakeHaproxy({"cp1": "DOWN", "cp2": "UP", "cp3": "UP"}, held)


def test_only_old_sessions_on_the_dead_server_end_and_the_journal_says_why() -> None:
    haproxy, journal = world(), Journal()
    admin: Any = FakeAdmin(haproxy)
    assert asyncio.run(Sweeper(admin, Manner(), Clock(), journal).sweep()) == 2
    assert {(s.server, s.source.split(":")[1][:2]) for s in haproxy.ended} == {("cp1", "11")}
    (entry,) = journal.entries
    assert (entry.decision, entry.object) == ("act", "api/cp1")
    assert "no checks" in entry.why


def test_a_spent_budget_holds_the_next_cut_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "LIMIT", 1)
    haproxy, journal = world(), Journal()

    async def story() -> list[int]:
        admin: Any = FakeAdmin(haproxy)
        sweeper = Sweeper(admin, Manner(), Clock(), journal)
        first = await sweeper.sweep()
        haproxy.workers[11].append(Held("0x900", "192.0.2.9:1", "cp1"))
        return [first, await sweeper.sweep(), await sweeper.sweep()]

    assert asyncio.run(story()) == [2, 0, 0]
    assert [entry.decision for entry in journal.entries] == ["act", "hold"]
    assert "budget is spent" in journal.entries[1].why
    assert "0x900" in {s.id for s in haproxy.workers[11]}


def test_what_the_brake_holds_is_told_once() -> None:
    haproxy, journal = world(), Journal()
    haproxy.backends = ("api",)
    haproxy.statuses = {"cp1": "DOWN", "cp2": "DOWN", "cp3": "DOWN"}
    haproxy.workers = {10: [Held("0x500", "192.0.2.5:1", "cp1", "api-open")]}

    async def story() -> None:
        admin: Any = FakeAdmin(haproxy)
        sweeper = Sweeper(admin, Manner({"api-open": "api"}), Clock(), journal)
        assert [await sweeper.sweep(), await sweeper.sweep()] == [0, 0]

    asyncio.run(story())
    assert [(entry.decision, entry.object) for entry in journal.entries] == [("hold", "brake")]
    assert haproxy.ended == []

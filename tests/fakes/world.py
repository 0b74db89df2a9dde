"""A supervisor over an engine in memory: real files and decisions, no process. For tests of everything between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.pair import FakeEngine, Intent, MemoryHands, MemoryProcess

from edgekeeper.host.process import Finished
from edgekeeper.model.entry import Entry
from edgekeeper.supervise import act, crew, loop, replace
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.loop import Supervisor, intent_digest
from edgekeeper.supervise.stage import Stage

ONE = Intent(("127.0.0.1:53",), ("ns-a", "ns-b"))
FEWER = Intent(("127.0.0.1:53",), ("ns-a",))
WIDER = Intent(("127.0.0.1:53", "127.0.0.1:54"), ("ns-a", "ns-b"))


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


class World:
    """A supervisor with everything around it in memory, but for the files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, manner: str = "overlap") -> None:
        self.folder, self.manner = folder, manner
        self.clock, self.engine, self.hands = Clock(), FakeEngine(), MemoryHands()
        self.started: list[MemoryProcess] = []
        self.checks: list[Finished | Exception] = []
        self.journal: list[Entry] = []
        self.counts: list[tuple[str, str]] = []
        self.spawns: list[Exception] = []
        monkeypatch.setattr(crew, "spawn", self._spawn)
        monkeypatch.setattr(crew, "marked", lambda *_: [])
        monkeypatch.setattr(act.process, "run", self._check)
        monkeypatch.setattr(loop, "TICK_S", 0.0)
        monkeypatch.setattr(replace, "SETTLE_S", 0.0)
        self.new()

    def new(self) -> Supervisor:
        """Another supervisor over the same files."""
        self.crew = Crew(self.folder / "run", "fake:test")
        self.stage = Stage(self.folder / "state")
        self.actor = Actor(self.engine, self.hands, self.stage, self.crew, self.clock, manner=self.manner, stop_timeout_s=1.0, drain=self._drain)
        self.supervisor = Supervisor("fake", self.engine, self.actor, self.clock, self, debounce_s=5.0, count=self._count)
        return self.supervisor

    def write(self, entry: Entry) -> None:
        self.journal.append(entry)

    def _count(self, what: str, labels: dict[str, str]) -> None:
        self.counts.append((what, next(iter(labels.values()))))

    async def _drain(self) -> None:
        self.counts.append(("drained", ""))

    def _spawn(self, *_: object) -> Any:
        if self.spawns:
            raise self.spawns.pop(0)
        self.started.append(MemoryProcess())
        return self.started[-1]

    async def _check(self, *_: object) -> Finished:
        answer = self.checks.pop(0) if self.checks else Finished(0, "Configuration OK")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def play(self, story: Callable[[], Awaitable[None]]) -> None:
        """Run the supervisor and a story beside it, then stop both."""

        async def work() -> None:
            task = asyncio.create_task(self.supervisor.run())
            try:
                await story()
            finally:
                self.supervisor.end(leave=False)
                await asyncio.wait_for(task, 5)

        asyncio.run(work())

    async def until(self, true: Callable[[], object]) -> None:
        for _ in range(3000):
            if true():
                return
            await asyncio.sleep(0)
        raise AssertionError(self.supervisor.state, self.supervisor.why)

    async def settle(self) -> None:
        for _ in range(60):
            await asyncio.sleep(0)

    async def begin(self, intent: Intent = ONE) -> None:
        self.supervisor.want(intent)
        await self.until(lambda: self.in_force(intent))

    def in_force(self, intent: Intent) -> bool:
        state = self.supervisor.state
        return state.running and state.changing is None and state.good == intent_digest(self.engine, intent)

    @property
    def alive(self) -> list[MemoryProcess]:
        return [p for p in self.started if p.alive()]

    def decisions(self) -> list[tuple[str, str]]:
        return [(str(e.event), e.decision) for e in self.journal]

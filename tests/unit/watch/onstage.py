"""A patrol with a service, a log, a guard and a cure made by hand around it, in a time that is turned by hand; the store of budgets is the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.turned import TurnedClock, turned

from edgekeeper.model.budget import Bucket, Budget, Window
from edgekeeper.model.entry import Entry
from edgekeeper.watch.fingerprint import Fingerprint, Matcher
from edgekeeper.watch.parts import Parts, Shared
from edgekeeper.watch.patrol import Patrol
from edgekeeper.watch.seams import Answer, Sight
from edgekeeper.watch.state import Policy

LINE = b"WARN couldn't fetch peer state: KEY\n"
USUAL = Budget((Bucket(3, 60.0), Window(6, 3600.0)), pause_s=60.0)


@dataclass
class Service:
    """A service that is well or not, with its log and its cure; ``takes_s`` is how long the cure takes, ``helps`` whether it does."""

    well: bool = True
    answers_s: float = 0.01
    takes_s: float = 2.0
    helps: bool = True
    fails: str | BaseException | None = None
    log: Callable[[bytes, float], None] | None = None
    see: Callable[[Sight], None] | None = None
    ill: BaseException | None = None
    known: bool = True
    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    followed: int = 0

    name = "restart it"

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        self.followed += 1
        self.log, self.see = arrived, state
        state(Sight(seeing=True, why="it is followed"))
        if self.ill is not None:
            raise self.ill
        await asyncio.Event().wait()

    async def ask(self) -> Answer:
        asked = now()
        self.asked.append(asked)
        await asyncio.sleep(self.answers_s)
        return Answer(self.well, "it answers" if self.well else "no answer within 1 s", asked, self.known)

    async def ready(self, *, ours: bool, since: float) -> str | None:
        return None

    async def apply(self) -> str | None:
        self.begun.append(now())
        await asyncio.sleep(self.takes_s)
        self.ended.append(now())
        if isinstance(self.fails, BaseException):
            raise self.fails
        self.well = self.well or (self.helps and self.fails is None)
        return self.fails


@dataclass
class Guarded:
    why: str | None = None
    note: str = "the document says true"

    async def forbids(self) -> str | None:
        return self.why


class Told:
    """A journal that knows what the service's cure had seen when each entry was written."""

    def __init__(self, service: Service) -> None:
        self.entries: list[tuple[Entry, int]] = []
        self._service = service

    def write(self, entry: Entry) -> None:
        self.entries.append((entry, len(self._service.begun)))

    def events(self) -> list[str]:
        return [str(entry.event).removeprefix("watch.") for entry, _ in self.entries]

    def of(self, event: str) -> list[Entry]:
        return [entry for entry, _ in self.entries if str(entry.event) == f"watch.{event}"]


class Stage:
    """A patrol with everything around it."""

    def __init__(
        self, folder: Path, *, policy: Policy | None = None, budget: Budget = USUAL, store: Path | None = None, blind_after_s: float | None = None
    ) -> None:
        self.service = Service()
        self.guard = Guarded()
        self.journal = Told(self.service)
        self.alarms: dict[str, str] = {}
        self.counted: list[str] = []
        self.folder = folder
        self.store = store or folder / "budgets.json"
        self.memory = folder / "armed-mesh.json"
        self.policy, self.budget, self.blind_after_s = policy or Policy(), budget, blind_after_s
        self.cures: list[Any] = [self.service]
        self.place: Any = None

    def patrol(self) -> Patrol:
        """A patrol of this process; one more is one of its successor."""
        matcher = Matcher([Fingerprint(text="couldn't fetch peer state")], [" path="])
        parts = Parts("mesh", self.policy, matcher, self.service, self.service, [self.guard], self.cures, self.budget, "watch:mesh", self.blind_after_s)
        return Patrol(parts, Shared(self.store, self.folder, TurnedClock(), self.journal, self.place, tuple, self.counted.append, self._alarm))

    def _alarm(self, name: str, why: str | None) -> None:
        if why is None:
            self.alarms.pop(name, None)
        else:
            self.alarms[name] = why

    def line(self, line: bytes = LINE) -> None:
        assert self.service.log is not None
        self.service.log(line, now())

    def wedge(self) -> float:
        self.service.well = False
        self.line()
        return now()


def now() -> float:
    return asyncio.get_running_loop().time()


def tell(made: Stage, story: Callable[[Patrol], Coroutine[Any, Any, None]]) -> None:
    """A story beside a patrol that runs; it is ended afterwards."""

    async def both() -> None:
        patrol = made.patrol()
        task = asyncio.create_task(patrol.run())
        await asyncio.sleep(3)
        await story(patrol)
        await end(task)

    turned(both())


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

"""The watch role, wired: each watch of the config at its patrol, what it shares with its siblings, and what the role says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from edgekeeper.config.root import Root
from edgekeeper.config.watch import Watch
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import make_folder
from edgekeeper.log import Event, emit
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.status import RoleStatus
from edgekeeper.runtime import Ground, accepted, cancelled, kept_alive, watched
from edgekeeper.watch import build, memory, report
from edgekeeper.watch.onbehalf import OnBehalf
from edgekeeper.watch.parts import Shared
from edgekeeper.watch.patrol import Patrol
from edgekeeper.watch.presets import merged
from edgekeeper.watch.siblings import Place, Siblings

STORE = "budgets.json"
"""In ``state_dir``: one for all that acts by itself."""

MEASURE_S = 1.0


async def make(root: Root, ground: Ground) -> WatchRole:
    """The role of a config that has it; UsageError when a part of it cannot be used."""
    return WatchRole(root, ground)


@dataclass(frozen=True, slots=True)
class Post:
    """One watch at work: its section, its patrol, its place among its siblings, and what it asks for them."""

    written: Watch
    patrol: Patrol
    place: Place | None
    onbehalf: OnBehalf | None


class WatchRole:
    """``edgekeeper watch run``."""

    def __init__(self, root: Root, ground: Ground) -> None:
        assert root.watch is not None  # noqa: S101 - the command has checked it
        self._started = self._root = root
        self._ground = ground
        self._store = Path(root.state_dir) / STORE
        self._folder = make_folder(Path(root.state_dir) / "watch")
        self._ended = asyncio.Event()
        self._changed = asyncio.Event()
        self.alarms = Alarms("watch", ground.journal)
        self.siblings = Siblings(ground.node, root.nodes, root.ops, ground.clock)
        self.posts: dict[str, Post] = {}
        self._tasks: dict[str, tuple[Post, list[asyncio.Task[None]]]] = {}
        self._rewrite(root)

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:  # noqa: ARG002 - there is no engine to stop or to leave
        """End it; a cure that is under way is waited for."""
        self._ended.set()

    def status(self) -> RoleStatus:
        """What the role says of itself."""
        return report.status(self.details(), self.alarms.raised)

    def details(self) -> list[dict[str, Any]]:
        """Each watch, as the status shows it."""
        clock = self._ground.clock
        return [report.item(p.patrol, clock, p.place.told() if p.place else None, p.onbehalf.told() if p.onbehalf else None) for p in self.posts.values()]

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """Take another config; watches whose section is the same go on as they are."""
        root = accepted("watch", self._started, fresh, self.alarms, self._ground.journal, self._refusal)
        if root is None or root.watch is None:
            return
        self._rewrite(root)
        self._changed.set()

    async def run(self) -> None:
        """Watch until ``end``."""
        background = watched(self.alarms, {"siblings": self.siblings.follow, "metrics": self._measure})
        try:
            while not self._ended.is_set():
                self._changed.clear()
                await self._settle()
                waits = [asyncio.create_task(event.wait()) for event in (self._ended, self._changed)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.gather(*(_dropped(wait) for wait in waits))
        finally:
            await cancelled([*background, *(task for _, tasks in self._tasks.values() for task in tasks)])

    # which watches there are --------------------------------------------------------------

    def _refusal(self, fresh: Root) -> str | None:
        """Why the watches of a config cannot be used: made once, and thrown away."""
        try:
            for written in map(merged, fresh.watch or ()):
                here = build.Here(self._ground.node, fresh.kubernetes)
                build.parts(written, self._ground.clock, Path(fresh.run_dir), self._folder, here)
                build.lease(written, self._ground.clock, here)
        except EdgekeeperError as err:
            return str(err)
        return None

    def _rewrite(self, root: Root) -> None:
        wanted = {written.name: merged(written) for written in root.watch or ()}
        same = {name for name, post in self.posts.items() if wanted.get(name) == post.written and _around(root) == _around(self._root)}
        members = {member for written in wanted.values() if written.group for member in written.group.members}
        self._root = root
        self.siblings.rewrite(root.nodes, root.ops, members)
        for name in self.posts.keys() - {written.name for written in wanted.values() if written.group is not None}:
            self.siblings.leave(name)
        self.posts = {name: self.posts[name] if name in same else self._post(written, root) for name, written in wanted.items()}
        self._quieten(self._tasks.keys() - same)

    def _quieten(self, names: Collection[str]) -> None:
        """Their alarms are those of watches that are no more."""
        for alarm in self.alarms.raised:
            if alarm.startswith(tuple(f"watch {name}: " for name in names)):
                self.alarms.set(alarm, None)

    def _post(self, written: Watch, root: Root) -> Post:
        ground, group = self._ground, written.group
        here = build.Here(ground.node, root.kubernetes)
        parts = build.parts(written, ground.clock, Path(root.run_dir), self._folder, here)
        place = None
        if group is not None:
            lease = build.lease(written, ground.clock, here)
            place = self.siblings.place(written.name, group.name, tuple(group.members) or (ground.node,), group.wait, lease)
        onbehalf = build.onbehalf(written, ground.node, place) if place is not None else None
        if place is not None:
            parts = build.asked_by_siblings(written, parts, place)

        def alarm(what: str, why: str | None) -> None:
            self.alarms.set(f"watch {written.name}: {what}", why)

        others_s = partial(self.siblings.spent_s, group.name) if group is not None else tuple
        if written.budget.store is not None:
            others_s = tuple  # in a store that is shared their cures stand already
        shared = Shared(
            store=Path(written.budget.store) if written.budget.store is not None else self._store,
            folder=self._folder,
            clock=ground.clock,
            journal=ground.journal,
            place=place,
            others_s=others_s,
            count=lambda event: ground.metrics.count("edgekeeper_watch_events", {"watch": written.name, "event": event}),
            alarm=alarm,
        )
        return Post(written, Patrol(parts, shared), place, onbehalf)

    async def _settle(self) -> None:
        """Start the watches that are new, end those that are gone or others now (each ends with the cure that it has under way), and start these anew."""
        self._begin()
        old = {name: tasks for name, (post, tasks) in self._tasks.items() if self.posts.get(name) is not post}
        await asyncio.gather(*(cancelled(tasks) for tasks in old.values()))
        for name in old:
            del self._tasks[name]
            if name not in self.posts:  # a later one of this name is another
                memory.remember(memory.file(self._folder, name), None)
                self._quieten({name})
        self._begin()

    def _begin(self) -> None:
        for name, post in self.posts.items():
            if name not in self._tasks:
                emit(Event.WATCH_STARTED, f"{name}: it begins")
                works = {"patrol": post.patrol.run} | ({"asking for siblings": post.onbehalf.follow} if post.onbehalf is not None else {})
                works |= {"the group's Lease": post.place.lease.follow} if post.place is not None and post.place.lease is not None else {}
                self._tasks[name] = (post, [self._kept(name, what, work) for what, work in works.items()])

    def _kept(self, name: str, what: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        return asyncio.create_task(kept_alive(f"{name}: {what}", work, partial(self.alarms.set, f"watch {name}: {what}")))

    async def _measure(self) -> None:
        while True:
            report.measure(self.details(), self.alarms.raised, self._ground.metrics)
            for name, post in self.posts.items():
                if post.place is not None:
                    self.alarms.set(f"watch {name}: group", post.place.doubt())
            await asyncio.sleep(MEASURE_S)


async def _dropped(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _around(root: Root) -> tuple[Any, ...]:
    """What every watch depends on beside its own section."""
    return root.nodes, root.ops, root.kubernetes

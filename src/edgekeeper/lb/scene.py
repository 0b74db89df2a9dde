"""What guard and sweep look at twice a second: every server with its sessions in every worker, cheaply; and the cutting itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from edgekeeper.engines.haproxy.admin import Admin, word
from edgekeeper.engines.haproxy.look import Picture, look, sessions_of
from edgekeeper.engines.haproxy.pinned import Judge, same_place
from edgekeeper.engines.haproxy.stats import ServerStat, Stats, parse_info, parse_stat
from edgekeeper.errors import EdgekeeperError
from edgekeeper.lb.decide import Condition, Key, Seen, condition
from edgekeeper.lb.free import cut_in, judged_now
from edgekeeper.ports import Clock

REFRESH_S = 5.0
"""How often the workers are listed anew when nothing says that HAProxy was reloaded."""


@dataclass(frozen=True, slots=True)
class View:
    """One full picture: the servers as the current worker judges them, with their sessions in all workers.

    ``gaps`` are sentences about old workers that could not be seen.
    """

    servers: tuple[Seen, ...]
    picture: Picture
    gaps: tuple[str, ...] = ()
    left: tuple[Seen, ...] = ()
    """Servers that old workers have sessions on and the running configuration has no more, or has at another address."""

    @property
    def worker(self) -> int:
        """The pid of the current worker."""
        return self.picture.current.pid


class Scene:
    """Looks at one HAProxy by its stats socket or master socket. ``see`` raises as ``Admin`` does when the current worker cannot be seen."""

    def __init__(self, admin: Admin, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._picture: Picture | None = None
        self._looked = 0.0

    async def see(self) -> View:
        """The picture now. Old workers only tell how many sessions each server has; whose they are is read when they are cut."""
        try:
            picture = self._picture = await self._current()
        except BaseException:
            self._picture = None
            raise
        found = await asyncio.gather(*(self._old(picture, worker.pid) for worker in picture.old))
        gaps = (*picture.blind, *(why for _, _, why in found if why))
        old = {pid: stats for pid, stats, _ in found}
        return View(_servers(picture, old), picture, gaps, _left(picture, old))

    async def _current(self) -> Picture:
        kept, now = self._picture, self._clock.monotonic()
        if kept is not None and now - self._looked < REFRESH_S:
            admin, prefix = kept.way(kept.current.pid)
            info = parse_info(await admin.ask("show info", worker=prefix))
            if info.pid == kept.info.pid and not info.stopping:
                stats = parse_stat(await admin.ask("show stat", worker=prefix))
                return replace(kept, info=info, stats=stats)
        self._looked = now
        return await look(self._admin)

    @staticmethod
    async def _old(picture: Picture, pid: int) -> tuple[int, Stats, str]:
        admin, prefix = picture.way(pid)
        try:
            return pid, parse_stat(await admin.ask("show stat", worker=prefix)), ""
        except EdgekeeperError as err:
            return pid, Stats(), f"the sessions in the old worker {pid} cannot be seen: {err}"


def _servers(picture: Picture, old: Mapping[int, Stats]) -> tuple[Seen, ...]:
    counts: dict[Key, list[tuple[int, int]]] = {(s.backend, s.server): [(picture.current.pid, s.scur)] for s in picture.stats.servers}
    places = {(s.backend, s.server): s.address for s in picture.stats.servers}
    for pid, stats in old.items():
        for s in stats.servers:
            key = (s.backend, s.server)
            # A server of that name at another address is another machine, and nobody judges it.
            if s.scur and key in counts and same_place(s.address, places[key]):
                counts[key].append((pid, s.scur))
    return tuple(Seen(s.backend, s.server, _condition(s), tuple(counts[s.backend, s.server]), s.lastchg) for s in picture.stats.servers)


def _condition(stat: ServerStat) -> Condition:
    """What the status means; one of weight 0 says UP and takes nobody, so it is no place to send clients to."""
    meant = condition(stat.status)
    return Condition.OUT if meant is Condition.UP and not stat.usable else meant


def _left(picture: Picture, old: Mapping[int, Stats]) -> tuple[Seen, ...]:
    places = {(s.backend, s.server): s.address for s in picture.stats.servers}
    backends = {s.backend for s in picture.stats.servers}
    counts: dict[Key, list[tuple[int, int]]] = {}
    for pid, stats in old.items():
        for s in stats.servers:
            key = (s.backend, s.server)
            if s.scur and s.backend in backends and not (key in places and same_place(s.address, places[key])):
                counts.setdefault(key, []).append((pid, s.scur))
    if picture.stats.skipped:  # what could not be read may be there
        return ()
    return tuple(Seen(*key, Condition.OUT, tuple(sessions)) for key, sessions in counts.items())


@dataclass(frozen=True, slots=True)
class Ended:
    """Sessions that were ended, by the pid of their worker, and what did not succeed."""

    cut: Mapping[int, int]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """In all workers."""
        return sum(self.cut.values())


async def end_sessions(view: View, backend: str, server: str, workers: Iterable[int], twins: Mapping[str, str] | None = None) -> Ended:
    """End the sessions of a server that the view shows DOWN or in MAINT (a twin's: of the server that judges it), in these workers.

    In the current worker with one command for the server; in an old one by their ids, each read anew right before. What cannot be
    done is told, not raised: the next look shows what is left.
    """
    judge = Judge(view.picture.stats, twins)
    before = {s.key: dict(s.sessions) for s in view.servers}.get((backend, server), {})
    cut: dict[int, int] = {}
    notes: list[str] = []
    for pid in workers:
        try:
            if pid == view.worker:
                if not (await judged_now(view.picture, judge)).pins(backend, server):
                    notes.append(f"{backend}/{server} is up by now; its sessions stay")
                    break
                admin, prefix = view.picture.way(pid)
                said = (await admin.ask(f"shutdown sessions server {word(backend)}/{word(server)}", worker=prefix)).strip()
                if said:
                    notes.append(f"HAProxy refused to end the sessions of {backend}/{server}: {said}")
                else:
                    cut[pid] = before.get(pid, 0)
            else:
                seen = [s for s in await sessions_of(view.picture, pid, frozenset([backend])) if s.server == server]
                cut[pid] = await cut_in(view.picture, judge, pid, backend, server, seen)
        except EdgekeeperError as err:
            notes.append(f"the sessions of {backend}/{server} in worker {pid} could not be ended: {err}")
    return Ended({pid: number for pid, number in cut.items() if number}, tuple(notes))


async def end_left(view: View, backend: str, server: str, workers: Iterable[int]) -> Ended:
    """End the sessions that old workers have on a server which the running configuration has no more, by their ids, read right before."""
    judge = Judge(view.picture.stats)
    cut: dict[int, int] = {}
    notes: list[str] = []
    for pid in workers:
        try:
            admin, prefix = view.picture.way(pid)
            found = [s for s in await sessions_of(view.picture, pid, frozenset([backend]), sizes=True) if s.server == server and judge.left(s)]
            answers = await admin.ask_each([f"shutdown session {s.id}" for s in found], worker=prefix)
            cut[pid] = len(found) - sum(1 for line in answers if line.startswith("No such session"))
        except EdgekeeperError as err:
            notes.append(f"the sessions of {backend}/{server} in worker {pid} could not be ended: {err}")
    return Ended({pid: number for pid, number in cut.items() if number}, tuple(notes))

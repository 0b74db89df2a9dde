"""One full picture of a running HAProxy: its processes, its servers and, when asked, the sessions in every worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.masters import masters_of, workers_of
from edgekeeper.engines.haproxy.sess import Session, SessionReader
from edgekeeper.engines.haproxy.stats import Info, Stats, Worker, parse_info, parse_stat
from edgekeeper.errors import EdgekeeperError, MissingError, StepFailedError


@dataclass(frozen=True, slots=True)
class Picture:
    """What a HAProxy says at one moment, and in ``blind`` what of it could not be seen (sentences)."""

    info: Info
    stats: Stats
    workers: tuple[Worker, ...]
    """The current worker first; it alone when no master could be asked."""
    master: Admin | None
    socket: Admin
    """What to ask the current worker by (with ``worker=None``), or the master."""
    sessions: Mapping[int, tuple[Session, ...]] = field(default_factory=dict)
    """By the pid of the worker. A worker that could not be read is missing here, and told in ``blind``."""
    blind: tuple[str, ...] = ()

    @property
    def current(self) -> Worker:
        """The worker that takes new sessions and runs the checks."""
        return self.workers[0]

    @property
    def old(self) -> tuple[Worker, ...]:
        """The workers that reloads left behind."""
        return tuple(w for w in self.workers if not w.current)

    def way(self, worker: int) -> tuple[Admin, int | None]:
        """By which socket, and with which prefix, a worker is asked."""
        if self.master is not None and (worker != self.current.pid or self.socket is self.master):
            return self.master, worker
        return self.socket, None


async def look(admin: Admin, *, sessions: bool | Iterable[str] = False, sizes: bool = False) -> Picture:
    """A picture by a stats socket or a master socket; from the one to the other we find the way by ourselves.

    ``sessions``: also the sessions of every worker, of all backends or of those named; ``sizes``: with the
    bytes of each and the address it is connected to (2 KB a session over the socket instead of 300 bytes).
    Raises as ``Admin`` does when the current worker cannot be read; what else cannot be seen is in ``blind``.
    """
    blind: list[str] = []
    workers = await admin.workers()
    if workers or await admin.is_master():
        current = next((w for w in workers if w.current), None)
        if current is None:
            msg = f"the master at {admin.path} has no running worker; its configuration was refused, see HAProxy's log"
            raise MissingError(msg)
        master: Admin | None = admin
        info = parse_info(await admin.ask("show info", worker=current.pid))
        ask_as: int | None = current.pid
    else:
        info = parse_info(await admin.ask("show info"))
        master, workers = await _master(admin, info, blind)
        ask_as = None
    stats = parse_stat(await admin.ask("show stat", worker=ask_as))
    if not info.version and not stats.frontends and not stats.servers:
        msg = f"what answers at {admin.path} is not HAProxy's command line; name its stats socket or master socket"
        raise MissingError(msg)
    if stats.skipped:
        blind.append(f"{stats.skipped} lines of `show stat` could not be read; servers may be missing here")
    picture = Picture(info, stats, workers, master, admin, {}, tuple(blind))
    if sessions is False:
        return picture
    return await with_sessions(picture, backends=None if sessions is True else sessions, sizes=sizes)


async def with_sessions(picture: Picture, *, backends: Iterable[str] | None = None, sizes: bool = False) -> Picture:
    """The picture with the sessions as they are now, worker by worker; the current one must be readable."""
    wanted = None if backends is None else frozenset(backends)
    found: dict[int, tuple[Session, ...]] = {}
    blind = list(picture.blind)
    for worker in picture.workers:
        try:
            found[worker.pid] = await sessions_of(picture, worker.pid, wanted, sizes=sizes)
        except EdgekeeperError as err:
            if worker.current:
                raise
            blind.append(f"the sessions of the old worker {worker.pid} cannot be seen: {err}")
    return Picture(picture.info, picture.stats, picture.workers, picture.master, picture.socket, found, tuple(blind))


async def sessions_of(picture: Picture, worker: int, backends: frozenset[str] | None = None, *, sizes: bool = False) -> tuple[Session, ...]:
    """The sessions of one worker as they are now, of all backends or of those named. Nothing when it ended meanwhile."""
    admin, prefix = picture.way(worker)
    reader = SessionReader()
    found: list[Session] = []
    start = ""
    async for piece in admin.pieces("show sess all" if sizes else "show sess", worker=prefix):
        start = start or piece[:80]
        found += [s for s in reader.feed(piece) if backends is None or s.backend in backends]
        await asyncio.sleep(0)
    found += [s for s in reader.end() if backends is None or s.backend in backends]
    if start.startswith(("Can't find", "Unknown command")) and worker == picture.current.pid:
        msg = f"the worker {worker} of the HAProxy at {picture.socket.path} ended while it was read (a reload?); ask again"
        raise StepFailedError(msg)
    return tuple(found)


async def _master(admin: Admin, info: Info, blind: list[str]) -> tuple[Admin | None, tuple[Worker, ...]]:
    """The master of the worker that a stats socket belongs to, proven by the master's own list of workers."""
    alone = (Worker(info.pid, current=not info.stopping, uptime_s=info.uptime_s, version=info.version),)
    why = ""
    seen = set()
    # The kernel knows the listener's pid as we see it; the one that HAProxy says may be that of a container.
    for pid in (admin.peer_pid, info.pid):
        path = await masters_of(pid) if pid else None
        if path is None or path in seen:
            continue
        seen.add(path)
        master = Admin(path, deadline_s=admin.deadline_s)
        try:
            workers = await master.workers()
        except EdgekeeperError as err:
            why = str(err)
            continue
        if any(worker.pid == info.pid for worker in workers):
            return master, workers
    if why:
        blind.append(f"sessions in workers left over from reloads cannot be seen: {why}")
    elif len(left := workers_of(admin.peer_pid or 0) or workers_of(info.pid)) > 1:
        pids = ", ".join(str(pid) for pid in left if pid != info.pid)
        blind.append(f"sessions in workers left over from reloads (pid {pids}) cannot be seen or ended: HAProxy runs without a master socket (-S)")
    return None, alone

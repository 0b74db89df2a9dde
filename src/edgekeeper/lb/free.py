"""End the sessions that are pinned to a server, in every worker, and prove that their clients are served again.

In the current worker ``shutdown sessions server`` ends them at once. In a worker that a reload left behind
that answers "Proxy is disabled." (measured on 2.6, 3.0 and 3.2), so there each is ended by its id. An id is a pointer
that HAProxy uses again: the sessions are read anew right before, and only an id that still is the same
client's on the same server is ended. Sessions of servers that are up are never touched: to list 20,000 of them takes
a second, in which a server may come back, so its status is read once more right before anything is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from edgekeeper.engines.haproxy.admin import Admin, word
from edgekeeper.engines.haproxy.look import Picture, look, sessions_of
from edgekeeper.engines.haproxy.pinned import Judge
from edgekeeper.engines.haproxy.sess import Session
from edgekeeper.engines.haproxy.stats import parse_stat
from edgekeeper.errors import EdgekeeperError, RefusedError, StepFailedError
from edgekeeper.model.text import printable
from edgekeeper.ports import Clock

PROOF_S = 3.0
"""How long a client may take to be seen again; one that asked for nothing in that time is told as such."""
_POLL_S = 0.05
_GONE_WITHIN_S = 1.0
_GONE = "No such session"
_REFUSED_HERE = "Proxy is disabled"


@dataclass(frozen=True, slots=True)
class Seen:
    """A client whose session was ended, and what became of it: the server that it is on again, after how many milliseconds (None: not seen)."""

    host: str
    server: str = ""
    after_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Freed:
    """What freeing one server came to."""

    backend: str
    server: str
    cut: Mapping[int, int]
    """Sessions ended, by the pid of the worker."""
    left: int
    """Pinned sessions that are still there."""
    seen: tuple[Seen, ...]
    took_ms: float
    """From the first command until they were gone."""
    ok: bool
    """Whether no pinned session is left in any worker that can be seen."""
    why: str
    notes: tuple[str, ...] = field(default=())

    @property
    def total(self) -> int:
        """Sessions ended in all workers."""
        return sum(self.cut.values())


async def free(
    admin: Admin, targets: Iterable[tuple[str, str]], clock: Clock, *, same: Mapping[str, str] | None = None, proof_s: float = PROOF_S
) -> tuple[Freed, ...]:
    """Free the servers (backend, server) one after the other; each is looked at anew, and skipped when it is up by then."""
    return tuple([await free_one(admin, backend, server, clock, same=same, proof_s=proof_s) for backend, server in targets])


async def free_one(admin: Admin, backend: str, server: str, clock: Clock, *, same: Mapping[str, str] | None = None, proof_s: float = PROOF_S) -> Freed:
    """Free one server in all workers; with ``proof_s`` 0 the clients are not waited for."""
    picture = await look(admin, sessions=True, sizes=True)
    judge = Judge(picture.stats, same)
    name = f"{backend}/{server}"
    stat = judge.server(backend, server)
    if not judge.pins(backend, server):
        status = stat.status if stat else "not in the running configuration"
        return Freed(backend, server, {}, 0, (), 0.0, ok=True, why=f"{name} is {status}; no session was ended", notes=picture.blind)
    before = {w.pid: _pinned(picture, judge, w.pid, backend, server) for w in picture.workers}
    others = frozenset(s.source for s in picture.sessions.get(picture.current.pid, ()))
    start = clock.monotonic()
    cut: dict[int, int] = {}
    notes = list(picture.blind)
    for worker in picture.workers:
        if not before[worker.pid]:
            continue
        try:
            cut[worker.pid] = await cut_in(picture, judge, worker.pid, backend, server, before[worker.pid])
        except RefusedError:
            raise  # the level is too low: nothing at all can be ended by this socket
        except EdgekeeperError as err:
            notes.append(f"the sessions in worker {worker.pid} could not be ended: {err}")
    took = (clock.monotonic() - start) * 1000
    with contextlib.suppress(EdgekeeperError):
        judge = await judged_now(picture, judge)
        if not judge.pins(backend, server):
            now = judge.server(backend, server)
            why = f"{name} is {now.status if now else 'not in the running configuration'} by now: {_many(sum(cut.values()))} ended before, the others stay"
            return Freed(backend, server, cut, 0, (), took, ok=True, why=why, notes=tuple(notes))
    left = await _left(picture, judge, server, before, clock, notes)
    took = (clock.monotonic() - start) * 1000
    hosts = sorted({s.source_host for found in before.values() for s in found} - {"?"})
    seen = await _seen_again(picture, judge, hosts, others, clock, start, proof_s) if proof_s and cut else tuple(Seen(host) for host in hosts)
    return Freed(
        backend, server, cut, left, seen, took, ok=left == 0, why=_sentence(name, stat.status if stat else "", cut, left, seen, took), notes=tuple(notes)
    )


async def cut_in(picture: Picture, judge: Judge, worker: int, backend: str, server: str, seen: Iterable[Session]) -> int:
    """End the pinned sessions of one server in one worker; returns how many of ``seen`` were ended.

    In the current worker all of the server's go with one command; in an old one those of ``seen`` that are still the same.
    None of them when the server is not pinned any more. StepFailedError with HAProxy's words when it refuses.
    """
    word(backend)
    word(server)
    admin, prefix = picture.way(worker)
    known = {s.id: s for s in seen}
    if worker == picture.current.pid:
        if not (await judged_now(picture, judge)).pins(backend, server):
            return 0
        said = await admin.ask(f"shutdown sessions server {backend}/{server}", worker=prefix)
        if not said.strip():
            return len(known)
        if _REFUSED_HERE not in said:
            msg = f"HAProxy did not end the sessions of {backend}/{server}: {printable(said.strip(), 200)}"
            raise StepFailedError(msg)
    found = await sessions_of(picture, worker, frozenset([backend]), sizes=True)
    now = _same(found, await judged_now(picture, judge), server, known)
    answers = await admin.ask_each([f"shutdown session {s.id}" for s in now], worker=prefix)
    return len(now) - sum(1 for line in answers if line.startswith(_GONE))


async def judged_now(picture: Picture, judge: Judge) -> Judge:
    """The judge by what the current worker says of its servers at this moment."""
    admin, prefix = picture.way(picture.current.pid)
    return judge.anew(parse_stat(await admin.ask("show stat", worker=prefix)))


def _same(found: Iterable[Session], judge: Judge, server: str, known: Mapping[str, Session]) -> list[Session]:
    """Those that are still the same client's on the same server, no younger than before, and pinned."""

    def same(s: Session) -> bool:
        before = known.get(s.id)
        return before is not None and s.source == before.source and (s.age_s or 0.0) >= (before.age_s or 0.0)

    return [s for s in found if s.server == server and same(s) and judge.judge(s)[0]]


def _pinned(picture: Picture, judge: Judge, worker: int, backend: str, server: str) -> list[Session]:
    return [s for s in picture.sessions.get(worker, ()) if s.backend == backend and s.server == server and judge.judge(s)[0]]


async def _left(picture: Picture, judge: Judge, server: str, before: Mapping[int, list[Session]], clock: Clock, notes: list[str]) -> int:
    """How many of the sessions are still there; HAProxy takes a moment to end them. What cannot be seen counts as there."""
    ends = clock.monotonic() + _GONE_WITHIN_S
    waiting = {worker: {s.id: s for s in found} for worker, found in before.items() if found}
    backends = frozenset(s.backend for found in before.values() for s in found)
    unseen = 0
    while True:
        there: dict[int, int] = {}
        for worker, known in tuple(waiting.items()):
            try:
                there[worker] = len(_same(await sessions_of(picture, worker, backends), judge, server, known))
            except EdgekeeperError as err:
                notes.append(f"whether the sessions in worker {worker} are gone cannot be seen: {err}")
                unseen += len(waiting.pop(worker))
                continue
            if not there[worker]:
                del waiting[worker]
        if not waiting or clock.monotonic() >= ends:
            return unseen + sum(there[worker] for worker in waiting)
        await asyncio.sleep(_POLL_S)


async def _seen_again(picture: Picture, judge: Judge, hosts: list[str], before: frozenset[str], clock: Clock, start: float, proof_s: float) -> tuple[Seen, ...]:
    """When each client has a session that it did not have before, on a server that is not down."""
    found: dict[str, Seen] = {}
    missing = set(hosts)
    while missing and clock.monotonic() - start < proof_s:
        try:
            now = await sessions_of(picture, picture.current.pid)
        except EdgekeeperError:
            break
        after = (clock.monotonic() - start) * 1000
        for s in now:
            if s.source_host in missing and s.source not in before and not judge.pins(s.backend, s.server):
                found[s.source_host] = Seen(s.source_host, f"{s.backend}/{s.server}", after)
                missing.remove(s.source_host)
        if missing:
            await asyncio.sleep(_POLL_S)
    return tuple(found.get(host, Seen(host)) for host in hosts)


def _many(sessions: int) -> str:
    return f"{sessions} session{'' if sessions == 1 else 's'}"


def _sentence(name: str, status: str, cut: Mapping[int, int], left: int, seen: tuple[Seen, ...], took_ms: float) -> str:
    total = sum(cut.values())
    text = f"{name} is {status}: {_many(total)} ended in {len(cut)} worker{'' if len(cut) == 1 else 's'} within {took_ms:.0f} ms"
    if left:
        text += f", {left} still there"
    back = [s.after_ms for s in seen if s.after_ms is not None]
    if seen:
        text += f"; {len(back)} of {len(seen)} clients seen again on a live server" + (f", the last after {max(back):.0f} ms" if back else "")
    return text

"""Which sessions are pinned: on a server that the current worker sees DOWN or in MAINT. Pure.

Judged is always by the *current* worker's view: a worker that a reload left behind runs no health checks, and its own
table says for ever what it said at the reload. What the current worker does not know (a server that was
removed, or has another address now) is never called pinned.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from edgekeeper.engines.haproxy.sess import Session
from edgekeeper.engines.haproxy.stats import ServerStat, Stats, Worker, split_address

GONE: Final = "gone"
"""The status of a server that the current worker does not have."""


@dataclass(frozen=True, slots=True)
class Row:
    """A session as an operator wants it: who, on what, for how long, and whether it must go."""

    session: Session
    node: str | None
    """The client's name, where its address is known."""
    status: str
    """The server's, as the current worker sees it (``gone``: it does not have it)."""
    worker: int
    old: bool
    """Whether it lives in a worker that a reload left behind."""
    pinned: bool
    why: str

    @property
    def client(self) -> str:
        """The node's name, else the address."""
        return self.node or self.session.source_host


@dataclass(frozen=True, slots=True)
class Tally:
    """The sessions of one server, over all workers."""

    backend: str
    server: str
    status: str
    check: str
    """How its last check ended, with its words."""
    sessions: int
    pinned: int
    in_old: int | None
    """Of the sessions, those in workers left over from reloads; None where those could not be seen."""
    since_s: int | None
    """Seconds since its status changed."""

    @property
    def name(self) -> str:
        """``backend/server``."""
        return f"{self.backend}/{self.server}"


class Judge:
    """Says of each session whether it is pinned. ``same`` names, for a backend without checks of its own, the one whose servers of the same name are checked."""

    def __init__(self, stats: Stats, same: Mapping[str, str] | None = None) -> None:
        self._servers: Mapping[tuple[str, str], ServerStat] = {(s.backend, s.server): s for s in stats.servers}
        self._same = same or {}

    def anew(self, stats: Stats) -> Judge:
        """The same judge by a newer table of the current worker."""
        return Judge(stats, self._same)

    def server(self, backend: str, server: str) -> ServerStat | None:
        """The row of the current worker that speaks for this server."""
        return self._servers.get((self._same.get(backend, backend), server))

    def pins(self, backend: str, server: str) -> bool:
        """Whether the sessions on this server are pinned: it is DOWN or in MAINT (but not merely unknown to DNS)."""
        found = self.server(backend, server)
        return found is not None and found.down and not found.unresolved

    def left(self, session: Session) -> bool:
        """Whether it is on a server that the current worker does not have, or has at another address."""
        found = self._servers.get((session.backend, session.server))
        return found is None or not same_place(session.address, found.address)

    def judge(self, session: Session) -> tuple[bool, str, str]:
        """Whether it is pinned, the status that this rests on, and the sentence."""
        found = self.server(session.backend, session.server)
        name = f"{session.backend}/{session.server}"
        if found is None:
            return False, GONE, f"the running configuration has no server {name}: nobody checks whether it answers"
        if not found.down:
            return False, found.status, f"{name} is {found.status}"
        if found.unresolved:
            return False, found.status, f"{name} is {found.status}: DNS does not name it, which says nothing about the sessions that it serves"
        if not same_place(session.address, found.address):
            return False, found.status, f"{name} is {found.status} at {found.address}, but this session is connected to {session.address}"
        return True, found.status, f"{name} is {found.status}{f' ({found.check_desc})' if found.check_desc else ''} and no check ends this session"


def twins(stats: Stats) -> dict[str, str]:
    """Backends of a service that edgekeeper renders, and the one whose checks judge their servers: NAME-patient and NAME-open by NAME.

    Only where all three are there with the same servers, and while a server of NAME is usable: when NAME calls all
    of them dead at once, those that its twins still serve are left in peace.
    """
    names: dict[str, set[str]] = {}
    for s in stats.servers:
        names.setdefault(s.backend, set()).add(s.server)
    found: dict[str, str] = {}
    for name, servers in names.items():
        kin = (f"{name}-patient", f"{name}-open")
        if all(names.get(twin) == servers for twin in kin) and any(s.usable for s in stats.of(name)):
            found.update(dict.fromkeys(kin, name))
    return found


def _one_way(host: str) -> str:
    """An address written one way: an IPv4-mapped one has two."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def same_place(one: str, other: str) -> bool:
    """Whether two ways of writing ``host:port`` may be the same place; what one of them does not tell counts as the same."""
    (host, port), (other_host, other_port) = split_address(one), split_address(other)
    if not host or not other_host:
        return True
    return _one_way(host) == _one_way(other_host) and (not port or not other_port or port == other_port)


def rows(judge: Judge, sessions: Mapping[int, Iterable[Session]], workers: Iterable[Worker], names: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Every session, judged; worker by worker, in HAProxy's order. ``names`` are the names of clients by their addresses."""
    known = names or {}
    for worker in workers:
        for session in sessions.get(worker.pid, ()):
            pinned, status, why = judge.judge(session)
            yield Row(session, known.get(session.source_host), status, worker.pid, not worker.current, pinned, why)


def order(row: Row) -> tuple[bool, float]:
    """A key to sort by: the pinned ones first, then the oldest. What an operator looks for stands on top."""
    return not row.pinned, -(row.session.age_s or 0.0)


def tallies(judge: Judge, stats: Stats, all_rows: Iterable[Row]) -> tuple[Tally, ...]:
    """One line a server that has sessions or is not usable, those with pinned sessions first, then in the configuration's order."""
    counts: dict[tuple[str, str], list[int]] = {(s.backend, s.server): [0, 0, 0] for s in stats.servers}
    for row in all_rows:
        count = counts.setdefault((row.session.backend, row.session.server), [0, 0, 0])
        count[0] += 1
        count[1] += row.pinned
        count[2] += row.old
    found = (_tally(judge, backend, server, *count) for (backend, server), count in counts.items())
    return _worth_telling(found)


def tallies_by_count(judge: Judge, stats: Stats) -> tuple[Tally, ...]:
    """The same from the counts of the current worker alone, where the sessions themselves may not be seen."""
    return _worth_telling(_tally(judge, s.backend, s.server, s.scur, s.scur if judge.pins(s.backend, s.server) else 0, None) for s in stats.servers)


def _tally(judge: Judge, backend: str, server: str, sessions: int, pinned: int, in_old: int | None) -> Tally:
    stat = judge.server(backend, server)
    if stat is None:
        return Tally(backend, server, GONE, "", sessions, pinned, in_old, None)
    words = " ".join(part for part in (stat.check, stat.check_desc) if part)
    return Tally(backend, server, stat.status, words, sessions, pinned, in_old, stat.lastchg)


def _worth_telling(found: Iterable[Tally]) -> tuple[Tally, ...]:
    told = (tally for tally in found if tally.sessions or tally.status.startswith(("DOWN", "MAINT")))
    return tuple(sorted(told, key=lambda tally: tally.pinned == 0))

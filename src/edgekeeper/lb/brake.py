"""Which sessions a HAProxy of ours leaves on dead servers, and when it is right to end them. Pure.

HAProxy cuts the sessions of a server that goes DOWN, with two gaps. A worker from before a reload runs no checks: its sessions stay
(measured on 2.6 and 3.2: still there after 40 s with the directive set). And a service may have twins of its backend, with patient
checks or none, that take the clients when every server is DOWN: their sessions must leave a server that stays dead, but not as long as
the verdict may be wrong about all of them, or a slow control plane would have its clients cut again and again (the cascade brake).

A server that a reload took out of the configuration is the same gap once more: a worker of before has sessions on it, and nobody checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekeeper.lb.decide import Condition, Key, Seen

_DEAD = (Condition.DOWN, Condition.MAINT)


@dataclass(frozen=True, slots=True)
class Manner:
    """How to sweep: ``twins`` are backends and the backend whose checks judge them.

    Sessions in a twin are ended once their server has been dead, and another server of the judging backend up, for ``settle_s`` seconds without interruption.
    ``cuts_itself`` is whether this HAProxy was shown to cut the sessions of a server that goes DOWN.
    """

    twins: Mapping[str, str] = field(default_factory=dict)
    settle_s: float = 2.0
    cuts_itself: bool = True


@dataclass(frozen=True, slots=True)
class Cut:
    """End the sessions of a server of a backend in these workers, and why."""

    backend: str
    server: str
    workers: tuple[int, ...]
    why: str
    left: bool = False
    """Whether it is a server that the running configuration has no more."""


@dataclass(frozen=True, slots=True)
class Since:
    """Since when, without interruption: servers are up, are dead, and are in the configuration no more. Empty after a time in which nothing was seen."""

    up: Mapping[Key, float] = field(default_factory=dict)
    dead: Mapping[Key, float] = field(default_factory=dict)
    left: Mapping[Key, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Swept:
    """What is known for the next picture, what to end now, and what the brake holds back (sentences)."""

    since: Since
    cuts: tuple[Cut, ...]
    held: tuple[str, ...] = ()


def sweep(since: Since, servers: tuple[Seen, ...], worker: int, manner: Manner, now: float, left: tuple[Seen, ...] = ()) -> Swept:
    """What to end, for one full picture of all workers; ``worker`` is the pid of the current one, which alone runs checks.

    ``since`` is of the picture before. ``left`` are the servers that only old workers have (or have at another address).
    A twin's sessions are ended once their server has been dead, and another one up, for ``settle_s``: when slow servers fall one
    after the other, the next one still counts as up for up to a second, and a client must not be cut for that (seen in the lab).
    """
    up = {s.key: since.up.get(s.key, now) for s in servers if s.condition is Condition.UP}
    dead_since = {s.key: since.dead.get(s.key, now) for s in servers if s.condition in _DEAD}
    dead = {s.key: s.condition for s in servers if s.condition in _DEAD}
    cuts: list[Cut] = []
    held: list[str] = []
    for server in servers:
        judge = (manner.twins.get(server.backend, server.backend), server.server)
        if judge not in dead or not server.total:
            continue
        name, verdict = "/".join(server.key), f"{'/'.join(judge)} is {dead[judge].upper()}"
        with_some = tuple(pid for pid, number in server.sessions if number)
        if server.backend in manner.twins:
            settled = [key for key, began in up.items() if key[0] == judge[0] and key != judge and now - began >= manner.settle_s]
            if settled and now - dead_since[judge] >= manner.settle_s:
                cuts.append(Cut(*server.key, with_some, f"{verdict} and {settled[0][1]} has been up for {manner.settle_s:g} s: its sessions in {name} end"))
            else:
                what = (
                    f"it may be one of many: for {manner.settle_s:g} s"
                    if settled
                    else f"but no other server of {judge[0]} has been up for {manner.settle_s:g} s:"
                )
                held.append(f"{verdict}, {what} {server.total} sessions in {name} stay")
            continue
        old = tuple(pid for pid in with_some if pid != worker)
        if old:
            cuts.append(Cut(*server.key, old, f"{verdict}, and workers from before a reload run no checks: their sessions end"))
        if not manner.cuts_itself and worker in with_some:
            cuts.append(Cut(*server.key, (worker,), f"{verdict}, and this HAProxy was seen not to cut by itself: its sessions end"))
    left_since = {s.key: since.left.get(s.key, now) for s in left}
    for server in left:
        name, backend = "/".join(server.key), manner.twins.get(server.backend, server.backend)
        verdict = f"the configuration has no {name} any more"
        others = [key for key, began in up.items() if key[0] == backend and now - began >= manner.settle_s]
        if not others:
            held.append(f"{verdict}, but no server of {backend} has been up for {manner.settle_s:g} s: {server.total} sessions stay")
        elif now - left_since[server.key] >= manner.settle_s:
            workers = tuple(pid for pid, number in server.sessions if number)
            cuts.append(Cut(*server.key, workers, f"{verdict}, nobody checks it, and {others[0][1]} is up: its sessions in old workers end", left=True))
    return Swept(Since(up, dead_since, left_since), tuple(cuts), tuple(held))

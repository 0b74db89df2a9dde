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

    Sessions in a twin are ended once another server of the judging backend is up for ``settle_s`` seconds without interruption.
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
class Swept:
    """Since when each server is up without interruption, and what to end now."""

    up_since: Mapping[Key, float]
    cuts: tuple[Cut, ...]
    held: tuple[str, ...] = ()
    """What the brake holds back, as sentences."""
    left_since: Mapping[Key, float] = field(default_factory=dict)
    """Since when each server that old workers have sessions on is in the configuration no more."""


def sweep(
    up_since: Mapping[Key, float],
    servers: tuple[Seen, ...],
    worker: int,
    manner: Manner,
    now: float,
    left: tuple[Seen, ...] = (),
    left_since: Mapping[Key, float] | None = None,
) -> Swept:
    """What to end, for one full picture of all workers; ``worker`` is the pid of the current one, which alone runs checks.

    ``up_since`` and ``left_since`` are of the picture before; empty after a time in which nothing could be seen. ``left`` are the servers
    that only old workers have (or have at another address).
    """
    up = {s.key: up_since.get(s.key, now) for s in servers if s.condition is Condition.UP}
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
            if settled:
                cuts.append(Cut(*server.key, with_some, f"{verdict} and {settled[0][1]} has been up for {manner.settle_s:g} s: its sessions in {name} end"))
            else:
                held.append(f"{verdict}, but no other server of {judge[0]} has been up for {manner.settle_s:g} s: {server.total} sessions in {name} stay")
            continue
        old = tuple(pid for pid in with_some if pid != worker)
        if old:
            cuts.append(Cut(*server.key, old, f"{verdict}, and workers from before a reload run no checks: their sessions end"))
        if not manner.cuts_itself and worker in with_some:
            cuts.append(Cut(*server.key, (worker,), f"{verdict}, and this HAProxy was seen not to cut by itself: its sessions end"))
    since = {s.key: (left_since or {}).get(s.key, now) for s in left}
    for server in left:
        name, backend = "/".join(server.key), manner.twins.get(server.backend, server.backend)
        verdict = f"the configuration has no {name} any more"
        others = [key for key, began in up.items() if key[0] == backend and now - began >= manner.settle_s]
        if not others:
            held.append(f"{verdict}, but no server of {backend} has been up for {manner.settle_s:g} s: {server.total} sessions stay")
        elif now - since[server.key] >= manner.settle_s:
            workers = tuple(pid for pid, number in server.sessions if number)
            cuts.append(Cut(*server.key, workers, f"{verdict}, nobody checks it, and {others[0][1]} is up: its sessions in old workers end", left=True))
    return Swept(up, tuple(cuts), tuple(held), since)

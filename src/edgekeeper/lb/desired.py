"""What follows from what was seen of the members: how long a check may take, what the sums say, what is to be told. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edgekeeper.config.lb import Lb
from edgekeeper.engines.haproxy.detection import worst
from edgekeeper.engines.haproxy.stats import Stats
from edgekeeper.engines.haproxy.topology import CHECK_TIMEOUT_S, Frontage, Topology
from edgekeeper.lb.brake import Manner
from edgekeeper.model.verdict import Health, Verdict

TIMES = 5.0
"""A check may take this many times the slowest answer seen at the first start: a loaded control plane misses 500 ms twice in a row."""
MOST_S = 3.0
"""A check that may take longer notices a hung server so late that a kubelet's lease is in danger."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a service's checks may take, in seconds, and why."""

    timeout_s: float
    why: str


def patience(answers_s: Iterable[float]) -> Patience:
    """From the times of healthy answers to the check's timeout: the larger of 500 ms and five times the 99th percentile, in tenths of a second."""
    seen = sorted(answers_s)
    if not seen:
        return Patience(CHECK_TIMEOUT_S, f"no member answered yet; checks may take {CHECK_TIMEOUT_S * 1000:g} ms")
    p99 = seen[min(len(seen) - 1, math.ceil(0.99 * len(seen)) - 1)]
    timeout = min(MOST_S, max(CHECK_TIMEOUT_S, math.ceil(TIMES * p99 * 10) / 10))
    return Patience(timeout, f"the 99th percentile of {len(seen)} answers is {p99 * 1000:.0f} ms; checks may take {timeout * 1000:g} ms")


def detection(service: Frontage) -> tuple[float, float] | None:
    """Seconds, least and most, until a hung server is DOWN; None when nothing asks it."""
    check = service.check
    if check.kind == "none":
        return None
    return worst(check.interval_s, check.fast_s, check.timeout_s, check.fall, connect_s=service.connect_s)


def advice(services: Sequence[Frontage]) -> tuple[str, ...]:
    """What a person should know of these services: sums, and checks that cannot see a black hole."""
    out = []
    for service in services:
        sums = detection(service)
        if service.check.kind == "none":
            out.append(f"{service.name}: nothing asks its members; a dead one is never noticed")
            continue
        if sums is not None:
            low, high = sums
            out.append(f"{service.name}: a hung member is DOWN and its clients are cut after {low:.3g} to {high:.3g} s; idle timeouts do not help them earlier")
        if service.check.kind == "tcp":
            out.append(f"{service.name}: a tcp check only connects; a member that accepts and never answers stays UP for ever. Say health: {{path: ...}}")
    return tuple(out)


FORGOTTEN_S = 3600
"""A server that is DOWN for so long has been forgotten."""


def manner(topology: Topology, settle_s: float, *, cuts_itself: bool) -> Manner:
    """How the sessions that HAProxy leaves on dead servers are swept: the patient and open backends are judged by the strict one."""
    twins = {twin: service.name for service in topology.services for twin in service.backends[1:]}
    return Manner(twins, settle_s, cuts_itself)


def readiness(stats: Stats, topology: Topology | None) -> Verdict:
    """Whether clients can be sent here: every service has a server that is up, or lets them through unchecked."""
    words, good = [], True
    for service in topology.services if topology is not None else ():
        rows = stats.of(service.name)
        up = sum(1 for row in rows if row.usable)
        if up:
            words.append(f"{service.name}: {up} of {len(rows)} up")
        elif service.fail_open:
            words.append(f"{service.name}: all {len(rows)} are DOWN, new connections go to them unchecked")
        else:
            words.append(f"{service.name}: none of {len(rows)} is up")
            good = False
    return Verdict(Health.OK if good and words else Health.BAD, "; ".join(words) or "there is no service")


def alarms(stats: Stats | None, workers: int, topology: Topology | None) -> dict[str, str | None]:
    """What needs a person: name to sentence, None where all is well. ``workers`` counts those of before a reload."""
    out: dict[str, str | None] = {"all down": None, "forgotten": None, "old workers": None}
    if stats is None or topology is None:
        return out
    dead = [s.name for s in topology.services if stats.of(s.name) and not any(row.usable for row in stats.of(s.name))]
    if dead:
        out["all down"] = f"every server of {', '.join(dead)} is DOWN at once; that is more often a slow backend behind all of them than so many dead ones"
    strict = {service.name for service in topology.services}
    old = [row for row in stats.servers if row.backend in strict and row.down and not row.maint and (row.lastchg or 0) >= FORGOTTEN_S]
    if old:
        worst_row = max(old, key=lambda row: row.lastchg or 0)
        out["forgotten"] = f"{worst_row.name} has been DOWN for {(worst_row.lastchg or 0) // 3600} h; repair it or take it out of the members"
    if workers > MANY_WORKERS:
        out["old workers"] = f"{workers} workers of before a reload still hold connections; they end after hard_stop_after at the latest"
    return out


@dataclass(frozen=True, slots=True)
class Served:
    """Which services can be served now, by name; ``refusal`` names the one because of which nothing may change; ``left_out`` those that wait."""

    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    refusal: str | None = None


def served(counts: Mapping[str, int], running: Iterable[str]) -> Served:
    """Of all services with the number of their known members, those to be served. ``running`` are the services of the running engine.

    One whose members nobody has ever known must not keep the others from being served; one that is served now must not be lost for it.
    """
    names, empty = tuple(n for n, count in counts.items() if count), tuple(n for n, count in counts.items() if not count)
    lost = next((name for name in empty if name in set(running)), None)
    if lost is None and not names:
        lost = next(iter(empty), None)
    return Served(names, empty, lost)


def files(lb: Lb) -> tuple[str, ...]:
    """The files beside the config that HAProxy reads: certificates and CAs."""
    named = [service.certificate for service in lb.services] + [service.server_tls.ca_file for service in lb.services if service.server_tls is not None]
    return tuple(dict.fromkeys(name for name in named if name is not None))


def stale(raised: Iterable[str], gone: Iterable[str]) -> tuple[str, ...]:
    """Alarms about services that are configured no more: nobody would clear them."""
    services = tuple(gone)
    return tuple(
        alarm
        for alarm in raised
        for name in services
        if alarm.startswith(f"{name} ") or alarm.endswith((f"the members of {name}", f"the host names of {name}"))
    )


MANY_WORKERS = 5
"""More workers of before reloads than this are told: each costs memory, and none of them checks its servers."""

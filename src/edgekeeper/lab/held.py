"""What the clients of a load balancer wrote, read as figures: how long each was without an answer, what was lost, who was cut. Pure."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from edgekeeper.measure.outages import Outage, longest, outages
from edgekeeper.model.sample import Sample

QUIET_S = 1.0
"""Good answers to fresh clients for this long end an outage: one bad server of three hurts every third of them."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client. ``serial`` counts the warm client's connections; ``by`` is who answered."""

    kind: str
    client: int
    serial: int
    sent: float
    done: float
    ok: bool
    by: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Cut:
    """A warm client's connection ended at this moment (monotonic clock)."""

    client: int
    serial: int
    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Held:
    """All records of one load, requests in the order in which they were sent."""

    requests: tuple[Request, ...]
    cuts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """The figures of one load; seconds. ``*_most`` is of the warm client that was hurt most.

    ``longest_s`` is the longest time that one client was without an answer: from the moment it first
    asked in vain to its next answer (or, where ``unserved`` clients had none until the end, to the end).
    ``again_s`` is the longest time from a cut to that client's next answer. ``hung`` counts the
    requests that were given up at their deadline: a refusal is not one.
    """

    asked: int
    unanswered: int
    hung: int
    longest_s: float
    lost_most: int
    cuts: int
    cuts_most: int
    again_s: float
    unserved: int
    fresh_asked: int
    fresh_unanswered: int
    outage: Outage | None
    victim: int | None = None
    by: dict[str, int] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        """The figures by the names that promises use."""
        return {
            "asked": self.asked,
            "unanswered": self.unanswered,
            "hung": self.hung,
            "longest_s": round(self.longest_s, 3),
            "lost_most": self.lost_most,
            "cuts": self.cuts,
            "cuts_most": self.cuts_most,
            "again_s": round(self.again_s, 3),
            "unserved": self.unserved,
            "fresh_asked": self.fresh_asked,
            "fresh_unanswered": self.fresh_unanswered,
        }


def read(text: Iterable[str]) -> Held:
    """Records from the lines that the clients wrote; ValueError for anything else."""
    requests, cuts = [], []
    for line in text:
        match json.loads(line):
            case ["cut", int(client), int(serial), float(at), _, _, _, str(why)]:
                cuts.append(Cut(client, serial, at, why))
            case [("warm" | "fresh") as kind, int(client), int(serial), float(sent), float(done), bool(ok), by, error]:
                requests.append(Request(kind, client, serial, sent, done, ok, by, error))
            case _:
                msg = f"{line[:60]!r} is not a record of the clients"
                raise ValueError(msg)
    return Held(tuple(sorted(requests, key=lambda r: r.sent)), tuple(sorted(cuts, key=lambda c: c.at)))


def since(held: Held, moment: float) -> Held:
    """What was asked, or cut, from a moment on; a request that was under way counts."""
    return Held(tuple(r for r in held.requests if r.done >= moment), tuple(c for c in held.cuts if c.at >= moment))


def tally(held: Held) -> Tally:
    """All figures."""
    warm = _by_client(r for r in held.requests if r.kind == "warm")
    fresh = [r for r in held.requests if r.kind == "fresh"]
    waits = {client: _longest_wait(requests) for client, requests in warm.items()}
    lost = {client: sum(not r.ok for r in requests) for client, requests in warm.items()}
    victim = max(waits, key=lambda c: (waits[c], lost[c]), default=None)
    cut = Counter(c.client for c in held.cuts)
    found = [o for requests in warm.values() for o in outages_of(requests)] + list(outages(_samples(fresh), quiet_s=QUIET_S))
    return Tally(
        asked=len(held.requests),
        unanswered=sum(not r.ok for r in held.requests),
        hung=sum(r.error == "timeout" for r in held.requests),
        longest_s=max([*waits.values(), *(r.done - r.sent for r in fresh)], default=0.0),
        lost_most=max(lost.values(), default=0),
        cuts=len(held.cuts),
        cuts_most=max(cut.values(), default=0),
        again_s=max((_again(c, warm.get(c.client, ())) for c in held.cuts), default=0.0),
        unserved=sum(not requests[-1].ok for requests in warm.values()),
        fresh_asked=len(fresh),
        fresh_unanswered=sum(not r.ok for r in fresh),
        outage=longest(found),
        victim=victim,
        by=dict(sorted(Counter(r.by for r in held.requests if r.ok and r.by).items())),
    )


def after(held: Held, moment: float) -> float:
    """The longest time from a moment to the next answer of a warm client that was waiting for one; to its last record where none came."""
    worst = 0.0
    for requests in _by_client(r for r in held.requests if r.kind == "warm").values():
        waiting = [r for r in requests if r.done >= moment]
        if waiting and not waiting[0].ok:
            worst = max(worst, next((r.done for r in waiting if r.ok), waiting[-1].done) - moment)
    return worst


def last_served(held: Held) -> dict[int, str]:
    """Who gave each warm client its last answer."""
    return {r.client: r.by for r in held.requests if r.kind == "warm" and r.ok and r.by is not None}


def _by_client(requests: Iterable[Request]) -> dict[int, tuple[Request, ...]]:
    ordered = sorted(requests, key=lambda r: (r.client, r.sent))
    return {client: tuple(some) for client, some in groupby(ordered, key=lambda r: r.client)}


def _longest_wait(requests: Sequence[Request]) -> float:
    began: float | None = None
    worst = 0.0
    for one in requests:
        began = one.sent if began is None else began
        worst = max(worst, one.done - began)
        if one.ok:
            began = None
    return worst


def outages_of(requests: Sequence[Request]) -> tuple[Outage, ...]:
    """The times that one warm client was without an answer.

    It asks one thing at a time, so each is known better than from samples of a service: at least
    from when it first asked in vain until it gave up last, at most from the last question that was
    answered before to the first answer after.
    """
    out = []
    bad: list[Request] = []
    before = -math.inf
    for one in requests:
        if not one.ok:
            bad.append(one)
            continue
        if bad:
            out.append(_outage(bad, before, one.done))
            bad = []
        before = one.sent
    if bad:
        out.append(_outage(bad, before, math.inf))
    return tuple(out)


def _outage(bad: Sequence[Request], before: float, after: float) -> Outage:
    return Outage(bad[-1].done - bad[0].sent, after - before, bad[0].sent, bad[-1].sent, len(bad))


def _again(cut: Cut, requests: Sequence[Request]) -> float:
    """From a cut to the client's next answer; to the end of its last request where none came."""
    after = [r for r in requests if r.done > cut.at]
    good = next((r.done for r in after if r.ok), None)
    end = good if good is not None else max((r.done for r in after), default=cut.at)
    return end - cut.at


def _samples(requests: Iterable[Request]) -> list[Sample]:
    return [Sample(r.sent, "https", r.kind, r.sent, r.done, r.ok) for r in requests]

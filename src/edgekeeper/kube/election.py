"""Who may lead: what a candidate for a Lease does next, as a function of what it has seen and of the time. Pure.

The protocol is the one of Kubernetes' own components. A Lease is an object that names its holder and is renewed all the time; each write
names the version that it replaces, so of two at the same time one is refused. Nobody believes another machine's clock: a foreign Lease is
over when it has not changed for its duration since *we* saw it so. What makes two terms never overlap:

* A term is counted from before the request of the last renewal that was acknowledged was sent, and is over after ``renew_s``. A candidate
  counts from after it was answered, for the longer ``lease_s``. The difference is for what a holder began just before its end.
* A write whose answer was lost counts as nothing: it gives no term, though it may hold others up.
* A Lease that is not there is waited for like one that is held: somebody may have deleted it under a holder. (An empty one is free.)
* Each renewal differs from the one before, whatever the wall clock says; the server does not count a write that changes nothing.

All times but ``wall`` are seconds of one clock of this machine that goes on while it sleeps (CLOCK_BOOTTIME).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from edgekeeper.model.text import printable

US: Final = 1_000_000
_SHOWN: Final = 100
_SOON: Final = 0.1
_GAPS: Final = 2
_MOST: Final = 2**31 - 1
"""The API's field has 32 bits: of a Lease that somebody has written so, one more would be refused for ever."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Who we are (unique to this process: a name that another process had before is not ours), and the times, in seconds.

    ``lease_s``: how long others wait after our last renewal, written in whole seconds. ``renew_s``: how long we act on it. ``retry_s``:
    how often it is renewed, or looked at.
    """

    me: str
    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_s < self.renew_s < self.lease_s:
            msg = f"a Lease needs retry_s < renew_s < lease_s, not {self.retry_s:g}, {self.renew_s:g}, {self.lease_s:g}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Record:
    """What a Lease says. ``version`` "": there is no such Lease. Times of the wall clock in microseconds since 1970, 0: not said."""

    holder: str = ""
    duration_s: int = 0
    acquired: int = 0
    renewed: int = 0
    transitions: int = 0
    version: str = ""


ABSENT: Final = Record()


@dataclass(frozen=True, slots=True)
class State:
    """What a candidate knows.

    ``since``: when ``record`` was first seen to be so; ``heard``: when it was last read. ``known``: nothing that we did since may have changed it. ``due``: when to ask again.
    ``term``: when the request of the last acknowledged write that names us was sent; None while we do not lead.
    """

    record: Record | None = None
    since: float = 0.0
    heard: float = -math.inf
    known: bool = False
    due: float = -math.inf
    term: float | None = None
    why: str = "the Lease is not read yet"


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do until then."""

    until: float


@dataclass(frozen=True, slots=True)
class Read:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write this in place of the version that it names (""; create it)."""

    record: Record


@dataclass(frozen=True, slots=True)
class Yield:
    """The term is over: stop the work."""

    why: str


Step = Rest | Read | Write | Yield


def step(rules: Rules, state: State, now: float, wall: float) -> Step:
    """What to do now; ``wall`` is only written down."""
    return _lead(rules, state, now, wall) if state.term is not None else _campaign(rules, state, now, wall)


def _lead(rules: Rules, state: State, now: float, wall: float) -> Step:
    record, over = state.record, ends(rules, state)
    if now >= over:
        return Yield(f"the Lease was not renewed for {rules.renew_s:g} s")
    if state.known and record is not None and record.version and record.holder != rules.me:
        return Yield(f"the Lease is held by {_shown(record.holder)} now" if record.holder else "somebody released the Lease")
    if now < state.due:
        return Rest(min(state.due, over))
    return Write(_ours(rules, record, wall)) if state.known and record is not None else Read()


def _campaign(rules: Rules, state: State, now: float, wall: float) -> Step:
    if state.known and state.record is not None:
        free = free_at(rules, state)
        if now >= free and (state.record.version or now < state.due):
            return Write(_ours(rules, state.record, wall))
        if now < state.due and state.since < free:
            return Rest(min(state.due, free))
    return Rest(state.due) if now < state.due else Read()


def ends(rules: Rules, state: State) -> float:
    """When our term is over unless it is renewed; minus infinity when there is none."""
    return -math.inf if state.term is None else state.term + rules.renew_s


def others(rules: Rules, state: State) -> float:
    """Before when nobody else can lead, if our term is not renewed; minus infinity when there is no term."""
    return -math.inf if state.term is None else state.term + rules.lease_s


def free_at(rules: Rules, state: State) -> float:
    """When the Lease may be taken if it stays as it was seen: minus infinity when it is free, or written as ours."""
    record = state.record
    if record is None:
        return math.inf
    if not record.version:
        return state.since + rules.lease_s
    if record.holder in {"", rules.me}:
        return -math.inf
    return state.since + (record.duration_s if record.duration_s > 0 else rules.lease_s)


def read(rules: Rules, state: State, record: Record, sent: float, now: float) -> State:
    """The Lease was read: asked at ``sent``, answered at ``now``."""
    same = state.record is not None and state.record.version == record.version
    if not record.version and now - state.heard > _GAPS * rules.retry_s:
        same = False  # no version tells whether there was one while we did not look
    since = state.since if same else now
    mine = state.term is not None and (record.holder == rules.me or not record.version)
    return replace(state, record=record, since=since, heard=now, known=True, due=now if mine else sent + rules.retry_s, why=_why(rules, record))


def wrote(rules: Rules, record: Record, sent: float, now: float) -> State:
    """Our write was acknowledged, and ``record`` is what the server made of it."""
    if record.holder != rules.me:
        return State(record, now, now, known=True, due=now + rules.retry_s, why=_why(rules, record))
    return State(record, now, now, known=True, due=sent + rules.retry_s, term=sent, why="we hold the Lease")


def refused(rules: Rules, state: State, now: float) -> State:
    """Somebody else wrote in between (409), or what we would write on is gone (404): look again, soon."""
    return replace(state, known=False, due=now + rules.retry_s * _SOON, why="somebody else wrote the Lease at the same time")


def failed(rules: Rules, state: State, why: str, sent: float, now: float) -> State:
    """No answer, or one that says no. What was sent may have been done, now or later.

    After an answer it is asked again soon: the first failure is mostly a connection whose server went, and another one may answer.
    """
    soon = now + rules.retry_s * _SOON if state.known else math.inf
    return replace(state, known=False, due=max(now, min(soon, sent + rules.retry_s)), why=why)


def yielded(state: State, now: float, why: str) -> State:
    """The work has stopped; from here on we are a candidate like others."""
    return replace(state, term=None, due=now, why=why)


def taken(rules: Rules, state: State, wall: float) -> Write | None:
    """The write that takes the Lease from who holds it, because a person wants that; None when nobody else does, as far as is known."""
    record = state.record
    if not state.known or record is None or not record.version or record.holder in {"", rules.me}:
        return None
    return Write(_ours(rules, record, wall))


def release(rules: Rules, state: State, wall: float) -> Read | Write | None:
    """What is left to do after the work has ended in order, so that the next can lead at once; None: nothing."""
    if not state.known or state.record is None:
        return Read()
    if not state.record.version or state.record.holder != rules.me:
        return None
    stamp = _stamp(wall, state.record.renewed)
    return Write(replace(state.record, holder="", duration_s=1, acquired=stamp, renewed=stamp))


def _ours(rules: Rules, record: Record, wall: float) -> Record:
    stamp, same = _stamp(wall, record.renewed), record.holder == rules.me
    return Record(
        rules.me,
        math.ceil(rules.lease_s),
        record.acquired if same and record.acquired else stamp,
        stamp,
        min(record.transitions + (not same and bool(record.version)), _MOST),
        record.version,
    )


def _stamp(wall: float, before: int) -> int:
    """Never the same as before, and never a whole second: the server wants six fraction digits, which writers leave out when they are 0."""
    stamp = max(round(wall * US), 1)
    while stamp % US == 0 or stamp == before:
        stamp += 1
    return stamp


def _why(rules: Rules, record: Record) -> str:
    if not record.version:
        return f"the Lease is not there; in case somebody deleted it under its holder, it is made in {rules.lease_s:g} s"
    if not record.holder:
        return "nobody holds the Lease"
    return "the Lease is written as ours" if record.holder == rules.me else f"the Lease is held by {_shown(record.holder)}"


def _shown(holder: str) -> str:
    return printable(holder[:_SHOWN])

"""What became of each client: runs of good and of bad answers, for user-minutes and for who was hurt most. Pure.

A client is up until its last good answer, down from its first bad one until its next good one, unknown after ``SILENCE_S`` of silence (in
the manner of "Meaningful Availability", NSDI 2020). Runs can be merged: of clients that are in several files, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

SILENCE_S = 1800.0
"""A client that says nothing for as long is not known to be up or down."""
PEOPLE = 10_000
"""Clients that are followed at once."""
_LEAST_SHARE = 2**20 - 1
_RUNS = 64
"""Runs of one client that are told apart; later ones of the same kind are joined to the last."""


class Person(NamedTuple):
    """A client as one source saw it."""

    source: str
    group: str
    address: str


class Run(NamedTuple):
    """Answers of one kind in a row: when the first and the last of them were asked for, on the clock of the source.

    ``answers`` is how many were bad; good ones are not counted. The last good one may be up to a second later than told.
    """

    first: float
    last: float
    answers: int
    ok: bool


class Client(NamedTuple):
    """A client and its runs, by time."""

    who: Person
    runs: tuple[Run, ...]

    @property
    def bad(self) -> int:
        """Its bad answers."""
        return sum(run.answers for run in self.runs if not run.ok)


class Track:
    """The runs of one client while lines are read; the last one is open.

    ``limit`` is until when an answer of the same kind continues the open run of good ones: while an answer is good and not later than that,
    all that is to be done is to move it (the hot loop does so itself). It is -1 in a run of bad ones, so that every answer is looked at.
    """

    __slots__ = ("bad", "done", "first", "last", "limit")

    def __init__(self, at: float, *, ok: bool) -> None:
        self.done: list[Run] = []
        self._begin(at, ok=ok)

    def _begin(self, at: float, *, ok: bool) -> None:
        self.first = self.last = at
        self.bad = 0 if ok else 1
        self.limit: float = at + SILENCE_S if ok else -1.0

    def seen(self, at: float, *, ok: bool) -> None:
        """One more answer. One that is late (lines are written when requests end) does not go before what was seen."""
        if ok and self.limit >= 0:
            if at <= self.limit:
                self.limit = max(self.limit, at + SILENCE_S)
                if at < self.first and (not self.done or self.done[-1].last <= at):
                    self.first = at
                return
        elif not ok and self.bad and at - self.last <= SILENCE_S:
            self.bad += 1
            self.last = max(self.last, at)
            return
        elif len(self.done) >= _RUNS:  # too many to tell apart: from here on it was hurt now and then
            self.bad += not ok
            self.last, self.limit = max(self.last, at), -1.0
            return
        self.done.append(self._run())
        self._begin(at, ok=ok)

    def _run(self) -> Run:
        return Run(self.first, self.limit - SILENCE_S if self.limit >= 0 else self.last, self.bad, not self.bad)

    def runs(self) -> tuple[Run, ...]:
        """All of them, by time."""
        return tuple(sorted((*self.done, self._run())))

    def hurt(self) -> bool:
        """Whether any answer was bad."""
        return bool(self.bad) or any(not run.ok for run in self.done)

    @property
    def latest(self) -> float:
        """The last answer."""
        return max(self.last, self.limit - SILENCE_S)

    @classmethod
    def kept(cls, runs: Sequence[Run]) -> Track:
        """A track as it was: exactly these runs, by time (at least one). Late lines make them overlap, so that they are not joined again."""
        *done, last = runs
        made = cls(last.first, ok=last.ok)
        made.done, made.last, made.bad = done, last.last, last.answers
        made.limit = last.last + SILENCE_S if last.ok else -1.0
        return made

    def join(self, other: Track) -> Track:
        """This one and what came of the same client in another part of the log; usually that part is the next one."""
        begin = other.done[0].first if other.done else other.first
        if begin < self.latest or len(self.done) + len(other.done) >= _RUNS:
            return Track.of((*self.runs(), *other.runs()))
        mine, theirs = self._run(), other.done[0] if other.done else other._run()
        joined = mine.ok == theirs.ok and theirs.first - mine.last <= SILENCE_S
        if joined:
            mine = Run(mine.first, max(mine.last, theirs.last), mine.answers + theirs.answers, mine.ok)
        if joined and not other.done:
            self.first, self.last, self.bad, self.limit = mine.first, other.last, mine.answers, other.limit
            return self
        self.done += [mine, *other.done[joined:]]
        self.first, self.last, self.bad, self.limit = other.first, other.last, other.bad, other.limit
        return self

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Track:
        """One track of the runs of several: runs of one kind that follow each other closely become one."""
        ordered = sorted(runs)
        made = cls(ordered[0].first, ok=ordered[0].ok)
        for i, run in enumerate(ordered):
            if i:
                made.seen(run.first, ok=run.ok)
            if run.ok:
                made.limit = max(made.limit, run.last + SILENCE_S) if made.limit >= 0 else made.limit
            else:
                made.last, made.bad = max(made.last, run.last), made.bad + run.answers - 1
        return made


class People:
    """The clients that are followed, at most ``PEOPLE``.

    Where there are more, a share of those that were never hurt is followed, the same everywhere: each time that there is no room the share
    is halved, by a hash of the address. A client that gets a bad answer is followed from then on. ``lost`` counts those that were given up.
    """

    __slots__ = ("lost", "mask", "nobody", "tracks")

    def __init__(self) -> None:
        self.tracks: dict[Person, Track] = {}
        self.lost = 0
        self.mask = 0
        self.nobody = Track(0.0, ok=True)
        """What good answers go to whose client is not followed."""

    def track(self, who: Person, at: float, *, ok: bool) -> Track:
        """The track of a client that is new (or was given up), with its first answer."""
        if ok and self._passed_over(who):
            return self.nobody
        if len(self.tracks) >= PEOPLE:
            self._make_room()
            if ok and self._passed_over(who):
                return self.nobody
        found = self.tracks[who] = Track(at, ok=ok)
        return found

    def seen(self, who: Person, at: float, *, ok: bool) -> None:
        """One answer to a client."""
        track = self.tracks.get(who)
        if track is None:
            self.track(who, at, ok=ok)
        else:
            track.seen(at, ok=ok)

    def _passed_over(self, who: Person) -> bool:
        return bool(self.mask) and bool(crc32(who.address.encode()) & self.mask)

    def _make_room(self) -> None:
        before = len(self.tracks)
        while len(self.tracks) > PEOPLE * 3 // 4 and self.mask < _LEAST_SHARE:
            self.mask = 2 * self.mask + 1
            self._thin()
        if len(self.tracks) >= PEOPLE:  # nearly all of them were hurt: those that were silent the longest go
            ranked = sorted(self.tracks.items(), key=lambda item: (item[1].hurt(), item[1].latest))
            self.tracks = dict(ranked[len(ranked) // 4 or 1 :])
        self.lost += before - len(self.tracks)

    def _thin(self) -> None:
        self.tracks = {who: track for who, track in self.tracks.items() if track.hurt() or not self._passed_over(who)}

    def merge(self, other: People) -> None:
        """Take in all of another one."""
        self.lost += other.lost
        if other.mask > self.mask:
            before, self.mask = len(self.tracks), other.mask
            self._thin()
            self.lost += before - len(self.tracks)
        for who, track in other.tracks.items():
            mine = self.tracks.get(who)
            if mine is not None:
                self.tracks[who] = mine.join(track)
                continue
            if len(self.tracks) >= PEOPLE:
                self._make_room()
            if self._passed_over(who) and not track.hurt():
                self.lost += 1
            else:
                self.tracks[who] = track

    def put(self, who: Person, runs: Sequence[Run]) -> None:
        """A client of another one, with its runs (at least one)."""
        mine = self.tracks.get(who)
        if mine is None:
            self.track(who, runs[0].first, ok=True)
        self.tracks[who] = Track.kept(runs) if mine is None else Track.of((*mine.runs(), *runs))

    def clients(self) -> list[Client]:
        """Every client that is followed, with its runs."""
        return [Client(who, track.runs()) for who, track in self.tracks.items()]

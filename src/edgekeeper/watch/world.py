"""The world of a replay: when a service was dead, told by its recorded answers or assumed from its log. Pure.

A *wedge* is one time in which the service does not answer. With recorded answers of a probe it begins with the first that failed
and ends with the first good one. Without them it is assumed to begin with the first line of a burst, and to end with a line that
says so (the service is well again, or was started), else when no line of it has come for a while.

Where a wedge began and ended is known within bounds only; every duration that is made of them is an interval.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from edgekeeper.measure.outages import outages
from edgekeeper.model.sample import Sample
from edgekeeper.watch.fingerprint import Burst, BurstState, add

QUIET_S: Final = 60.0
"""A burst is assumed to be over, and the service well, when no line of it has come for so long and no other line said so earlier."""

VAIN_S: Final = 10.0
"""Lines that go on so soon after a recorded start tell that it did not help; after a line that says it is well, that it was not."""

_NEAR: Final = 256
"""Good answers that are kept on either side of a bad one: more questions than that are never under way at once."""


class Kind(StrEnum):
    """What a line of the log is a sign of."""

    HIT = "hit"
    RECOVERED = "recovered"
    STARTED = "started"


@dataclass(frozen=True, slots=True)
class Sign:
    """A line of the log that means something: when it was written (Unix seconds), and what it says from the match on.

    ``count`` lines with the same ``rest`` stand as one where they came close together; ``last`` is when the last of them was written.
    """

    at: float
    kind: Kind = Kind.HIT
    text: str = ""
    rest: str = ""
    count: int = 1
    last: float = -math.inf

    @property
    def until(self) -> float:
        """When the last of the lines was written that this one stands for."""
        return max(self.at, self.last)


class Thinner:
    """Keeps a flood small: lines that say the same within a tenth of a second stand as one, with their number.

    No more than ``most`` are kept. When there are more, the tenth becomes a fifth, and so on; ``width_s`` says how wide it has become.
    At most ``distinct`` different ones are kept of each such time, which is as many as a burst asks for.
    """

    def __init__(self, distinct: int = 1, most: int = 20_000) -> None:
        self.width_s = 0.1
        self._distinct = max(1, distinct)
        self._most = max(4 * self._distinct, most)
        self._kept: list[_Row] = []
        self._bucket: dict[tuple[Kind, str], _Row] = {}
        self._number = -1

    def add(self, at: float, kind: Kind, text: str, rest: str) -> None:
        """One more line, in the order of the log."""
        self._add(at, kind, text, rest, 1, at)
        while len(self._kept) > self._most:
            before, self._kept, self._bucket, self._number = sorted(self._kept, key=lambda row: row.at), [], {}, -1
            self.width_s *= 2
            for row in before:
                self._add(row.at, row.kind, row.text, row.rest, row.count, row.last)

    def signs(self) -> tuple[Sign, ...]:
        """What was kept, by time."""
        return tuple(sorted((Sign(row.at, row.kind, row.text, row.rest, row.count, row.last) for row in self._kept), key=lambda sign: sign.at))

    def _add(self, at: float, kind: Kind, text: str, rest: str, count: int, last: float) -> None:
        number = int(at // self.width_s)
        if number != self._number:
            self._number, self._bucket = number, {}
        key = (kind, rest if kind is Kind.HIT else "")
        row = self._bucket.get(key)
        if row is None and len(self._bucket) >= self._distinct + 2:
            row = next((kept for kept in self._bucket.values() if kept.kind is kind), None)
        if row is None:
            self._bucket[key] = row = _Row(at, kind, text, rest)
            self._kept.append(row)
        else:
            row.at = min(row.at, at)
        row.count += count
        row.last = max(row.last, last)


@dataclass(slots=True)
class _Row:
    """A sign while more lines may come that it stands for."""

    at: float
    kind: Kind
    text: str
    rest: str
    count: int = 0
    last: float = -math.inf


@dataclass(frozen=True, slots=True)
class Wedge:
    """One time in which the service is dead: questions asked in ``[start, end)`` fail (``end`` infinite: none was seen).

    ``began`` and ``ended`` are the bounds within which it really stopped and began to answer. ``vain``: the record has a start of the
    service in it, or at its end, that did not help.
    """

    start: float
    end: float
    began: tuple[float, float]
    ended: tuple[float, float]
    by: str
    answer_s: float | None = None
    """How long its failed answers took; None where that is not known."""
    vain: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """When the service was dead, when it was started, and until when the record goes; ``notes`` are the sentences about what is assumed."""

    wedges: tuple[Wedge, ...]
    starts: tuple[float, ...]
    last: float
    recorded: bool
    notes: tuple[str, ...] = ()


def from_lines(signs: Sequence[Sign], last: float, burst: Burst | None = None, quiet_s: float = QUIET_S) -> World:
    """The world that a log alone tells of, up to ``last`` (Unix seconds): the service is dead from the first line of a burst on."""
    bursts = _Bursts(burst or Burst(), quiet_s)
    for sign in signs:
        bursts.add(sign)
    note = (
        "no recorded answers are given (--probes): it is assumed that the probe fails from the first line of a burst on, until a line says that the "
        f"service is well or was started, else until no line of it has come for {quiet_s:g} s"
    )
    starts = tuple(sign.at for sign in signs if sign.kind is Kind.STARTED)
    return World(_in_vain(bursts.wedges(last)), starts, last, recorded=False, notes=(note,))


class _Bursts:
    """Lines to bursts, in the order of time."""

    def __init__(self, burst: Burst, quiet_s: float) -> None:
        self._burst = burst
        self._quiet_s = quiet_s
        self._over: list[Wedge] = []
        self._open: tuple[float, float] | None = None  # of its first and its last line
        self._state = BurstState()

    def add(self, sign: Sign) -> None:
        """One more sign."""
        if self._open is not None and sign.at > self._open[1] + self._quiet_s:
            self._silent(*self._open)
        if sign.kind is not Kind.HIT:
            if self._open is not None:
                first, final = self._open
                self._close(Wedge(first, sign.at, (first, first), (min(final, sign.at), sign.at), str(sign.kind)))
            self._state = BurstState()
        elif self._open is not None:
            self._open = (self._open[0], max(self._open[1], sign.until))
        elif self._over and self._over[-1].by == Kind.RECOVERED and sign.at - self._over[-1].end < VAIN_S:
            self._open = (self._over.pop().start, sign.until)
        else:
            self._begin(sign)

    def wedges(self, last: float) -> list[Wedge]:
        """All of them, at the end of a record."""
        if self._open is None:
            return self._over
        first, final = self._open
        if last > final + self._quiet_s:
            self._silent(first, final)
            return self._over
        return [*self._over, Wedge(first, math.inf, (first, first), (final, math.inf), "nothing")]

    def _begin(self, sign: Sign) -> None:
        for _ in range(min(sign.count, self._burst.lines)):
            self._state, reached = add(self._burst, self._state, sign.rest, sign.at)
            if reached:
                self._open = (self._state.times[0], sign.until)
                return

    def _silent(self, first: float, final: float) -> None:
        self._close(Wedge(first, final + self._quiet_s, (first, first), (final, final + self._quiet_s), "silence"))

    def _close(self, wedge: Wedge) -> None:
        self._over.append(wedge)
        self._open, self._state = None, BurstState()


def _in_vain(wedges: Sequence[Wedge]) -> tuple[Wedge, ...]:
    """A start after which the lines go on at once did not help: the service stayed dead, and one of our cures would not have helped either."""
    nexts = (*(w.start for w in wedges[1:]), math.inf)
    vain = [w.by == Kind.STARTED and after - w.end < VAIN_S for w, after in zip(wedges, nexts, strict=False)]
    return tuple(replace(w, end=after, ended=(w.end, after), vain=True) if bad else w for w, after, bad in zip(wedges, nexts, vain, strict=False))


class Record:
    """What a file of recorded answers says, kept small: of long runs of good answers only their ends."""

    def __init__(self) -> None:
        self.count = 0
        self.first = math.inf
        self.last = -math.inf
        self.gap_s = 0.0
        """The longest time between two questions to one target."""
        self._kept: dict[tuple[str, str], list[Sample]] = {}
        self._near: dict[tuple[str, str], list[Sample]] = {}
        self._after: dict[tuple[str, str], int] = {}
        self._asked: dict[tuple[str, str], float] = {}

    def add(self, sample: Sample) -> None:
        """One more answer, about in the order in which they were given."""
        key = (sample.target, sample.conn)
        sent, done = sample.ts, sample.ts + max(0.0, sample.done - sample.sent)
        self.count += 1
        self.gap_s = max(self.gap_s, sent - self._asked.get(key, sent))
        self._asked[key] = max(sent, self._asked.get(key, sent))
        self.first, self.last = min(self.first, sent), max(self.last, done)
        kept, near = self._kept.setdefault(key, []), self._near.setdefault(key, [])
        if not sample.ok:
            kept.extend(near)
            near.clear()
            kept.append(sample)
            self._after[key] = _NEAR
        elif left := self._after.get(key, _NEAR):
            kept.append(sample)
            self._after[key] = left - 1
        else:
            near.append(sample)
            if len(near) > 2 * _NEAR:
                del near[:_NEAR]

    def targets(self) -> tuple[str, ...]:
        """The targets that were asked."""
        return tuple(dict.fromkeys(target for target, _ in self._kept))

    def samples(self, target: str) -> list[Sample]:
        """The kept answers of one target on the clock of the log, those over fresh connections where there are any: that is the clients' way."""
        kinds = [conn for name, conn in self._kept if name == target]
        conn = "fresh" if "fresh" in kinds else kinds[0]
        return [replace(s, sent=s.ts, done=s.ts + s.done - s.sent) for s in (*self._kept[target, conn], *self._near[target, conn])]


def from_probes(record: Record, signs: Sequence[Sign], last: float, *, targets: Iterable[str] = (), need: str = "any", within_s: float = 15.0) -> World:
    """The world as a probe saw it; ``targets`` are those that count (all when none of them was asked), ``need`` as in a watch's probe.

    A recorded start of the service that was not followed by a good answer within ``within_s`` did not help. What the log has beyond
    the time of the record is not judged: the service counts as well there, and that is told.
    """
    wanted = [target for target in targets if target in record.targets()] or list(record.targets())
    each = [_wedges(record.samples(target), record.last) for target in wanted]
    merged = _union(each) if need == "all" else _shared(each)
    starts = tuple(sign.at for sign in signs if sign.kind is Kind.STARTED)
    wedges = tuple(replace(w, vain=any(w.start <= at < w.end - within_s for at in starts)) for w in merged)
    notes = ["the probe's recorded answers count; between two of them the service is as the earlier one says"]
    outside = sum(sign.count for sign in signs if sign.kind is Kind.HIT and not record.first <= sign.at <= record.last)
    if outside:
        notes.append(f"{outside} lines are of a time that the recorded answers do not cover; the service counts as well there")
    if record.gap_s > 10:
        notes.append(f"the recorded answers have a gap of {record.gap_s:.0f} s; what happened in it is not known")
    if len(wanted) > 1:
        notes.append(f"{len(wanted)} targets were asked; the service is well when {need} of them {'answers' if need == 'any' else 'answer'}")
    return World(wedges, starts, max(last, record.last), recorded=True, notes=tuple(notes))


def _wedges(samples: Sequence[Sample], last: float) -> list[Wedge]:
    ordered = sorted(samples, key=lambda s: (s.sent, s.done))
    sent = [s.sent for s in ordered]
    out = []
    for found in outages(ordered):
        first = ordered[bisect_right(sent, found.first_bad) - 1]
        after = bisect_right(sent, found.last_bad)
        good = ordered[after] if after < len(ordered) else None
        back = (good.sent, good.done) if good is not None else (math.inf, math.inf)
        before = _good_before(ordered, found.first_bad)
        ended = (min(found.last_bad, last), back[1])
        out.append(Wedge(found.first_bad, back[0], (before, first.done), ended, "probe" if good is not None else "nothing", first.done - first.sent))
    return out


def _good_before(ordered: Sequence[Sample], moment: float) -> float:
    """When the youngest good question was sent that was answered by then; a question that was still under way proves nothing."""
    at = bisect_left(ordered, moment, key=lambda s: s.sent)
    return max((s.sent for s in ordered[max(0, at - _NEAR) : at] if s.ok and s.done <= moment), default=-math.inf)


def _union(each: Sequence[Sequence[Wedge]]) -> list[Wedge]:
    """Dead while any target is."""
    out: list[Wedge] = []
    for wedge in sorted((w for one in each for w in one), key=lambda w: w.start):
        if out and wedge.start <= out[-1].end:
            longer = max(out[-1], wedge, key=lambda w: w.end)
            out[-1] = replace(out[-1], end=longer.end, ended=longer.ended, by=longer.by)
        else:
            out.append(wedge)
    return out


def _shared(each: Sequence[Sequence[Wedge]]) -> list[Wedge]:
    """Dead while all targets are."""
    out = list(each[0]) if each else []
    for other in each[1:]:
        out = [_both(a, b) for a in out for b in other if max(a.start, b.start) < min(a.end, b.end)]
    return sorted(out, key=lambda w: w.start)


def _both(a: Wedge, b: Wedge) -> Wedge:
    late, early = max(a, b, key=lambda w: w.start), min(a, b, key=lambda w: w.end)
    return replace(late, end=early.end, ended=early.ended, by=early.by)

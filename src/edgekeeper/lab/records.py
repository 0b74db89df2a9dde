"""What the load generator wrote, read as figures: unanswered within 3 s and 5 s, late answers, who answered. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from edgekeeper.measure.outages import Outage, longest, outages
from edgekeeper.model.sample import Sample

LATE_S = 0.05
"""An answer after this long counts as late: ten times what an undisturbed edge needs."""
QUIET_S = 1.0
"""Good answers for this long end an outage: while one of three members is dead, good and bad alternate."""


@dataclass(frozen=True, slots=True)
class Record:
    """One question of the load: ``done`` and ``rcode`` are None when no answer came; ``by`` is the answer's last byte."""

    number: int
    sent: float
    done: float | None
    rcode: int | None
    by: int | None
    tries: int
    error: str | None

    def good(self, within_s: float) -> bool:
        """Whether it was answered NOERROR within so many seconds."""
        return self.done is not None and self.rcode == 0 and self.done - self.sent <= within_s


@dataclass(frozen=True, slots=True)
class Tally:
    """The figures of one load. Seconds; ``wrong`` are answers with an error code (SERVFAIL, REFUSED)."""

    asked: int
    unanswered_3s: int
    unanswered_5s: int
    wrong: int
    late: int
    latest_s: float
    most_tries: int
    outage: Outage | None
    by: dict[int, int] = field(default_factory=dict)
    rcodes: dict[int, int] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        """The figures by the names that promises use."""
        return {
            "asked": self.asked,
            "unanswered_3s": self.unanswered_3s,
            "unanswered_5s": self.unanswered_5s,
            "wrong": self.wrong,
            "late": self.late,
            "latest_s": round(self.latest_s, 3),
            "most_tries": self.most_tries,
        }


def read(text: Iterable[str]) -> tuple[Record, ...]:
    """Records from the lines that the load generator wrote; ValueError for anything else."""
    out = []
    for line in text:
        match json.loads(line):
            case [int(number), float(sent), done, rcode, by, int(tries), error]:
                out.append(Record(number, sent, done, rcode, by, tries, error))
            case _:
                msg = f"{line[:60]!r} is not a record of the load generator"
                raise ValueError(msg)
    return tuple(out)


def samples(records: Sequence[Record], within_s: float, *, datagrams: bool = True) -> tuple[Sample, ...]:
    """The records as samples of a client that waits ``within_s``.

    A datagram is sent once: whatever lost it was so within a moment of sending, and so ``done`` of one
    that was never answered is that moment, not the client's timeout. Over a connection it is the timeout.
    """
    return tuple(_sample(r, within_s, datagrams=datagrams) for r in records)


def _sample(record: Record, within_s: float, *, datagrams: bool) -> Sample:
    ok = record.good(within_s)
    done = record.sent + (LATE_S if datagrams else within_s)
    if record.done is not None and (ok or record.rcode != 0):
        done = record.done  # an error code is a failure that was known at once
    return Sample(record.sent, "dns", "warm", record.sent, done, ok, slow=ok and done - record.sent > LATE_S)


def tally(records: Sequence[Record], within_s: float = 3.0, *, datagrams: bool = True) -> Tally:
    """All figures. The outage is what a client with a timeout of ``within_s`` saw."""
    good = [r for r in records if r.good(float("inf"))]
    times = [r.done - r.sent for r in good if r.done is not None]
    return Tally(
        asked=len(records),
        unanswered_3s=sum(not r.good(3.0) for r in records),
        unanswered_5s=sum(not r.good(5.0) for r in records),
        wrong=sum(r.rcode not in (None, 0) for r in records),
        late=sum(t > LATE_S for t in times),
        latest_s=max(times, default=0.0),
        most_tries=max((r.tries for r in records), default=0),
        outage=longest(outages(samples(records, within_s, datagrams=datagrams), quiet_s=QUIET_S)),
        by=dict(sorted(Counter(r.by for r in good if r.by is not None).items())),
        rcodes=dict(sorted(Counter(r.rcode for r in records if r.rcode is not None).items())),
    )

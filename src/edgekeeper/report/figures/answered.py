"""Who answered a probe, and when that changed: a VIP that moves, a member that takes over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edgekeeper.model.sample import Sample
from edgekeeper.model.text import printable
from edgekeeper.model.time import Span
from edgekeeper.report.document import Figure, Point, Row, Table, Timeline
from edgekeeper.report.figures.say import clock, many
from edgekeeper.report.study import Study

MOST_ROWS = 200
FEW = 20
"""Changes of one target from which on it is told as taking turns: several members answer side by side."""


@dataclass(frozen=True, slots=True)
class Change:
    """From one who answered to another.

    ``last`` is when the last question that the old one answered was sent, ``first`` when the first answer of the new one was there; ``lost``
    questions in between were not answered at all.
    """

    old: str
    new: str
    last: float
    first: float
    lost: int

    @property
    def span(self) -> Span:
        """How long nobody answered at most; that it was dark at all is for other figures to say."""
        return Span(0.0, self.first - self.last)


def changes(samples: Iterable[Sample]) -> list[Change]:
    """Every change of who answered one target, in the order in which questions were sent."""
    found: list[Change] = []
    before: Sample | None = None
    lost = 0
    for sample in sorted(samples, key=lambda s: (s.sent, s.done)):
        if not sample.ok:
            lost += 1
        elif sample.answered_by:
            if before is not None and before.answered_by is not None and before.answered_by != sample.answered_by:
                found.append(Change(before.answered_by, sample.answered_by, before.sent, sample.done, lost))
            before, lost = sample, 0
    return found


def answered(study: Study) -> Figure:
    """Per target the changes of who answered, with how long each may have taken."""
    told = {key: samples for key, samples in study.samples().items() if any(s.answered_by for s in samples)}
    if not told:
        return Figure("WHO", "Who answered", "no probe was told who answered it", measured=False)
    found = {key: changes(samples) for key, samples in sorted(told.items())}
    moved = {key: some for key, some in found.items() if 0 < len(some) < FEW}
    turns = [key for key, some in found.items() if len(some) >= FEW]
    rows = [(*_named(key), printable(c.old, 60), printable(c.new, 60), clock(c.last), c.span.text(), str(c.lost)) for key, some in moved.items() for c in some]
    count = sum(map(len, moved.values()))
    worst = max((c for some in moved.values() for c in some), key=lambda c: c.span.max_s, default=None)
    said = f"{many(count, 'change')} of who answered, each within {worst.span.max_s:.2f} s at most" if worst else "the same one answered all the time"
    return Figure(
        "WHO",
        "Who answered",
        said if moved or not turns else "several answered in turn",
        table=Table(("target", "asked from", "until then", "from then on", "at", "took", "questions lost"), tuple(rows[:MOST_ROWS])) if rows else None,
        notes=tuple(f"{_named(key)[0]}: several answer in turn ({len(found[key])} changes); no move can be told from that." for key in turns),
        timeline=_timeline(study, moved),
        data={
            "changes": [
                {"target": key[1], "old": c.old, "new": c.new, "at": c.last, "max_s": c.span.max_s, "lost": c.lost} for key, some in moved.items() for c in some
            ]
        },
    )


def _named(key: tuple[str, str, str]) -> tuple[str, str]:
    source, target, conn = key
    return f"{target} ({conn})", source


def _timeline(study: Study, moved: Mapping[tuple[str, str, str], Sequence[Change]]) -> Timeline | None:
    rows = tuple(Row("edge", _named(key)[0], (), tuple(Point(c.first, printable(c.new, 28), "up") for c in some)) for key, some in moved.items())
    return Timeline(study.window.begin, study.window.end, rows) if rows else None

"""From a book to a report: the window, the clocks, the drains, the outages, then every figure. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from edgekeeper.report import figures
from edgekeeper.report.book import Book
from edgekeeper.report.causes import caused
from edgekeeper.report.document import Clock, Report, Window
from edgekeeper.report.figures.baseline import quiet
from edgekeeper.report.figures.clocks import clocks_of
from edgekeeper.report.figures.compare import compared
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.outages import outages
from edgekeeper.report.study import Settings, Study, baseline_of, whole, window_of
from edgekeeper.report.verdict import judge


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for: windows (None: as the inputs suggest), a roll by its id, the clock of reference, known clocks, a former report.

    ``clocks`` are seconds to add to the stamps of a node; ``against`` is a former report as its JSON.
    """

    window: Window | None = None
    baseline: Window | None = None
    roll: str = ""
    reference: str = ""
    clocks: Mapping[str, float] = field(default_factory=dict)
    against: Mapping[str, Any] | None = None


def make(book: Book, settings: Settings, wanted: Wanted) -> Report:
    """The whole report of what was read."""
    clocks = {clock.node: clock for clock in clocks_of(book, wanted.reference or reference_of(book, wanted.clocks), wanted.clocks)}
    study = Study(book, Window(0.0, 0.0), None, clocks, settings)
    study.window = whole(wanted.window) if wanted.window is not None else _suggested(study, wanted.roll)
    study.baseline = whole(wanted.baseline) if wanted.baseline is not None else baseline_of(study.window, _first(study))
    study.drains = drains(study)
    study.outages = outages(study)
    study.outages = caused(study)
    found = [figure(study) for figure in figures.ALL]
    if wanted.against is not None:
        found.append(compared(study, wanted.against))
    verdict, can_judge = judge(study)
    return Report(
        verdict=verdict,
        can_judge=can_judge,
        window=study.window,
        baseline=quiet(study)[0],
        figures=tuple(found),
        outages=study.outages,
        clocks=tuple(clocks.values()),
        skipped=dict(sum((source.skipped for source in book.sources.values()), Counter())),
        lines=sum(source.lines for source in book.sources.values()),
        sources=tuple(_source(study, name) for name in sorted(book.sources)),
        routes=tuple(study.routers()),
        not_measured=tuple(f"{figure.title}: {figure.answer}" for figure in found if not figure.measured),
    )


def reference_of(book: Book, given: Collection[str] = ()) -> str:
    """The machine whose clock the others are measured against: that of the access log with the most lines, else of the largest source.

    Never one of ``given``, whose clocks are known to be wrong; "" where no other is left: then they are corrected to the time that was meant.
    """
    lanes = Counter(dict.fromkeys(book.sources, 0))
    for lane in book.cells.lanes():
        if lane.source in lanes:
            lanes[lane.source] += book.sources[lane.source].lines
    ranked = sorted(book.sources.values(), key=lambda s: (-lanes[s.name], -s.lines, s.name))
    return next((node for s in ranked if (node := s.node or s.name) not in given), "")


def _suggested(study: Study, roll: str) -> Window:
    """The window out of the marks, on the clock of reference; of one roll where its id is given."""
    shifted = [replace(m, at=m.at + study.shift(m.source)) if m.at is not None else m for m in study.book.marks]
    if roll:
        shifted = [m for m in shifted if m.data.get("roll") == roll]
        if not shifted:
            return Window(0.0, 0.0, f"no line that was read belongs to the roll {roll}")
    return window_of(study.covered(study.book.sources), shifted)


def _first(study: Study) -> float | None:
    """When the earliest request or probe was, on the clock of reference: only they can be a baseline."""
    asked = {lane.source for lane in study.book.cells.lanes()} | {key[0] for key in study.book.samples}
    firsts = [s.first + study.shift(s.name) for s in study.book.sources.values() if s.first is not None and s.name in asked]
    return min(firsts, default=None)


def _source(study: Study, name: str) -> dict[str, Any]:
    source = study.book.sources[name]
    clock: Clock | None = study.clocks.get(study.node_of(name))
    return {
        "name": source.name,
        "path": source.path,
        "format": source.format,
        "node": source.node,
        "lines": source.lines,
        "skipped": dict(source.skipped),
        "zone": source.zone,
        "stamp_s": source.stamp_s,
        "first": source.first,
        "last": source.last,
        "shift_s": clock.shift_s if clock is not None else 0.0,
        "warnings": list(source.warnings),
    }


def values_of(report: Report) -> dict[str, float]:
    """What ``--fail-if`` may ask of a report; what was not measured is left out."""
    values = {
        "outage": max((hurt.span.max_s for hurt in report.outages), default=0.0),
        "outage.min": max((hurt.span.min_s for hurt in report.outages), default=0.0),
        "outages": float(len(report.outages)),
    }
    values["outage.max"] = values["outage"]
    for figure in report.figures:
        values |= {name: float(figure.data[name]) for name in ("bad", "budget") if figure.measured and isinstance(figure.data.get(name), float)}
    return values

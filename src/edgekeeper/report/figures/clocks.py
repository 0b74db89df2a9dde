"""F13: how far the clocks of the sources are apart, raw and corrected. Pure.

Nothing is corrected silently: what was added to stamps is shown with its interval, and every bound that takes two clocks is widened by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from edgekeeper.measure.clocks import Bound, Offset, solve
from edgekeeper.report.book import Book, Source
from edgekeeper.report.clockpairs import bounds
from edgekeeper.report.document import Clock, Figure, Table
from edgekeeper.report.figures.say import clock, many, some
from edgekeeper.report.study import Study

REFERENCE = "the clock of reference"
GIVEN = "as the config says"
UNKNOWN = "not known: it shares no event with another"


def clocks_of(book: Book, reference: str, given: Mapping[str, float]) -> tuple[Clock, ...]:
    """The clock of every machine that wrote a source; ``given`` are seconds to add that are known beforehand, by machine."""

    def node_of(source: str) -> str:
        known = book.sources.get(source)
        return (known.node if known is not None else "") or source

    told = bounds(book.marks, node_of)
    fixed = [Bound(node, reference, shift, shift, 0.0, GIVEN) for node, shift in given.items() if node != reference]
    free = [b for b in told if {b.node, b.other} - {reference, *given}]  # what is given is not estimated again
    found = solve([*free, *fixed], reference)
    nodes = sorted({node_of(name) for name in book.sources} | set(given))
    clocks = [Clock(reference, 0.0, 0.0, 0.0, REFERENCE)] if reference else []
    for node in nodes:
        if node == reference:
            continue
        offset = found.get(node)
        if node in given:
            clocks.append(Clock(node, given[node], given[node], given[node], GIVEN))
        elif offset is None or not (math.isfinite(offset.low) or math.isfinite(offset.high)):
            clocks.append(Clock(node, None, None, 0.0, UNKNOWN))
        else:
            clocks.append(_clock(node, offset))
    return tuple(clocks)


def _clock(node: str, offset: Offset) -> Clock:
    method = f"{', '.join(offset.methods)} ({many(offset.events, 'event')})"
    if offset.drift is not None:
        gains = [-1e6 * gain for gain in offset.drift]  # what is to be added falls while the clock gains
        way, sizes = ("gains", gains) if min(gains) > 0 else ("loses", [-gain for gain in gains]) if max(gains) < 0 else ("gains", gains)
        method += f"; it {way} {min(sizes):.0f} to {max(sizes):.0f} s in a million"
    elif offset.steps:
        method += "; it was set " + some([f"between {clock(begin)} and {clock(end)}" for begin, end in offset.steps], 3)
    elif offset.moved:
        method += "; what they say contradicts itself"
    return Clock(
        node,
        offset.low if math.isfinite(offset.low) else None,
        offset.high if math.isfinite(offset.high) else None,
        round(offset.shift, 6),
        method,
        offset.moved,
    )


def f13(study: Study) -> Figure:
    """Per machine: what was added to its stamps, the interval that it lies in, its first stamp raw and corrected, and how it is known."""
    clocks = list(study.clocks.values())
    others = [c for c in clocks if c.method != REFERENCE]
    if not others:
        return Figure("F13", "Clocks", "all that was read is of one clock")
    known = [c for c in others if c.min_s is not None or c.max_s is not None]
    unknown = [c.node for c in others if c.min_s is None and c.max_s is None]
    off = [c for c in known if c.shift_s]
    return Figure(
        "F13",
        "Clocks",
        _answer(off, known, unknown),
        measured=bool(known),
        table=Table(("machine", "added", "between", "its first stamp", "corrected", "known by"), tuple(_row(study, c) for c in clocks)),
        notes=tuple(_notes(known, unknown)),
        data={"clocks": [{"node": c.node, "shift_s": c.shift_s, "min_s": c.min_s, "max_s": c.max_s, "moved": c.moved} for c in clocks]},
    )


def _answer(off: Sequence[Clock], known: Sequence[Clock], unknown: Sequence[str]) -> str:
    parts = []
    if off:
        worst = max(off, key=lambda c: abs(c.shift_s))
        way = "behind" if worst.shift_s > 0 else "ahead"
        parts.append(f"{many(len(off), 'clock')} corrected, the most that of {worst.node}, which is {_span(worst)} {way}")
    elif known:
        parts.append("no clock is proven wrong")
    if unknown:
        parts.append(f"nothing tells of {some(unknown)}, taken as right")
    return "; ".join(parts)


def _span(found: Clock) -> str:
    sides = sorted(abs(bound) for bound in (found.min_s, found.max_s) if bound is not None)
    if len(sides) == 2:
        return f"{sides[0]:.2f} s to {sides[1]:.2f} s"
    return f"at least {sides[0]:.2f} s" if sides else "?"


def _row(study: Study, found: Clock) -> tuple[str, ...]:
    sources = [s for s in study.book.sources.values() if study.node_of(s.name) == found.node and s.first is not None]
    first = min(sources, key=_began, default=None)
    raw = _began(first) if first is not None else None
    low = f"{found.min_s:+.3f} s" if found.min_s is not None else "no bound"
    high = f"{found.max_s:+.3f} s" if found.max_s is not None else "no bound"
    between = "-" if found.min_s is None and found.max_s is None else f"{low} to {high}"
    return (found.node, f"{found.shift_s:+.3f} s", between, clock(raw), clock(raw + found.shift_s if raw is not None else None), found.method)


def _began(source: Source) -> float:
    return source.first if source.first is not None else math.inf


def _notes(known: Sequence[Clock], unknown: Sequence[str]) -> list[str]:
    notes = []
    one = [c.node for c in known if c.min_s is None or c.max_s is None]
    if one:
        notes.append(f"Of {some(one)} only one side is known, since messages went one way only.")
    moved = [c.node for c in known if c.moved]
    if moved:
        notes.append(f"No single number fits {some(moved)}: the interval covers all that the clock showed.")
    if unknown:
        notes.append("Let probes mark their questions (edgekeeper probe --mark): their ids in the access log tell how far two clocks are apart.")
    return notes

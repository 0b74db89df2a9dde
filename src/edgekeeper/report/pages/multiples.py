"""Small multiples: requests and failures of each class of clients by the minute, each on its own scale. Pure.

Never stacked: where the smallest class goes dark, a stacked picture shows a notch that nobody sees. Requests go up from the line,
failures down from it; a minute without requests is hatched, because it is not a minute without failures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from edgekeeper.report.document import Series
from edgekeeper.report.pages.markup import Markup, el
from edgekeeper.report.pages.svg import Axis, bands, beside, chart, grid, stretched
from edgekeeper.report.pages.when import Times, known

MOST_BINS = 180
"""Columns of one picture: on a telephone each is still about two pixels wide."""
MOST = 24
"""Pictures of one figure."""

_TOP = 20
_UP = 54
_DOWN = 26


@dataclass(frozen=True, slots=True)
class Bin:
    """One column: some minutes from ``begin``. ``silent`` is whether any of them had no request, ``requests`` None where none was measured."""

    begin: float
    end: float
    requests: int | None
    bad: int
    silent: bool


def bins(series: Series, most: int = MOST_BINS) -> tuple[Bin, ...]:
    """Minutes, or several together where there are too many to draw. One silent minute makes a silent column: it must not vanish."""
    minutes = series.minutes
    size = max(1, math.ceil(len(minutes) / most))
    out: list[Bin] = []
    for i in range(0, len(minutes), size):
        part = minutes[i : i + size]
        seen = [n for _, n, _ in part if n is not None]
        out.append(Bin(part[0][0], part[-1][0] + 60, sum(seen) if seen else None, sum(b for _, _, b in part), any(n == 0 for n in seen)))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Totals:
    """What a series adds up to."""

    requests: int
    bad: int
    silent: int
    unmeasured: int
    most_requests: int
    most_bad: int


def totals(series: Series) -> Totals:
    """Sums and largest minutes."""
    seen = [n for _, n, _ in series.minutes if n is not None]
    bad = [b for _, _, b in series.minutes]
    return Totals(sum(seen), sum(bad), seen.count(0), len(series.minutes) - len(seen), max(seen, default=0), max(bad, default=0))


def sentence(series: Series) -> str:
    """``6,213 requests, 112 failed; no requests in 3 of 54 minutes``."""
    total = totals(series)
    said = f"{total.requests:,} requests, {total.bad:,} failed"
    if total.silent:
        said += f"; no requests in {total.silent} of {len(series.minutes)} minutes"
    if total.unmeasured:
        said += f"; {total.unmeasured} of {len(series.minutes)} minutes not measured"
    return said


def axis_of(several: Sequence[Series]) -> Axis:
    """One axis for all of a figure, so that what lies under each other was at one time."""
    begins = [at for series in several for at, _, _ in series.minutes if known(at)]
    return Axis(min(begins), max(begins) + 60) if begins else Axis(0, 60)


def plot(key: str, series: Series, times: Times, work: Sequence[tuple[float, float]] = (), axis: Axis | None = None) -> Markup:
    """One class of clients, on the axis of its kin."""
    columns = bins(series)
    axis = axis or axis_of([series])
    most = max((c.requests or 0 for c in columns), default=0)
    most_bad = max((c.bad for c in columns), default=0)
    line = _TOP + _UP
    words = [(_TOP, f"{most:,}"), (line + _DOWN - 13, f"{most_bad:,}")] if most_bad else [(_TOP, f"{most:,}")]
    picture = chart(
        key,
        series.name or "unclassed",
        f"{sentence(series)}. {_worst(series, times)}",
        line + _DOWN + 2,
        bands(axis, work, _TOP, line + _DOWN),
        grid(axis, times.zone, _TOP, line + _DOWN, narrow=4, wide=6),
        [el("rect", x=axis.x(b), width=axis.width(b, e), y=_TOP, height=_UP, class_="none " + kind) for b, e, kind in _empty(columns)],
        stretched(_TOP, _UP, _path(axis, columns, [0 if c.silent else c.requests or 0 for c in columns], _UP, up=True, class_="requests")),
        stretched(line, _DOWN, _path(axis, columns, [c.bad for c in columns], _DOWN, up=False, class_="failed")),
        el("line", x1="0", x2="100%", y1=line, y2=line, class_="base"),
    )
    return el("div", beside(key, *words), picture, class_="scaled")


def per(series: Series) -> str:
    """What one column is: ``a minute`` or ``3 minutes``."""
    columns = bins(series)
    minutes = round((columns[0].end - columns[0].begin) / 60) if columns else 1
    return "a minute" if minutes <= 1 else f"{minutes} minutes"


def _path(axis: Axis, columns: Sequence[Bin], counts: Sequence[int], height: int, *, up: bool, class_: str) -> Markup:
    """Columns as one path; what is not nothing is at least a pixel and a half high."""
    most = max(counts, default=0)
    part = 0.8 if len(columns) <= 60 else 1.0  # many columns leave no gaps
    path = ""
    for column, count in zip(columns, counts, strict=True):
        if count and most:
            left, right = axis.unit(column.begin), axis.unit(column.end)
            wide = max(0.1, round(part * (right - left), 1))
            tall = max(1.5, round(height * count / most, 1))
            path += f"M{left:g} {height if up else 0}v{'-' if up else ''}{tall:g}h{wide:g}v{'' if up else '-'}{tall:g}z"
    return el("path", d=path or "M0 0", class_=class_)


def _empty(columns: Sequence[Bin]) -> list[tuple[float, float, str]]:
    """Runs of columns without requests or without measurement."""
    out: list[tuple[float, float, str]] = []
    for column in columns:
        kind = "unmeasured" if column.requests is None else "silent" if column.silent else ""
        if not kind:
            continue
        if out and out[-1][1] == column.begin and out[-1][2] == kind:
            out[-1] = (out[-1][0], column.end, kind)
        else:
            out.append((column.begin, column.end, kind))
    return out


def _worst(series: Series, times: Times) -> str:
    """The worst minute and the silent ones, in words."""
    said = []
    worst = max(series.minutes, key=lambda m: m[2], default=None)
    if worst and worst[2]:
        said.append(f"The worst minute is {times.minute(worst[0])} with {worst[2]:,} of {worst[1] or 0:,} failed.")
    silent = [times.minute(at) for at, n, _ in series.minutes if n == 0]
    if silent:
        said.append(f"Without requests: {', '.join(silent[:12])}{f' and {len(silent) - 12} more' if len(silent) > 12 else ''}.")
    return " ".join(said)


def legend(series: Sequence[Series]) -> Markup:
    """What is drawn how: only what these pictures have."""
    sums = [totals(s) for s in series]
    each = per(series[0]) if series else "a minute"
    items = [_swatch("requests", f"requests in {each}"), _swatch("failed", f"failed in {each} (downwards, on a scale of its own)")]
    if any(t.silent for t in sums):
        items.append(_swatch("none silent", "no requests at all" if each == "a minute" else "a minute without requests among them"))
    if any(t.unmeasured for t in sums):
        items.append(_swatch("none unmeasured", "not measured"))
    return el("ul", items, class_="legend", aria_hidden="true")


def _swatch(kind: str, word: str) -> Markup:
    return el("li", el("svg", el("rect", x="2", y="2", width="20", height="12", class_=kind), width="24", height="16", aria_hidden="true"), word)


def columns_of(series: Sequence[Series]) -> tuple[str, ...]:
    """The head of the table of all of them."""
    return ("minute", *(f"{s.name or 'unclassed'}: {word}" for s in series for word in ("requests", "failed")))


def rows_of(series: Sequence[Series], times: Times) -> tuple[tuple[str, ...], ...]:
    """All of them as one table by the minute."""
    by_minute: dict[float, dict[int, tuple[int | None, int]]] = {}
    for i, one in enumerate(series):
        for at, n, bad in one.minutes:
            by_minute.setdefault(at, {})[i] = (n, bad)
    return tuple((times.minute(at), *(cell for i in range(len(series)) for cell in _cells(at_minute.get(i)))) for at, at_minute in sorted(by_minute.items()))


def _cells(counts: tuple[int | None, int] | None) -> tuple[str, str]:
    if counts is None or counts[0] is None:
        return ("not measured", "")
    return (f"{counts[0]:,}", f"{counts[1]:,}")

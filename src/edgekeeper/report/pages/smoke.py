"""A probe over time: median, the spread up to the 95th percentile as smoke, and the share that failed. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from edgekeeper.report.document import Smoke
from edgekeeper.report.pages.markup import Markup, el
from edgekeeper.report.pages.svg import Axis, bands, beside, chart, grid, stretched
from edgekeeper.report.pages.when import Times, known

MOST = 24
"""Pictures of one figure: those that failed most."""
MOST_SLOTS = 240

_TOP = 20
_UP = 64
_DOWN = 18

Slot = tuple[float, float | None, float | None, float]


def slots(smoke: Smoke, most: int = MOST_SLOTS) -> tuple[Slot, ...]:
    """The slots, or several as one where there are too many: the median of the medians, the worst p95, the mean share of failures."""
    size = max(1, math.ceil(len(smoke.slots) / most))
    return tuple(_one(smoke.slots[i : i + size]) for i in range(0, len(smoke.slots), size)) if size > 1 else smoke.slots


def _one(part: Sequence[Slot]) -> Slot:
    medians = sorted(m for _, m, _, _ in part if m is not None)
    worst = [p for _, _, p, _ in part if p is not None]
    return (part[0][0], medians[len(medians) // 2] if medians else None, max(worst, default=None), sum(f for *_, f in part) / len(part))


def sentence(smoke: Smoke) -> str:
    """``median 12 ms, 95th percentile up to 48 ms, failures in 3 of 48 slots``."""
    medians = sorted(m for _, m, _, _ in smoke.slots if m is not None)
    worst = max((p for _, _, p, _ in smoke.slots if p is not None), default=None)
    failed = sum(1 for *_, f in smoke.slots if f > 0)
    said = f"median {took(medians[len(medians) // 2])}" if medians else "nothing answered"
    said += f", 95th percentile up to {took(worst)}" if worst is not None else ""
    return said + (f", failures in {failed} of {len(smoke.slots)} slots" if failed else ", no failures")


def took(seconds: float) -> str:
    """A latency as people write it: ``0.8 ms``, ``12 ms``, ``1.2 s``."""
    milli = seconds * 1000
    return f"{milli:.2g} ms" if milli < 9.95 else f"{milli:.0f} ms" if milli < 999.5 else f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"


def ends(drawn: Sequence[Slot]) -> tuple[float, ...]:
    """Where each slot ends: where the next begins, unless that is far off: then nothing was asked between."""
    begins = [slot[0] for slot in drawn]
    gaps = sorted(after - before for before, after in pairwise(begins))
    usual = gaps[len(gaps) // 2] if gaps else 60.0
    return tuple(min(after, before + 1.5 * usual) for before, after in pairwise([*begins, begins[-1] + usual])) if begins else ()


def axis_of(several: Sequence[Smoke]) -> Axis:
    """One axis for all of a figure, so that what lies under each other was at one time."""
    begins = [slot[0] for smoke in several for slot in smoke.slots if known(slot[0])]
    last = [end for smoke in several for end in ends(smoke.slots)[-1:] if known(end)]
    return Axis(min(begins), max(last, default=max(begins) + 60)) if begins else Axis(0, 60)


def plot(key: str, smoke: Smoke, times: Times, work: Sequence[tuple[float, float]] = (), axis: Axis | None = None) -> Markup:
    """One target. Latency goes up by decades: what is usual and what is ten times as slow must both be seen."""
    drawn = slots(smoke)
    axis = axis or axis_of([smoke])
    places = tuple((axis.unit(slot[0]), max(0.1, round(axis.unit(end) - axis.unit(slot[0]), 1))) for slot, end in zip(drawn, ends(drawn), strict=True))
    low, high = _decades(drawn)
    line = _TOP + _UP
    lines = [10.0**n for n in range(low, high + 1)]
    words = [(_TOP + _y(v, low, high) - (0 if n == high else 13 if n == low else 7), took(v)) for n, v in zip(range(low, high + 1), lines, strict=True)]
    picture = chart(
        key,
        smoke.name,
        sentence(smoke) + ".",
        line + _DOWN + 2,
        bands(axis, work, _TOP, line + _DOWN),
        grid(axis, times.zone, _TOP, line + _DOWN, narrow=4, wide=6),
        [el("line", x1="0", x2="100%", y1=_TOP + _y(v, low, high), y2=_TOP + _y(v, low, high), class_="decade") for v in lines],
        stretched(
            _TOP,
            _UP,
            el("path", d=_area(drawn, places, low, high) or "M0 0", class_="spread"),
            el("path", d=_steps(drawn, places, low, high) or "M0 0", class_="median"),
        ),
        stretched(line, _DOWN, el("path", d=_failed(drawn, places) or "M0 0", class_="failed")),
        el("line", x1="0", x2="100%", y1=line, y2=line, class_="base"),
    )
    return el("div", beside(key, *words), picture, class_="scaled")


def _decades(drawn: Sequence[Slot]) -> tuple[int, int]:
    """The powers of ten of the lowest and the highest line; a microsecond to three hours are latencies, the rest is on the edge."""
    seen = [v for _, m, p, _ in drawn for v in (m, p) if v is not None and 1e-6 <= v <= 1e4]
    if not seen:
        return -3, 0
    low = math.floor(math.log10(min(seen)))
    return low, max(low + 1, math.ceil(math.log10(max(seen))))


def _y(value: float, low: int, high: int) -> float:
    share = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
    return round(_UP * (1 - min(1.0, max(0.0, share))), 1)


Places = Sequence[tuple[float, float]]
"""Left edge and width of each slot, in units of the picture."""


def _area(drawn: Sequence[Slot], places: Places, low: int, high: int) -> str:
    return "".join(
        f"M{x:g} {_y(m, low, high):g}V{_y(p, low, high):g}h{wide:g}V{_y(m, low, high):g}z"
        for (_, m, p, _), (x, wide) in zip(drawn, places, strict=True)
        if m is not None and p is not None
    )


def _steps(drawn: Sequence[Slot], places: Places, low: int, high: int) -> str:
    """One line, which breaks where nothing answered or nothing was asked."""
    path, until = "", -1.0
    for (_, median, _, _), (x, wide) in zip(drawn, places, strict=True):
        if median is None:
            continue
        y = f"{_y(median, low, high):g}"
        path += f"V{y}h{wide:g}" if abs(x - until) < 0.2 else f"M{x:g} {y}h{wide:g}"
        until = x + wide
    return path


def _failed(drawn: Sequence[Slot], places: Places) -> str:
    """Downwards, by the share: at least two pixels, all of the height where everything failed."""
    return "".join(
        f"M{x:g} 0v{max(2.0, round(_DOWN * min(1.0, failed), 1)):g}h{wide:g}V0z" for (*_, failed), (x, wide) in zip(drawn, places, strict=True) if failed > 0
    )


def legend() -> Markup:
    """What is drawn how."""
    words = (("median", "median"), ("spread", "up to the 95th percentile"), ("failed", "share that failed (downwards)"))
    items = []
    for kind, word in words:
        shape = el("line", x1="2", x2="22", y1="8", y2="8", class_=kind) if kind == "median" else el("rect", x="2", y="2", width="20", height="12", class_=kind)
        items.append(el("li", el("svg", shape, width="24", height="16", aria_hidden="true"), word))
    return el("ul", items, class_="legend", aria_hidden="true")


COLUMNS = ("target", "slot", "median", "95th percentile", "failed")


def rows_of(smokes: Sequence[Smoke], times: Times) -> tuple[tuple[str, ...], ...]:
    """All of them as one table."""
    return tuple(
        (s.name, times.at(at), took(m) if m is not None else "no answer", took(p) if p is not None else "", f"{100 * f:.0f} %")
        for s in smokes
        for at, m, p, f in s.slots
    )


def worst_first(smokes: Sequence[Smoke]) -> tuple[Smoke, ...]:
    """Those that failed most, first."""
    return tuple(sorted(smokes, key=lambda s: -sum(f for *_, f in s.slots)))

"""The timeline: what was done, what broke, and what said so, on one axis. Pure.

A bar is hatched where it may have been and solid where it certainly was, so that the width of our ignorance can be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgekeeper.report.document import Bar, Row, Timeline
from edgekeeper.report.pages.markup import Markup, el
from edgekeeper.report.pages.svg import CHAR_PX, Axis, bands, chart, grid, percent, sign
from edgekeeper.report.pages.when import Times, known

MOST_ROWS = 80
"""Rows drawn; more would be a wall. The JSON has all."""
MOST_MARKS = 400
"""Bars, and points, drawn in one row."""
NARROW_PX = 560
"""How wide the plot is at least: a telephone scrolls it inside its own box."""
WIDE_PX = 800
"""How wide it is at least on a page of 1100 px or more (see ``style``)."""

_TOP = 20
_LANE = 18
_PAD = 6
_MOST_LANES = 4
_MOST_LETTERS = 28
_MOST_NAME = 24
_TINY_PX = 3
_HEIGHTS = {"bad": 12, "work": 12, "warn": 7, "calm": 3}
_SOLID = ("work", "calm")
_NAMES = {"bad": "outage", "warn": "impaired", "work": "work", "calm": "calm"}


@dataclass(frozen=True, slots=True)
class _Placed:
    row: Row
    lanes: tuple[tuple[Bar, int], ...]
    y: float
    height: float


def work_spans(timeline: Timeline) -> tuple[tuple[float, float], ...]:
    """When somebody worked on a node: drains and reboots."""
    return tuple((bar.begin, bar.end) for row in timeline.rows for bar in row.bars if bar.tone == "work")


def plot(key: str, title: str, timeline: Timeline, times: Times, work: Sequence[tuple[float, float]] | None = None) -> Markup:
    """Labels of the rows beside one picture of all; in a box of its own that scrolls where the page is narrow.

    ``work`` is when somebody worked on a node, where another timeline tells it.
    """
    axis = Axis(timeline.begin, timeline.end)
    names: list[Markup] = [el("div", style=f"height:{_TOP}px")]
    parts: list[Markup] = []
    placed, bottom = _place(timeline.rows[:MOST_ROWS])
    for group, rows in placed:
        names.append(el("div", group, class_="g"))
        names.extend(el("div", fitted(item.row.name, _MOST_NAME), class_="n", style=f"height:{item.height:g}px", title=item.row.name) for item in rows)
        first = rows[0].y if rows else 0.0
        parts.append(el("line", x1="0", x2="100%", y1=first - _TOP + 2, y2=first - _TOP + 2, class_="rule"))
        for item in rows:
            parts.extend(_row(item, axis, times))
    picture = chart(
        key,
        title,
        describe(timeline, times),
        bottom + _PAD,
        bands(axis, work_spans(timeline) if work is None else work, _TOP, bottom),
        grid(axis, times.zone, _TOP - 2, bottom, narrow=NARROW_PX // 80, wide=WIDE_PX // 70),
        parts,
    )
    labels = el("div", names, class_="names", aria_hidden="true")
    return el(
        "div",
        el("div", labels, el("div", picture, class_="plot"), class_="tl"),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=f"{title}, scrolls sideways",
    )


def fitted(name: str, length: int) -> str:
    """A name that is too long goes without its scheme first, then without its middle: what tells names apart is at their ends."""
    if len(name) > length:
        name = name.partition("://")[2] or name
    left = (length - 1) * 2 // 5
    return name if len(name) <= length else f"{name[:left]}…{name[left + 1 - length :]}"


def describe(timeline: Timeline, times: Times) -> str:
    """The text alternative: what there is to see, by group."""
    said = [f"From {times.at(timeline.begin)} to {times.at(timeline.end)} {times.zone.name}."]
    for group, rows in _groups(timeline.rows):
        bars = sum(len(row.bars) for row in rows)
        points = sum(len(row.points) for row in rows)
        counts = [f"{n} {word if n == 1 else word + 's'}" for n, word in ((bars, "bar"), (points, "sign")) if n]
        said.append(f"{group}: {len(rows)} {'row' if len(rows) == 1 else 'rows'}, {' and '.join(counts) or 'nothing'}.")
    return " ".join([*said, "The table below the picture says the same in words."])


COLUMNS = ("group", "row", "what", "kind", "from", "until", "certain from", "certain until")


def rows_of(timeline: Timeline, times: Times) -> tuple[tuple[str, ...], ...]:
    """The timeline as a table, under ``COLUMNS``."""
    out: list[tuple[str, ...]] = []
    for row in timeline.rows:
        marks: list[tuple[float, tuple[str, ...]]] = []
        for bar in row.bars:
            sure = sure_part(bar)
            certain = (times.at(sure[0]), times.at(sure[1])) if sure else ("", "")
            marks.append((bar.begin, (row.group, row.name, bar.label, _NAMES.get(bar.tone, bar.tone), times.at(bar.begin), times.at(bar.end), *certain)))
        marks.extend((point.at, (row.group, row.name, point.label, point.shape, times.at(point.at), "", "", "")) for point in row.points)
        out.extend(cells for _, cells in sorted(marks, key=lambda mark: mark[0]))
    return tuple(out)


def sure_part(bar: Bar) -> tuple[float, float] | None:
    """When it certainly was. Work and calm are certain unless the bar says less; an outage is not unless it says so."""
    if bar.sure_begin is None or bar.sure_end is None:
        return (bar.begin, bar.end) if bar.tone in _SOLID else None
    return (bar.sure_begin, bar.sure_end) if bar.sure_begin <= bar.sure_end else None


def _groups(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """By group, in the order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return list(groups.items())


def _place(rows: Sequence[Row]) -> tuple[list[tuple[str, list[_Placed]]], float]:
    y = float(_TOP)
    out: list[tuple[str, list[_Placed]]] = []
    for group, members in _groups(rows):
        y += _TOP
        placed: list[_Placed] = []
        for row in members:
            lanes = _lanes(row.bars[:MOST_MARKS])
            height = _LANE * (1 + max((lane for _, lane in lanes), default=0)) + _PAD
            placed.append(_Placed(row, lanes, y, height))
            y += height
        out.append((group, placed))
    return out, y


def _lanes(bars: Sequence[Bar]) -> tuple[tuple[Bar, int], ...]:
    """Bars that overlap lie under each other, in at most a few lanes."""
    ends: list[float] = []
    out: list[tuple[Bar, int]] = []
    for bar in sorted(bars, key=lambda b: (b.begin, b.end)):
        lane = next((i for i, end in enumerate(ends) if end <= bar.begin), len(ends))
        if lane == len(ends) and lane < _MOST_LANES:
            ends.append(bar.end)
        lane = min(lane, _MOST_LANES - 1)
        ends[lane] = max(ends[lane], bar.end)
        out.append((bar, lane))
    return tuple(out)


def _row(item: _Placed, axis: Axis, times: Times) -> Iterable[Markup]:
    inside = [(bar, lane) for bar, lane in item.lanes if bar.end >= axis.begin and bar.begin <= axis.end]
    points = [p for p in item.row.points[:MOST_MARKS] if known(p.at) and axis.begin <= p.at <= axis.end]
    for bar, lane in inside:
        yield _bar(bar, item.y + _middle(lane), axis, item.row.name, times)
    for point in points:
        yield el("g", el("title", f"{item.row.name}: {point.label}, {times.at(point.at)}"), sign(point.shape, axis.x(point.at), item.y + _middle(0)))
    spans = [(lane, axis.share(bar.begin), axis.share(bar.end), bar.label) for bar, lane in inside]
    spans += [(0, axis.share(p.at), axis.share(p.at), p.label) for p in points]
    yield from _labels(spans, item.y)


def _middle(lane: int) -> float:
    return _PAD / 2 + _LANE * lane + _LANE / 2


def _bar(bar: Bar, y: float, axis: Axis, name: str, times: Times) -> Markup:
    tone = bar.tone if bar.tone in _HEIGHTS else "bad"
    height = _HEIGHTS[tone]
    sure = sure_part(bar)
    said = f"{name}: {bar.label}; {times.at(bar.begin)} to {times.at(bar.end)}"
    said += f", certainly {times.at(sure[0])} to {times.at(sure[1])}" if sure and sure != (bar.begin, bar.end) else "" if sure else ", nothing of it certain"
    parts: list[Markup] = []
    if sure != (bar.begin, bar.end):
        parts.append(_box(axis, bar.begin, bar.end, y, height, f"b {tone} maybe"))
    if sure:
        parts.append(_box(axis, *sure, y, height, f"b {tone}"))
    if bar.begin < axis.begin:
        parts.append(sign("before", "0", y))
    if bar.end > axis.end:
        parts.append(sign("after", "100%", y))
    return el("g", el("title", said), parts)


def _box(axis: Axis, begin: float, end: float, y: float, height: float, kind: str) -> Markup:
    """A part of a bar. Five seconds of a day are a fraction of a pixel, and still have to be seen."""
    share = axis.share(end) - axis.share(begin)
    kind += " tiny" if share * NARROW_PX < _TINY_PX else ""
    return el("rect", x=axis.x(begin), width=percent(max(share, 0.0001)), y=y - height / 2, height=height, class_=kind)


def _labels(spans: Sequence[tuple[int, float, float, str]], top: float) -> Iterable[Markup]:
    """A word beside each bar or sign where there is room for it: on wide pages only, on all, or not at all (the table has it)."""
    for i, (lane, begin, end, label) in enumerate(spans):
        text = label.split(", ")[0].split("; ")[0]  # how long it was; the rest is in the table
        if not text:
            continue
        text = text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"
        if any(other == lane and e == end for other, _, e, _ in spans[:i]):
            continue  # that place has its word
        others = [(b, e) for j, (other, b, e, _) in enumerate(spans) if j != i and other == lane]
        wide = _side(begin, end, others, text, WIDE_PX)
        if not wide:
            continue
        narrow = _side(begin, end, others, text, NARROW_PX) == wide
        y = top + _middle(lane) + 4
        where = {"x": percent(end), "dx": "9", "text_anchor": "start"} if wide == "right" else {"x": percent(begin), "dx": "-9", "text_anchor": "end"}
        yield el("text", text, y=y, class_="l" if narrow else "l w", **where)


def _side(begin: float, end: float, others: Sequence[tuple[float, float]], text: str, width: int) -> str:
    """``right`` or ``left`` of it, or nowhere. The right side belongs to oneself; on the left nobody may be at all."""
    if any(b <= begin and e > end for b, e in others):
        return ""  # a sign on a bar: no ground to read on
    need = (len(text) * CHAR_PX + 14) / width
    clear = min((max(b, end) for b, e in others if e > end), default=1.0 + 6 / width) - 6 / width
    if end + need <= clear:
        return "right"
    return "left" if begin - need >= 0 and all(b > begin for b, _ in others) else ""


def legend(timeline: Timeline) -> Markup:
    """What the tones and signs of this timeline mean: only those that it has."""
    tones = {bar.tone if bar.tone in _HEIGHTS else "bad" for row in timeline.rows for bar in row.bars}
    shapes = {point.shape for row in timeline.rows for point in row.points}
    unsure = any(sure_part(bar) != (bar.begin, bar.end) for row in timeline.rows for bar in row.bars)
    items = [_swatch(f"b {tone}", _HEIGHTS[tone], word) for tone, word in _NAMES.items() if tone in tones]
    if unsure:
        items.append(_swatch("b bad maybe" if "bad" in tones else "b warn maybe", 12, "possible, not certain"))
    items += [_swatch_sign(name, word) for name, word in _SIGN_WORDS if name in shapes]
    return el("ul", items, class_="legend", aria_hidden="true")


_SIGN_WORDS = (("down", "down"), ("up", "up"), ("act", "acted"), ("hold", "held back"), ("note", "note"))


def _swatch(kind: str, height: float, word: str) -> Markup:
    box = el("rect", x="2", width="20", y=8 - height / 2, height=height, class_=kind)
    return el("li", el("svg", box, width="24", height="16", aria_hidden="true"), word)


def _swatch_sign(name: str, word: str) -> Markup:
    return el("li", el("svg", sign(name, "8", 8), width="16", height="16", aria_hidden="true"), word)

"""Counts of a study that several figures need: of lanes, routes, classes and minutes, on the clock of reference. Pure."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from edgekeeper.report.cells import BINS, Lane, Total
from edgekeeper.report.columns import Columns
from edgekeeper.report.document import Window
from edgekeeper.report.study import Study

UNCLASSED = "unclassed"
"""How the class of clients is called that no class of the config holds."""


def group_name(group: str) -> str:
    """A class as figures call it."""
    return group or UNCLASSED


def router_name(router: str) -> str:
    """A route as figures call it."""
    return router or "(no route)"


@dataclass(slots=True)
class Index:
    """A lane by the minute of its own clock, made once: sums of all minutes before each.

    ``sums[k][i]`` counts the good, bad, gone, other and masked ones (k from 0 to 4) of all minutes before ``minutes[i]``; ``bad`` are seconds with
    bad answers. Columns are arrays: a day of many lanes has a million minutes.
    """

    minutes: array[int]
    sums: tuple[array[int], ...]
    bad: list[int]


def index(study: Study, lane: Lane) -> Index:
    """The index of a lane; of one that is not there, an empty one."""
    found = study.memo.get(("index", lane))
    if isinstance(found, Index):
        return found
    made = study.memo["index", lane] = _index(study.book.cells.columns.get(lane))
    return made


def _index(columns: Columns | None) -> Index:
    counts: dict[int, list[int]] = {}
    bad = []
    for second, count, *_ in columns.runs() if columns is not None else ():
        known = counts.get(second // 60)
        if known is None:
            counts[second // 60] = [count, 0, 0, 0, 0]
        else:
            known[0] += count
    for second, bads, gone, other, hidden, *_ in columns.uncommon.rows() if columns is not None else ():
        known = counts.setdefault(second // 60, [0, 0, 0, 0, 0])
        for place, value in enumerate((bads, gone, other, hidden), 1):
            known[place] += value
        if bads:
            bad.append(second)
    minutes = sorted(counts)
    sums = tuple(array("Q", accumulate((counts[minute][place] for minute in minutes), initial=0)) for place in range(5))
    return Index(array("I", minutes), sums, bad)


def unseen_s(study: Study, lanes: Iterable[Lane]) -> float:
    """The longest outage that can have lain in the window unseen between good answers of these lanes together; infinite where there are none."""
    answers: list[tuple[float, float]] = []
    for lane in lanes:
        columns, shift = study.book.cells.columns.get(lane), study.shift(lane.source)
        begin, end = second_of(study, lane, study.window.begin), second_of(study, lane, study.window.end)
        runs = columns.runs(begin, end) if columns is not None else ()
        answers.extend((second + shift + last_start, second + shift + first_end) for second, _, _, last_start, first_end, _ in runs)
    answers.sort()
    window = study.read_window()
    last, widest = window.begin, 0.0
    for start, first_end in answers:
        widest = max(widest, first_end - last)
        last = max(last, start)
    return max(widest, window.end - last) if answers else math.inf


def second_of(study: Study, lane: Lane, moment: float) -> int:
    """The first second of a lane's own clock that counts as of the moment or later: a second belongs where its middle lies.

    So one that two windows share, because clocks are apart by a part of a second, is in one of them only.
    """
    return math.ceil(moment - study.shift(lane.source) - 0.5)


def around(begin: float, end: float) -> Window:
    """The window that holds just the seconds in which these two moments, and all between them, lie."""
    return Window(begin - 0.499, end + 0.501)


def total(study: Study, lanes: Iterable[Lane], window: Window | None) -> Total:
    """What began in the window, of some lanes together, by whole seconds (see ``second_of``); None: in all that was read."""
    sums = [0, 0, 0, 0, 0]
    for lane in lanes:
        made = index(study, lane)
        if window is None:
            sums = [known + column[-1] for known, column in zip(sums, made.sums, strict=True)]
            continue
        begin, end = second_of(study, lane, window.begin), second_of(study, lane, window.end)
        if not made.minutes or end <= made.minutes[0] * 60 or begin >= made.minutes[-1] * 60 + 60:
            continue
        first, last = -(-begin // 60), end // 60
        if first > last:
            parts = [study.book.cells.total(lane, begin, end)]
        else:
            low, high = bisect_left(made.minutes, first), bisect_left(made.minutes, last)
            sums = [known + column[high] - column[low] for known, column in zip(sums, made.sums, strict=True)]
            rest = ((begin, first * 60, first - 1, low), (last * 60, end, last, high))
            parts = [study.book.cells.total(lane, a, b) for a, b, minute, place in rest if a < b and _at(made.minutes, place, minute)]
        for part in parts:
            sums = [known + more for known, more in zip(sums, part, strict=True)]
    return Total(*sums)


def _at(minutes: Sequence[int], place: int, minute: int) -> bool:
    """Whether the minute is there, just before the place or at it."""
    return any(0 <= at < len(minutes) and minutes[at] == minute for at in (place - 1, place))


def asked(counts: Total) -> int:
    """All requests; masked ones are among the good."""
    return counts.good + counts.bad + counts.gone + counts.other


def words(study: Study, lanes: Iterable[Lane], window: Window, *, ended: bool) -> Counter[str]:
    """How sessions ended, or why answers were bad, of the minutes that the window touches."""
    tell = study.book.cells.ended if ended else study.book.cells.causes
    found: Counter[str] = Counter()
    for lane in lanes:
        shift = study.shift(lane.source)
        found += tell(lane, window.begin - shift, window.end - shift)
    return found


def by_minute(study: Study, lanes: Iterable[Lane], window: Window) -> list[tuple[float, Total]]:
    """Each whole minute of the clock of reference that the window touches, with what began in it and in the window."""
    first, last = math.floor(window.begin / 60), math.ceil(window.end / 60)
    found = tuple([0] * (last - first) for _ in range(5))
    for lane in lanes:
        if study.shift(lane.source) % 60 == 0:
            _add_minutes(study, lane, window, first, found)
        else:
            _add_seconds(study, lane, window, first, found)
    return [(minute * 60.0, Total(*(column[minute - first] for column in found))) for minute in range(first, last)]


def _add_minutes(study: Study, lane: Lane, window: Window, first: int, found: Sequence[list[int]]) -> None:
    """A lane whose minutes are those of the clock of reference: out of the index, but for the edges of the window."""
    made, apart = index(study, lane), round(study.shift(lane.source) / 60) - first
    begin, end = second_of(study, lane, window.begin), second_of(study, lane, window.end)
    places = range(bisect_left(made.minutes, begin // 60), bisect_left(made.minutes, end / 60))
    for counts, sums in zip(found, made.sums, strict=True):
        if not sums[-1]:
            continue
        for place in places:
            counts[made.minutes[place] + apart] += sums[place + 1] - sums[place]
    for minute, outer, inner in ((begin // 60, begin // 60 * 60, begin), (end // 60, end, end // 60 * 60 + 60)):
        if outer < inner and minute in made.minutes[places.start : places.stop]:
            for counts, value in zip(found, study.book.cells.total(lane, outer, inner), strict=True):
                counts[minute + apart] -= value


def _add_seconds(study: Study, lane: Lane, window: Window, first: int, found: Sequence[list[int]]) -> None:
    """A lane whose minutes lie across those of the clock of reference."""
    columns, shift = study.book.cells.columns.get(lane), study.shift(lane.source) + 0.5
    begin, end = second_of(study, lane, window.begin), second_of(study, lane, window.end)
    if columns is None or begin >= end:
        return
    for second, count, *_ in columns.runs(begin, end):
        found[0][int((second + shift) // 60) - first] += count
    rare = columns.uncommon
    for place in rare.span(begin, end):
        minute = int((rare.seconds[place] + shift) // 60) - first
        for counts, column in zip(found[1:], (rare.bads, rare.gones, rare.others, rare.masks), strict=True):
            counts[minute] += column[place]


def took(study: Study, lanes: Iterable[Lane], window: Window) -> list[int]:
    """How long good answers took, by the bins of ``EDGES_S``, of the minutes that the window touches."""
    sums = [0] * (BINS + 1)
    for lane in lanes:
        columns, shift = study.book.cells.columns.get(lane), study.shift(lane.source)
        for _minute, _status, place, count in columns.noted(window.begin - shift, window.end - shift) if columns is not None else ():
            sums[place] += count
    return sums[:BINS]


def share(part: float, whole: float) -> str:
    """``5.5 %``; with more digits where it is small."""
    if whole <= 0:
        return "-"
    percent = 100 * part / whole
    return f"{percent:.1f} %" if percent >= 1 or percent == 0 else f"{percent:.2g} %"


def at_most(part: float) -> str:
    """A share as an upper bound: rounded up, so that what is printed is true."""
    percent = 100 * part
    if percent <= 0:
        return "0 %"
    digits = 1 if percent >= 1 else 1 - math.floor(math.log10(percent))
    up = math.ceil(round(percent * 10**digits, 6)) / 10**digits
    return f"{up:.1f} %" if up >= 1 else f"{up:.2g} %"

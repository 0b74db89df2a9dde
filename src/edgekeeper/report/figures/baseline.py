"""F2: what the quiet time proves, and how much of the errors is the roll's. Pure.

Nothing seen in a quiet time is not nothing: of 3,400 requests without an error, up to 0.09 % may still go badly.
"""

from __future__ import annotations

import math

from edgekeeper.measure.binomial import never_seen
from edgekeeper.measure.share import wilson
from edgekeeper.report.document import Figure, Table, Window
from edgekeeper.report.figures.counts import asked, at_most, router_name, share, total
from edgekeeper.report.figures.drains import step
from edgekeeper.report.figures.say import clock, many
from edgekeeper.report.kinds import Kind
from edgekeeper.report.study import Study, whole

AS_ASKED = "as asked"
"""Why a window is what it is, where the operator said it."""

_DAY_S = 86400.0
_ROLL = {Kind.CORDONED, Kind.EVICTING, Kind.EVICTED, Kind.DELETED, Kind.DRAINED, Kind.UNCORDONED}


def quiet(study: Study) -> tuple[Window | None, str]:
    """The time to compare with, and what is to be said of it.

    It is that before the window; where a node was drained in it, the same time a day or a week earlier, as far as it was read. None when no time is free of drains and was read. A time that was asked for is taken as it is.
    """
    first = study.baseline
    if first is None:
        return None, "nothing that was read reaches back before the window"
    if not _disturbed(study, first):
        return first, ""
    if first.why == AS_ASKED:
        return first, "Nodes were drained in the quiet time that was asked for: it is not quiet."
    for days, said in ((1, "a day"), (7, "a week")):
        moved = _read(study, Window(first.begin - days * _DAY_S, first.end - days * _DAY_S, f"the same time {said} earlier"))
        if moved is not None and not _disturbed(study, moved) and asked(total(study, study.lanes(), moved)):
            return moved, f"Nodes were drained in the time before the window: the same time {said} earlier is compared with."
    return None, "nodes were drained in the time before the window, and the same time a day or a week earlier was not read"


def _read(study: Study, window: Window) -> Window | None:
    """As much of a time as was read; None where that is less than a tenth."""
    spans = study.covered({lane.source for lane in study.lanes()})
    parts = [(max(begin, window.begin), min(math.floor(end) + 1.0, window.end)) for begin, end in spans if begin < window.end and end > window.begin]
    if sum(end - begin for begin, end in parts) < (window.end - window.begin) / 10:
        return None
    return whole(Window(parts[0][0], parts[-1][1], window.why))


def _disturbed(study: Study, window: Window) -> bool:
    """Whether a mark of a drain lies in it; ``study.marks`` looks only around the window."""
    return any(
        m.at is not None and window.begin <= m.at + study.shift(m.source) < window.end and (told := step(m)) is not None and told.kind in _ROLL
        for m in study.book.marks
    )


def f2(study: Study) -> Figure:
    """Errors of the quiet time with their bound, and what of the window's errors is beyond them, per route."""
    window, said = quiet(study)
    if window is None:
        return Figure("F2", "The quiet time before", said, measured=False)
    before = total(study, study.lanes(), window)
    n = asked(before)
    if not n:
        return Figure("F2", "The quiet time before", f"nobody asked from {clock(window.begin)} to {clock(window.end)}", measured=False)
    now = total(study, study.lanes(), study.window)
    rows, known = [], 0.0
    for router in study.routers():
        lanes = study.lanes(router=router)
        was, became = total(study, lanes, window), total(study, lanes, study.window)
        if not was.bad and not became.bad:
            continue
        usual = asked(became) * was.bad / asked(was) if asked(was) else 0.0
        low, high = attributable(became.bad, asked(became), was.bad, asked(was))
        known += became.bad - usual
        rows.append((became.bad - usual, router, was.bad, asked(was), became.bad, asked(became), low, high))
    rows.sort(key=lambda row: (-row[0], row[1]))
    table = tuple(
        (router_name(r), f"{b} of {bn}", _bound(b, bn), f"{w} of {wn}", f"{max(0.0, extra):.0f} ({low:.0f} to {high:.0f})")
        for extra, r, b, bn, w, wn, low, high in rows
    )
    return Figure(
        "F2",
        "The quiet time before",
        f"{before.bad:,} of {n:,} requests went badly from {clock(window.begin)} to {clock(window.end)} ({_bound(before.bad, n)}); "
        + (f"{max(0.0, known):.0f} of the window's {now.bad:,} are beyond that" if now.bad else "in the window none did"),
        table=Table(("route", "bad before", "so at 95 %", "bad in the window", "of them the window's own"), table) if table else None,
        notes=tuple(([said] if said else []) + _shorter(study, window)),
        data={
            "requests": n,
            "bad_requests": before.bad,
            "at_most": _upper(before.bad, n),
            "attributable": round(known, 3),
            "begin": window.begin,
            "end": window.end,
        },
    )


def attributable(bad: int, n: int, bad_before: int, n_before: int) -> tuple[float, float]:
    """Between how many of the bad ones are beyond what the quiet time's share would have made of so many requests, at 95 %."""
    low, high = (wilson(bad_before, n_before) if bad_before else (0.0, never_seen(n_before))) if n_before else (0.0, 1.0)
    return max(0.0, bad - n * high), max(0.0, bad - n * low)


def _upper(bad: int, n: int) -> float:
    return never_seen(n) if bad == 0 else wilson(bad, n)[1]


def _bound(bad: int, n: int) -> str:
    if not n:
        return "nobody asked"
    if bad == 0:
        return f"less than {at_most(never_seen(n))}"
    low, high = wilson(bad, n)
    return f"{share(low, 1)} to {share(high, 1)}"


def _shorter(study: Study, window: Window) -> list[str]:
    whole, length = study.window.end - study.window.begin, window.end - window.begin
    if length >= whole * 0.99:
        return []
    return [f"The quiet time is {share(length, whole)} as long as the window ({many(round(length), 'second')}): rates are compared, not counts."]

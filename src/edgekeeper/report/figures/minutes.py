"""F3: requests by the minute and class of clients; a minute with no requests told apart from a minute with no errors. Pure.

Classes are never stacked: the public edge may carry a tenth of the requests, and its going dark must be seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgekeeper.measure.binomial import silent
from edgekeeper.report.cells import Lane, Total
from edgekeeper.report.document import Figure, Series, Table, Window
from edgekeeper.report.figures.baseline import quiet
from edgekeeper.report.figures.counts import asked, by_minute, group_name, total
from edgekeeper.report.figures.say import clock, many, some
from edgekeeper.report.study import Study

PROOF = 0.001
"""Silence is called unusual from this probability on: in a window of half an hour and a few classes, 5 % would come up by chance."""

FLAT_MINUTES = 10
"""From so many whole minutes on, all with the same number of requests, a class is taken to ask on a schedule."""

MOST_ROWS = 240


@dataclass(frozen=True, slots=True)
class Group:
    """A class of clients by the minute.

    ``due`` are requests a minute that come on a schedule (None: they come by chance), ``expected`` those of the quiet time (None: not known).
    ``read`` is when its logs tell of anything: a minute that lies in it, and in the window, as a whole is one that can be judged.
    """

    name: str
    minutes: tuple[tuple[float, Total], ...]
    due: float | None
    expected: float | None
    read: tuple[tuple[float, float], ...]
    window: Window

    @property
    def whole(self) -> list[tuple[float, Total]]:
        """The minutes that can be judged: those at the edges of the window, and of what was read, may be cut."""
        return [(at, counts) for at, counts in self.minutes if self._inside(at)]

    def _inside(self, at: float) -> bool:
        return self.window.begin <= at and at + 60 <= self.window.end and any(begin <= at and at + 60 <= end for begin, end in self.read)

    @property
    def title(self) -> str:
        """As figures call it."""
        return group_name(self.name)


def groups(study: Study) -> list[Group]:
    """Every class with its minutes in the window, and how many requests were to be expected in each."""
    known: Any = study.memo.get("minutes")
    of = (study.window, study.baseline, study.settings)
    if known is not None and known[0] == of:
        return list(known[1])
    before, _ = quiet(study)
    found = []
    for name in study.groups():
        lanes = study.lanes(group=name)
        read = tuple(study.covered(lane.source for lane in lanes))
        found.append(Group(name, tuple(by_minute(study, lanes, study.window)), *_usual(study, name, lanes, before), read, study.window))
    study.memo["minutes"] = (of, tuple(found))
    return found


def _usual(study: Study, name: str, lanes: Sequence[Lane], before: Window | None) -> tuple[float | None, float | None]:
    due = study.settings.periodic.get(name)
    if before is None or before.end - before.begin < 60:
        return due, due
    whole = Window(math.ceil(before.begin / 60) * 60.0, math.floor(before.end / 60) * 60.0)
    counts = [asked(c) for _, c in by_minute(study, lanes, whole)] if whole.end > whole.begin else []
    if due is None and len(counts) >= FLAT_MINUTES and counts[0] > 0 and len(set(counts)) == 1:
        due = float(counts[0])
    return due, due if due is not None else asked(total(study, lanes, before)) * 60 / (before.end - before.begin)


def f3(study: Study) -> Figure:
    """The minutes of each class; which were silent, and what that proves."""
    found = groups(study)
    if not any(asked(counts) for group in found for _, counts in group.minutes):
        return Figure("F3", "Requests by the minute", "no access log tells of a request in the window", measured=False)
    told = [(group, *_quietest(group)) for group in found]
    return Figure(
        "F3",
        "Requests by the minute",
        _answer(told),
        table=_table(found),
        notes=tuple(note for group, empty, short in told for note in _notes(group, empty, short)),
        multiples=tuple(_series(group) for group in found),
        data={"groups": [_data(group) for group in found]},
    )


def _quietest(group: Group) -> tuple[list[float], list[tuple[float, int]]]:
    """Whole minutes without a request, and those with fewer than were due."""
    minutes = [(at, asked(counts)) for at, counts in group.whole]
    empty = [at for at, n in minutes if n == 0]
    short = [(at, n) for at, n in minutes if group.due is not None and n < group.due]
    return empty, short


def _answer(told: Sequence[tuple[Group, list[float], list[tuple[float, int]]]]) -> str:
    parts = []
    for group, empty, short in told:
        if short:
            missing = sum((group.due or 0) - n for _, n in short)
            parts.append(f"{group.title}: {missing:g} requests that were due did not come, in {many(len(short), 'minute')}")
        elif empty:
            parts.append(f"{group.title}: nobody asked in {many(len(empty), 'minute')}")
    return "; ".join(parts) if parts else "every class asked in every whole minute that was read"


def _notes(group: Group, empty: Sequence[float], short: Sequence[tuple[float, int]]) -> list[str]:
    if group.due is not None:
        notes = [f"{group.title} asks on a schedule: {group.due:g} requests a minute."]
        if short:
            notes.append(
                f"{group.title}: fewer came at {some([f'{clock(at)} ({n})' for at, n in short], 12)}. Requests that are due and do not come cannot reach the edge."
            )
        return notes
    if not empty:
        return []
    if group.expected is None:
        return [f"{group.title}: what silence proves is not known, without a quiet time before."]
    runs = _runs(empty)
    chance = {run: silent(group.expected * run[1]) for run in runs}
    sure = [run for run in runs if chance[run] < PROOF]
    rare = f"{group.title}: {group.expected:.1f} requests a minute were to be expected; a silent minute comes by chance with {_percent(silent(group.expected))}"
    if sure:
        said = some([f"{clock(at)} ({many(length, 'minute')})" for at, length in sure])
        return [f"{rare}. That does not explain the silence from {said}."]
    return [f"{rare}: the silence is no proof."]


def _runs(empty: Sequence[float]) -> list[tuple[float, int]]:
    runs: list[tuple[float, int]] = []
    for at in empty:
        if runs and at == runs[-1][0] + 60 * runs[-1][1]:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((at, 1))
    return runs


def _percent(chance: float) -> str:
    return f"{100 * chance:.2g} %" if chance >= 1e-6 else "less than 0.0001 %"


def _series(group: Group) -> Series:
    """None where no source of the class tells of the minute: then nobody knows."""
    minutes = tuple(
        (at, asked(counts) if asked(counts) or not group.read or any(first < at + 60 and at <= last for first, last in group.read) else None, counts.bad)
        for at, counts in group.minutes
    )
    note = f"{group.due:g} a minute are due" if group.due is not None else f"usually {group.expected:.1f} a minute" if group.expected is not None else ""
    return Series(group.title, minutes, note)


def _table(found: Sequence[Group]) -> Table:
    """Minutes in which anybody of a class had a bad answer, or nobody asked, or fewer than were due; all of them where they are few."""
    columns = ["minute"]
    for group in found:
        columns += [group.title, "bad"]
    rows = []
    for place, (at, _) in enumerate(found[0].minutes):
        row = [clock(at)[:5]]
        for group in found:
            counts = group.minutes[place][1]
            row += [str(asked(counts)), str(counts.bad)]
        rows.append(tuple(row))
    if len(rows) > MOST_ROWS:
        rows = [row for row in rows if any(cell != "0" for cell in row[2::2]) or any(cell == "0" for cell in row[1::2])][:MOST_ROWS]
    return Table(tuple(columns), tuple(rows))


def _data(group: Group) -> dict[str, object]:
    return {
        "class": group.name,
        "due_per_minute": group.due,
        "expected_per_minute": round(group.expected, 3) if group.expected is not None else None,
        "minutes": [[at, asked(counts), counts.bad] for at, counts in group.minutes],
    }

"""F14: what this roll cost each route, and whether it cost less than a former one. Pure.

The unit is the outage of a route in a roll, not the request: requests of one outage are not independent, and a test on their counts
calls two equal rolls different in 44 % of simulations. Routes are paired and the signs of their differences are flipped. As an
outage is known within bounds only, the test is made on the least and on the most, and a change is claimed where both agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from edgekeeper.measure.permutation import EXACT, Change, change
from edgekeeper.model.text import printable
from edgekeeper.model.time import Span
from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.counts import router_name
from edgekeeper.report.figures.moves import moved_again
from edgekeeper.report.figures.say import many
from edgekeeper.report.figures.traffic import count, down, of_routes
from edgekeeper.report.study import Study

LEVEL: Final = 0.05
"""A change is claimed when chance alone would do as much in fewer than one of twenty rolls."""

_POWER: Final = "With outages from 30 to 90 s, one roll each of 10 routes shows a halving nearly always, and a quarter less in fewer than half of the cases."
"""2,000 simulations each, 2026-11-30: equal rolls were called different in 4.9 %, a halving was seen in 99.6 %, a quarter less in 45 %."""


@dataclass(frozen=True, slots=True)
class Roll:
    """What is compared of a roll: seconds of outage by application, requests, the order of nodes, and moves. None: it does not say."""

    apps: Mapping[str, Span]
    asked: int
    bad: int
    order: tuple[str, ...]
    moves: int
    again: int


def roll_of(study: Study) -> Roll:
    """The roll that was read. Every route that was asked in the window is an application; one without an outage has 0 s."""
    apps: dict[str, Span] = {}
    asked = bad = 0
    hurts = of_routes(study)
    for router in study.routers():
        seen = count(study, study.lanes(router=router), study.window.begin, study.window.end)
        if not seen.asked:
            continue
        asked += seen.asked
        bad += seen.bad
        apps[router] = down(h for h in hurts if h.router == router)
    return Roll(apps, asked, bad, tuple(d.node for d in study.drains), sum(len(d.pods) for d in study.drains), sum(m.extra for m in moved_again(study)))


def f14(study: Study) -> Figure:
    """What the roll cost each application: also what a later report compares itself with."""
    title = "What it cost each route"
    roll = roll_of(study)
    if not roll.apps:
        return Figure("F14", title, "no requests were read in the window", measured=False)
    hurt = {name: span for name, span in roll.apps.items() if span.max_s > 0}
    rows = tuple((router_name(name), span.text()) for name, span in sorted(hurt.items(), key=lambda item: (-item[1].min_s, -item[1].max_s, item[0])))
    total = Span(sum(s.min_s for s in hurt.values()), sum(s.max_s for s in hurt.values()))
    answer = (
        f"{many(len(hurt), 'route')} of {len(roll.apps)} with outages, {total.brief()} if added up"
        if hurt
        else f"none of {len(roll.apps)} routes had an outage"
    )
    return Figure("F14", title, answer, table=Table(("route", "outage in all"), rows) if rows else None, data=_data(roll))


def _data(roll: Roll) -> dict[str, Any]:
    apps = {name: {"min_s": span.min_s, "max_s": span.max_s if math.isfinite(span.max_s) else None} for name, span in roll.apps.items()}
    return {"apps": apps, "asked": roll.asked, "bad": roll.bad, "order": list(roll.order), "moves": roll.moves, "extra_moves": roll.again}


def former_roll(report: Mapping[str, Any]) -> Roll | None:
    """The roll of a former report in JSON; None when it has none that can be compared. Whatever is in the file, nothing is raised."""
    figures = report.get("figures")
    for figure in figures if isinstance(figures, list) else []:
        data = figure.get("data") if isinstance(figure, dict) and figure.get("id") == "F14" else None
        apps = data.get("apps") if isinstance(data, dict) else None
        if isinstance(data, dict) and isinstance(apps, dict):
            kept = {printable(str(name), 256): span for name, value in apps.items() if (span := _span(value)) is not None}
            order = data.get("order")
            names = tuple(printable(str(node), 256) for node in order) if isinstance(order, list) else ()
            return Roll(kept, _whole(data, "asked"), _whole(data, "bad"), names, _whole(data, "moves"), _whole(data, "extra_moves"))
    return None


def _span(value: Any) -> Span | None:
    if not isinstance(value, dict):
        return None
    least, most = value.get("min_s"), value.get("max_s")
    if not _number(least) or not (most is None or _number(most)):
        return None
    return Span(least, math.inf if most is None else max(least, most))


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e9


def _whole(data: Mapping[str, Any], key: str) -> int:
    value = data.get(key)
    return int(value) if _number(value) else 0


@dataclass(frozen=True, slots=True)
class Compared:
    """Two rolls: the change by the least and by the most that outages can have lasted, over the routes that had one, with bounds, in either.

    Those that had none in either (``unhurt``) tell nothing of how long outages are.
    """

    names: tuple[str, ...]
    unhurt: tuple[str, ...]
    least: Change
    most: Change
    unbounded: tuple[str, ...]
    only_now: tuple[str, ...]
    only_then: tuple[str, ...]

    @property
    def claimed(self) -> str:
        """``less``, ``more``, or ``""`` when no change can be shown."""
        if self.least.p > LEVEL or self.most.p > LEVEL:
            return ""
        if self.least.sum_s < 0 and self.most.sum_s < 0:
            return "less"
        return "more" if self.least.sum_s > 0 and self.most.sum_s > 0 else ""


def compare(now: Mapping[str, Span], then: Mapping[str, Span], seed: int = 1) -> Compared:
    """Pair the routes of two rolls and test their differences."""
    both = sorted(now.keys() & then.keys())
    unbounded = tuple(n for n in both if math.isinf(now[n].max_s) or math.isinf(then[n].max_s))
    unhurt = tuple(n for n in both if now[n].max_s == 0 and then[n].max_s == 0)
    names = tuple(n for n in both if n not in {*unbounded, *unhurt})
    least = change([now[n].min_s - then[n].min_s for n in names], seed)
    most = change([now[n].max_s - then[n].max_s for n in names], seed)
    return Compared(names, unhurt, least, most, unbounded, tuple(sorted(now.keys() - then.keys())), tuple(sorted(then.keys() - now.keys())))


def compared(study: Study, former: Mapping[str, Any]) -> Figure:
    """This roll against a former one."""
    title = "Against the former report"
    then, now = former_roll(former), roll_of(study)
    if then is None:
        return Figure("CMP", title, "the former report has no figure F14 with the outages of its routes; make it anew with -o json", measured=False)
    if not now.apps:
        return Figure("CMP", title, "no requests were read in the window", measured=False)
    found = compare(now.apps, then.apps)
    if not found.names:
        if found.unhurt and not found.unbounded:
            return Figure("CMP", title, f"none of {many(len(found.unhurt), 'route')} that were asked in both rolls had an outage in either")
        return Figure("CMP", title, "the two rolls have no route in common whose outages have bounds", measured=False)
    rows = [(router_name(name), then.apps[name].text(), now.apps[name].text(), _difference(now.apps[name], then.apps[name])) for name in found.names]
    rows.sort(key=lambda row: row[0])
    data = {
        "claimed": found.claimed,
        "pairs": len(found.names),
        "least": _figures(found.least),
        "most": _figures(found.most),
        "then": _data(then),
        "now": _data(now),
    }
    columns = ("route", "then", "now", "difference")
    return Figure("CMP", title, _answer(found), table=Table(columns, tuple(rows)), notes=tuple(_notes(now, then, found)), data=data)


def _difference(now: Span, then: Span) -> str:
    low, high = now.min_s - then.max_s, now.max_s - then.min_s
    return f"{low:+.1f} s to {high:+.1f} s"


def _figures(of: Change) -> dict[str, Any]:
    return {"median_s": of.median_s, "low_s": of.low_s, "high_s": of.high_s, "p": of.p, "exact": of.exact}


def _answer(found: Compared) -> str:
    pairs = many(len(found.names), "route")
    low, high = min(found.least.low_s, found.most.low_s), max(found.least.high_s, found.most.high_s)
    p = max(found.least.p, found.most.p)
    interval = f"median difference between {low:+.1f} s and {high:+.1f} s (95 %), p = {p:.2g}"
    if found.claimed:
        return f"outages were {'shorter' if found.claimed == 'less' else 'longer'} than in the former roll: {interval}, over {pairs}"
    if found.least.least_p > LEVEL:
        return f"{pairs} with an outage {'is' if len(found.names) == 1 else 'are'} too few to show any difference, six are needed; {interval}"
    return f"no difference can be shown: {interval}, over {pairs}"


def _notes(now: Roll, then: Roll, found: Compared) -> list[str]:
    notes = [
        f"Then {then.bad:,} of {then.asked:,} requests failed, {_order(then)}, {many(then.moves, 'pod')} moved, {then.again} of them again.",
        f"Now {now.bad:,} of {now.asked:,} requests failed, {_order(now)}, {many(now.moves, 'pod')} moved, {now.again} of them again.",
    ]
    if bool(now.again) != bool(then.again):
        notes.append("One of the rolls moved pods twice and the other did not: it is a different experiment, and a difference may be of that alone.")
    if now.order != then.order:
        notes.append("The nodes were drained in another order, or others were.")
    if found.unbounded:
        notes.append(f"{many(len(found.unbounded), 'route')} with an outage of unknown end left out: {_few(found.unbounded)}.")
    if found.unhurt:
        notes.append(f"{many(len(found.unhurt), 'route')} had no outage in either roll, and say nothing of how long one is.")
    lonely = found.only_now + found.only_then
    if lonely:
        notes.append(f"Asked for in one of the two only, so not compared: {_few(lonely)}.")
    how = "every choice of signs was counted" if found.least.exact else "10,000 choices of signs were drawn"
    notes.append(f"A change is claimed where the test on the least and on the most that each outage can have lasted agree; {how} (up to {EXACT} pairs: all).")
    if not found.claimed and found.least.least_p <= LEVEL:
        notes.append(_POWER)
    return notes


def _order(roll: Roll) -> str:
    return f"drained {' then '.join(roll.order)}" if roll.order else "no drain was told"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")

"""What the roll took from the budget of errors: of requests, of time, and of the minutes of users. Pure.

Requests that were never sent are in no count of requests, and busy clients weigh more than patient ones. So the minutes of users are
told beside: a client is up until its last good answer, down from its first bad one until its next good one, and unknown after half an hour
of silence (in the manner of "Meaningful Availability", NSDI 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from edgekeeper.model.time import Span
from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.counts import asked, router_name, total
from edgekeeper.report.figures.edge import common, length, united
from edgekeeper.report.figures.followed import followed
from edgekeeper.report.figures.say import lasted, many, seconds
from edgekeeper.report.figures.traffic import Count, count, down, of_routes
from edgekeeper.report.people import SILENCE_S, Run
from edgekeeper.report.study import Study

PAGE: Final = 14.4
"""The burn rate at which alerts usually page: a month's budget in two days (the SRE workbook's first window)."""

_DAY_S: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Spent:
    """Shares of a budget, 1.0 being all of it. ``time`` is an interval; ``requests`` is None where there were none."""

    burn: float | None
    requests: float | None
    time: Span


def spent(seen: Count, out: Span, *, slo: float, days: float, asked_s: float) -> Spent:
    """What a window took of the budget of ``days``.

    ``burn`` is the share of failed requests over the share that is allowed. For the budget of requests those of the whole time are
    estimated from the ``asked_s`` requests a second that were read. ``out`` is how long it was down.
    """
    allowed = 1 - slo
    burn = seen.bad / seen.asked / allowed if seen.asked else None
    due = asked_s * days * _DAY_S
    requests = seen.bad / (due * allowed) if due > 0 else None
    budget = days * _DAY_S * allowed
    return Spent(burn, requests, Span(out.min_s / budget, out.max_s / budget))


def down_minutes(runs: tuple[Run, ...], begin: float, end: float, *, most: bool = False) -> tuple[float, float]:
    """Minutes up and down of one client between two moments on the clock of its runs.

    Runs of several files may overlap. A bad one within a good one counts from its first to its last bad answer, or, with ``most``, to the next
    good run: where its next good answer lies in between is not known.
    """
    good = [run for run in runs if run.ok]
    downs = united(_within(run.first, _until(run, good, most=most), begin, end) for run in runs if not run.ok)
    ups = united(_within(run.first, run.last, begin, end) for run in good)
    return (length(ups) - length(common(ups, downs))) / 60, length(downs) / 60


def _until(bad: Run, good: list[Run], *, most: bool) -> float:
    """When a client that was down was up again: its next good answer, unless it was silent for too long; else its last bad one."""
    again = min((run.first for run in good if run.last > bad.last and (run.first >= bad.last or not most)), default=bad.last)
    return again if 0 <= again - bad.last <= SILENCE_S else bad.last


def _within(first: float, last: float, begin: float, end: float) -> tuple[float, float]:
    return max(first, begin), min(last, end)


@dataclass(frozen=True, slots=True)
class Users:
    """Minutes of all clients up, and down at least and at most; how many clients were down at all."""

    up: float
    down: float
    down_most: float
    hurt: int

    @property
    def text(self) -> str:
        """In one part of a sentence."""
        few, many_ = f"{self.down:.1f}", f"{self.down_most:.1f}"
        return f"{few if few == many_ else f'{few} to {many_}'} of {self.up + self.down:,.0f} minutes of users were down, for {many(self.hurt, 'client')}"


def user_minutes(study: Study) -> Users:
    """The minutes of all clients in the window."""
    up = down = down_most = 0.0
    hurt = 0
    begin, end = study.window.begin, study.window.end
    for client in followed(study):
        mine = down_minutes(client.runs, begin, end)
        up += mine[0]
        down += mine[1]
        down_most += max(mine[1], down_minutes(client.runs, begin, end, most=True)[1])
        hurt += any(not run.ok and run.first < end and run.last >= begin for run in client.runs)
    return Users(up, down, down_most, hurt)


def budget(study: Study) -> Figure:
    """How much of the budget of errors the window spent, per route and in all."""
    title = "Budget of errors spent"
    if not study.book.cells.lanes():
        return Figure("SLO", title, "no requests were read", measured=False)
    settings = study.settings
    hurts = of_routes(study)
    rates = {router: _rate(study, router) for router in study.routers()}
    seen = {router: count(study, study.lanes(router=router), study.window.begin, study.window.end) for router in rates}
    outs = {router: down(h for h in hurts if h.router == router) for router in rates}
    if not any(c.asked for c in seen.values()):
        return Figure("SLO", title, "no requests were read in the window", measured=False)

    def shares(whole: Count, out: Span, rate: float) -> Spent:
        return spent(whole, out, slo=settings.slo, days=settings.slo_days, asked_s=rate)

    each = {router: shares(seen[router], outs[router], rates[router]) for router in rates}
    ranked = sorted(each, key=lambda r: (-each[r].time.min_s, -each[r].time.max_s, -(each[r].requests or 0.0), r))
    everything = Count(sum(c.asked for c in seen.values()), sum(c.bad for c in seen.values()))
    worst = ranked[0]
    whole = shares(everything, outs[worst], sum(rates.values()))
    users = user_minutes(study)
    rows = [(router_name(r), *_row(seen[r], outs[r], each[r])) for r in ranked if seen[r].bad or outs[r].max_s]
    rows.append(("all", *_row(everything, Span(0.0, 0.0), whole)[:3], "", "", _percent(whole.requests)))
    notes = [
        f"The objective is {100 * settings.slo:g} % over {settings.slo_days} days, {seconds(settings.slo_days * _DAY_S * (1 - settings.slo))} of outage.",
        f"How many requests {settings.slo_days} days have is estimated from {_read(study)} that was read.",
        "Requests that were not sent are not counted; minutes of users are: from the first bad answer to the next good one.",
    ]
    if study.book.cells.clients_lost:
        notes.append(
            f"{many(study.book.cells.clients_lost, 'client')} and more that were never hurt could not be followed; minutes of users are without theirs."
        )
    data = {
        "budget": whole.requests,
        "burn": whole.burn,
        "time_min": each[worst].time.min_s,
        "time_max": each[worst].time.max_s if math.isfinite(each[worst].time.max_s) else None,
        "user_minutes_up": users.up,
        "user_minutes_down": users.down,
        "user_minutes_down_most": users.down_most,
        "clients_down": users.hurt,
        "routes": {r: {"burn": each[r].burn, "requests": each[r].requests, "time_min": each[r].time.min_s, "time_max": each[r].time.max_s} for r in ranked},
    }
    return Figure("SLO", title, _answer(worst, outs[worst], each[worst], whole, users), table=Table(_COLUMNS, tuple(rows)), notes=tuple(notes), data=data)


_COLUMNS: Final = ("route", "requests", "failed", "burn rate", "outage", "of the time", "of the requests")


def _row(seen: Count, out: Span, share: Spent) -> tuple[str, ...]:
    burn = f"{share.burn:.1f}x" if share.burn is not None else "?"
    return (f"{seen.asked:,}", f"{seen.bad:,}", burn, out.text(), percent_span(share.time), _percent(share.requests))


def _answer(worst: str, out: Span, share: Spent, whole: Spent, users: Users) -> str:
    parts = []
    if out.max_s > 0:
        parts.append(f"{worst} spent {percent_span(share.time)} of its time budget")
    if whole.requests is not None:
        parts.append(f"all routes {_percent(whole.requests)} of the request budget")
    if whole.burn is not None:
        parts.append(f"burn rate {whole.burn:.1f}" + (f" (alerts usually page at {PAGE})" if whole.burn >= PAGE else ""))
    if users.up + users.down:
        parts.append(users.text)
    return "; ".join(parts)


def _rate(study: Study, router: str) -> float:
    """Requests a second of a route over all that was read of it."""
    lanes = study.lanes(router=router)
    read = length(study.covered(lane.source for lane in lanes))
    return asked(total(study, lanes, None)) / read if read >= 1 else 0.0


def _read(study: Study) -> str:
    read = length(study.covered(lane.source for lane in study.lanes()))
    return f"the {lasted(Span(read, read))} of access logs" if read else "the access logs"


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.1f} %"


def percent_span(share: Span) -> str:
    """``1.2 % to 1.9 %``, ``less than 0.4 %``, ``at least 3 %``."""
    if math.isinf(share.max_s):
        return f"at least {_percent(share.min_s)}"
    low, high = _percent(share.min_s), _percent(share.max_s)
    if share.max_s == 0:
        return "0 %"
    return f"less than {high}" if share.min_s == 0 else low if low == high else f"{low} to {high}"

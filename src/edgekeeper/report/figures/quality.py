"""Beside outages: how long answers took, sessions that were cut, failures that the proxy hid, and what clean drains prove. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from edgekeeper.measure.binomial import never_seen
from edgekeeper.report.cells import EDGES_S
from edgekeeper.report.document import Figure, Table, Window
from edgekeeper.report.figures.baseline import quiet
from edgekeeper.report.figures.counts import asked, at_most, router_name, share, took, total, words
from edgekeeper.report.figures.outages import TOLD, is_probe
from edgekeeper.report.figures.say import many, some
from edgekeeper.report.study import Study

MOST_ROWS = 50
_SHARES = (0.5, 0.95, 0.99)
_LEAST = 20
"""Answers from which on a 95th percentile is told; fewer have none."""


def quantile(bins: Sequence[int], part: float) -> tuple[float, float] | None:
    """Between which times (seconds) so great a part of the answers lies below; the last bin has no upper end. None without answers."""
    n = sum(bins)
    wanted, seen = max(1, math.ceil(part * n)), 0
    for place, count in enumerate(bins):
        seen += count
        if n and seen >= wanted:
            return (EDGES_S[place - 1] if place else 0.0), (EDGES_S[place] if place < len(EDGES_S) else math.inf)
    return None


def latency(study: Study) -> Figure:
    """How long good answers took, by route, against the quiet time before."""
    before, _ = quiet(study)
    nows = {router: took(study, study.lanes(router=router), study.window) for router in study.routers()}
    whole = _sum(nows.values())
    if not sum(whole):
        return Figure("LAT", "How long answers took", "no access log tells of a good answer in the window", measured=False)
    befores = {router: took(study, study.lanes(router=router), before) if before is not None else [0] for router in nows}
    rows = []
    for router, now in nows.items():
        was = befores[router]
        if sum(now) >= _LEAST:
            rows.append((_grown(now, was), router, now, was))
    rows.sort(key=lambda row: (-row[0], row[1]))
    usual = _sum(befores.values())
    return Figure(
        "LAT",
        "How long answers took",
        f"95 of 100 good answers came within {_most(quantile(whole, 0.95))}"
        + (f"; in the quiet time before, within {_most(quantile(usual, 0.95))}" if sum(usual) else ""),
        table=Table(
            ("route", "good answers", "half within", "before", "95 % within", "before", "99 % within", "before"),
            tuple(_row(router, now, was) for _, router, now, was in rows[:MOST_ROWS]),
        ),
        notes=("Times are counted in bins, and told as the bounds of their bin. Counted are good answers, of the whole minutes that the window touches.",),
        data={"window_s": {str(part): quantile(whole, part) for part in _SHARES}, "before_s": {str(part): quantile(usual, part) for part in _SHARES}},
    )


def _sum(several: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*several, strict=True)]


def _grown(now: Sequence[int], was: Sequence[int]) -> float:
    new, old = quantile(now, 0.95), quantile(was, 0.95)
    return new[0] - old[1] if new is not None and old is not None else 0.0


def _row(router: str, now: Sequence[int], was: Sequence[int]) -> tuple[str, ...]:
    cells = [cell for part in _SHARES for cell in (_bin(quantile(now, part)), _bin(quantile(was, part)))]
    return (router_name(router), str(sum(now)), *cells)


def _bin(found: tuple[float, float] | None) -> str:
    if found is None:
        return "-"
    return f"{_time(found[0])} to {_time(found[1])}" if math.isfinite(found[1]) else f"more than {_time(found[0])}"


def _most(found: tuple[float, float] | None) -> str:
    if found is None:
        return "a time that is not known"
    return _time(found[1]) if math.isfinite(found[1]) else f"more than {_time(found[0])}"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def cut(study: Study) -> Figure:
    """Sessions (WebSockets, TCP) that ended in the window, by how, against the quiet time before."""
    now = words(study, study.lanes(), study.window, ended=True)
    if not now:
        return Figure("CUT", "Sessions that were cut", "no log tells of a session that ended in the window", measured=False)
    before, _ = quiet(study)
    was = words(study, study.lanes(), before, ended=True) if before is not None else None
    killed = sum(hits for how, hits in now.items() if how.startswith("killed"))
    rows = tuple((how, str(hits), str(was[how]) if was is not None else "-") for how, hits in now.most_common(MOST_ROWS))
    sockets = now["WebSocket"]
    said = [f"{many(killed, 'session')} killed by the balancer"] if killed else []
    said += [f"{many(sockets, 'WebSocket')} ended" + (f" ({was['WebSocket']} in the quiet time before)" if was is not None else "")] if sockets else []
    return Figure(
        "CUT",
        "Sessions that were cut",
        "; ".join(said) or f"{many(sum(now.values()), 'session')} ended, none was killed",
        table=Table(("how", "in the window", "before"), rows),
        notes=("By whole minutes, at the time when they ended. A WebSocket that ends may have been cut, or its client was done: compare with before.",),
        data={"ended": dict(now), "before": dict(was) if was is not None else None},
    )


def masked(study: Study) -> Figure:
    """Requests that failed at first and were saved by another attempt: nobody was hurt, but nearly."""
    found = [(total(study, study.lanes(router=router), study.window), router) for router in study.routers()]
    n = sum(asked(counts) for counts, _ in found)
    if not n:
        return Figure("MASK", "Failures that the proxy hid", "no access log tells of a request in the window", measured=False)
    hidden = sorted(((counts.masked, asked(counts), router) for counts, router in found if counts.masked), key=lambda row: (-row[0], row[2]))
    saved = sum(row[0] for row in hidden)
    rows = tuple((router_name(router), str(hits), share(hits, all_)) for hits, all_, router in hidden[:MOST_ROWS])
    return Figure(
        "MASK",
        "Failures that the proxy hid",
        f"{many(saved, 'request')} failed at first and went well on another attempt ({share(saved, n)})"
        if saved
        else "no line tells of a request that was saved by another attempt",
        table=Table(("route", "saved", "of its requests"), rows) if rows else None,
        data={"masked": saved},
    )


def clean(study: Study) -> Figure:
    """What it proves that a route was not hurt by a drain: of few drains, next to nothing."""
    spans = [(d.node, d.evicting or d.begin, d.end or d.drained) for d in study.drains]
    windows = [(node, Window(begin, end)) for node, begin, end in spans if begin is not None and end is not None and end > begin]
    if not windows:
        return Figure("ZERO", "What clean drains prove", "no drain with a begin and an end is known", measured=False)
    hurt = [hurt for hurt in study.outages if not is_probe(hurt) and hurt.group != TOLD]
    rows, measured, unhurt = [], 0, 0
    for router in study.routers():
        lanes = study.lanes(router=router)
        seen = [w for _, w in windows if asked(total(study, lanes, w))]
        hits = sum(any(h.router == router and h.last_bad >= w.begin and h.first_bad <= w.end for h in hurt) for w in seen)
        measured += len(seen)
        unhurt += len(seen) - hits
        if seen and not hits:
            rows.append((router_name(router), str(len(seen)), f"less than {at_most(never_seen(len(seen)))}"))
    bound = at_most(never_seen(len(windows)))
    return Figure(
        "ZERO",
        "What clean drains prove",
        f"{unhurt} of {measured} pairs of a route and a drain were clean; {many(len(windows), 'clean drain')} of a route {'proves' if len(windows) == 1 else 'prove'} only that less than {bound} of drains hurt it (95 %)",
        table=Table(("route that was never hurt", "drains in which it was asked", "share of drains that may hurt it, at 95 %"), tuple(rows[:MOST_ROWS]))
        if rows
        else None,
        notes=(f"Never hurt: {some([row[0] for row in rows], 8)}.",) if rows else (),
        data={"pairs": measured, "clean": unhurt, "drains": len(windows)},
    )

"""F4: the outages of every route and every probed target, each with the least and the most that it can have lasted. Pure.

Two ways lead to one list: access logs (islands of bad answers, see ``measure.islands``) and probes (see ``measure.outages``). What another
program measured and told comes in as it was told, where nothing here saw the same with its own eyes.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from edgekeeper.measure import outages as probed
from edgekeeper.measure.islands import Second, Seen, Trouble, added, troubles
from edgekeeper.model.sample import Sample
from edgekeeper.model.time import Span
from edgekeeper.report.cells import Lane
from edgekeeper.report.document import Figure, Hurt, Table, Window, longest
from edgekeeper.report.figures.counts import around, asked, group_name, index, router_name, total, unseen_s
from edgekeeper.report.figures.say import clock, lasted, many, some
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Study

LOOK_S = 3600.0
"""Good answers are looked for so far before and after the window: without one on a side, an outage has no bound there."""

APART_S = 120.0
"""Bad answers that lie further apart are looked at one by one, where good ones lie between."""

_ENOUGH = 10

QUIET_S = 5.0
"""Bad samples of a probe that lie less than that apart are one outage, although good ones lie between."""

PROBE = "probe"
WARM = "probe, warm"
TOLD = "told"
"""What stands for the class of clients where a probe asked, where it kept its connection, and where another program measured."""


def outages(study: Study) -> tuple[Hurt, ...]:
    """All outages that touch the window, by their begin."""
    routes = [hurt for router in study.routers() for hurt in _of_route(study, router)]
    probes = [hurt for key in sorted(study.book.samples) for hurt in _of_probe(study, key)]
    found = routes + probes + _told(study)
    return tuple(sorted(found, key=lambda hurt: (hurt.first_bad, hurt.router, hurt.source)))


def is_probe(hurt: Hurt) -> bool:
    """Whether a probe saw it, not a client."""
    return hurt.group in {PROBE, WARM}


def _of_route(study: Study, router: str) -> list[Hurt]:
    lanes = study.lanes(router=router)
    found = [trouble for window in _places(study, lanes) for trouble in _troubles(study, lanes, window)]
    kept = [t for t in found if t.whole.last_end >= study.window.begin and t.whole.first_bad < study.window.end]
    return [_hurt(study, router, lanes, trouble) for trouble in kept]


def _places(study: Study, lanes: Sequence[Lane]) -> list[Window]:
    """Where to look for outages of a route: around its bad answers, as far as good ones are to be looked for on both sides.

    Only what touches the window counts; spans that reach into each other are one.
    """
    seconds = sorted({second + study.shift(lane.source) for lane in lanes for second in index(study, lane).bad})
    spans: list[tuple[float, float]] = []
    for second in seconds:
        if spans and second - spans[-1][1] <= APART_S:
            spans[-1] = (spans[-1][0], second)
        else:
            spans.append((second, second))
    near = [(begin, end) for begin, end in spans if end >= study.window.begin - APART_S and begin <= study.window.end + APART_S]
    found: list[Window] = []
    for begin, end in near:
        look = Window(begin - _reach(study, lanes, begin, -1), end + 2 + _reach(study, lanes, end + 2, 1))
        if found and look.begin <= found[-1].end:
            look = Window(found.pop().begin, look.end)
        found.append(look)
    return found


def _reach(study: Study, lanes: Sequence[Lane], moment: float, side: int) -> float:
    """How far from the moment enough good answers lie, as a bound and as a proof where only some servers are dead."""
    reach = APART_S / 2
    while reach < LOOK_S:
        if total(study, lanes, Window(min(moment, moment + side * reach), max(moment, moment + side * reach))).good >= _ENOUGH:
            return reach
        reach *= 4
    return LOOK_S


def _troubles(study: Study, lanes: Sequence[Lane], window: Window) -> list[Trouble]:
    return troubles(*_seen(study, lanes, window))[0]


def _seen(study: Study, lanes: Sequence[Lane], window: Window) -> tuple[list[Second], float]:
    """The seconds of a route over all its lanes, and how much stamps may mix their order.

    The error of one clock is common to all that it wrote and lengthens nothing; it only counts where several clocks wrote, or the one was set
    or drifted meanwhile.
    """
    clocks = {study.node_of(lane.source) for lane in lanes}
    apart = len(clocks) > 1 or any(clock_of.moved for node in clocks if (clock_of := study.clocks.get(node)) is not None)
    sources, slack = [], 0.0
    for lane in lanes:
        known = study.book.sources.get(lane.source)
        stamp = known.stamp_s if known is not None else 0.0
        width = study.width(lane.source) if apart else 0.0
        sources.append(Seen(study.cells([lane], window), width, width + stamp))
        slack = max(slack, 2 * (2 * width + stamp))
    return added(sources), slack


def _hurt(study: Study, router: str, lanes: Sequence[Lane], trouble: Trouble) -> Hurt:
    whole = trouble.whole
    inside = around(whole.first_bad, whole.last_bad)
    hurt = [lane for lane in lanes if total(study, [lane], inside).bad] or list(lanes)
    width = max(study.width(lane.source) for lane in hurt)
    return Hurt(
        router=router,
        group=_groups(lane.group for lane in hurt),
        span=Span(whole.min_s, whole.max_s),
        first_bad=whole.first_bad,
        last_bad=whole.last_bad,
        requests=whole.requests,
        full=trouble.full,
        source=some(sorted({lane.source for lane in hurt}), 3),
        earliest=whole.begin - width if math.isfinite(whole.begin) else None,
        latest=whole.end + width if math.isfinite(whole.end) else None,
        impaired_s=trouble.impaired_s,
        longest=Span(trouble.longest.min_s, trouble.longest.max_s),
    )


def _groups(groups: Iterable[str]) -> str:
    names = sorted(set(groups))
    return names[0] if len(names) == 1 else some([group_name(name) for name in names], 3)


def _of_probe(study: Study, key: tuple[str, str, str]) -> list[Hurt]:
    source, target, conn = key
    shift, width = study.shift(source), study.width(source)
    samples = sorted(study.book.samples[key], key=lambda s: (s.sent, s.done))
    begin, end = study.window.begin - shift, study.window.end - shift
    lies = Edges(samples)
    found = []
    for outage in probed.outages(samples, quiet_s=QUIET_S, hole_s=probed.hole_of(samples)):
        if outage.last_bad < begin or outage.first_bad > end:
            continue
        earliest, latest = lies.begin(outage), lies.end(outage)
        found.append(
            Hurt(
                router=target,
                group=WARM if conn == "warm" else PROBE,
                span=Span(outage.min_s, outage.max_s),
                first_bad=outage.first_bad + shift,
                last_bad=outage.last_bad + shift,
                requests=outage.bad,
                full=not outage.good,
                source=source,
                earliest=earliest + shift - width if math.isfinite(earliest) else None,
                latest=latest + shift + width if math.isfinite(latest) else None,
            )
        )
    return found


class Edges:
    """Between what the outages of one probed target lie; made once of all its samples, in the order in which they were sent."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        good = [s for s in samples if s.ok]
        by_done = sorted(good, key=lambda s: s.done)
        self._done = [s.done for s in by_done]
        self._sent = list(accumulate((s.sent for s in by_done), max))
        self._good = good
        self._bad = [s for s in samples if not s.ok]

    def begin(self, outage: probed.Outage) -> float:
        """It began later than this: when the youngest good question was sent that was answered before the first bad one was sent."""
        place = bisect_right(self._done, outage.first_bad)
        return self._sent[place - 1] if place else -math.inf

    def end(self, outage: probed.Outage) -> float:
        """It was over by this: when the next good question after the last bad one was answered."""
        place = bisect_right(self._good, outage.last_bad, key=lambda s: s.sent)
        return self._good[place].done if place < len(self._good) else math.inf

    def sure(self, outage: probed.Outage) -> float:
        """It had begun by this: when the first of its bad questions was given up."""
        first = bisect_left(self._bad, outage.first_bad, key=lambda s: s.sent)
        last = bisect_right(self._bad, outage.last_bad, key=lambda s: s.sent)
        return min(s.done for s in self._bad[first:last])


def _told(study: Study) -> list[Hurt]:
    """What other programs measured; not where the same source gave the samples themselves."""
    own = {(source, target) for source, target, _ in study.book.samples}
    found = []
    for mark in study.marks(Kind.OUTAGE):
        if mark.at is None or (mark.source, mark.object) in own or not study.window.begin <= mark.at <= study.window.end:
            continue
        span = _span(mark)
        found.append(
            Hurt(
                mark.object,
                TOLD,
                span,
                mark.at,
                mark.at + span.min_s,
                _whole(mark, "bad") or 0,
                source=mark.source,
            )
        )
    return found


def _whole(mark: Mark, name: str) -> int | None:
    """A count that a mark tells; None where it tells of none that is one."""
    value = mark.data.get(name)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0 else None


def _count(mark: Mark, name: str) -> str:
    value = _whole(mark, name)
    return "-" if value is None else f"{value:,}"


def f4(study: Study) -> Figure:
    """The table of outages, and where none can have been seen."""
    routes = [hurt for hurt in study.outages if not is_probe(hurt) and hurt.group != TOLD]
    seen = [router for router in study.routers() if asked(total(study, study.lanes(router=router), study.window))]
    if not seen:
        return Figure("F4", "Outages of each route", "no access log tells of a request in the window", measured=False)
    rows = tuple(_row(router, [hurt for hurt in routes if hurt.router == router]) for router in dict.fromkeys(hurt.router for hurt in routes))
    single = max(0, total(study, study.lanes(), study.window).bad - sum(_inside(study, hurt) for hurt in routes))
    return Figure(
        "F4",
        "Outages of each route",
        _answer(routes, seen),
        table=Table(("route", "outages", "lasted in all", "longest full outage", "impaired", "bad answers"), rows) if rows else None,
        notes=tuple(_notes(study, routes, seen, single)),
        data={"routes_measured": len(seen), "single_errors": single},
    )


def _answer(routes: Sequence[Hurt], seen: Sequence[str]) -> str:
    worst = longest(routes)
    if worst is None:
        return f"no outage of any of {many(len(seen), 'route')} was seen"
    hit = len({hurt.router for hurt in routes})
    return (
        f"{many(len(routes), 'outage')} of {hit} of {many(len(seen), 'route')} that were asked; "
        f"the longest: {router_name(worst.router)}, {lasted(worst.span)}, from {clock(worst.first_bad)}"
    )


def _row(router: str, hurts: Sequence[Hurt]) -> tuple[str, ...]:
    """One route: its outages are in the report's own list, one by one."""
    full = max((h.longest for h in hurts if h.longest is not None), key=lambda span: (span.min_s, span.max_s), default=None)
    impaired = sum(h.impaired_s or 0 for h in hurts if not h.full)
    return (
        router_name(router),
        str(len(hurts)),
        lasted(Span(sum(h.span.min_s for h in hurts), sum(h.span.max_s for h in hurts))),
        lasted(full) if full is not None else "-",
        f"{impaired} s" if impaired else "-",
        str(sum(h.requests for h in hurts)),
    )


def _over(study: Study, hurt: Hurt) -> bool:
    """Whether bad answers of it began outside the window."""
    return hurt.first_bad < study.window.begin or hurt.last_bad >= study.window.end


def _inside(study: Study, hurt: Hurt) -> int:
    """How many of its bad answers began in the window."""
    if not _over(study, hurt):
        return hurt.requests
    whole = around(hurt.first_bad, hurt.last_bad)
    return total(study, study.lanes(router=hurt.router), Window(max(whole.begin, study.window.begin), min(whole.end, study.window.end))).bad


def _notes(study: Study, routes: Sequence[Hurt], seen: Sequence[str], single: int) -> list[str]:
    notes = []
    over = sum(_over(study, hurt) for hurt in routes)
    if over:
        notes.append(
            f"{many(over, 'outage')} {'reaches' if over == 1 else 'reach'} over the edge of the window and {'is' if over == 1 else 'are'} told as a whole."
        )
    if single:
        alone = (
            "stood alone and counts as a single error"
            if single == 1
            else "stood alone (fewer than three, within less than a second) and count as single errors"
        )
        notes.append(f"{many(single, 'bad answer')} {alone}, not as {'an outage' if single == 1 else 'outages'}.")
    silent = [router_name(router) for router in study.routers() if router not in seen]
    if silent:
        notes.append(f"Not measured, since nobody asked for it in the window: {some(silent)}.")
    for drain in study.drains:
        begin, end = drain.evicting or drain.begin, drain.end or drain.drained
        if begin is None or end is None or end <= begin:
            continue
        window = Window(begin, end)
        quiet = [router_name(router) for router in seen if not asked(total(study, study.lanes(router=router), window))]
        if quiet:
            notes.append(f"While {drain.node} was out nobody asked for {some(quiet)}: not measured there.")
    hurt = {h.router for h in routes}
    blind = {router: unseen_s(study, study.lanes(router=router)) for router in seen if router not in hurt}
    if blind:
        worst = max(blind, key=lambda router: blind[router])
        bound = f"{blind[worst]:.1f} s" if math.isfinite(blind[worst]) else "any length"
        notes.append(
            f"Of the {many(len(blind), 'route')} without one, an outage of up to {bound} would not have been seen (of {router_name(worst)}, which was asked the least steadily)."
        )
    if any(not h.full for h in routes):
        notes.append("Where good answers lie among the bad ones, bounds are those of what clients saw; a server itself may have been dead a little longer.")
    return notes


def told(study: Study) -> Figure:
    """Outages that other programs measured (a probe that ran as a service, a drill), as they told them; some without a time of day."""
    marks = study.marks(Kind.OUTAGE)
    if not marks:
        return Figure("TOLD", "Outages that others measured", "no journal and no drill tells of an outage", measured=False)
    found = [(mark, _span(mark)) for mark in marks]
    worst, span = max(found, key=lambda one: (one[1].max_s if math.isfinite(one[1].max_s) else one[1].min_s, one[1].min_s))
    rows = tuple((mark.object, lasted(span), _count(mark, "bad"), _count(mark, "asked"), clock(mark.at), mark.source) for mark, span in found)
    return Figure(
        "TOLD",
        "Outages that others measured",
        f"{many(len(found), 'outage')} told, the longest: {worst.object}, {lasted(span)}",
        table=Table(("what", "lasted", "unanswered", "asked", "from", "told by"), rows),
        data={"outages": [{"object": mark.object, "min_s": s.min_s, "max_s": s.max_s if math.isfinite(s.max_s) else None, "at": mark.at} for mark, s in found]},
    )


def _span(mark: Mark) -> Span:
    least, most = mark.data.get("min_s"), mark.data.get("max_s")
    low = max(0.0, float(least)) if isinstance(least, int | float) else 0.0
    return Span(low, max(low, float(most)) if isinstance(most, int | float) else math.inf)

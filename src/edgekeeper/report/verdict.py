"""The one sentence that stands first: who was hurt, for how long at least and at most, by what. Pure."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from edgekeeper.measure.outages import blind_s
from edgekeeper.measure.share import clopper_pearson
from edgekeeper.report.document import Hurt, longest
from edgekeeper.report.figures.counts import share, total
from edgekeeper.report.figures.say import clock, lasted, many, seconds, some
from edgekeeper.report.figures.traffic import Count, count
from edgekeeper.report.kinds import TORN_COMPRESSION
from edgekeeper.report.pages.when import iso
from edgekeeper.report.study import Study

SKIPPED_MOST: Final = 0.01
"""Above this share of lines that could not be read, what was lost may be what matters."""

GONE_MOST: Final = 0.01
"""Above this share of requests that clients gave up, it is said in the verdict: nobody waits for an answer that does not come."""


def judge(study: Study) -> tuple[str, bool]:
    """The verdict, and whether there can be one: False when nothing that measures was read, or too much could not be read."""
    sources = study.book.sources.values()
    lines = sum(source.lines for source in sources)
    skipped: Counter[str] = sum((source.skipped for source in sources), Counter())
    lost = skipped.total()
    if not lines and not study.book.samples and not study.book.cells.lanes() and not study.book.marks:
        return "Cannot judge: nothing was read.", False
    if lines and lost > lines * SKIPPED_MOST:
        why, most = skipped.most_common(1)[0]
        worst = max(sources, key=lambda s: s.skipped.total())
        return (
            f"Cannot judge: {lost:,} of {lines:,} lines ({100 * lost / lines:.1f} %) could not be read, {most:,} of them because of: {why}; "
            f"most are in {worst.name}."
        ), False
    seen = count(study, study.book.cells.lanes(), study.window.begin, study.window.end)
    probed = sum(len(samples) for samples in study.samples().values())
    if not seen.asked and not probed and not study.outages:
        return f"Cannot judge: no request and no probe lies in the window; {_reach(study)}.", False
    said = _hurt(study, seen) if study.outages else _unhurt(study, seen, probed)
    return f"{said}{_torn(study)}.", True


def _reach(study: Study) -> str:
    """Where the requests and probes are that do not lie in the window."""
    asking = {lane.source for lane in study.book.cells.lanes()} | {key[0] for key in study.book.samples}
    sources = [source for name, source in study.book.sources.items() if name in asking]
    begins = [source.first + study.shift(source.name) for source in sources if source.first is not None]
    ends = [source.last + study.shift(source.name) for source in sources if source.last is not None]
    if not begins or not ends:
        return "only events were read"
    begin, end = ((iso(at) or "?")[:16] for at in (min(begins), max(ends)))
    return f"those that were read are from {begin}Z to {end}Z"


def _torn(study: Study) -> str:
    """Files that end in a damage: nobody knows how much of them is missing, so that a share of lines says nothing."""
    torn = sorted(source.name for source in study.book.sources.values() if source.skipped[TORN_COMPRESSION])
    return f"; what lies behind a damage in {some(torn, 3)} was not read" if torn else ""


def _hurt(study: Study, seen: Count) -> str:
    worst = longest(study.outages) or study.outages[0]
    vague = max((h for h in study.outages if math.isfinite(h.span.max_s)), key=lambda h: h.span.max_s, default=worst)
    routes = {h.router for h in study.outages}
    said = f"{_name(worst)} was {'down' if worst.full else 'impaired'} for {lasted(worst.span)} from {(iso(worst.first_bad) or '?')[:10]} {clock(worst.first_bad)} UTC"
    if len(study.outages) > 1:
        on = f" on {len(routes)} routes" if len(routes) > 1 else ""
        said += f", the longest of {len(study.outages)} outages{on}"
    said += f"; cause: {worst.cause.replace('; ', ', ')}" if worst.cause else "; nothing that was read tells why"
    if seen.bad:
        said += f"; {_failed(seen)}"
    if vague.span.max_s > worst.span.max_s:
        said += f"; {_name(vague)} may have been down for longer ({lasted(vague.span)})"
    open_ = sorted({_name(h) for h in study.outages if math.isinf(h.span.max_s)})
    if open_:
        said += f"; no begin or end was seen for {some(open_, 3)}"
    return said


def _failed(seen: Count) -> str:
    return f"{seen.bad:,} of {many(seen.asked, 'request')} failed ({share(seen.bad, seen.asked)})"


def _name(hurt: Hurt) -> str:
    route = hurt.router or "a route without a name"
    return f"{route} ({hurt.group})" if hurt.group else route


def _unhurt(study: Study, seen: Count, probed: int) -> str:
    parts = []
    if seen.asked:
        high = clopper_pearson(seen.bad, seen.asked)[1]
        parts.append(
            f"{seen.bad:,} of {many(seen.asked, 'request')} failed (below {100 * high:.2g} % at 95 %)"
            if not seen.bad
            else f"{_failed(seen)}, never for long enough to be an outage"
        )
    if probed:
        parts.append(f"all of {many(probed, 'probe')} were answered" if not _failures(study) else f"{_failures(study):,} of {many(probed, 'probe')} failed")
    gone = total(study, study.book.cells.lanes(), study.window).gone
    if seen.asked and gone > seen.asked * GONE_MOST:
        parts[0] += f", but {gone:,} of them were given up by their clients before an answer came (499)"
    return f"No outage was seen: {' and '.join(parts)}{_bound(_blind(study))}"


def _failures(study: Study) -> int:
    return sum(not s.ok for samples in study.samples().values() for s in samples)


def _bound(blind: dict[str, float]) -> str:
    """How long an outage can have been that nobody saw, on what was asked most steadily and on what was asked least."""
    known = {name: bound for name, bound in blind.items() if math.isfinite(bound)}
    if not known:
        return ""
    best, worst = min(known, key=lambda name: known[name]), max(known, key=lambda name: known[name])
    text = f"; an outage of up to {seconds(known[best])}"
    if seconds(known[worst]) != seconds(known[best]):
        text += f" ({best or 'a route without a name'}) to {seconds(known[worst])} ({worst or 'a route without a name'})"
    return text + " would not have been seen"


def _blind(study: Study) -> dict[str, float]:
    """The longest outage that each target can have had unseen: between two good probes, or between good requests."""
    found: dict[str, float] = {}
    for key, samples in study.samples().items():
        found[key[1]] = min(found.get(key[1], math.inf), blind_s(samples))
    for router in study.routers():
        last, widest = study.window.begin, 0.0
        cells = [cell for cell in study.cells(study.lanes(router=router), study.window) if cell.good]
        for cell in cells:
            widest = max(widest, cell.good_first_end - last)
            last = max(last, cell.good_last_start)
        if cells:
            found[router] = max(widest, study.window.end - last)
    return found

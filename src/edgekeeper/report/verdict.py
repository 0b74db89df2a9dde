"""The one sentence that stands first: who was hurt, for how long at least and at most, by what. Pure."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from edgekeeper.measure.binomial import never_seen
from edgekeeper.measure.outages import blind_s
from edgekeeper.report.document import Hurt, longest
from edgekeeper.report.figures.counts import at_most, share, total, unseen_s
from edgekeeper.report.figures.outages import told
from edgekeeper.report.figures.say import clock, lasted, many, seconds, some
from edgekeeper.report.figures.traffic import Count, count
from edgekeeper.report.kinds import TORN_COMPRESSION, Kind
from edgekeeper.report.pages.when import iso
from edgekeeper.report.study import Study

SKIPPED_MOST: Final = 0.01
"""Above this share of lines that could not be read, what was lost may be what matters."""

GONE_MOST: Final = 0.01
"""Above this share of requests that clients gave up, or that were answered by a 500, it is said in the verdict."""


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
    undated = [mark for mark in study.marks(Kind.OUTAGE) if mark.at is None]
    if not seen.asked and not probed and not study.outages and undated:
        return f"Told by others, without a time of day: {told(study).answer}.", True
    if not seen.asked and not probed and not study.outages:
        return f"Cannot judge: no request and no probe lies in the window; {_reach(study)}.", False
    missing = _missing(study)
    if missing and seen.bad == seen.asked > 0:
        return f"Cannot judge: no good answer is in these logs, and {missing}; are they filtered?", False
    said = _hurt(study, seen) if study.outages else _unhurt(study, seen, probed)
    if missing:
        said += f"; but {missing}: {'good answers may be missing between bad ones' if study.outages else 'failed ones may be among them'}"
    elif seen.bad == seen.asked > 0 and study.outages:
        said += "; no good answer is in these logs: if they are filtered, how long it lasted is not proven"
    return f"{said}{_torn(study)}.", True


def _missing(study: Study) -> str:
    """The log that lacks most lines by the running number of its proxy; "" where none lacks more than may be missing."""
    numbered = [s for s in study.book.sources.values() if s.numbers.expected - s.numbers.seen > s.numbers.expected * SKIPPED_MOST]
    if not numbered:
        return ""
    worst = max(numbered, key=lambda s: 1 - s.numbers.seen / s.numbers.expected)
    numbers = worst.numbers
    return f"{numbers.expected - numbers.seen:,} of {numbers.expected:,} lines of {worst.name} never arrived, by the proxy's own running number"


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
        parts.append(
            f"{seen.bad:,} of {many(seen.asked, 'request')} failed (below {at_most(never_seen(seen.asked))} at 95 %)"
            if not seen.bad
            else f"{_failed(seen)}, never for long enough to be an outage"
        )
    if probed:
        parts.append(f"all of {many(probed, 'probe')} were answered" if not _failures(study) else f"{_failures(study):,} of {many(probed, 'probe')} failed")
    other = _otherwise(study, seen)
    if other:
        parts[0] += f", but of them {other}"
    return f"No outage was seen: {' and '.join(parts)}{_bound(_blind(study))}"


def _otherwise(study: Study, seen: Count) -> str:
    """Answers that are counted apart, where they are many: nobody would call them good either."""
    found = total(study, study.book.cells.lanes(), study.window)
    said = {
        "were given up by their clients before an answer came (499)": found.gone,
        "were answered by an error that is not counted as a failure of the way (500 and others)": found.other,
    }
    return " and ".join(f"{number:,} {what}" for what, number in said.items() if number > seen.asked * GONE_MOST)


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
        found[router] = unseen_s(study, study.lanes(router=router))
    return found

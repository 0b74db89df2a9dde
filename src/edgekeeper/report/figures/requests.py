"""F1: how many requests went badly, by route and status; and whether the logs are whole. Pure."""

from __future__ import annotations

from collections import Counter

from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.counts import asked, router_name, share, statuses, total, words
from edgekeeper.report.figures.say import many, some
from edgekeeper.report.study import Study

MOST_SKIPPED = 0.01
"""Above this share of lines that could not be read, a report cannot judge."""


def f1(study: Study) -> Figure:
    """Bad answers by route and status in the window, their share, and what is missing from the logs."""
    counts = total(study, study.lanes(), study.window)
    n = asked(counts)
    if not n:
        return Figure("F1", "Requests that went badly", "no access log tells of a request in the window", measured=False)
    found: list[tuple[int, str, str, int, str]] = []
    for router in study.routers():
        lanes = study.lanes(router=router)
        bad = total(study, lanes, study.window).bad
        if not bad:
            continue
        seen = statuses(study, lanes, study.window)
        by_status = Counter({code: hits for code, hits in seen.items() if code in study.settings.bad})
        if seen[0] and bad > sum(by_status.values()):
            by_status[0] = bad - sum(by_status.values())  # sessions have no status; those that were cut are what is left
        causes = words(study, lanes, study.window, ended=False)
        why = some([f"{cause} ({hits})" for cause, hits in causes.most_common() if cause], 3) or "-"
        found += [(bad, router, str(code) if code else "cut", hits, why) for code, hits in by_status.most_common()]
    found.sort(key=lambda row: (-row[3], row[1], row[2]))
    rows = [(router_name(router), status, str(hits), share(hits, counts.bad), why) for _, router, status, hits, why in found]
    rows.append(("all", "", str(counts.bad), share(counts.bad, n) + " of all requests", ""))
    return Figure(
        "F1",
        "Requests that went badly",
        f"{counts.bad:,} of {n:,} requests went badly ({share(counts.bad, n)})" if counts.bad else f"none of {n:,} requests went badly",
        table=Table(("route", "status", "requests", "share of the bad", "what the lines say of the reason"), tuple(rows)) if counts.bad else None,
        notes=tuple(_notes(study, counts.gone, counts.other, counts.masked, sum(row[3] for row in found), counts.bad)),
        data={"requests": n, "bad_requests": counts.bad, "bad": counts.bad / n, "gave_up": counts.gone, "other_5xx": counts.other, "masked": counts.masked}
        | {"routers": [{"router": router, "status": status, "count": hits} for _, router, status, hits, _ in found]},
    )


def _notes(study: Study, gone: int, other: int, masked: int, told: int, bad: int) -> list[str]:
    notes = []
    if told != bad:
        notes.append(
            f"Statuses are counted by whole minutes, requests by the second: at the edges of the window the table tells of {told} where {bad} are meant."
        )
    if gone:
        notes.append(f"Besides, {many(gone, 'client')} gave up before the answer came (499).")
    if other:
        notes.append(f"Besides, {many(other, 'answer')} had another status of 5xx; they are the application's own and count as no outage.")
    if masked:
        notes.append(f"{many(masked, 'request')} failed at first and were saved by another attempt of the proxy; they count as good.")
    if study.book.cells.refused:
        notes.append(f"{many(study.book.cells.refused, 'request')} of routes beyond the first 4,096 are told under (other).")
    return notes + completeness(study)


def completeness(study: Study) -> list[str]:
    """What is missing from the access logs, by their running numbers and by lines that could not be read."""
    notes = []
    for source in sorted({lane.source for lane in study.lanes()}):
        known = study.book.sources.get(source)
        if known is None:
            continue
        numbers = known.numbers
        if numbers.expected > numbers.seen:
            again = f", which began anew {many(numbers.resets, 'time')}" if numbers.resets else ""
            notes.append(
                f"{known.name}: {share(numbers.seen, numbers.expected)} of the lines arrived by the proxy's own running number "
                f"({numbers.expected - numbers.seen:,} are missing{again})."
            )
        elif numbers.expected:
            notes.append(f"{known.name}: no line is missing by the proxy's own running number.")
        skipped = sum(known.skipped.values())
        if skipped:
            why = some([f"{reason} ({hits})" for reason, hits in known.skipped.most_common()], 4)
            notes.append(f"{known.name}: {many(skipped, 'line')} of {known.lines:,} could not be read: {why}.")
    return notes

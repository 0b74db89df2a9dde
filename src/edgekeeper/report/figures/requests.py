"""F1: how many requests went badly, by route and status; and whether the logs are whole. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from edgekeeper.report.cells import Lane, Total
from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.counts import asked, router_name, second_of, share, total, words
from edgekeeper.report.figures.say import many, some
from edgekeeper.report.study import Study


def f1(study: Study) -> Figure:
    """Bad answers by route and status in the window, their share, and what is missing from the logs."""
    counts = total(study, study.lanes(), study.window)
    n = asked(counts)
    if not n:
        return Figure("F1", "Requests that went badly", "no access log tells of a request in the window", measured=False)
    found: list[tuple[int, str, str, int, str]] = []
    guessed = 0
    for router in study.routers():
        lanes = study.lanes(router=router)
        bad = total(study, lanes, study.window).bad
        if not bad:
            continue
        by_status, more = bad_statuses(study, lanes)
        guessed += more
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
        notes=tuple(_notes(study, counts, guessed)),
        data={"requests": n, "bad_requests": counts.bad, "bad": counts.bad / n, "gave_up": counts.gone, "other_5xx": counts.other, "masked": counts.masked}
        | {"routers": [{"router": router, "status": status, "count": hits} for _, router, status, hits, _ in found]},
    )


def bad_statuses(study: Study, lanes: Iterable[Lane]) -> tuple[Counter[int], int]:
    """How many bad answers of the window had which status (0: a session that was cut), and of how many that is an estimate.

    Statuses are counted by the minute, bad answers by the second. Of a minute that the window cuts, all is known where all of its bad answers lie
    on one side, or have one status; else they are shared out as in the whole minute.
    """
    cells, found, guessed = study.book.cells, Counter[int](), 0
    for lane in lanes:
        begin, end = second_of(study, lane, study.window.begin), second_of(study, lane, study.window.end)
        first, last = -(-begin // 60), end // 60
        if first <= last:
            found += _bad(study, cells.statuses(lane, first * 60, last * 60), cells.total(lane, first * 60, last * 60).bad)
        for low, high in ((begin, min(first * 60, end)), (max(last * 60, begin), end)) if first <= last else ((begin, end),):
            inside = cells.total(lane, low, high).bad if low < high else 0
            if not inside:
                continue
            minute = low // 60 * 60
            whole = cells.total(lane, minute, minute + 60).bad
            seen = _bad(study, cells.statuses(lane, minute, minute + 60), whole)
            found += shared(seen, inside)
            guessed += inside if inside < whole and len(seen) > 1 else 0
    return found, guessed


def _bad(study: Study, seen: Counter[int], bad: int) -> Counter[int]:
    """Those of the statuses that are bad; sessions have none, and those that were cut are what is left."""
    kept = Counter({code: hits for code, hits in seen.items() if code in study.settings.bad})
    if seen[0] and bad > kept.total():
        kept[0] = bad - kept.total()
    return kept


def shared(seen: Counter[int], count: int) -> Counter[int]:
    """So many shared out in the shares that were seen, by whole numbers."""
    n = seen.total()
    if not n:
        return Counter()
    parts = {code: divmod(hits * count, n) for code, hits in seen.items()}
    left = count - sum(whole for whole, _ in parts.values())
    more = sorted(parts, key=lambda code: (-parts[code][1], code))[:left]
    return Counter({code: whole + (code in more) for code, (whole, _) in parts.items() if whole or code in more})


def _notes(study: Study, counts: Total, guessed: int) -> list[str]:
    notes = []
    if guessed:
        notes.append(
            f"The statuses of {many(guessed, 'bad answer')} at the edges of the window are shared out as in their whole minutes, by which statuses are counted."
        )
    if counts.gone:
        notes.append(f"Besides, {many(counts.gone, 'client')} gave up before the answer came (499).")
    if counts.other:
        notes.append(
            f"Besides, {many(counts.other, 'answer')} had another status of 5xx; {'they are' if counts.other > 1 else 'it is'} the application's own and count{'s' if counts.other == 1 else ''} as no outage."
        )
    if counts.masked:
        was = "was" if counts.masked == 1 else "were"
        notes.append(
            f"{many(counts.masked, 'request')} failed at first and {was} saved by another attempt of the proxy; {'it counts' if counts.masked == 1 else 'they count'} as good."
        )
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

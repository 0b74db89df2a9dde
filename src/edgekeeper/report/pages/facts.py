"""What every page says in the same words: the headline, the facts under it, the rows of outages, clocks and sources. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from edgekeeper.model.time import format_duration
from edgekeeper.report.document import Clock, Figure, Hurt, Report, Table, longest
from edgekeeper.report.pages.short import left_out
from edgekeeper.report.pages.when import Times, date, known, lasted

OUTAGE_COLUMNS = ("route", "clients", "lasted", "first failure", "last failure", "failed", "kind", "cause", "told by")
CLOCK_COLUMNS = ("node", "added", "at least", "at most", "how it was found", "steady")
SKIPPED_COLUMNS = ("reason", "lines")
SOURCE_COLUMNS = ("source", "format", "node", "lines", "skipped", "from (raw)", "until (raw)", "stamps", "zone", "warnings")


def lead(figures: Sequence[Figure]) -> Figure | None:
    """The figure whose timeline is that of the whole report: ``TIME``, else the first that has one."""
    drawn = [figure for figure in figures if figure.timeline]
    return next((figure for figure in drawn if figure.id == "TIME"), drawn[0] if drawn else None)


def headline(report: Report, times: Times) -> str:
    """``Roll r42, 2026-09-07 04:48:00 to 05:12:00 UTC``."""
    begin, end = report.window.begin, report.window.end
    until = times.at(end) if not times.days else f"{date(end, times.zone)} {times.at(end)[6:]}"
    return f"{report.title}, {date(begin, times.zone)} {times.at(begin)[-8:]} to {until} {times.zone.name}"


def facts(report: Report, times: Times) -> tuple[tuple[str, str], ...]:
    """Name and value of what one wants to know beside the verdict."""
    out = [("Window", _window(report.window.begin, report.window.end, report.window.why))]
    if report.baseline:
        out.append(("Baseline", f"{times.at(report.baseline.begin)} to {times.at(report.baseline.end)}{_because(report.baseline.why)}"))
    else:
        out.append(("Baseline", "none"))
    out.append(("Outages", f"{len(report.outages):,}" if report.outages else "none seen"))
    if worst := longest(report.outages):
        out.append(("Longest", f"{lasted(worst.span)} ({worst.router or worst.group or 'all routes'})"))
    skipped = sum(report.skipped.values())
    out.append(("Lines read", f"{report.lines:,}, {skipped:,} skipped" if skipped else f"{report.lines:,}"))
    if left := left_out(report):
        out.append(("Routes", f"written short: all have {left}"))
    return tuple(out)


def _window(begin: float, end: float, why: str) -> str:
    return (format_duration(end - begin) if known(begin) and known(end) else "unknown") + _because(why)


def _because(why: str) -> str:
    return f" ({why})" if why else ""


def outage_table(outages: Sequence[Hurt], times: Times, *, without: frozenset[str] = frozenset()) -> Table:
    """All outages; who told it only where that is not always the same, and the clients only where classes are told apart."""
    rows = outage_rows(outages, times)
    same = {name for i, name in enumerate(OUTAGE_COLUMNS) if name in {"told by", "clients"} and len({row[i] for row in rows}) <= 1}
    kept = [i for i, name in enumerate(OUTAGE_COLUMNS) if name not in same | without]
    return Table(tuple(OUTAGE_COLUMNS[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))


def outage_rows(outages: Sequence[Hurt], times: Times) -> tuple[tuple[str, ...], ...]:
    """Under ``OUTAGE_COLUMNS``."""
    return tuple(
        (
            hurt.router or "(all)",
            hurt.group or "",
            lasted(hurt.span),
            times.at(hurt.first_bad),
            times.at(hurt.last_bad),
            f"{hurt.requests:,}",
            "dark" if hurt.full else "impaired",
            hurt.cause or "not known",
            hurt.source,
        )
        for hurt in outages
    )


def clock_rows(clocks: Sequence[Clock]) -> tuple[tuple[str, ...], ...]:
    """Under ``CLOCK_COLUMNS``."""
    return tuple(
        (c.node, _shift(c.shift_s), _shift(c.min_s), _shift(c.max_s), c.method, "no: it drifted or was set meanwhile" if c.moved else "yes") for c in clocks
    )


def _shift(seconds: float | None) -> str:
    return "no bound" if seconds is None or not math.isfinite(seconds) else f"{seconds:+.3f} s" if seconds else "0 s"


def read(report: Report) -> str:
    """How many lines, and how many of them could not be read."""
    skipped = sum(report.skipped.values())
    if not skipped:
        return f"{report.lines:,} lines, all of them read."
    return f"{report.lines:,} lines, {skipped:,} of them ({100 * skipped / max(1, report.lines):.2g} %) could not be read."


def skipped_rows(report: Report) -> tuple[tuple[str, ...], ...]:
    """Under ``SKIPPED_COLUMNS``, most first."""
    return tuple((reason, f"{n:,}") for reason, n in sorted(report.skipped.items(), key=lambda item: (-item[1], item[0])) if n)


def source_table(sources: Sequence[Mapping[str, Any]], times: Times, *, without: frozenset[str] = frozenset()) -> Table:
    """Sources as far as they tell; columns that are empty in all of them are left out."""
    rows = [_source(source, times) for source in sources]
    kept = [i for i, name in enumerate(SOURCE_COLUMNS) if name not in without and any(row[i] for row in rows)]
    return Table(tuple(SOURCE_COLUMNS[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))


def _source(source: Mapping[str, Any], times: Times) -> tuple[str, ...]:
    skipped = source.get("skipped")
    count = sum(skipped.values()) if isinstance(skipped, Mapping) else skipped
    warnings = source.get("warnings") or ()
    stamp = source.get("stamp_s")
    return (
        str(source.get("name") or source.get("path") or ""),
        str(source.get("format") or ""),
        str(source.get("node") or ""),
        _count(source.get("lines")),
        _count(count),
        _stamp(source.get("first"), times),
        _stamp(source.get("last"), times),
        f"to {format_duration(stamp)}" if isinstance(stamp, int | float) and stamp else "",
        str(source.get("zone") or ""),
        warnings if isinstance(warnings, str) else "; ".join(str(w) for w in warnings),
    )


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


def _stamp(value: object, times: Times) -> str:
    if isinstance(value, str):
        return value
    return f"{date(value, times.zone)[5:]} {times.at(value)[-8:]}" if isinstance(value, int | float) and known(value) else ""

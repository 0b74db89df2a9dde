"""Clients over all that was read: one that two replicas of a proxy served is one client, not two. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgekeeper.report.people import SILENCE_S, Run
from edgekeeper.report.study import Study


@dataclass(frozen=True, slots=True)
class Followed:
    """A client, its class, the sources that told of it, and its runs of good and bad answers by time, on the clock of reference.

    Runs of several sources may overlap: which answers of the one lie between those of the other is not known.
    """

    address: str
    group: str
    sources: tuple[str, ...]
    runs: tuple[Run, ...]


def followed(study: Study) -> list[Followed]:
    """Every client that was followed; made once."""
    known: Any = study.memo.get("followed")
    if known is not None:
        return list(known)
    told: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for client in study.book.cells.clients():
        shift = study.shift(client.who.source)
        runs = [run._replace(first=run.first + shift, last=run.last + shift) for run in client.runs]
        told.setdefault((client.who.group, client.who.address), {}).setdefault(client.who.source, []).extend(runs)
    found = [
        Followed(address, group, tuple(sorted(by_source)), joined(by_source) if len(by_source) > 1 else tuple(next(iter(by_source.values()))))
        for (group, address), by_source in told.items()
    ]
    study.memo["followed"] = tuple(found)
    return found


def joined(by_source: dict[str, list[Run]]) -> tuple[Run, ...]:
    """Runs of several sources as one row: those of one kind that overlap, or follow each other without long silence, are one."""
    found: list[Run] = []
    for run in sorted(run for runs in by_source.values() for run in runs):
        last = found[-1] if found else None
        if last is not None and last.ok == run.ok and run.first - last.last <= SILENCE_S:
            found[-1] = Run(last.first, max(last.last, run.last), last.answers + run.answers, run.ok)
        else:
            found.append(run)
    return tuple(found)


def without_s(runs: Sequence[Run], begin: float, end: float) -> float:
    """The longest time from a first bad answer to the next good one, or to the last bad one where no good one came or where good ones mix."""
    longest = 0.0
    for place, run in enumerate(runs):
        if run.ok or run.first >= end or run.last < begin:
            continue
        mixed = any(other.ok and other.first <= run.first and other.last >= run.last for other in runs)
        until = runs[place + 1].first if not mixed and place + 1 < len(runs) and runs[place + 1].ok else run.last
        longest = max(longest, until - run.first)
    return longest

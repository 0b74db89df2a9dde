"""Clients over all that was read: one that two replicas of a proxy served is one client, not two. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgekeeper.report.people import Run
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
    if known is not None and known[0] is study.clocks:
        return list(known[1])
    told: dict[tuple[str, str], tuple[set[str], list[Run]]] = {}
    for client in study.book.cells.clients():
        shift = study.shift(client.who.source)
        sources, runs = told.setdefault((client.who.group, client.who.address), (set(), []))
        sources.add(client.who.source)
        runs.extend(run._replace(first=run.first + shift, last=run.last + shift) for run in client.runs)
    found = [Followed(address, group, tuple(sorted(sources)), tuple(sorted(runs))) for (group, address), (sources, runs) in told.items()]
    study.memo["followed"] = (study.clocks, tuple(found))
    return found


def without_s(runs: Sequence[Run], begin: float, end: float) -> float:
    """The longest time from a first bad answer to the next good one, or to the last bad one where no good one came or where good ones mix."""
    longest = 0.0
    for run in runs:
        if run.ok or run.first >= end or run.last < begin:
            continue
        mixed = any(other.ok and other.first <= run.first and other.last >= run.last for other in runs)
        again = run.last if mixed else min((other.first for other in runs if other.ok and other.first >= run.last), default=run.last)
        longest = max(longest, again - run.first)
    return longest

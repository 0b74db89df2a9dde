"""What holds a deletion back: a host must be absent from several full lists and for a while, and not too many may go at once. Pure.

Accidents of comparable controllers, each after a view that was wrong for a moment: an API server that answered with an empty list, a
timeout that was read as one, addresses that were empty during an upgrade, a label lost on most objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from edgekeeper.model.moment import Moment, elapsed

NEVER: Final = -1
"""No list has been counted yet."""

AWAY_S: Final = 120.0
"""Who has not looked for longer than this does not know what was wanted meanwhile: another one was the writer, or nobody."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a host must be absent (lists in a row, seconds), how long its service stays disabled, and how many may go at once."""

    absent_lists: int = 3
    grace_s: float = 300.0
    disabled_s: float = 600.0
    share: int = 30
    few: int = 3


@dataclass(frozen=True, slots=True)
class Absence:
    """Since when a host that has a service is not wanted, and in how many full lists in a row it was missing. ``left``: since when it is disabled.

    ``refused``: it was among too many. When they come back one after the other, the last few of them are no longer too many; such a host
    has to be absent anew.
    """

    since: Moment
    lists: int = 0
    left: Moment | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered from pass to pass, and over restarts. ``counted`` is the number of the last full list that was counted, ``at`` when that was."""

    absent: Mapping[str, Absence] = field(default_factory=dict)
    counted: int = NEVER
    passes: int = 0
    at: Moment | None = None


def resumed(memory: Memory, now: Moment) -> Memory:
    """The memory for a first pass: after a while in which nobody looked here every absence begins anew, those of disabled services too."""
    known = memory.at is not None and elapsed(memory.at, now) <= AWAY_S
    return memory if known else replace(memory, absent={})


def noted(memory: Memory, absent: Collection[str], leaving: Collection[str], lists: int, now: Moment) -> Memory:
    """The memory after a full view in which these hosts have a service of ours and are not wanted; those ``leaving`` are disabled.

    A host that is wanted again is forgotten: its next absence begins anew. The same list twice counts once.
    """
    more = lists != memory.counted
    out: dict[str, Absence] = {}
    for host in absent:
        before = memory.absent.get(host, Absence(now))
        left = (before.left or now) if host in leaving else None
        out[host] = replace(before, lists=before.lists + 1 if more else before.lists, left=left)
    return Memory(out, lists, memory.passes + 1, now)


def wanted_again(memory: Memory, wanted: Collection[str]) -> Memory:
    """The memory after a view that was not full: it proves no absence, but who is in it is wanted."""
    return replace(memory, absent={host: one for host, one in memory.absent.items() if host not in wanted})


def refused(memory: Memory, hosts: Collection[str]) -> Memory:
    """The memory after these were refused together."""
    return replace(memory, absent={host: replace(one, refused=True) if host in hosts else one for host, one in memory.absent.items()})


def begun_anew(memory: Memory, hosts: Collection[str], now: Moment) -> Memory:
    """The memory when those that were refused are not too many any more: their absence begins now."""
    return replace(memory, absent={host: Absence(now, 0, one.left) if host in hosts else one for host, one in memory.absent.items()})


def may_leave(absence: Absence, now: Moment, limits: Limits) -> str | None:
    """Why the service of an absent host is not disabled yet, or None when it may be."""
    for_s = elapsed(absence.since, now)
    if absence.lists < limits.absent_lists:
        return f"absent from {absence.lists} of {limits.absent_lists} full lists"
    if for_s < limits.grace_s:
        return f"absent for {for_s:.0f} of {limits.grace_s:.0f} s"
    return None


def may_go(absence: Absence, now: Moment, limits: Limits) -> str | None:
    """Why the service that is disabled is not deleted yet, or None when it may be."""
    for_s = elapsed(absence.left, now) if absence.left is not None else 0.0
    if for_s < limits.disabled_s:
        return f"disabled for {for_s:.0f} of {limits.disabled_s:.0f} s"
    return None


def too_many(leaving: int, own: int, limits: Limits) -> str | None:
    """Why so many of one's own services are not disabled at once (those that are disabled already count too), or None."""
    if leaving > limits.few and leaving * 100 > own * limits.share:
        return f"{leaving} of {own} services would go, more than {limits.share} %"
    return None


def dump(memory: Memory) -> dict[str, Any]:
    """As JSON."""
    hosts = {
        host: {
            "since": _moment(one.since),
            "lists": one.lists,
            **({"left": _moment(one.left)} if one.left is not None else {}),
            **({"refused": True} if one.refused else {}),
        }
        for host, one in memory.absent.items()
    }
    return {"absent": hosts, "passes": memory.passes, **({"at": _moment(memory.at)} if memory.at is not None else {})}


def load(found: Mapping[str, Any]) -> Memory:
    """The inverse; KeyError, TypeError or ValueError when it is none. Lists are numbered anew by each process."""
    absent: dict[str, Absence] = {}
    for host, one in dict(found["absent"]).items():
        left = one.get("left")
        absent[str(host)] = Absence(_at(one["since"]), max(int(one["lists"]), 0), _at(left) if left is not None else None, one.get("refused") is True)
    at = found.get("at")
    return Memory(absent, NEVER, max(int(found["passes"]), 0), _at(at) if at is not None else None)


def _moment(moment: Moment) -> list[float | str]:
    return [moment.wall, moment.boot, moment.boot_id, moment.mono]


def _at(row: list[Any]) -> Moment:
    wall, boot, boot_id, mono = row
    return Moment(float(wall), float(boot), str(boot_id), float(mono))

"""What another node says of its watches in its status, read with suspicion: what is strange is unknown, with a sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from edgekeeper.model.text import printable
from edgekeeper.ops.status import answered, is_name, items

UNHEARD_S: Final = 1.5
"""A sibling that has not answered for so long is unheard: what it does now is not known here."""

EVERY_S: Final = 0.5
"""Between two questions to the same sibling; one lost answer does not make it unheard."""

STATES: Final = ("quiet", "armed", "wanted", "curing", "proving", "blind")
UNKNOWN_STATE: Final = "unknown"

BY_LEASE: Final = ("held", "waits", "asking")
"""What a watch says of the group's Lease while it can ask for it; else ``away``, or nothing where there is none."""

_MOST_WATCHES = 100
_MOST_SEEN = 50
_MOST_SPENT = 100
_LONGEST_NAME = 128
_LONGEST_WHY = 300
_LONGEST_AGE_S = 2.0**31


@dataclass(frozen=True, slots=True)
class Seen:
    """What a node found when it asked another one's targets: the answer, how old it is (seconds), and a number that each round has its own of."""

    ok: bool
    age_s: float
    why: str
    round: int


@dataclass(frozen=True, slots=True)
class SiblingWatch:
    """A watch as its node tells of it; ages in seconds at the time of the answer.

    ``wants``: it would cure if it were its turn; ``yields``: but it lets another one go first. ``curing``: a cure is under way or not
    proved yet, begun ``curing_s`` ago. ``by_lease``: it needs the group's Lease for that, and can ask for it. ``well``: what its own probe found last (None: nothing), ``probed_s`` ago. ``spent_s`` are the
    ages of its own cures, over restarts of its process, youngest first.
    """

    group: str = ""
    members: tuple[str, ...] = ()
    state: str = UNKNOWN_STATE
    wants: bool = False
    yields: bool = False
    curing: bool = False
    curing_s: float | None = None
    well: bool | None = None
    probed_s: float | None = None
    spent_s: tuple[float, ...] = ()
    seen: Mapping[str, Seen] = field(default_factory=dict)
    by_lease: bool = False


@dataclass(frozen=True, slots=True)
class SiblingView:
    """What is known of another node. Monotonic times: its last answer that says anything was ``asked`` for and ``answered`` then.

    The last question of all, answered or not, was asked at ``tried``; ``why`` says what became of it, and is empty when it was
    answered. ``since`` is when it was first meant to be asked; ``mute`` when it cannot be asked at all. ``watches`` is what the last
    answer said, by the watches' names.
    """

    node: str
    since: float
    asked: float | None = None
    answered: float | None = None
    tried: float | None = None
    why: str = ""
    mute: bool = False
    watches: Mapping[str, SiblingWatch] = field(default_factory=dict)

    def failing(self, why: str, asked: float | None) -> SiblingView:
        """The same after a question that gave nothing: what it said stays, and becomes old."""
        return replace(self, why=why, tried=self.tried if asked is None else asked)

    def of(self, group: str) -> tuple[SiblingWatch, ...]:
        """Its watches of this group."""
        return tuple(watch for watch in self.watches.values() if watch.group == group)


def said(node: str, status: int, text: str) -> tuple[Mapping[str, SiblingWatch], str]:
    """The watches in an answer to ``/status?role=watch``, and why they are not known ("" when they are). Never raises."""
    document, why = answered(node, status, text)
    return ({}, why) if why else read(node, document)


def read(node: str, document: object) -> tuple[Mapping[str, SiblingWatch], str]:
    """The watches in a status document, and why they are not known ("" when they are). ``node`` is whose it should be."""
    found, why = items(document, node, "watch", "watches", most=_MOST_WATCHES, longest_name=_LONGEST_NAME)
    return {name: _watch(item) for name, item in found.items()}, why


def _watch(item: Mapping[str, Any]) -> SiblingWatch:
    state = item.get("state")
    probe = item.get("probe")
    well = probe.get("ok") if isinstance(probe, Mapping) else None
    seen = item.get("seen")
    spent, members = item.get("spent_ages_s"), item.get("members")
    return SiblingWatch(
        group=_line(item.get("group"), _LONGEST_NAME),
        members=tuple(_line(name, _LONGEST_NAME) for name in members[:_MOST_SEEN]) if isinstance(members, list) else (),
        state=state if state in STATES else UNKNOWN_STATE,
        wants=item.get("wants") is True,
        yields=item.get("yields") is True,
        curing=item.get("curing") is True,
        curing_s=_age(item.get("curing_s")),
        by_lease=item.get("lease") in BY_LEASE,
        well=well if isinstance(well, bool) else None,
        probed_s=_age(probe.get("age_s")) if isinstance(probe, Mapping) else None,
        spent_s=tuple(sorted(age for age in map(_age, spent[:_MOST_SPENT]) if age is not None)) if isinstance(spent, list) else (),
        seen=_seen(seen) if isinstance(seen, Mapping) else {},
    )


def _seen(told: Mapping[Any, Any]) -> dict[str, Seen]:
    found: dict[str, Seen] = {}
    for name, item in list(told.items())[:_MOST_SEEN]:
        if not isinstance(name, str) or not is_name(name, _LONGEST_NAME) or not isinstance(item, Mapping):
            continue
        ok, age, turn = item.get("ok"), _age(item.get("age_s")), item.get("round")
        if isinstance(ok, bool) and age is not None and isinstance(turn, int) and 0 <= turn < 2**63:
            found[name] = Seen(ok, age, _line(item.get("why"), _LONGEST_WHY), turn)
    return found


def _age(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST_AGE_S:
        return None
    return float(value)


def _line(value: object, limit: int) -> str:
    return printable(value, limit) if isinstance(value, str) else ""

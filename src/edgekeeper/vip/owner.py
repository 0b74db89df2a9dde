"""Who owns each VIP, from what every node says of itself: one owner, two, none, and who might own it unheard. Pure.

keepalived knows only its own state: with unicast peers a BACKUP never learns who the owner is. So all are asked,
and what counts is the address on the interface, as each node's kernel has it, not what keepalived told last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from edgekeeper.vip.peersay import PeerVip


class Count(StrEnum):
    """How many own a VIP, as far as anybody says."""

    ONE = "one"
    TWO = "two"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a VIP: a node, or None when that is not known. ``since`` is Unix time, None where it is not told.

    ``age_s`` is how old the evidence is that others keep fresh (a Lease's last renewal), None where there is none such.
    """

    node: str | None
    why: str
    since: float | None = None
    age_s: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a node says of the VIPs; None when it cannot be asked, and ``why`` says so."""

    node: str
    vips: Mapping[str, PeerVip] | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One VIP. ``since`` is Unix time; ``priorities`` has every node, None for one that says nothing of this VIP; ``macs`` are claims on the wire."""

    vip: str
    address: str
    count: Count
    owners: tuple[str, ...]
    since: float | None
    priorities: Mapping[str, int | None]
    notes: tuple[str, ...]
    macs: tuple[str, ...] | None = None


def table(answers: Sequence[Answer], wanted: Mapping[str, str]) -> tuple[Row, ...]:
    """A row for each VIP: those of the config (``wanted``: name and address) in its order, then those that only a node names."""
    named = {name: vip.address for answer in answers for name, vip in (answer.vips or {}).items() if name not in wanted}
    rows = [_row(name, address, answers) for name, address in wanted.items()]
    for name in sorted(named):
        row = _row(name, named[name], answers)
        rows.append(replace(row, notes=(*row.notes, "it is not in the config here")))
    return tuple(rows)


def well(rows: Iterable[Row]) -> bool:
    """Whether every VIP has exactly one owner, as far as anybody says."""
    return all(row.count is Count.ONE for row in rows)


def _row(name: str, address: str, answers: Sequence[Answer]) -> Row:
    found = {answer.node: answer.vips[name] for answer in answers if answer.vips is not None and name in answer.vips}
    owners = tuple(node for node, vip in found.items() if vip.held)
    silent = [answer.node for answer in answers if answer.vips is None]
    strangers = [answer.node for answer in answers if answer.vips is not None and name not in answer.vips]
    count = Count.ONE if len(owners) == 1 else Count.TWO if owners else Count.NONE
    return Row(
        name,
        address,
        count,
        owners,
        found[owners[0]].since if count is Count.ONE else None,
        {answer.node: _priority(found.get(answer.node)) for answer in answers},
        (*_notes(found, owners, silent), *(f"{node} does not know it; are the configs the same?" for node in strangers)),
    )


def _priority(vip: PeerVip | None) -> int | None:
    return vip.priority or vip.configured_priority or None if vip is not None else None


def _notes(found: Mapping[str, PeerVip], owners: Sequence[str], silent: Sequence[str]) -> Iterable[str]:
    if len(owners) > 1:
        yield f"{_and(owners)} own it at the same time"
    elif not owners:
        yield "nobody owns it" if not silent else "nobody who answers owns it"
    if silent:
        yield f"{_and(silent)} {'is' if len(silent) == 1 else 'are'} unheard and may own it{' too' if owners else ''}"
    for node, vip in found.items():
        yield from _of_node(node, vip)
    if len(owners) == 1:
        yield from _better(found, owners[0])


def _of_node(node: str, vip: PeerVip) -> Iterable[str]:
    if vip.shadow:
        yield f"{node} covers it until its clients are elsewhere"
    if vip.state == "MASTER" and not vip.held:
        yield f"keepalived on {node} says MASTER, but the address is not there"
    if vip.drained:
        yield f"drained on {node}"
    elif vip.state in ("FAULT", "STOP"):
        yield f"{node} is {vip.state}"
    if vip.health not in ("good", "unknown"):
        yield f"{vip.health} on {node}: {vip.why}" if vip.why else f"{vip.health} on {node}"


def _better(found: Mapping[str, PeerVip], owner: str) -> Iterable[str]:
    """Without preemption a VIP stays where it is; where it would rest is worth a word."""
    highest = found[owner].configured_priority
    able = {node: vip.configured_priority for node, vip in found.items() if vip.can_take and vip.configured_priority > highest}
    if able and highest:
        yield f"{max(able, key=lambda node: able[node])} has the higher priority; `edgekeeper vip rebalance` on {owner} hands it over"


def with_wire(row: Row, macs: Sequence[str], *, held_here: bool) -> Row:
    """The row with the MACs that claim the address on the wire; this machine does not hear itself, so ``held_here`` is one more claim."""
    claims = len(macs) + held_here
    notes = row.notes
    if claims > 1:
        here = " and this node" if held_here else ""
        notes = (f"on the wire {_and(macs)}{here} claim it at the same time", *notes)
        return replace(row, macs=tuple(macs), count=Count.TWO, notes=notes)
    if not claims and row.owners:
        notes = (*notes, "nobody claims it on the wire here")
    elif macs and not row.owners:
        notes = (f"{macs[0]} claims it on the wire", *notes)
    return replace(row, macs=tuple(macs), notes=notes)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

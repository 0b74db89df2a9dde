"""Which marks of two machines are of one event, and what that says of their clocks. Pure.

Three kinds of events are shared. A probe's id that is found in the access log of what it asked: the request was there between the question
and its answer. A message that one logs when it sends it and the other when it hears it (BGP notifications, VRRP priority 0): heard after
sent. An eviction: ``kubectl`` says "evicting" before the kubelet kills, and "evicted" after.

Which of several messages belongs to which is never guessed: where both ends do not tell of the same number of them, or more than one other
could have sent them, they are left out. The two ends of an outage are no shared event: each sees its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from edgekeeper.measure.clocks import Bound
from edgekeeper.report.kinds import Kind, Mark

ROUND_S = 0.001
"""Stamps are often rounded to the millisecond: so much each bound gives way."""

IDS = "ids of probes"
NOTIFICATIONS = "BGP notifications"
GIVEN_UP = "VRRP priority 0"
EVICTIONS = "evictions and kills"

_MESSAGES = ((Kind.BGP_NOTIFY_SENT, Kind.BGP_NOTIFY_HEARD, NOTIFICATIONS), (Kind.VRRP_ZERO_SENT, Kind.VRRP_ZERO_HEARD, GIVEN_UP))
_KINDS = {Kind.CLOCK, Kind.EVICTING, Kind.EVICTED, Kind.POD} | {kind for sent, heard, _ in _MESSAGES for kind in (sent, heard)}
_OFTEN = 20
"""Runs of 20 and more messages of one pair would be long: the first ones suffice."""


def bounds(marks: Iterable[Mark], node_of: Callable[[str], str]) -> list[Bound]:
    """Everything that marks say of two clocks; ``node_of`` tells the machine whose clock wrote a source."""
    by_kind: dict[Kind, list[Mark]] = defaultdict(list)
    for mark in marks:
        if mark.kind in _KINDS and mark.at is not None:
            by_kind[mark.kind].append(mark)
    found = _ids(by_kind[Kind.CLOCK], node_of)
    for sent, heard, method in _MESSAGES:
        found += _messages(by_kind[sent], by_kind[heard], method, node_of)
    return found + _evictions(by_kind, node_of)


def _ids(marks: Iterable[Mark], node_of: Callable[[str], str]) -> list[Bound]:
    """A question's id in the log of who answered. An id that one source tells of twice is not unique, or somebody made it up: left out."""
    sent: dict[str, list[Mark]] = defaultdict(list)
    logged: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        (sent if mark.data.get("side") == "sent" else logged)[mark.object].append(mark)
    found = []
    for ident, questions in sent.items():
        entries = logged.get(ident, [])
        if len(questions) != 1 or len({entry.source for entry in entries}) != len(entries):
            continue
        asked = questions[0]
        until = asked.data.get("until")
        for entry in entries:
            node, other = node_of(entry.source), node_of(asked.source)
            if node == other or not isinstance(until, int | float) or asked.at is None or entry.at is None:
                continue
            low = asked.at - entry.at - entry.stamp_s - ROUND_S
            high = float(until) + asked.stamp_s - entry.at + ROUND_S
            if low <= high:
                found.append(Bound(node, other, low, high, entry.at, IDS))
    return found


def _after(cause: Mark, effect: Mark, method: str, node_of: Callable[[str], str]) -> Bound | None:
    """What is caused on one clock comes later on the other."""
    node, other = node_of(effect.source), node_of(cause.source)
    if cause.at is None or effect.at is None or node == other:
        return None
    at = effect.at if node < other else cause.at
    return Bound(node, other, cause.at - effect.at - effect.stamp_s - ROUND_S, math.inf, at, method)


def _messages(sent: Sequence[Mark], heard: Sequence[Mark], method: str, node_of: Callable[[str], str]) -> list[Bound]:
    senders, hearers = _by_end(sent, method, node_of), _by_end(heard, method, node_of)
    found = []
    for (node, topic), effects in hearers.items():
        causes = [marks for (other, theirs), marks in senders.items() if other != node and theirs == topic]
        others = [end for end in hearers if end[1] == topic and end[0] != node]
        if len(causes) != 1 or len(causes[0]) != len(effects) or (method == NOTIFICATIONS and others):
            continue
        pairs = zip(causes[0][:_OFTEN], effects[:_OFTEN], strict=True)
        found += [bound for cause, effect in pairs if (bound := _after(cause, effect, method, node_of)) is not None]
    return found


def _by_end(marks: Iterable[Mark], method: str, node_of: Callable[[str], str]) -> dict[tuple[str, str], list[Mark]]:
    """By machine and topic: the virtual router of a VRRP message; the code of a BGP notification, whose two ends name each other differently."""
    found: dict[tuple[str, str], list[Mark]] = defaultdict(list)
    for mark in marks:
        topic = mark.object if method == GIVEN_UP else str(mark.data.get("code") or "")
        found[node_of(mark.source), topic].append(mark)
    for some in found.values():
        some.sort(key=lambda m: m.at or 0.0)
    return found


def _evictions(by_kind: dict[Kind, list[Mark]], node_of: Callable[[str], str]) -> list[Bound]:
    """Of pods that one source saw evicted once, and of which one kubelet tells once that it stops them."""
    evicting, evicted = _first(by_kind[Kind.EVICTING]), _first(by_kind[Kind.EVICTED])
    killed: dict[str, list[Mark]] = defaultdict(list)
    for mark in by_kind[Kind.POD]:
        if mark.data.get("reason") == "Killing" and str(mark.data.get("message") or mark.what).startswith("Stopping"):
            killed[mark.object].append(mark)
    found = []
    for pod, kills in killed.items():
        begun, done = evicting.get(pod), evicted.get(pod)
        if begun is None or not _at_once(kills):
            continue
        first = min(kills, key=lambda m: m.at or 0.0)
        if (bound := _after(begun, first, EVICTIONS, node_of)) is not None:
            found.append(bound)
        if done is not None and done.source == begun.source and (back := _after(first, done, EVICTIONS, node_of)) is not None:
            found.append(back)
    return found


def _first(marks: Iterable[Mark]) -> dict[str, Mark]:
    """The first mark of each pod, of those that only one source tells of; one that is evicted twice has two sources or two drains."""
    found: dict[str, Mark] = {}
    several: set[str] = set()
    for mark in sorted(marks, key=lambda m: m.at or 0.0):
        if mark.object in found and found[mark.object].source != mark.source:
            several.add(mark.object)
        found.setdefault(mark.object, mark)
    return {pod: mark for pod, mark in found.items() if pod not in several}


def _at_once(kills: Sequence[Mark]) -> bool:
    """Whether all are of one stop: a pod has several containers."""
    times = [m.at or 0.0 for m in kills]
    return len({m.source for m in kills}) == 1 and max(times) - min(times) <= 2.0

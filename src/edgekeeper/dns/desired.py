"""What the members themselves say, judged: who is in service, whether health and identity can be held against them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgekeeper.model.backend import Member
from edgekeeper.model.text import printable

TWICE = 2
"""A member's own word (draining, or no longer) counts when it was heard this often in a row."""

SOON_S = 14 * 86400
"""An alarm this long before a certificate ends: renewals usually come at 30 days."""

HINTS = {
    "REFUSED": "let this machine ask: access-control in unbound, allow-query and allow-recursion in BIND, allow-from in pdns-recursor",
    "SERVFAIL": "their upstream or forwarder may be dead, or this machine may not recurse",
    "NXDOMAIN": "the health name does not exist there: change health.name",
    "NOTIMP": "they do not answer this type: change health.type",
}


@dataclass(frozen=True, slots=True)
class Observation:
    """What one member answered: the health question's rcode (None: silence) and the first TXT string, if it has one."""

    rcode: str | None
    says: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """How often in a row each member (by address) said the same of draining."""

    draining: Mapping[str, int]
    resting: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What follows from all observations together; alarms are name to sentence."""

    forgiving: bool
    enforce_identity: bool
    identity: Mapping[str, str]
    alarms: Mapping[str, str]


def identity_of(member: Member, seen: Observation | None) -> str:
    """``same``, ``silent``, ``anonymous``, or ``other: ...`` with what the machine calls itself."""
    if not member.name:
        return "anonymous"
    if seen is None or seen.says is None:
        return "silent"
    if seen.says == member.name or seen.says.startswith(f"{member.name} "):
        return "same"
    return f"other: {printable(seen.says, 80)}"


def judge(members: Iterable[Member], seen: Mapping[str, Observation], *, was_forgiving: bool, first: bool, question: str, identity: str) -> Judgement:
    """Judge one full round of observations.

    Health is forgiven only as a start: when, at the first start, every member answers DNS and none
    passes the question, the question is wrong rather than all members. It ends with the first pass,
    and not with a lost packet or a member that is new: that would take every member down.
    """
    everyone = list(members)
    rcodes = {m.address: seen[m.address].rcode for m in everyone if m.address in seen}
    passed = [a for a, rcode in rcodes.items() if rcode == "NOERROR"]
    failed = {rcode for rcode in rcodes.values() if rcode not in (None, "NOERROR")}
    all_fail = bool(everyone) and len(rcodes) == len(everyone) and None not in rcodes.values()
    forgiving = not passed and (was_forgiving or (first and all_fail))
    alarms: dict[str, str] = {}
    if forgiving:
        hint = "; ".join(f"{code}: {HINTS.get(code or '', 'see the log of the members')}" for code in sorted(str(c) for c in failed))
        alarms["health question"] = f"every member answers DNS but fails {question}; they stay in service without it. {hint}"
    told = {m.address: identity_of(m, seen.get(m.address)) for m in everyone}
    others = [m for m in everyone if told[m.address].startswith("other")]
    named = [m for m in everyone if m.name]
    heard = [m for m in named if told[m.address] != "silent"]
    enforce = identity != "require" or not (bool(heard) and len(others) == len(heard) == len(named))
    if others and identity != "off":
        who = ", ".join(f"{m.address} should be {m.name} and calls itself {told[m.address].removeprefix('other: ')}" for m in others[:5])
        end = "; all stay in service, because every member fails by its name alone" if identity == "require" and not enforce else ""
        alarms["identity"] = f"{who}{end}"
    return Judgement(forgiving, enforce, told, alarms)


def listen_to(heard: Heard, members: Iterable[Member], seen: Mapping[str, Observation]) -> Heard:
    """Count how often in a row each member says that it drains (TXT ``<node> draining``, or REFUSED)."""
    counts: dict[str, int] = {}
    resting = set()
    for member in members:
        observation = seen.get(member.address)
        was = member.address in heard.resting
        if observation is None or (observation.rcode is None and observation.says is None):
            if was:
                resting.add(member.address)
            continue
        says = is_draining(observation)
        count = heard.draining.get(member.address, 0)
        counts[member.address] = (max(count, 0) + 1) if says else (min(count, 0) - 1)
        if counts[member.address] >= TWICE or (was and counts[member.address] > -TWICE):
            resting.add(member.address)
    return Heard(counts, frozenset(resting))


def is_draining(seen: Observation) -> bool:
    """Whether a member's answer says that it drains itself."""
    words = (seen.says or "").split()
    return words[1:2] == ["draining"] or seen.rcode == "REFUSED"


def in_service(members: tuple[Member, ...], drained: Iterable[str], resting: Iterable[str], *, forced: bool) -> tuple[tuple[Member, ...], str]:
    """Members without the drained ones, and a sentence where that could not be granted.

    The last member is never taken away by what members say of themselves; a person may (``forced``).
    """
    by_person = {m for m in members if m.label in set(drained) or m.address in set(drained)}
    by_itself = {m for m in members if m.address in set(resting)}
    left = tuple(m for m in members if m not in by_person and m not in by_itself)
    if left:
        return left, ""
    left = tuple(m for m in members if m not in by_person)
    if left:
        return left, "every member that is left says that it drains; they stay in service"
    if forced or not members:
        return (), "every member is drained on purpose"
    return members, "every member is drained; all stay in service, because an edge without members answers nothing"


def may_drain(name: str, members: tuple[Member, ...], drained: Iterable[str], states: Mapping[str, str]) -> str | None:
    """Why a member must not be drained now, or None. ``states`` is address to the engine's word (up, UP, down...)."""
    known = [m for m in members if name in (m.name, m.address)]
    if not known:
        there = ", ".join(m.label for m in members[:10]) or "none"
        return f"{printable(name, 80)} is not a member; the members are: {there}"
    gone = set(drained)
    others = [m for m in members if m not in known and m.label not in gone and m.address not in gone]
    usable = [m for m in others if states.get(m.address, "up").lower() == "up"]
    if not usable:
        what = "no other member is in service" if not others else f"no other member is up ({', '.join(m.label for m in others[:5])})"
        return f"{name} is the last usable member: {what}; say --force to drain it all the same"
    return None


def ending(subject: str, left_s: float) -> str | None:
    """The alarm about a certificate that ends in so many seconds, or None while there is time."""
    return f"{subject} ends in {left_s / 86400:.1f} days and has not been renewed" if left_s < SOON_S else None

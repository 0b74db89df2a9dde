"""All claims together -> wishes: one object a host, checked names, known targets; and what must be told about the rest. Pure.

The same claims give the same wishes whatever their order is, and one bad object affects nobody but itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from edgekeeper.config.expose import Expose
from edgekeeper.expose.annotations import read
from edgekeeper.expose.kinds import Claim, Origin, Remark, Wish, Wishes
from edgekeeper.expose.names import host_name, quoted
from edgekeeper.model.text import printable

DEFAULT: Final = "default"
"""The target of every class that has none of its own, and of objects that name no class."""
_MOST_BAD = 5
"""More bad hosts of one object are told as a number."""


def wishes(claims: Iterable[Claim], expose: Expose) -> Wishes:
    """What is wanted, by host. A wish's class is the key in ``targets`` that it leads to."""
    by_host: dict[str, Wish] = {}
    asked: set[str] = set()
    remarks: list[Remark] = []
    for claim in sorted(claims, key=_age):
        remarks += _take(claim, expose, by_host, asked)
    return Wishes(by_host, tuple(remarks), frozenset(asked - by_host.keys()))


def _age(claim: Claim) -> tuple[bool, float, str, str, str, str]:
    """The older one comes first; what the operator has written into a file before any object; without a time last of all."""
    of = claim.origin
    return of.kind != "File", of.created if of.created > 0 else math.inf, of.namespace, of.name, of.kind, of.uid


def _take(claim: Claim, expose: Expose, by_host: dict[str, Wish], asked: set[str]) -> list[Remark]:
    """Enter one object's hosts where they are free, or among the ``asked`` ones where its class leads nowhere; what it must be told."""
    wanted = expose.sources.classes
    if wanted and (claim.klass or DEFAULT) not in wanted:
        return []
    said = read(claim, expose.prefix)
    if not said.enabled:
        return list(said.remarks)
    origin = claim.origin
    remarks = list(said.remarks)
    if not claim.hosts:
        return [*remarks, Remark(origin, "NoHost", "it names no host; nothing is published for it")]
    target = claim.klass if claim.klass in expose.targets else DEFAULT
    if target not in expose.targets:
        asked.update(_names(origin, claim.hosts)[0])
        klass = f"class {quoted(claim.klass)}" if claim.klass else "objects without a class"
        return [*remarks, Remark(origin, "NoTarget", f"there is no target for {klass} in edgekeeper's config; its hosts are not published")]
    good, bad = _names(origin, claim.hosts)
    remarks += bad
    for host in good:
        other = by_host.get(host)
        if other is None:
            by_host[host] = Wish(host, origin, target, said.options)
        else:
            remarks.append(Remark(origin, "HostTaken", f"{host} belongs to {_who(other.origin)}, which is older; this one does not publish it", host=host))
    return remarks


def _names(origin: Origin, hosts: Iterable[str]) -> tuple[tuple[str, ...], list[Remark]]:
    """The hosts that can be published, each once, and remarks about the others."""
    good: dict[str, None] = {}
    bad: list[Remark] = []
    for text in hosts:
        try:
            good[host_name(text)] = None
        except ValueError as err:
            reason, _, sentence = str(err).partition(": ")
            bad.append(Remark(origin, reason, sentence))
    if len(bad) > _MOST_BAD:
        bad = [*bad[:_MOST_BAD], Remark(origin, "BadHost", f"{len(bad) - _MOST_BAD} more of its hosts are not published for such reasons")]
    return tuple(good), bad


def _who(origin: Origin) -> str:
    return printable(origin.text, 160)

"""EndpointSlices to members: who is ready, and who still serves while nobody is. Pure.

What is absent or null counts as the API's documentation has it: ``ready`` unknown is ready, ``serving`` unknown is as ``ready``,
``terminating`` unknown is not. Facts of the API (Kubernetes 1.20 to 1.34): a slice without endpoints is sent as ``"endpoints": null``,
one Service has several slices (one for each hundred endpoints and each family), and only an endpoint's first address means something.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edgekeeper.config.kinds import check_host, check_node, is_address
from edgekeeper.model.backend import Member
from edgekeeper.model.text import printable

SERVICE_LABEL = "kubernetes.io/service-name"
"""The label by which a slice belongs to its Service."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint: its first address, its name (empty where it has none that a node could have), and how it does."""

    address: str
    name: str = ""
    ready: bool = True
    serving: bool = True
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """What members are made of: ``kind`` is IPv4, IPv6 or FQDN; ``ports`` are names with numbers (None: the slice names no number)."""

    name: str
    kind: str
    ports: tuple[tuple[str, int | None], ...] = ()
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which port: by name (``said``: somebody asked for that name), else ``fallback``; without both, the only one there is."""

    port: str = ""
    said: bool = False
    fallback: int | None = None


def read(found: Any) -> Slice:
    """An EndpointSlice as the API's client hands it out, without what members do not need."""
    ports = tuple((str(port.name or ""), port.port) for port in found.ports or ())
    endpoints = tuple(_endpoint(one) for one in found.endpoints or () if one.addresses)
    return Slice(str(found.metadata.name or ""), str(found.addressType or ""), ports, endpoints)


def _endpoint(one: Any) -> Endpoint:
    said = one.conditions
    ready, serving, terminating = (said.ready, said.serving, said.terminating) if said is not None else (None, None, None)
    leaves = terminating is True
    # Unknown is ready, but nobody calls an endpoint ready that is on its way out.
    is_ready = ready if ready is not None else not leaves
    return Endpoint(str(one.addresses[0]), _name(one), is_ready, serving if serving is not None else is_ready, leaves)


def _name(one: Any) -> str:
    """The pod's name, else the hostname; none where it could not be a node's name."""
    for text in (one.targetRef.name if one.targetRef is not None else None, one.hostname):
        if text:
            try:
                return check_node(str(text))
            except ValueError:
                return ""
    return ""


def members(slices: Iterable[Slice], wanted: Wanted) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """The members that all slices of a Service name together, sorted; and a sentence for each thing that was left out."""
    usable: list[tuple[Endpoint, int]] = []
    known = sorted(slices, key=lambda one: one.name)
    notes = [] if known else ["it has no EndpointSlice"]
    for each in known:
        port, why = _port(each, wanted)
        if each.kind == "FQDN":
            why = "its endpoints are host names, which no engine here is given"
        if why and each.endpoints:
            notes.append(f"slice {printable(each.name)} is left out: {why}")
        if port is not None and not why:
            odd = [one.address for one in each.endpoints if not is_address(one.address)]
            notes += [f"an endpoint of slice {printable(each.name)} is left out: {printable(address, 60)!r} is no address" for address in odd]
            usable += [(one, port) for one in each.endpoints if one.address not in odd]
    # An endpoint that terminates and does not serve is gone, whatever else is said of it.
    there = [(one, port) for one, port in usable if one.serving or not one.terminating]
    chosen = [(one, port) for one, port in there if one.ready]
    if not chosen:
        chosen = [(one, port) for one, port in there if one.serving]
        if chosen:
            notes.append(
                f"{_none_ready(len(usable))}; the {len(chosen)} that still serve{'' if len(chosen) > 1 else 's'} {'are' if len(chosen) > 1 else 'is'} used"
            )
        elif usable:
            notes.append(f"{_none_ready(len(usable))}, and none serves")
    return one_name_each(Member(one.name, check_host(one.address), port) for one, port in chosen), tuple(notes)


def one_name_each(found: Iterable[Member]) -> tuple[Member, ...]:
    """Sorted, each address once. A name belongs to one address only: of several nobody could say which is meant."""
    by_address: dict[tuple[str, int], Member] = {}
    for member in sorted(found):
        by_address[member.host, member.port] = member  # the last one: a name beats none
    names = [member.name for member in by_address.values()]
    return tuple(sorted(m if names.count(m.name) == 1 else Member("", m.host, m.port) for m in by_address.values()))


def _port(each: Slice, wanted: Wanted) -> tuple[int | None, str]:
    """The port of a slice's endpoints; else why there is none."""
    named = [number for name, number in each.ports if wanted.port and name == wanted.port and number is not None]
    if named:
        return _possible(named[0])
    if wanted.fallback is not None:
        return wanted.fallback, ""
    numbers = {number for _, number in each.ports if number is not None}
    if len(numbers) == 1 and not wanted.said:
        return _possible(numbers.pop())
    there = ", ".join(sorted(printable(name) or "(no name)" for name, number in each.ports if number is not None)) or "none"
    missing = f"it has no port {wanted.port}" if wanted.port else "which of its ports is meant is not said"
    return None, f"{missing} (it has: {there}); name one in port, or say fallback_port"


def _possible(number: int) -> tuple[int | None, str]:
    """The API takes any number as a port of a slice (measured, 1.20: 0, -1, 70000)."""
    return (number, "") if 0 < number < 2**16 else (None, f"its port {number} is none that can be reached")


def _none_ready(count: int) -> str:
    return f"none of {count} endpoints is ready" if count > 1 else "the only endpoint is not ready"

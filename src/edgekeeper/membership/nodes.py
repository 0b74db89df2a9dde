"""Nodes of a cluster to members: whoever has the label, ready or not. Pure.

A node that is not ready stays a member: its kubelet is not what is asked here, and the health of its address decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edgekeeper.config.kinds import check_host, check_node, is_address
from edgekeeper.membership.slices import one_name_each
from edgekeeper.model.backend import Member
from edgekeeper.model.text import printable

TYPES = {"internal": "InternalIP", "external": "ExternalIP"}
"""How the API names the kinds of addresses."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node: its name, and its addresses with their types, in the API's order (the main family first)."""

    name: str
    addresses: tuple[tuple[str, str], ...] = ()


def read(found: Any) -> Machine:
    """A Node as the API's client hands it out, without what members do not need (above all its heartbeats)."""
    told = found.status.addresses if found.status is not None else None
    return Machine(str(found.metadata.name or ""), tuple((str(one.type), str(one.address)) for one in told or ()))


def members(machines: Iterable[Machine], address: str, port: int) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """A member for each node, at its first address of that type (``internal`` or ``external``); and a sentence for each node without one."""
    kind = TYPES[address]
    found, notes = [], []
    for machine in sorted(machines, key=lambda one: one.name):
        host = next((host for of, host in machine.addresses if of == kind and is_address(host)), None)
        if host is None:
            notes.append(f"node {printable(machine.name)} is left out: it has no {kind} address")
        else:
            found.append(Member(_name(machine.name), check_host(host), port))
    return one_name_each(found), tuple(notes)


def _name(text: str) -> str:
    try:
        return check_node(text)
    except ValueError:
        return ""

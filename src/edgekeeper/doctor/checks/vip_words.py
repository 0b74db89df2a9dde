"""Words that the checks of keepalived share. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from edgekeeper.doctor.vips import Node
from edgekeeper.model.finding import Place


def change(place: Place, line: str) -> str:
    """A line that takes the place of another."""
    return f"{place.text()}: in place of this line:\n    {line}"


def below(place: Place, what: str, *lines: str) -> str:
    """Lines that are added within a block."""
    return f"{place.text()}: below this line, in {what}, add:\n" + "\n".join(f"    {line}" for line in lines)


def setting(node: Node, name: str, value: str) -> str:
    """A setting of an instance, written where it stands, or added."""
    instance = node.instance
    line = f"{name} {value}".strip()
    return change(instance.places[name], line) if name in instance.places else below(instance.place, node.object, line)


def where(one: Node, other: Node) -> str:
    """Another node's instance, from one node's point of view."""
    return f"{other.object} of {other.host.name}" if other.host is not one.host else other.object


def listed(many: Sequence[str]) -> str:
    """Up to six, and how many more there are."""
    return ", ".join(many[:6]) + (f" and {len(many) - 6} more" if len(many) > 6 else "") or "none"

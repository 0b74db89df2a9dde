"""Who may answer: members, and the full snapshot of them that a decision is made on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One server behind the edge.

    ``name`` is the node's name, empty for an anonymous member; ``host`` is an address, or a
    host name that is still to be resolved; ``pools`` is empty when the member serves in all.
    ``weight`` is its share beside the others, where the engine shares by weight; ``drain`` says that
    it takes nothing new and finishes what it has.
    """

    name: str
    host: str
    port: int
    pools: tuple[str, ...] = ()
    weight: int = 100
    drain: bool = False

    @property
    def address(self) -> str:
        """``host:port``, with brackets around IPv6."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def label(self) -> str:
        """The name that people read: the node's name, else the address."""
        return self.name or self.address


@dataclass(frozen=True, slots=True)
class Membership:
    """A full snapshot of the members: never partial (a failed read is an error, not a short list).

    ``source`` says where it came from, in words; ``at`` is the wall clock in seconds when it was
    read; ``by_person`` tells a file or config that a person edited from an API's or DNS's view.
    ``notes`` are sentences about what the source names and no member was made of.
    """

    members: tuple[Member, ...]
    source: str
    at: float
    by_person: bool = True
    notes: tuple[str, ...] = ()

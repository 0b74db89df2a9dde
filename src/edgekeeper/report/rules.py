"""What hurts and who was hurt: which answers are bad, and the class of a client by its address and the date. Pure.

Both are settled while lines are read, so that cells need no lines any more.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field
from enum import IntEnum

from edgekeeper.report.kinds import Request

BAD = frozenset({502, 503, 504})
"""Answers of a proxy that could not reach what it stands for; a 500 is the application's own."""
_REMEMBERED = 65536
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Verdict(IntEnum):
    """What an answer meant to its client: good, bad, the client had gone (499), another error of a server."""

    GOOD = 0
    BAD = 1
    GONE = 2
    OTHER = 3


@dataclass(frozen=True, slots=True)
class Group:
    """A class of clients: the networks they come from, and from when until when that is so (seconds since 1970; None: always).

    ``networks`` are as people write them, ``192.0.2.0/24`` or an address. ValueError says which one is none.
    """

    name: str
    networks: tuple[str, ...]
    begin: float | None = None
    until: float | None = None
    parsed: tuple[Network, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = []
        for text in self.networks:
            try:
                found.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                msg = f"{text[:60]!a} is not a network; write it as 192.0.2.0/24 or 2001:db8::/32"
                raise ValueError(msg) from None
        object.__setattr__(self, "parsed", tuple(found))

    def valid(self, at: float) -> bool:
        """Whether this is how clients were told apart at that moment."""
        return (self.begin is None or self.begin <= at) and (self.until is None or at < self.until)


@dataclass(slots=True)
class Rules:
    """Which statuses are bad, and the classes in the order in which they are tried: the first whose network holds the address."""

    bad: frozenset[int] = BAD
    groups: tuple[Group, ...] = ()
    _known: dict[tuple[str, int], str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _turns: tuple[float, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._turns = tuple(sorted({edge for g in self.groups for edge in (g.begin, g.until) if edge is not None}))

    def era(self, at: float) -> tuple[float, float]:
        """From when until when (exclusive) around a moment no class begins or ends: within it the address alone tells the class."""
        before = max((turn for turn in self._turns if turn <= at), default=-math.inf)
        return before, min((turn for turn in self._turns if turn > at), default=math.inf)

    def group_of(self, address: str, at: float) -> str:
        """The class of a client at a moment; "" when no class has its address, or it is none."""
        key = (address, sum(turn <= at for turn in self._turns))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._find(address, at)
        return known

    def _find(self, address: str, at: float) -> str:
        try:
            ip = ipaddress.ip_address(address.strip("[]").partition("%")[0])
        except ValueError:
            return ""
        if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        return next((g.name for g in self.groups if g.valid(at) and any(ip in network for network in g.parsed)), "")

    def verdict(self, request: Request) -> Verdict:
        """What the answer meant; what the line says itself (``bad``) goes before its status."""
        if request.bad is not None:
            return Verdict.BAD if request.bad else Verdict.GOOD
        return self.of_status(request.status)

    def of_status(self, status: int) -> Verdict:
        """The same by the status alone."""
        if status in self.bad:
            return Verdict.BAD
        if status == 499:
            return Verdict.GONE
        return Verdict.OTHER if status >= 500 else Verdict.GOOD

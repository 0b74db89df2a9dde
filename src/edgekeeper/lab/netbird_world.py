"""What the fake of NetBird's management server knows: accounts and what is in them, clusters of proxies, who calls, and what was counted. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Raw = dict[str, Any]
"""An object as the API answers it."""
Role = Literal["owner", "admin", "network_admin", "user"]

L4 = ("tls", "tcp", "udp")
_REFILL_PER_S = 0.1
_BURST = 500.0
"""Six requests a minute and 500 at once: the server's own defaults where its rate limit is on."""


class AnswerError(Exception):
    """The request is answered with a status and a message; the server writes messages in lower case."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message.lower()
        super().__init__(f"{status} {self.message}")


@dataclass(slots=True)
class Cluster:
    """Proxies under one address. ``proxies``: how many have sent a heartbeat within two minutes; 0 is offline."""

    address: str
    id: str
    proxies: int = 1
    custom_ports: bool = True
    require_subdomain: bool = False

    def raw(self) -> Raw:
        """As the API has it."""
        return {
            "id": self.id,
            "address": self.address,
            "type": "shared",
            "online": self.proxies > 0,
            "connected_proxies": self.proxies,
            "supports_custom_ports": self.custom_ports,
            "require_subdomain": self.require_subdomain,
            "supports_crowdsec": False,
            "private": False,
        }


@dataclass(slots=True)
class Account:
    """One account. Dictionaries are by id and keep the order in which things were made."""

    name: str
    networks: dict[str, Raw] = field(default_factory=dict)
    resources: dict[str, Raw] = field(default_factory=dict)
    routers: dict[str, Raw] = field(default_factory=dict)
    policies: dict[str, Raw] = field(default_factory=dict)
    groups: dict[str, Raw] = field(default_factory=dict)
    peers: dict[str, Raw] = field(default_factory=dict)
    domains: dict[str, Raw] = field(default_factory=dict)
    services: dict[str, Raw] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    """Each service as the bytes of an answer: a list of 10,000 is joined, not written anew."""
    joined: bytes | None = None
    network_of: dict[str, str] = field(default_factory=dict)
    """Resources and routers to the network that they are in."""


@dataclass(frozen=True, slots=True)
class User:
    """Whose token it is."""

    account: str
    role: Role
    service: bool = False


@dataclass(slots=True)
class Counters:
    """What was asked, and what it did to others. Edits by hand count only in ``cut`` and ``maps``."""

    calls: Counter[str] = field(default_factory=Counter)
    """By method and kind, ``GET services``."""
    statuses: Counter[int] = field(default_factory=Counter)
    writes: int = 0
    """Requests with a method other than GET that were carried out."""
    cut: int = 0
    """Services whose established connections were closed by a PUT: one for its own, all for that of a resource."""
    maps: int = 0
    """Network maps that were pushed to the peers."""
    throttled: int = 0

    def raw(self) -> Raw:
        """As JSON."""
        return {
            "calls": dict(self.calls),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "writes": self.writes,
            "cut": self.cut,
            "maps": self.maps,
            "throttled": self.throttled,
        }


@dataclass(slots=True)
class Bucket:
    """A token bucket for each token; ``at`` is when it was last filled."""

    refill_per_s: float = _REFILL_PER_S
    burst: float = _BURST
    levels: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, token: str, now: float) -> bool:
        """Whether one more request may be made now."""
        level, at = self.levels.get(token, (self.burst, now))
        level = min(self.burst, level + (now - at) * self.refill_per_s)
        self.levels[token] = (level - 1 if level >= 1 else level, now)
        return level >= 1


@dataclass(frozen=True, slots=True)
class Route:
    """What a proxy is told of one service: by this it routes. Times are seconds, None where the proxy's own defaults count."""

    service: str
    host: str
    address: str
    port: int
    dead: bool
    """Whether what it leads to is gone: connections are taken, and reach nothing."""
    listen_port: int
    proxy_protocol: bool
    dial_s: float | None
    idle_s: float | None
    allowed: tuple[str, ...]
    blocked: tuple[str, ...]


@dataclass(slots=True)
class World:
    """Everything. ``newer``: the server has fields that version 0.77 has not (``future``, and ``allow_match`` in the restrictions)."""

    now: float = 0.0
    newer: bool = False
    version: str = "0.77.1"
    accounts: dict[str, Account] = field(default_factory=dict)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    """By token."""
    taken: dict[str, str] = field(default_factory=dict)
    """Domain to the service that has it, over all accounts."""
    live: set[str] = field(default_factory=set)
    """Services that the proxies route."""
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    """Service to its passwords, PINs and header values: no answer has them."""
    counters: Counters = field(default_factory=Counters)
    bucket: Bucket | None = None
    pushed: list[Callable[[Account, Iterable[str]], None]] = field(default_factory=list)
    """Proxies: told which services were sent to them, anew or for the last time."""
    made: int = 0

    def new_id(self, kind: str) -> str:
        """Twenty characters, as the server's are."""
        self.made += 1
        return f"d{kind}{self.made:0{19 - len(kind)}}"

    def push(self, account: Account, services: Iterable[str]) -> None:
        """Send services to the proxies, and a network map to the peers."""
        self.counters.maps += 1
        for told in self.pushed:
            told(account, services)


def encoded(value: Any) -> bytes:
    """JSON as the server writes it."""
    return json.dumps(value, separators=(",", ":")).encode()


def typed(body: Mapping[str, Any], key: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """A field of a request, or what it is when it is left out or null; of another type the request cannot be read."""
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise AnswerError(400, "couldn't parse JSON request")
    return value


def strings(body: Mapping[str, Any], key: str) -> list[str]:
    """A list of texts of a request."""
    found = typed(body, key, list, [])
    if not all(isinstance(item, str) for item in found):
        raise AnswerError(400, "couldn't parse JSON request")
    return list(found)


def stamp(now: float) -> str:
    """Unix time as the API writes it."""
    days, second = divmod(int(now), 86_400)
    # Days of the era of 400 years that begins on 1 March 0000, in which the leap day is a year's last.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    date = f"{year + era * 400 + (month >= 10):04}-{month + 3 - 12 * (month >= 10):02}-{day - (153 * month + 2) // 5 + 1:02}"
    return f"{date}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"

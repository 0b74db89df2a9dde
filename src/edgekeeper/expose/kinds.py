"""What flows through a pass: claims of objects, wishes for hosts, services that are there, and remarks for who owns an object. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Policy = Literal["sync", "keep"]
"""An object's own delete policy: ``keep`` leaves its services where they are when it goes."""


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """The object that asks: its kind (Ingress, HTTPRoute, TLSRoute, File), where it is, and when it was made (Unix time)."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    created: float = 0.0

    @property
    def text(self) -> str:
        """As people name it: ``Ingress shop/web``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Options:
    """What an object asks for its hosts. None: it says nothing; then the config's value counts, or what a person has set in the mesh stays.

    Times are the API's own texts ("30s"). Restrictions are () when the object asks for none. ``hold`` is why nothing may be written for
    this object's hosts: a restriction that cannot be read must not become none.
    """

    listen_port: int | None = None
    proxy_protocol: bool | None = None
    request_timeout: str | None = None
    idle_timeout: str | None = None
    allowed_cidrs: tuple[str, ...] | None = None
    blocked_cidrs: tuple[str, ...] | None = None
    allowed_countries: tuple[str, ...] | None = None
    blocked_countries: tuple[str, ...] | None = None
    delete: Policy = "sync"
    adopt: bool = False
    force: bool = False
    hold: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the owner of an object should know; an Event on it. ``reason`` is one CamelCase word."""

    origin: Origin
    reason: str
    text: str
    warning: bool = True
    host: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One object that asks for hosts, as it is written: the hosts unchecked, ``klass`` its ingress class ("" when it names none)."""

    origin: Origin
    hosts: tuple[str, ...]
    klass: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """One host that is wanted: lower-case, without a final dot, no wildcard, and of one object only."""

    host: str
    origin: Origin
    klass: str
    options: Options


@dataclass(frozen=True, slots=True)
class Wishes:
    """All that is wanted, by host, and what must be told about the rest.

    ``asked``: hosts of objects whose class leads nowhere in the config: they cannot be published, and are not gone either.
    """

    by_host: Mapping[str, Wish]
    remarks: tuple[Remark, ...] = ()
    asked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a class leads: an address (canonical text) and a port."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One full view of the sources. ``lists`` counts the full and successful lists so far; ``whole`` is false while any source is not known.

    ``stale_s``: seconds since the sources were last known to be current. ``places``: class to place, those that are known.
    ``service_cidr``: the cluster's own, where it tells. ``unplaced``: class to the reason why its place is not known. ``absent``: kinds that
    are asked for and that the cluster does not have now; they count as empty, but nothing that one of them has published may be deleted.
    ``relisted``: why the last full list that was asked for did not count, "" when it did.
    """

    claims: tuple[Claim, ...]
    places: Mapping[str, Place]
    lists: int
    whole: bool
    why: str = ""
    stale_s: float = 0.0
    service_cidr: str | None = None
    unplaced: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    relisted: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A service as the mesh has it: ``raw`` is the whole object, with what this version does not know."""

    id: str
    host: str
    name: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a target is written as for one address: the resource's id, and its type: ``subnet`` (the address goes into ``host``) or ``host``."""

    target_id: str
    target_type: Literal["subnet", "host"]


@dataclass(frozen=True, slots=True)
class Footing:
    """What ``infrastructure.ensure(addresses)`` answers: an anchor for each address of a target, and the ids of all resources that exist.

    Addresses inside the network of Services share the one subnet resource; any other address has a host resource of its own.
    An address without an anchor cannot be written yet (``why`` says so); its hosts are held. ``alive`` tells a dead target_id.
    """

    by_address: Mapping[str, Anchor]
    alive: frozenset[str]
    why: str = ""

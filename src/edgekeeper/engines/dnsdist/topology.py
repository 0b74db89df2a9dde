"""What dnsdist shall be: config, members and zones as one frozen value that both renderers write down. Pure."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass

from edgekeeper.config.dns import Dns
from edgekeeper.config.kinds import is_address
from edgekeeper.engines.dnsdist import routing
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.names import AUTHORITATIVE, RESOLVER, RETRY, STREAM, forward_pool, identify
from edgekeeper.engines.dnsdist.routing import Rule
from edgekeeper.errors import RefusedError, UsageError
from edgekeeper.model.backend import Member

HASH_PERTURBATION = 20531
"""Any fixed number: with dnsdist's random one, affinity dies at every restart and differs between nodes."""

WEIGHT = 100
"""Hash points a member gets; with weight 1 three members shared 3,000 names 2390/600/10 (measured 2026-11-29, 2.1.3)."""

LOOPBACK = ("127.0.0.0/8", "::1/128")
ALIVE = ("id.server.", "TXT")
"""What is asked (in class CH) when every member fails the question: any answer but SERVFAIL, which dnsdist never takes for health."""

TLS_PROTOCOLS = ("dot", "doh", "doq", "doh3")
_PROTOCOL_NAME = {"dot": "DNS over TLS", "doh": "DNS over HTTPS", "doq": "DNS over QUIC", "doh3": "DNS over HTTP/3"}
IN_FLIGHT = 100
"""Queries of one TCP or DoT connection that are asked at once; one at a time, a dead member holds up all that come behind it."""

OUTSTANDING = 65_535
"""Queries under way that dnsdist can hold for each member; it makes room for all of them at the start: 34 MB and 80 ms a member (2.1.3)."""

_OUTSTANDING_OF_MANY = ((256, 1024), (32, 4096), (0, 16_384))
"""With more members than this, so many each. Memory is not the only price of dnsdist's own number: the kernel frees it before it closes
an ending process's sockets, and what they are given in between is lost (3 members, overlapped restart, 500 queries/s: 4 of 2,500 with
65,535, 1 with 16,384; measured 2026-11-30, 2.1.3). 16,384 is 5,000 queries/s to a black hole for 3 s. 300 members took more than 8.6 GB
and 20 s to start with dnsdist's own, 0.6 GB and 0.5 s with 3,495. In steps, because another number needs another process."""

_AUTHORITATIVE_ENTRIES, _AUTHORITATIVE_TTL = 20_000, 30


@dataclass(frozen=True, slots=True)
class Health:
    """The question that tells health; seconds between two, milliseconds to answer, failures and successes that count.

    ``chaos``: asked in class CH.
    """

    name: str
    type: str
    lazy: bool
    interval_s: int
    timeout_ms: int
    fall: int
    rise: int
    must_resolve: bool
    chaos: bool = False


@dataclass(frozen=True, slots=True)
class Backend:
    """A member as dnsdist knows it. ``identity`` is the name it must answer with, empty for "not asked"."""

    id: str
    name: str
    address: str
    pools: tuple[str, ...]
    health: Health
    proxy: bool
    sockets: int
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Cache:
    """A packet cache; ``max_ttl`` in seconds, ``stale`` keeps expired answers while no member is up."""

    entries: int
    max_ttl: int = 86_400
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool and how it picks a member."""

    name: str
    policy: str
    cache: Cache | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """Paths of chain and key, and the SHA-256 of their contents: content that changes is a change."""

    chain: str
    key: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Listener:
    """An address ``host:port`` and the protocol spoken there; ``threads`` is its number of sockets."""

    address: str
    protocol: str
    threads: int = 1
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """Clients over these rates are blocked; 0 is off. Seconds for ``window_s`` and ``block_s``."""

    query_rate: int
    nxdomain_rate: int
    window_s: int
    block_s: int


@dataclass(frozen=True, slots=True)
class EbpfMaps:
    """Entries of the kernel's maps."""

    ipv4: int
    ipv6: int
    qnames: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """Retry, balancing, and what else is set once.

    ``udp_timeout_s`` counts ticks that must be over: 2 gives up after 3.0 to 4.0 s, 0 after 1.0 to
    2.0 s (measured 2026-11-29, 2.1.3), so a stub resolver that waits 5 s gets its late answer.
    """

    retry: bool
    udp_timeout_s: int
    balancing_factor: float
    stale_ttl_s: int
    api_port: int
    outstanding: int = OUTSTANDING


@dataclass(frozen=True, slots=True)
class Topology:
    """Everything that dnsdist is told, in the order in which it is written down.

    ``enforce_identity`` is the switch that a live change turns (true where no identity is required); ``notes`` are sentences about what
    this engine cannot do of what was asked.
    """

    listeners: tuple[Listener, ...]
    acl: tuple[str, ...]
    pools: tuple[Pool, ...]
    backends: tuple[Backend, ...]
    rules: tuple[Rule, ...]
    guard: Guard | None
    ebpf: EbpfMaps | None
    tuning: Tuning
    enforce_identity: bool
    notes: tuple[str, ...] = ()

    @property
    def forgiving(self) -> bool:
        """Whether the members are only asked whether they live."""
        return any(backend.health.chaos for backend in self.backends)


def build(
    dns: Dns,
    members: tuple[Member, ...],
    zones: tuple[str, ...],
    features: Features,
    *,
    proxy_secret: str | None = None,
    forward: dict[str, tuple[Member, ...]] | None = None,
    forgiving: bool = False,
    enforce_identity: bool = True,
    certificate: Certificate | None = None,
) -> Topology:
    """The topology of a config.

    ``members`` and ``forward`` have addresses for hosts, and no drained member; ``zones`` are those
    of the pool authoritative. ``forgiving``: the members are alive and fail the question, so another one
    tells whether they live. Raises UsageError for what
    the config must say otherwise, RefusedError for what would not serve.
    """
    notes = _notes(dns, features)
    retry = dns.retry != "off" and features.retry
    zones = tuple(sorted(set(zones)))
    forward = forward or {}
    backends = _backends(dns, members, zones, forgiving=forgiving, retry=retry, features=features)
    for zone in sorted(forward):
        backends += _forward_backends(dns, zone, forward[zone])
    _check_twice(backends)
    return Topology(
        listeners=_listeners(dns, features, certificate),
        acl=tuple(dict.fromkeys((*LOOPBACK, *dns.acl))),
        pools=_pools(dns, tuple(sorted(forward)), retry=retry),
        backends=backends,
        rules=routing.rules(dns, zones, tuple(forward), routing.secret(dns, proxy_secret), retry=retry),
        guard=_guard(dns),
        ebpf=_ebpf(dns, features),
        tuning=Tuning(
            retry=retry,
            udp_timeout_s=0 if retry and dns.retry == "fast" else 2,
            balancing_factor=dns.balancing_factor,
            stale_ttl_s=math.ceil(dns.stale_ttl),
            api_port=dns.engine.api_port,
            outstanding=next((each for many, each in _OUTSTANDING_OF_MANY if len(backends) > many), OUTSTANDING),
        ),
        enforce_identity=(enforce_identity and not forgiving) or not _required(dns, features),
        notes=notes,
    )


def question(dns: Dns, zones: tuple[str, ...] = ()) -> tuple[str, str]:
    """Name and type of the question that tells health, on the path that clients' questions take."""
    if dns.health.name is not None:
        return dns.health.name, dns.health.type or "TXT"
    if dns.purpose == "resolver":
        return "a.root-servers.net.", dns.health.type or "A"
    known = dns.zones.static or zones
    if not known:
        msg = "authoritative members are asked for the SOA of a zone and none is known; list one in zones.static, or say health.name"
        raise UsageError(msg)
    return known[0], dns.health.type or "SOA"


def _health(dns: Dns, asked: tuple[str, str], *, forgiving: bool, lazy: bool) -> Health:
    health = dns.health
    name, kind = ALIVE if forgiving else asked
    return Health(
        name=name,
        type=kind,
        chaos=forgiving,
        lazy=lazy,
        interval_s=max(1, math.ceil(health.interval)),
        timeout_ms=max(1, round(health.timeout * 1000)),
        fall=health.fall,
        rise=health.rise,
        must_resolve=health.must_resolve and not forgiving,
    )


def _backends(dns: Dns, members: tuple[Member, ...], zones: tuple[str, ...], *, forgiving: bool, retry: bool, features: Features) -> tuple[Backend, ...]:
    if not members:
        return ()
    health = _health(dns, question(dns, zones), forgiving=forgiving, lazy=dns.health.mode == "lazy" and features.lazy)
    proxy = dns.proxy_protocol not in (None, "off")
    require = _required(dns, features)
    out = []
    for member in sorted(set(members), key=lambda m: (m.label, m.address)):
        pools = tuple(member.pools) or (RESOLVER, AUTHORITATIVE)
        if retry and RESOLVER in pools:
            pools = (*pools, RETRY, STREAM)
        address = _address(member)
        out.append(
            Backend(
                id=identify(member.name or address),
                name=member.name or address,
                address=address,
                pools=tuple(sorted(pools)),
                health=health,
                proxy=proxy,
                sockets=dns.engine.sockets,
                identity=member.name if require else "",
            )
        )
    return tuple(out)


def _required(dns: Dns, features: Features) -> bool:
    return dns.identity == "require" and features.validator


def _forward_backends(dns: Dns, zone: str, members: tuple[Member, ...]) -> tuple[Backend, ...]:
    health = _health(dns, (zone, "SOA"), forgiving=False, lazy=False)
    out = []
    for member in sorted(set(members), key=lambda m: (m.label, m.address)):
        address = _address(member)
        name = f"{member.name or address}/{zone}"
        out.append(Backend(identify(name), name, address, (forward_pool(zone),), health, proxy=False, sockets=dns.engine.sockets))
    return tuple(out)


def _address(member: Member) -> str:
    if not is_address(member.host):
        msg = f"member {member.label} has the host {member.host}, which was not resolved; dnsdist takes addresses only"
        raise UsageError(msg)
    if ipaddress.ip_address(member.host).is_unspecified:
        msg = f"member {member.label} has the address {member.host}, which names no machine; dnsdist refuses it"
        raise UsageError(msg)
    return member.address


def _check_twice(backends: tuple[Backend, ...]) -> None:
    seen: dict[str, Backend] = {}
    for backend in backends:
        if backend.name in seen:
            msg = f"two members are called {backend.name} ({seen[backend.name].address} and {backend.address}); dnsdist would keep both under one id"
            raise RefusedError(msg)
        seen[backend.name] = backend


def _listeners(dns: Dns, features: Features, certificate: Certificate | None) -> tuple[Listener, ...]:
    if certificate is None and dns.tls.dir is not None:
        certificate = Certificate(f"{dns.tls.dir}/{dns.tls.certificate}", f"{dns.tls.dir}/{dns.tls.key}")
    out = [Listener(address, "do53", dns.engine.threads) for address in dns.listen]
    for protocol in TLS_PROTOCOLS:
        for address in getattr(dns.tls, protocol):
            if protocol not in features.protocols:
                msg = f"{address}: dnsdist {features.text} was built without {_PROTOCOL_NAME[protocol]}; remove tls.{protocol}, or install a build that has it"
                raise UsageError(msg)
            out.append(Listener(address, protocol, certificate=certificate))
    return tuple(out)


def _pools(dns: Dns, forwards: tuple[str, ...], *, retry: bool) -> tuple[Pool, ...]:
    stale = dns.stale_ttl > 0
    cache = Cache(dns.cache_entries, stale=stale) if dns.cache_entries else None
    small = Cache(_AUTHORITATIVE_ENTRIES, _AUTHORITATIVE_TTL, stale=stale) if dns.authoritative_cache else None
    out = [Pool(RESOLVER, dns.policy, cache), Pool(AUTHORITATIVE, "leastOutstanding", small)]
    if retry:
        out += [Pool(RETRY, "leastOutstanding"), Pool(STREAM, "roundrobin")]
    return (*out, *(Pool(forward_pool(zone), "leastOutstanding") for zone in forwards))


def _guard(dns: Dns) -> Guard | None:
    blocks = dns.dynblocks
    if blocks is None or not (blocks.query_rate or blocks.nxdomain_rate):
        return None
    return Guard(blocks.query_rate, blocks.nxdomain_rate, math.ceil(blocks.window), math.ceil(blocks.block))


def _ebpf(dns: Dns, features: Features) -> EbpfMaps | None:
    if dns.ebpf is None:
        return None
    if not features.ebpf:
        msg = f"dnsdist {features.text} was built without eBPF; remove dns.ebpf, or install a build that has it"
        raise UsageError(msg)
    return EbpfMaps(dns.ebpf.ipv4, dns.ebpf.ipv6, dns.ebpf.qnames)


def _notes(dns: Dns, features: Features) -> tuple[str, ...]:
    out = []
    if dns.retry != "off" and not features.retry:
        out.append(f"dnsdist {features.text} cannot ask elsewhere after a timeout; retry is off until 2.0")
    if dns.identity == "require" and not features.validator:
        out.append(f"dnsdist {features.text} cannot judge health answers; identity is not enforced, a mismatch is only an alarm until 2.1")
    if dns.health.mode == "lazy" and not features.lazy:
        out.append(f"dnsdist {features.text} has no lazy health checks; it checks all the time until 1.8")
    return tuple(out)

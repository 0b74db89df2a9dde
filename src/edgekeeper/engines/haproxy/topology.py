"""What HAProxy shall be: config and members as one frozen value that the renderer writes down. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edgekeeper.config.kinds import is_address, split_host_port
from edgekeeper.config.lb import Lb, Service
from edgekeeper.model.backend import Member

CHECK_TIMEOUT_S = 0.5
"""With ``inter 1s fastinter 500ms fall 2`` a hung server is DOWN after 1.5 to 2.5 s (2.2 to 2.7 s from the client's side, HAProxy 2.6 and 3.2)."""

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Check:
    """How servers are asked: ``kind`` http, tcp or none; times in seconds; ``ca`` verifies what answers."""

    kind: Literal["http", "tcp", "none"]
    path: str = "/"
    host: str = ""
    status: str = "200"
    tls: bool = False
    interval_s: float = 1.0
    fast_s: float = 0.5
    timeout_s: float = CHECK_TIMEOUT_S
    fall: int = 2
    rise: int = 3


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a backend; ``weight`` 0 takes nothing new."""

    name: str
    address: str
    weight: int = 100


@dataclass(frozen=True, slots=True)
class Bind:
    """One listener; ``transparent`` can be had on an address that the machine does not hold."""

    address: str
    transparent: bool = False


@dataclass(frozen=True, slots=True)
class Frontage:
    """One service: what clients see and who stands behind it. ``tls`` None: the servers are spoken to in plain."""

    name: str
    mode: Literal["tcp", "http"]
    binds: tuple[Bind, ...]
    servers: tuple[Server, ...]
    check: Check
    fail_open: bool
    patience_s: float
    balance: str
    certificate: str | None
    server_tls: bool
    verify_ca: str | None
    verify_name: str | None
    proxy_protocol: str
    forwarded_for: bool
    max_connections: int
    connect_s: float
    client_s: float
    server_s: float
    tunnel_s: float | None

    @property
    def backends(self) -> tuple[str, ...]:
        """The service's backends: the strict one, and with ``fail_open`` the patient and the open one."""
        return (self.name, f"{self.name}-patient", f"{self.name}-open") if self.fail_open else (self.name,)


@dataclass(frozen=True, slots=True)
class Topology:
    """Everything that is written into haproxy.cfg, but what one process is given for itself (its seat)."""

    services: tuple[Frontage, ...]
    stats: str | None
    hard_stop_s: float
    user: str | None
    group: str | None
    threads: int
    max_connections: int | None


def server_name(member: Member) -> str:
    """A name that HAProxy takes and that stays the same: the member's own, else its address."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", member.name or member.address)


def build(lb: Lb, members: Mapping[str, tuple[Member, ...]], timeouts: Mapping[str, float]) -> Topology:
    """Config and members to what HAProxy shall be. ``timeouts``: seconds a check may take, for services whose config leaves it to us."""
    return Topology(
        services=tuple(_frontage(service, members.get(service.name, ()), timeouts.get(service.name, CHECK_TIMEOUT_S)) for service in lb.services),
        stats=lb.stats,
        hard_stop_s=lb.hard_stop_after,
        user=lb.engine.user,
        group=lb.engine.group,
        threads=lb.engine.threads,
        max_connections=lb.engine.max_connections,
    )


def _frontage(service: Service, members: tuple[Member, ...], timeout_s: float) -> Frontage:
    kube, http = service.kind == "kube-apiserver", service.kind == "http"
    idle = 60.0 if http else 4 * HOUR_S
    fail_open = service.fail_open if service.fail_open is not None else kube
    check = check_of(service, timeout_s)
    tls = service.server_tls
    return Frontage(
        name=service.name,
        mode="http" if http else "tcp",
        binds=tuple(Bind(listen, service.transparent and may_be_absent(listen)) for listen in service.listen),
        servers=tuple(sorted((_server(member) for member in members), key=lambda server: server.name)),
        check=check,
        fail_open=fail_open and check.kind != "none",
        patience_s=max(service.patience, 2 * check.timeout_s),
        balance=service.balance,
        certificate=service.certificate,
        server_tls=tls is not None and not kube,
        verify_ca=tls.ca_file if tls is not None else None,
        verify_name=tls.name if tls is not None else None,
        proxy_protocol=service.proxy_protocol,
        forwarded_for=http and service.forwarded_for,
        max_connections=service.max_connections,
        connect_s=service.timeouts.connect or check.timeout_s,
        client_s=service.timeouts.client or idle,
        server_s=service.timeouts.server or idle,
        tunnel_s=(service.timeouts.tunnel or HOUR_S) if http else None,
    )


def check_of(service: Service, timeout_s: float) -> Check:
    """The check that follows from a service's kind and what its config says."""
    kube, health = service.kind == "kube-apiserver", service.health
    kind = health.type or ("tcp" if service.kind == "tcp" and health.path is None else "http")
    return Check(
        kind=kind,
        path=health.path or ("/readyz" if kube else "/"),
        host=health.host or service.name,
        status=",".join(health.status) or ("200" if kube else "200-399"),
        tls=health.tls if health.tls is not None else (kube or service.server_tls is not None),
        interval_s=health.interval,
        fast_s=min(health.fast_interval, health.interval),
        timeout_s=health.timeout or timeout_s,
        fall=health.fall,
        rise=health.rise,
    )


def _server(member: Member) -> Server:
    return Server(server_name(member), member.address, 0 if member.drain else member.weight)


def may_be_absent(listen: str) -> bool:
    """Whether a listener's address can belong to another machine at times: neither loopback nor all addresses."""
    host, _ = split_host_port(listen)
    if not is_address(host):
        return False
    address = ipaddress.ip_address(host)
    return not (address.is_loopback or address.is_unspecified)

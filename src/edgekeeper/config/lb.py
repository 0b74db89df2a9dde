"""``lb:`` what HAProxy listens on, who stands behind it, and what happens to the clients of a dead one."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from edgekeeper.config.kinds import Duration, Host, Items, Listen, Node, Path, Section
from edgekeeper.config.members import LbMembersFrom

TWINS = ("-in", "-patient", "-open")
"""What the names of a service's frontend, second and third backend end in; no service may be called so."""

Account = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
UrlPath = Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=1024)]
Statuses = Annotated[str, Field(pattern=r"^[1-5][0-9]{2}(-[1-5][0-9]{2})?$")]


def _auto(value: object) -> object:
    return None if value == "auto" else value


class ServerHealth(Section):
    """How a server's health is told. What is not said here follows from the service's kind."""

    type: Literal["http", "tcp", "none"] | None = Field(None, description="http asks `path`; tcp only connects and never sees a black hole; none asks nothing.")
    path: UrlPath | None = Field(None, description="What to ask; /readyz for kube-apiserver, / for the others.")
    host: Host | None = Field(None, description="The Host header of the question; the service's name when not said.")
    status: Items[Statuses] = Field((), description="Statuses that count as healthy, like 200 or 200-399; 200 for kube-apiserver, 200-399 for the others.")
    tls: bool | None = Field(None, description="Ask over TLS; yes for kube-apiserver, else as `server_tls` says.")
    interval: Duration = Field(1.0, ge=0.1, le=60, description="Between two checks of a server that is well.")
    fast_interval: Duration = Field(0.5, ge=0.1, le=60, description="Between two checks while its state is changing.")
    timeout: Annotated[Annotated[Duration, Field(ge=0.1, le=30)] | None, BeforeValidator(_auto)] = Field(
        None,
        description="How long a check may take; auto: 500 ms, or five times the slowest answer seen at the first start, whichever is larger.",
    )
    fall: int = Field(2, ge=1, le=20, description="Failed checks until a server is DOWN and its sessions are ended.")
    rise: int = Field(3, ge=1, le=20, description="Good checks until it is UP again.")


class ServerTls(Section):
    """TLS towards the servers."""

    ca_file: Path | None = Field(None, description="CA that signed the servers' certificates; not verified when not said.")
    name: Host | None = Field(None, description="The name that the certificate must carry; not compared when not said.")


class Timeouts(Section):
    """Idle times. They never end the wait for a hung server: its client sends PINGs that refresh them."""

    connect: Duration | None = Field(
        None,
        gt=0,
        le=60,
        description="To establish a connection to a server; as long as a check may take when not said. A longer one makes checks of 2.6 and 3.0 wait as long, up to `interval`.",
    )
    client: Duration | None = Field(None, gt=0, description="A client that sends nothing; 4h for kube-apiserver and tcp, 1m for http.")
    server: Duration | None = Field(None, gt=0, description="A server that sends nothing; 4h for kube-apiserver and tcp, 1m for http.")
    tunnel: Duration | None = Field(None, gt=0, description="An idle upgraded connection (WebSocket) of an http service; 1h.")


class Service(Section):
    """One service: listeners, members, and how they are judged."""

    name: Node = Field(description="The service's name; HAProxy's backend is called so.")
    listen: Items[Listen] = Field(description="Where clients connect; one address, or several.", min_length=1)
    kind: Literal["kube-apiserver", "tcp", "http"] = Field("tcp", description="What it is: kube-apiserver passes TLS through and asks /readyz; tcp; http.")
    members: LbMembersFrom = Field(description="Who answers. For kube-apiserver the port is 6443 when not said, else it must be said.")
    health: ServerHealth = Field(default_factory=ServerHealth, description="How a member's health is told.")  # type: ignore[arg-type]
    server_tls: ServerTls | None = Field(None, description="TLS to the members (http), or for the checks alone (kube-apiserver, tcp).")
    certificate: Path | None = Field(None, description="PEM file with chain and key: clients speak TLS to the edge (http and tcp).")
    balance: Literal["leastconn", "roundrobin", "random", "source"] = Field("leastconn", description="Which member gets a new connection.")
    fail_open: bool | None = Field(
        None,
        description="When all members are DOWN at once, new connections go to them unchecked; yes for kube-apiserver. Not where the check chooses the one primary.",
    )
    patience: Duration = Field(
        3.0, ge=0.5, le=30, description="The check's timeout for clients that were cut once already, so that a slow backend does not cut again."
    )
    transparent: bool = Field(
        True, description="Listen on an address that this machine does not hold at the moment (a VIP); loopback and 0.0.0.0 never need it."
    )
    proxy_protocol: Literal["off", "v1", "v2"] = Field("off", description="Tell members who connects.")
    forwarded_for: bool = Field(True, description="Tell members of an http service the client's address in X-Forwarded-For.")
    max_connections: int = Field(10_000, ge=1, le=1_000_000, description="Connections of this service at the same time; more wait in the kernel.")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="Idle times.")  # type: ignore[arg-type]

    @field_validator("listen", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _kind(self) -> Self:
        if self.kind == "kube-apiserver" and self.certificate is not None:
            msg = "kube-apiserver passes TLS through (clients show their certificates to the API server itself); take `certificate` away"
            raise ValueError(msg)
        if self.kind != "http" and self.timeouts.tunnel is not None:
            msg = "timeouts.tunnel is for kind: http; a tcp connection idles as long as `client` and `server` say"
            raise ValueError(msg)
        if self.name.endswith(TWINS):
            msg = f"a service's name must not end in {' or '.join(TWINS)}: its own frontend and backends are called so"
            raise ValueError(msg)
        if self.health.type in ("tcp", "none") and self.health.path is not None:
            msg = f"health.path is asked over http; say type: http, or take the path away from type: {self.health.type}"
            raise ValueError(msg)
        return self

    @property
    def default_port(self) -> int:
        """The port of members that say none; 0 where they must."""
        return 6443 if self.kind == "kube-apiserver" else 0

    @property
    def slice_port(self) -> str:
        """Name of the port of members from an EndpointSlice; empty where it is the only one."""
        return "https" if self.kind == "kube-apiserver" else ""


class HaproxyEngine(Section):
    """The HAProxy that runs."""

    binary: Path = Field("haproxy", description="The program, by path or found on PATH.")
    user: Account | None = Field(None, description="User that its workers become; who runs edgekeeper when not said.")
    group: Account | None = Field(None, description="Group that its workers become.")
    threads: int = Field(0, ge=0, le=64, description="Threads of a worker; 0 is one for each processor.")
    max_connections: int | None = Field(
        None, ge=100, le=500_000, description="Connections of all services together; as many as descriptors allow (two each), up to 32,000, when not said."
    )
    stop_timeout: Duration = Field(10.0, gt=0, description="From TERM to KILL.")


class Lb(Section):
    """The lb role."""

    services: Items[Service] = Field(description="The services.", min_length=1)
    stats: Listen | None = Field(None, description="HAProxy's own statistics page, on loopback only (127.0.0.1:8404); none when not said.")
    hard_stop_after: Duration = Field(900.0, ge=1, description="How long a worker of before a reload may keep its connections.")
    settle: Duration = Field(
        2.0, ge=0.1, le=60, description="Clients of the patient and open backends are cut only when another member has been UP for so long."
    )
    debounce: Duration = Field(1.0, ge=0, description="After a change, wait so long for more of them.")
    engine: HaproxyEngine = Field(default_factory=HaproxyEngine, description="The HAProxy that runs.")  # type: ignore[arg-type]

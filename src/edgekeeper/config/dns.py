"""``dns:`` what dnsdist listens on, who stands behind it, and how their health is told."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator
from typing_extensions import override

from edgekeeper.config import members
from edgekeeper.config.kinds import Domain, Duration, FileName, Items, Listen, Network, Node, Path, Port, Section
from edgekeeper.config.members import BaseEntry
from edgekeeper.config.secret import SecretSource
from edgekeeper.model.backend import Member

DEFAULT_PORT = 5353
Pool = Literal["resolver", "authoritative"]


class MemberEntry(BaseEntry):
    """One member, written ``[name=]host[:port]`` or as a mapping."""

    name: Node | Literal[""] = Field("", description="The node's name; tells its place on the hash ring and what identity expects.")
    port: Port = Field(DEFAULT_PORT, description="Port that it answers DNS on.")
    pools: Items[Pool] = Field((), description="The pools it serves in; both when empty.")

    @override
    def member(self, default_port: int = DEFAULT_PORT) -> Member:
        """The member that this entry names; its host may still be a name."""
        return Member(self.name, self.host, self.port or default_port, tuple(self.pools))


class MembersFrom(members.MembersFrom):
    """Where the members come from: exactly one source."""

    entry = MemberEntry
    slice_port = "dns"

    static: Annotated[tuple[MemberEntry, ...], Field(strict=False)] | None = Field(None, description="The members, written here.")


class HealthQuestion(Section):
    """The question that tells a member's health; it takes the path that clients' questions take."""

    name: Domain | None = Field(None, description="Name to ask; when not said, `a.root-servers.net.` (resolver) or the first zone (authoritative).")
    type: Literal["A", "AAAA", "TXT", "SOA", "NS"] | None = Field(
        None, description="Type to ask; A (resolver), SOA (authoritative) or TXT (a name of your own)."
    )
    mode: Literal["auto", "lazy"] = Field("auto", description="auto asks all the time; lazy only once real queries fail.")
    interval: Duration = Field(1.0, ge=1, description="Between two checks; dnsdist counts in whole seconds.")
    timeout: Duration = Field(1.0, gt=0, le=60, description="How long a member may take to answer a check.")
    fall: int = Field(2, ge=1, le=255, description="Failed checks until a member is down.")
    rise: int = Field(2, ge=1, le=255, description="Good checks until it is up again.")
    must_resolve: bool = Field(True, description="An answer must be NOERROR; SERVFAIL, REFUSED and NXDOMAIN count as failures.")


class ZonePoll(Section):
    """Zones from every member's own `zones` endpoint."""

    url: str = Field(
        "https://{member}:8082/internal/zones", description="Where; `{member}` is the member's address.", pattern=r"^https?://[^\s\"']*\{member\}[^\s\"']*$"
    )
    token_file: Path | None = Field(None, description="File with the bearer token.")
    ca_file: Path | None = Field(None, description="CA that signed the members' certificates.")
    every: Duration = Field(5.0, ge=1, description="How often; report A used 5 s.")


class Catalog(Section):
    """A catalog zone (RFC 9432), read by AXFR."""

    zone: Domain = Field(description="The catalog zone.")
    server: Listen = Field(description="Who transfers it.")


class Zones(Section):
    """The zones that go to the pool `authoritative`; all sources together."""

    static: Items[Domain] = Field((), description="Zones listed here.")
    poll: ZonePoll | None = Field(None, description="Zones and serials from the members' endpoint.")
    soa: bool = Field(False, description="Ask the members for the SOA serial of each zone, to know when to flush.")
    catalog: Items[Catalog] = Field((), description="Catalog zones whose members are zones.")
    every: Duration = Field(5.0, ge=1, description="How often SOA serials and catalogs are asked for.")


class Tls(Section):
    """Encrypted listeners and the certificate they share."""

    dir: Path | None = Field(None, description="Folder with the certificate and key, watched (Kubernetes Secrets too).")
    certificate: FileName = Field("tls.crt", description="File name of the chain in `dir`.")
    key: FileName = Field("tls.key", description="File name of the key in `dir`.")
    dot: Items[Listen] = Field((), description="DNS over TLS.")
    doh: Items[Listen] = Field((), description="DNS over HTTPS (HTTP/2), path /dns-query.")
    doq: Items[Listen] = Field((), description="DNS over QUIC, where dnsdist was built with it.")
    doh3: Items[Listen] = Field((), description="DNS over HTTP/3, where dnsdist was built with it.")

    @model_validator(mode="after")
    def _dir(self) -> Self:
        if (self.dot or self.doh or self.doq or self.doh3) and self.dir is None:
            msg = "encrypted listeners need `dir`, the folder with the certificate and key"
            raise ValueError(msg)
        return self


class Dynblocks(Section):
    """Clients that ask too much are refused for a while; 0 turns a rule off."""

    query_rate: int = Field(0, ge=0, description="Queries per second of one client (/32, /64) over `window`.")
    nxdomain_rate: int = Field(0, ge=0, description="NXDOMAIN answers per second of one client over `window`.")
    window: Duration = Field(10.0, ge=1, description="Seconds that a rate is taken over.")
    block: Duration = Field(60.0, ge=1, description="How long a client is refused.")


class Ebpf(Section):
    """Blocks in the kernel; needs CAP_SYS_ADMIN, or CAP_BPF with CAP_PERFMON."""

    ipv4: int = Field(1024, ge=1, description="Map entries for IPv4 clients.")
    ipv6: int = Field(1024, ge=1, description="Map entries for IPv6 clients.")
    qnames: int = Field(1024, ge=1, description="Map entries for names.")


class Engine(Section):
    """The dnsdist that runs."""

    binary: Path = Field("dnsdist", description="The program, by path or found on PATH.")
    renderer: Literal["auto", "yaml", "lua"] = Field("auto", description="yaml for dnsdist 2.x, lua for 1.x; auto asks the program.")
    threads: int = Field(1, ge=1, le=64, description="UDP sockets (reuseport threads) per listen address.")
    sockets: int = Field(2, ge=1, le=64, description="UDP sockets to each member.")
    api_port: int = Field(0, ge=0, le=65535, description="Loopback port of dnsdist's own web server; 0 picks a free one at each start.")
    stop_timeout: Duration = Field(10.0, gt=0, description="From TERM to KILL.")


def _proxy(value: Any) -> Any:
    return {False: "off"}.get(value, value) if isinstance(value, bool) else value


class Dns(Section):
    """The dns role."""

    listen: Items[Listen] = Field(description="Where plain DNS is answered, UDP and TCP.", min_length=1)
    acl: Items[Network] = Field(("127.0.0.0/8", "::1/128"), description="Clients that are answered; all others are dropped.")
    open_resolver: bool = Field(False, description="Say so when everybody on the Internet may ask.")
    members: MembersFrom = Field(description="Who answers.")
    proxy_protocol: Annotated[Literal["off", "plain"] | SecretSource | None, BeforeValidator(_proxy)] = Field(
        None, description="Tell members who asked: off, plain (PROXY v2), or with a shared secret in TLV 224. Must be said when a member is not on loopback."
    )
    health: HealthQuestion = Field(default_factory=HealthQuestion, description="How a member's health is told.")  # type: ignore[arg-type]
    purpose: Literal["resolver", "authoritative"] = Field("resolver", description="What the members are for: decides the question that tells health.")
    identity: Literal["observe", "require", "off"] = Field("observe", description="Whether the machine behind an address is the one that is meant.")
    retry: Literal["normal", "fast", "off"] = Field("normal", description="Whether a query that timed out is asked once more elsewhere (dnsdist 2.x).")
    policy: Literal["chashed", "leastOutstanding"] = Field("chashed", description="How the resolver pool picks a member; chashed keeps their caches warm.")
    balancing_factor: float = Field(1.25, ge=0, description="chashed skips a member with more than this share of outstanding queries; 0 turns it off.")
    cache_entries: int = Field(200_000, ge=0, description="Packet cache of the resolver pool.")
    authoritative_cache: bool = Field(False, description="A small packet cache (20,000 entries, TTL at most 30 s) before the authoritative pool.")
    stale_ttl: Duration = Field(0.0, ge=0, description="Serve answers that expired up to this long ago while no member is up; 0 turns it off.")
    zones: Zones = Field(default_factory=Zones, description="Names that go to the authoritative pool.")  # type: ignore[arg-type]
    forward: dict[Domain, Items[MemberEntry]] = Field(default_factory=dict, description="Zones answered by members of their own (split horizon, local zones).")
    transfer_sources: Items[Network] = Field((), description="Who may send AXFR, IXFR, NOTIFY and UPDATE.")
    tls: Tls = Field(default_factory=Tls, description="Encrypted listeners.")  # type: ignore[arg-type]
    dynblocks: Dynblocks | None = Field(None, description="Refuse clients that ask too much.")
    ebpf: Ebpf | None = Field(None, description="Block in the kernel.")
    debounce: Duration = Field(5.0, ge=0, description="Changes are gathered at most this long; the first after a quiet time acts at once.")
    restart: Literal["overlap", "steer", "plain"] = Field("overlap", description="How an engine restart that cannot be avoided is done.")
    drain: Duration = Field(1.0, ge=0, description="How long readiness says 503 before a restart that loses queries.")
    engine: Engine = Field(default_factory=Engine, description="The dnsdist that runs.")  # type: ignore[arg-type]

    @field_validator("balancing_factor", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("balancing_factor")
    @classmethod
    def _off_or_above_one(cls, value: float) -> float:
        if 0 < value < 1:
            msg = f"{value:g} would leave no member for some queries; write 0 (off) or at least 1"
            raise ValueError(msg)
        return value

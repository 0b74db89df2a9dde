"""``vip:`` the virtual IPs of this edge, who may hold them, and how their service is asked whether it lives."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from edgekeeper.config.kinds import Duration, Items, Listen, Node, Section, check_domain, check_host, split_host_port

MOST_NODES = 20
"""More nodes than priorities are apart for; nobody shares one VIP between more."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.")


def _vip(value: Any) -> str:
    if not isinstance(value, str) or "%" in value:
        msg = f"{value!r} is not an address like 192.0.2.53/24"
        raise ValueError(msg)
    try:
        found = ipaddress.ip_interface(value)
    except ValueError:
        msg = f"{value!r} is not an address like 192.0.2.53/24"
        raise ValueError(msg) from None
    ip, network = found.ip, found.network
    if network.prefixlen == 0 or (ip.version == 4 and network.prefixlen < 31 and ip in (network.network_address, network.broadcast_address)):
        what = "would be a way to everywhere" if network.prefixlen == 0 else "is the network itself" if ip == network.network_address else "is its broadcast"
        msg = f"{found} cannot be a VIP: it {what}; write an address with its interface's prefix length"
        raise ValueError(msg)
    if ip.is_loopback or ip.is_multicast or ip.is_unspecified:
        msg = f"{ip} cannot be a VIP: it is {'loopback' if ip.is_loopback else 'multicast' if ip.is_multicast else 'no address'}"
        raise ValueError(msg)
    if ip.is_reserved or getattr(ip, "ipv4_mapped", None) is not None:
        msg = f"{ip} cannot be a VIP: it is reserved"
        raise ValueError(msg)
    return str(found)


def _address(value: Any) -> str:
    try:
        if not isinstance(value, str) or "%" in value:
            raise ValueError  # noqa: TRY301 - one sentence for both
        return str(ipaddress.ip_address(value))
    except ValueError:
        msg = f"{value!r} is not an address; VRRP talks to addresses, not to names"
        raise ValueError(msg) from None


def _plain_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name = check_domain(value)
    if not _PLAIN_NAME.fullmatch(name):
        msg = f"{value!r} stands in a command line of keepalived; use letters, digits, '-', '_' and dots only"
        raise ValueError(msg)
    return name


def _local_url(value: str) -> str:
    host, _ = split_host_port(value.partition("//")[2].partition("/")[0], 80)
    check_host(host)
    return value


VipAddress = Annotated[str, BeforeValidator(_vip), WithJsonSchema({"type": "string", "examples": ["192.0.2.53/24", "2001:db8::53/64"]})]
Address = Annotated[str, BeforeValidator(_address), WithJsonSchema({"type": "string", "examples": ["192.0.2.11"]})]
PlainName = Annotated[str, BeforeValidator(_plain_name)]
Interface = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$")]
User = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
PLAIN_PATH = r"^/[A-Za-z0-9_.+/-]*$"
PlainPath = Annotated[str, Field(pattern=PLAIN_PATH, max_length=512)]
"""A path that may stand in a configuration or command line of keepalived: nothing to quote, nothing to expand."""
KeyPath = Annotated[str, Field(pattern=r"^/[A-Za-z0-9_.+/-]*(\{vrid\})?[A-Za-z0-9_.+/-]*$", max_length=512)]
LocalUrl = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9_.:\[\]-]+(/[A-Za-z0-9_./=&?-]*)?$", max_length=512), AfterValidator(_local_url)]


class VipProbe(Section):
    """How the service behind a VIP is asked whether it lives: exactly one of dns, tcp, http. Always on this node, never through a VIP."""

    dns: PlainName | None = Field(None, description="A name that the local DNS server answers.")
    server: Listen = Field("127.0.0.1:53", description="Where the local DNS server is asked.")
    type: Literal["A", "AAAA", "TXT", "SOA", "NS"] = Field("A", description="Which record is asked for.")
    dnsdist_api: LocalUrl | None = Field(None, description="dnsdist's API (http://127.0.0.1:8083), to count the servers that it can use.")
    dnsdist_api_key_file: PlainPath | None = Field(None, description="File with the API's key.")
    require_backends: int = Field(0, ge=0, le=1000, description="With fewer usable servers than this a node yields, when another node says that it has more.")
    tcp: Listen | None = Field(None, description="A connection to this address is made.")
    http: LocalUrl | None = Field(None, description="This URL is asked; an answer with another status than 2xx or 3xx is no death, see the docs.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        said = [name for name in ("dns", "tcp", "http") if getattr(self, name) is not None]
        if len(said) != 1:
            msg = f"give exactly one of dns, tcp, http ({' and '.join(said) if said else 'none'} given); or probe: none"
            raise ValueError(msg)
        if self.dns is None and (self.dnsdist_api or self.require_backends):
            msg = "dnsdist_api and require_backends belong to dns"
            raise ValueError(msg)
        if (self.dnsdist_api is None) != (self.dnsdist_api_key_file is None):
            msg = "dnsdist_api and dnsdist_api_key_file go together"
            raise ValueError(msg)
        if self.require_backends and self.dnsdist_api is None:
            msg = "require_backends counts what dnsdist_api says; give it, and its key file"
            raise ValueError(msg)
        return self

    @property
    def asked(self) -> str:
        """Host, or host and port, that is asked."""
        if self.http is not None:
            return self.http.split("//", 1)[1].split("/", 1)[0]
        return self.tcp if self.tcp is not None else self.server


class Vip(Section):
    """One virtual IP."""

    name: Node = Field(description="Its name; keepalived's instance is called VI_ and this.")
    address: VipAddress = Field(description="The address with its prefix length, as it is set on the interface.")
    vrid: int = Field(ge=1, le=255, description="Virtual router id; the same on all nodes, unique in the network segment, never changed.")
    interface: Interface | None = Field(None, description="Where it lives; vip.interface when not said.")
    probe: VipProbe | None = Field(
        description="How its service is asked on this node; `none` when there is nothing to ask, then it stays while the node lives."
    )

    @field_validator("probe", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return None if value == "none" else value


class VipScript(Section):
    """The track script: keepalived's own, independent look at the service, for when edgekeeper itself is dead."""

    interval: int = Field(1, ge=1, le=60, description="Seconds between two looks.")
    fall: int = Field(3, ge=1, le=20, description="Failed looks until the node yields.")
    rise: int = Field(2, ge=1, le=20, description="Good looks until it may hold the VIP again.")

    @field_validator("interval", mode="before")
    @classmethod
    def _seconds(cls, value: object) -> object:
        return int(value.removesuffix("s")) if isinstance(value, str) and re.fullmatch(r"\d+s", value) else value


class Prober(Section):
    """edgekeeper's own look at the service: acts in tenths of a second."""

    every: Duration = Field(0.2, ge=0.05, le=10, description="Between two looks.")
    timeout: Duration = Field(0.4, ge=0.05, le=5, description="How long an answer may take.")
    fall: int = Field(2, ge=1, le=20, description="Looks in a row that fail until the node yields.")
    rise: int = Field(5, ge=1, le=100, description="Good looks in a row until it may hold the VIP again.")


class PeersFrom(Section):
    """The other nodes' addresses, from somewhere else than ``nodes:``."""

    file: PlainPath = Field(description="A file with one address a line, watched; the own address in it is left out.")


class KeepalivedEngine(Section):
    """The keepalived that runs."""

    binary: str = Field("keepalived", pattern=r"^[^\x00\n]+$", description="The program, by path or found on PATH.")
    script_user: User | None = Field(None, description="User that probe and FIFO reader run as; keepalived_script when there is one, else who runs edgekeeper.")
    stop_timeout: Duration = Field(15.0, gt=0, le=120, description="From TERM to KILL; below the 20 s or so that a container is given.")


class Vips(Section):
    """The vip role."""

    provider: Literal["keepalived", "kube-vip", "metallb"] = Field("keepalived", description="Who moves the VIPs.")
    interface: Interface | None = Field(None, description="Where the VIPs live, unless one says otherwise.")
    vips: Items[Vip] = Field(description="The virtual IPs. Their order decides on which node each rests: do not sort them.", min_length=1, max_length=100)
    advert: Duration = Field(1.0, ge=0.05, le=40.95, description="Between two adverts of an owner; hundredths of a second. A dead owner is missed after three.")
    preempt: bool | Annotated[Duration, Field(le=1000)] = Field(
        False, description="true: the node with the higher priority takes its VIP back; false: not; a duration of up to 1000 s: after it."
    )
    source: Address | None = Field(None, description="Own address towards the peers; the node's address in nodes: when not said.")
    source6: Address | None = Field(None, description="The same for IPv6 VIPs; the node's address6 in nodes: when not said.")
    peers: PeersFrom | None = Field(None, description="The peers' addresses; those of the other nodes in nodes: when not said.")
    base: int = Field(254, ge=1, le=254, description="Priority of the first node.")
    step: int = Field(1, ge=1, le=50, description="How far apart the nodes' priorities are; a hand-over takes (256 - priority) / 256 of an advert.")
    legacy: bool = Field(False, description="Adverts without HMAC even where keepalived knows it (2.4 on).")
    hmac_key_file: KeyPath | None = Field(
        None, description="Key of the adverts' HMAC, 32 to 64 characters, mode 0600 (openssl rand -hex 32); {vrid} stands for the VRID. keepalived 2.4 on."
    )
    script: VipScript = Field(default_factory=VipScript, description="The track script.")  # type: ignore[arg-type]
    prober: Prober = Field(default_factory=Prober, description="edgekeeper's own look.")  # type: ignore[arg-type]
    budget: Duration = Field(5.0, gt=0, description="A configuration that takes longer to move a VIP away from a dead service is refused.")
    handover: Duration = Field(10.0, ge=1, le=120, description="How long an address may be kept covered while it is handed over.")
    debounce: Duration = Field(1.0, ge=0, description="After a change, wait so long for more of them.")
    on_event: Items[str] = Field((), description="A program with its arguments, given each transition as JSON on standard input.")
    engine: KeepalivedEngine = Field(default_factory=KeepalivedEngine, description="The keepalived that runs.")  # type: ignore[arg-type]

    def interface_of(self, vip: Vip) -> str | None:
        """Where a VIP lives."""
        return vip.interface or self.interface

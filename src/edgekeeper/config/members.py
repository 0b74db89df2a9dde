"""Who stands behind a role: where its members are named, how one is written, and the file that names them. Pure: text in, entries out."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from edgekeeper.config.kinds import Domain, Duration, Items, Listen, Node, Path, Port, Section, check_host, check_node, split_host_port
from edgekeeper.config.mistakes import read_listing
from edgekeeper.config.yamltext import Document, dotted
from edgekeeper.errors import ConfigError, Mistake
from edgekeeper.model.backend import Member
from edgekeeper.model.text import printable


class BaseEntry(Section):
    """One member, written ``[name=]host[:port]`` or as a mapping; each role has its own kind of entry."""

    short: ClassVar[str] = "text like ns-a=192.0.2.21:5353, or a mapping with host"
    example: ClassVar[str] = "ns-a=192.0.2.21:5353"

    name: Node | Literal[""] = Field("", description="The node's name.")
    host: str = Field(description="Address or host name; host names are resolved and watched.")
    port: Port | None = Field(None, description="Port that it answers on.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        name, equals, rest = value.rpartition("=")
        host, port = split_host_port(rest, _UNSAID)
        written: dict[str, Any] = {"name": check_node(name) if equals else "", "host": host}
        return written if port == _UNSAID else {**written, "port": port}

    @field_validator("host")
    @classmethod
    def _host(cls, value: str) -> str:
        return check_host(value)

    def member(self, default_port: int) -> Member:
        """The member that this entry names; its host may still be a name."""
        return Member(self.name, self.host, self.port or default_port)


_UNSAID = 0
"""Stands for a port that was not written (0 cannot be written), so that the field's own default counts."""


class LbMemberEntry(BaseEntry):
    """One member of a service, written ``[name=]host[:port]`` or as a mapping."""

    short = "text like cp1=192.0.2.31:6443, or a mapping with host"
    example = "cp1=192.0.2.31:6443"

    port: Port | None = Field(None, description="Port that it answers on; the service's own default when not said.")
    weight: int = Field(100, ge=1, le=256, description="Its share of new connections beside the others.")
    drain: bool = Field(False, description="Takes no new connections; those that it has go on.")

    @override
    def member(self, default_port: int) -> Member:
        """The member that this entry names; its host may still be a name."""
        return Member(self.name, self.host, self.port or default_port, (), self.weight, self.drain)


class DnsSource(Section):
    """Members from DNS: an SRV name, or a name with addresses and a fixed port."""

    name: Domain = Field(description="The name to ask for.")
    type: Literal["SRV", "A", "AAAA", "A+AAAA"] = Field("SRV", description="Record type; A and AAAA need `port`.")
    port: Port | None = Field(None, description="Port of the members, for A and AAAA.")
    servers: Items[Listen] = Field((), description="Resolvers to ask; the system's when empty.")
    every: Duration = Field(5.0, ge=1, description="How often to ask.")

    @model_validator(mode="after")
    def _port_for_addresses(self) -> Self:
        if self.type != "SRV" and self.port is None:
            msg = f"type {self.type} needs a port, because addresses carry none"
            raise ValueError(msg)
        return self


LabelSelector = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,250}[A-Za-z0-9])?(=[A-Za-z0-9._-]{0,63})?$")]
PortName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


class EndpointSliceSource(Section):
    """Members from the EndpointSlices of a Service of the cluster, written NAMESPACE/SERVICE or as a mapping."""

    short = "text like dns-system/resolver, or a mapping with service"

    service: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] = Field(
        description="The Service, as NAMESPACE/NAME. Its ready endpoints are the members; while none is ready, those that still serve."
    )
    port: PortName | None = Field(
        None, description="Name of the Service's port; when not said, `dns` (dns role) or `https` (kube-apiserver), else the only port that there is."
    )
    fallback_port: Port | None = Field(None, description="Port of members whose slice has no port of that name; they are left out when not said.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"service": value} if isinstance(value, str) else value

    @property
    def namespace(self) -> str:
        """The Service's namespace."""
        return self.service.partition("/")[0]

    @property
    def name(self) -> str:
        """The Service's name in it."""
        return self.service.partition("/")[2]


class NodesSource(Section):
    """Members from the nodes of the cluster that have a label. A node that is not ready stays one: its health decides."""

    label: LabelSelector = Field("node-role.kubernetes.io/control-plane", description="Label that the nodes have, as KEY or KEY=VALUE.")
    port: Port | None = Field(None, description="Port that they answer on; the service's own default when not said.")
    address: Literal["internal", "external"] = Field("internal", description="Which of a node's addresses: InternalIP or ExternalIP.")


class MembersFrom(Section):
    """Where the members come from: exactly one source. Each role says of which ``entry`` its ``static`` list is made.

    ``sources`` are the keys that a role has one of; ``slice_port`` is the port's name where an EndpointSlice is asked for none.
    """

    entry: ClassVar[type[BaseEntry]] = BaseEntry
    sources: ClassVar[tuple[str, ...]] = ("static", "file", "dns", "endpointslice")
    slice_port: ClassVar[str] = ""

    static: Annotated[tuple[BaseEntry, ...], Field(strict=False)] | None = Field(None, description="The members, written here.")
    file: Path | None = Field(None, description="A YAML file with `members:`, watched.")
    dns: DnsSource | None = Field(None, description="Members from DNS.")
    endpointslice: EndpointSliceSource | None = Field(
        None, description="Members from a Service of the cluster (see `kubernetes`), followed while edgekeeper runs."
    )
    resolve_every: Duration = Field(5.0, ge=1, description="How often the host names of members are resolved again.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        said = [name for name in self.sources if getattr(self, name) is not None]
        if len(said) != 1:
            msg = f"give exactly one of {', '.join(self.sources)} ({' and '.join(said) if said else 'none'} given)"
            raise ValueError(msg)
        if self.static is not None and not self.static:
            msg = "static is empty; name at least one member"
            raise ValueError(msg)
        return self


class LbMembersFrom(MembersFrom):
    """Where a service's members come from: exactly one source."""

    entry = LbMemberEntry
    sources = (*MembersFrom.sources, "nodes")

    static: Annotated[tuple[LbMemberEntry, ...], Field(strict=False)] | None = Field(None, description="The members, written here.")
    nodes: NodesSource | None = Field(
        None, description="Members from the nodes of the cluster that have a label (see `kubernetes`), followed while edgekeeper runs."
    )


E = TypeVar("E", bound=BaseEntry)


class MembersFile(Section, Generic[E]):
    """A file that names the members, watched while edgekeeper runs."""

    members: Items[E] = Field(description="The members; an empty list keeps the last full set and alarms.")


def parse_members(text: str, file: str, entry: type[E], default_port: int = 0) -> tuple[E, ...]:
    """The entries of a members file; ConfigError names every mistake in it as ``file:line:column``.

    ``members: []`` is a file without members (what that means is the caller's to decide); an empty
    file, as a half-done write leaves it, is a mistake; so is a member without a port where
    ``default_port`` is 0 (there is none).
    """
    model: type[MembersFile[E]] = MembersFile[entry]  # type: ignore[valid-type]
    document, read, mistakes = read_listing(model, text, file, "members", entry.example)
    entries = read.members if read is not None else ()
    mistakes += _wrong_together(document, entries, default_port)
    if mistakes:
        raise ConfigError(printable(file), tuple(mistakes))
    return entries


def _wrong_together(document: Document, entries: tuple[BaseEntry, ...], default_port: int) -> list[Mistake]:
    """Names and addresses that two members share, and ports that nobody says."""
    out: list[Mistake] = []
    seen: set[tuple[str, str]] = set()

    def wrong(index: int, what: str) -> None:
        place = document.place(("members", index))
        out.append(Mistake(place.line, place.column, dotted(("members", index)), what))

    for index, entry in enumerate(entries):
        port = entry.port or default_port
        if not port:
            wrong(index, f"{entry.host} has no port, and the service has none of its own; write it as host:port")
        for what, value in (("name", entry.name), ("address", f"{entry.host}:{port}")):
            if value and (what, value) in seen:
                wrong(index, f"the {what} {value} is taken by another member; remove one")
            seen.add((what, value))
    return out

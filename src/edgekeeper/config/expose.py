"""``expose:`` which hosts of the cluster are published through the mesh proxy, where they lead, and what holds a deletion back."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from edgekeeper.config.kinds import Duration, Host, Items, Listen, Network, Path, Port, Section, is_address, split_host_port
from edgekeeper.config.kubernetes import DnsLabel, ObjectName

Owner = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")]
Label = Annotated[str, Field(pattern=r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?(=[A-Za-z0-9._-]{0,63})?$")]
Prefix = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
BaseUrl = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9\[\]:._-]+(/[A-Za-z0-9._~/-]*)?$", max_length=300)]
Text = Annotated[str, Field(pattern=r"^[ -~]{1,100}$")]
SecretPath = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,200}$")]


class Vault(Section):
    """The token out of OpenBao or Vault, by the service account's own right."""

    url: BaseUrl = Field(description="Its address.")
    role: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(description="Role of its Kubernetes auth method.")
    path: SecretPath = Field(description="Path of the secret in the KV engine.")
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field("token", description="Which value of the secret.")
    mount: SecretPath = Field("secret", description="Where the KV engine (version 2) is mounted.")
    auth_mount: SecretPath = Field("kubernetes", description="Where the auth method is mounted.")
    jwt_file: Path = Field("/var/run/secrets/kubernetes.io/serviceaccount/token", description="The service account's token.")
    ca_file: Path | None = Field(None, description="CA of its certificate; the system's when not said.")


class NetBird(Section):
    """The mesh's management server, and what of it edgekeeper keeps in order."""

    url: BaseUrl = Field(description="Its address, without /api.")
    token_file: Path | None = Field(None, description="File with the token, readable by its owner only.")
    token_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(None, description="Environment variable with the token.")
    token_vault: Vault | None = Field(None, description="Or OpenBao or Vault.")
    ca_file: Path | None = Field(None, description="CA of its certificate; the system's when not said.")
    timeout: Duration = Field(20.0, ge=1, le=120, description="The longest wait for an answer.")
    network: Text = Field("edgekeeper", description="Name of the network whose resource the targets are in; made when it is missing.")
    resource: Text | None = Field(None, description="Name of the resource; the network's with -targets when not said.")
    router_group: Text | None = Field(None, description="Name of the group of routing peers; without it no router is made.")
    router_metric: int = Field(9999, ge=1, le=9999, description="Metric of the router; the highest is the least preferred.")
    router_masquerade: bool = Field(True, description="Whether the routing peer answers with its own address to the target.")
    policy: bool = Field(False, description="Also make a policy to the resource; the proxy needs none.")

    @model_validator(mode="after")
    def _one_token(self) -> Self:
        said = [name for name in ("token_file", "token_env", "token_vault") if getattr(self, name) is not None]
        if len(said) != 1:
            msg = f"give exactly one of token_file, token_env, token_vault ({' and '.join(said) if said else 'none'} given)"
            raise ValueError(msg)
        return self


class Target(Section):
    """Where an ingress class leads: the address of a Service, or a fixed one."""

    short = "an address, or a mapping with service or ip"

    service: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = Field(
        None, description="NAMESPACE/NAME of the ingress controller's Service."
    )
    address: Literal["cluster", "load-balancer"] = Field("cluster", description="Which of the Service's addresses.")
    family: Literal["ipv4", "ipv6"] = Field("ipv4", description="Of several addresses the one of this family.")
    ip: Host | None = Field(None, description="Or a fixed address.")
    port: Port = Field(443, description="Port of the target.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"ip": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.service is None) == (self.ip is None):
            msg = "give exactly one of service, ip"
            raise ValueError(msg)
        if self.ip is not None and not is_address(self.ip):
            msg = f"ip: {self.ip} is a name; the proxy is given addresses"
            raise ValueError(msg)
        if self.ip is not None:
            for key in ("address", "family"):
                if key in self.model_fields_set:
                    msg = f"{key} is for service"
                    raise ValueError(msg)
        return self


class Sources(Section):
    """Where the wanted hosts come from."""

    ingress: bool = Field(True, description="Ingress objects with the label.")
    httproute: bool = Field(False, description="HTTPRoute objects of the Gateway API with the label.")
    tlsroute: bool = Field(False, description="TLSRoute objects of the Gateway API with the label.")
    file: Path | None = Field(None, description="A YAML file with `hosts:`, watched.")
    namespaces: Items[DnsLabel] = Field((), description="Only these namespaces; all when none is named.")
    classes: Items[ObjectName] = Field((), description="Only these ingress classes (for routes: gateways); all that have a target when none is named.")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not (self.ingress or self.httproute or self.tlsroute or self.file):
            msg = "no source is left; say file, or leave one of ingress, httproute, tlsroute on"
            raise ValueError(msg)
        return self

    @property
    def cluster(self) -> bool:
        """Whether any of them is in the cluster."""
        return self.ingress or self.httproute or self.tlsroute


class Brake(Section):
    """What holds deletions back."""

    absent_lists: int = Field(3, ge=1, le=100, description="A host must be absent from so many full lists in a row.")
    grace: Duration = Field(300.0, ge=0, le=604_800, description="And for so long; then its service is disabled.")
    disabled: Duration = Field(600.0, ge=0, le=2_592_000, description="How long it stays disabled before it is deleted.")
    share: int = Field(30, ge=1, le=100, description="More than this percentage of the own services at once is refused.")
    few: int = Field(3, ge=0, le=1000, description="So many at once are never refused for their share.")


class Prove(Section):
    """How it is proved from outside that a host answers."""

    addresses: Items[Listen] = Field((), description="The proxy's public addresses; those of the host's own name when not said.")
    timeout: Duration = Field(3.0, ge=0.2, le=30, description="The longest wait for the answer to a ClientHello.")
    within: Duration = Field(60.0, ge=1, le=3600, description="A written host that does not answer within this time is told of.")
    echo_path: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=500)] | None = Field(
        None, description="A path whose answer holds the client's address as the backend sees it, for `expose verify`."
    )


class Expose(Section):
    """Hosts of the cluster, published as services of NetBird's reverse proxy in TLS passthrough."""

    owner: Owner = Field(description="Who owns what this edgekeeper publishes; written into each service. Two that share a mesh need two. Never change it.")
    cluster: Owner = Field("default", description="The cluster's name; with the owner it is the mark on each service.")
    netbird: NetBird = Field(description="The mesh.")
    label: Label = Field("edgekeeper.io/public=true", description="Objects with this label are published.")
    prefix: Prefix = Field("edgekeeper.io", description="Prefix of the annotations.")
    sources: Sources = Field(default_factory=Sources, description="Where the wanted hosts come from.")  # type: ignore[arg-type]
    targets: dict[ObjectName, Target] = Field(description="Where each ingress class leads; `default` is for all others.", min_length=1)
    service_cidr: Network | None = Field(None, description="The cluster's network of Services; read from the cluster when it tells.")
    listen_port: Port = Field(443, description="Port that the proxy itself listens on (NB_PROXY_ADDRESS), which is not always the public one.")
    proxy_protocol: bool = Field(True, description="Whether the target is told the client's address by the PROXY protocol.")
    policy: Literal["sync", "upsert-only", "create-only"] = Field("sync", description="What may be done: all; nothing deleted; nothing changed either.")
    adopt_by_annotation: bool = Field(
        False, description="Whether an object may take over a service that somebody has made by hand; whoever may write it could then lift its restrictions."
    )
    every: Duration = Field(60.0, ge=5, le=86_400, description="A pass at least so often, beside those that a change asks for.")
    debounce: Duration = Field(0.5, ge=0, le=60, description="Changes are gathered at most this long; the first after a quiet time acts at once.")
    concurrency: int = Field(16, ge=1, le=64, description="Requests to the mesh at the same time.")
    brake: Brake = Field(default_factory=Brake, description="What holds deletions back.")  # type: ignore[arg-type]
    prove: Prove = Field(default_factory=Prove, description="The proof from outside.")  # type: ignore[arg-type]
    lease: ObjectName | None = Field("edgekeeper-expose", description="Name of the Lease of the one writer; null when there is only one edgekeeper.")
    events: bool = Field(True, description="Whether Events and a status annotation are written to the objects.")

    @field_validator("prefix")
    @classmethod
    def _ours(cls, value: str) -> str:
        if value.endswith(("kubernetes.io", "k8s.io")):
            msg = f"{value} belongs to Kubernetes; choose a prefix of your own"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _addresses(self) -> Self:
        for listen in self.prove.addresses:
            split_host_port(listen)
        return self

"""``watch:`` services whose wedges are seen in their log or by a probe, what cures them, and what holds a cure back."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from edgekeeper.config.kinds import Duration, Items, Node, Path, Section
from edgekeeper.config.kubernetes import ObjectName

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Unit = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@:\\-]{0,253}$")]
Url = Annotated[str, Field(pattern=r"^(dns|tcp|tls|https?)://[!-~]+$", max_length=2048)]
WebUrl = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=2048)]
Words = Annotated[tuple[Annotated[str, Field(pattern=r"^[^\x00]+$")], ...], Field(strict=False, min_length=1)]
_DNS = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DNS_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Level = Literal["trace", "debug", "info", "notice", "warning", "error", "fatal"]


def _only_one(said: list[str], of: str) -> None:
    if len(said) != 1:
        msg = f"give exactly one of {of} ({' and '.join(said) if said else 'none'} given)"
        raise ValueError(msg)


class Container(Section):
    """How a container is found: by its name, a label, or its image."""

    short = "a container's name, or a mapping with label or image"

    name: Name | None = Field(None, description="Its name.")
    label: Annotated[str, Field(pattern=r"^[!-~]+$", max_length=512)] | None = Field(None, description="A label that it has, as KEY or KEY=VALUE.")
    image: Annotated[str, Field(pattern=r"^[!-~]+$", max_length=512)] | None = Field(None, description="Its image, with or without a tag.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one(self) -> Self:
        _only_one([name for name in ("name", "label", "image") if getattr(self, name) is not None], "name, label, image")
        return self


class Fingerprint(Section):
    """What a line looks like that tells of a wedge."""

    short = "text, or a mapping with text or regex"

    text: Annotated[str, Field(min_length=3, max_length=1000)] | None = Field(None, description="Text that the line contains.")
    regex: Annotated[str, Field(min_length=3, max_length=1000)] | None = Field(None, description="Or an RE2 regular expression that is found in it.")
    level: Level | None = Field(None, description="The line's level must be this or worse; a line that shows none counts.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one(self) -> Self:
        _only_one([name for name in ("text", "regex") if getattr(self, name) is not None], "text, regex")
        return self


class BurstOf(Section):
    """How many lines it takes."""

    lines: int = Field(1, ge=1, le=10_000, description="Matching lines.")
    distinct: int = Field(1, ge=1, le=1000, description="Of them, how many must differ from the match on.")
    within: Duration = Field(10.0, gt=0, le=3600, description="All of them within this time.")

    @model_validator(mode="after")
    def _sense(self) -> Self:
        if self.distinct > self.lines:
            msg = f"{self.distinct} distinct lines cannot be among {self.lines}"
            raise ValueError(msg)
        return self


class WatchProbe(Section):
    """What tells whether the service is well. Each question goes over a fresh connection."""

    short = "a URL, or a mapping with targets or command"

    targets: Items[Url] = Field((), description="URLs to ask: tls://HOST:PORT?sni=NAME, http(s)://..., tcp://HOST:PORT, dns://SERVER/NAME?type=A.")
    command: Words | None = Field(None, description="Or a program and its arguments; exit 0 is well.")
    need: Literal["any", "all"] = Field("any", description="Whether the service is well when any target answers, or only when all do.")
    every: Duration = Field(1.0, ge=0.1, le=3600, description="Between two rounds while all is quiet.")
    timeout: Duration = Field(1.0, ge=0.05, le=60, description="How long a round may take.")
    rounds: int = Field(3, ge=1, le=100, description="Failed rounds in a row that confirm a wedge of which no line told.")
    confirm_every: Duration = Field(0.5, ge=0.05, le=60, description="Between two rounds of an armed watch.")
    failures: int = Field(2, ge=1, le=100, description="Failed rounds in a row that confirm a line.")
    grace: Duration = Field(10.0, ge=0, le=3600, description="After a start of the service no verdict for so long, or until it answers.")
    from_: Literal["node", "peer"] | Node = Field(
        "node", alias="from", description="Who asks: this node, any other member of the group (peer), or the member of this name."
    )

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"targets": [value]} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if bool(self.targets) == (self.command is not None):
            msg = "give exactly one of targets, command"
            raise ValueError(msg)
        return self


def _or_one(schema: dict[str, Any]) -> None:
    """For editors: a single step needs no list."""
    schema["anyOf"].append(schema["anyOf"][0]["items"])


def _or_names(schema: dict[str, Any]) -> None:
    """For editors: members may be a list of names, and one URL needs no list."""
    urls = schema.pop("additionalProperties")
    mapping = {"type": schema.pop("type"), "additionalProperties": {"anyOf": [urls["items"], urls]}}
    schema["anyOf"] = [{"type": "array", "items": {"type": "string"}, "minItems": 2}, mapping]


class KubernetesCure(Section):
    """Pods to delete, or a workload to roll out again. One of ``pod``, ``label``, ``rollout``."""

    pod: Annotated[str, Field(pattern=rf"^{_DNS}/{_DNS_NAME}$")] | None = Field(
        None, description="Delete this pod, NAMESPACE/NAME; for those of a StatefulSet."
    )
    label: (
        Annotated[str, Field(pattern=rf"^{_DNS}/[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]*(,[A-Za-z0-9._/-]+=[A-Za-z0-9._-]*)*$", max_length=600)] | None
    ) = Field(None, description="Delete the pod with these labels, NAMESPACE/KEY=VALUE,...; what else there may be, `which` says.")
    which: Literal["one", "here", "all"] = Field(
        "one", description="one: there must be exactly one such pod; here: those on the cluster's node of this node's name; all: all of them at once."
    )
    rollout: Annotated[str, Field(pattern=rf"^{_DNS}/(deployment|statefulset|daemonset)/{_DNS_NAME}$")] | None = Field(
        None, description="Restart this workload pod by pod as `kubectl rollout restart` does: NAMESPACE/deployment/NAME, or statefulset, daemonset."
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        _only_one([name for name in ("pod", "label", "rollout") if getattr(self, name) is not None], "pod, label, rollout")
        if "which" in self.model_fields_set and self.label is None:
            msg = "which is for label"
            raise ValueError(msg)
        return self


class CureStep(Section):
    """One act on the service; the lightest stands first, the next is applied when it did not help."""

    short = "docker, or a mapping with docker, systemd, command, http, netbird_clients or kubernetes"

    docker: Container | None = Field(None, description="Restart this container; `docker` alone is the one whose log is followed.")
    stop_timeout: Duration | None = Field(None, ge=0, le=600, description="How long the container or the pod may take to stop; its own time when not said.")
    systemd: Unit | None = Field(None, description="Restart this unit.")
    command: Words | None = Field(None, description="Run this program with its arguments; exit 0 is done.")
    http: WebUrl | None = Field(None, description="Send a request there; 2xx is done.")
    netbird_clients: WebUrl | None = Field(
        None, description="Restart the embedded clients of NetBird's proxy by its debug endpoint, http://127.0.0.1:8444; not yet tried against a live NetBird."
    )
    kubernetes: KubernetesCure | None = Field(None, description="Delete pods, whose controller makes new ones, or roll out a workload again.")
    method: Literal["POST", "PUT", "DELETE", "GET"] = Field("POST", description="The request's method.")
    inside: Container | None = Field(None, description="Send an http or netbird_clients request from inside this container's network.")
    token_file: Path | None = Field(None, description="File with a bearer token for it.")
    timeout: Duration = Field(
        60.0, gt=0, le=600, description="How long a systemd, command or http step may take, each request of netbird_clients, and new pods until they are ready."
    )

    own: ClassVar[str] = "docker"
    kinds: ClassVar[tuple[str, ...]] = ("docker", "systemd", "command", "http", "netbird_clients", "kubernetes")
    only: ClassVar[dict[str, tuple[str, ...]]] = {
        "stop_timeout": ("docker", "kubernetes"),
        "timeout": ("systemd", "command", "http", "netbird_clients", "kubernetes"),
        "method": ("http",),
        "token_file": ("http",),
        "inside": ("http", "netbird_clients"),
    }
    """Which kinds of steps a key is for; with another it would be said in vain."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if value == cls.own:
            return {}
        return value

    @model_validator(mode="after")
    def _one(self) -> Self:
        said = [name for name in self.kinds if getattr(self, name) is not None]
        if len(said) > 1:
            _only_one(said, ", ".join(self.kinds))
        kind = said[0] if said else self.own
        for key, kinds in self.only.items():
            if key in self.model_fields_set and kind not in kinds:
                msg = f"{key} is for {', '.join(kinds)}"
                raise ValueError(msg)
        if self.kubernetes is not None and self.kubernetes.rollout is not None and self.stop_timeout is not None:
            msg = "stop_timeout is for pods that are deleted; a rollout gives its pods their own time"
            raise ValueError(msg)
        return self

    @property
    def is_own(self) -> bool:
        """Whether it restarts the container whose log is followed."""
        return all(getattr(self, name) is None for name in self.kinds)


class Proof(Section):
    """How it is told that a cure helped."""

    every: Duration = Field(0.25, ge=0.05, le=60, description="Between two rounds of the probe after a cure.")
    within: Duration = Field(15.0, ge=0.5, le=600, description="A cure after which the probe does not answer within this time has failed.")


class WatchBudget(Section):
    """How often a cure may happen; all of it counts at once, for all watches of a group on this node together."""

    burst: int = Field(3, ge=1, le=100, description="Cures in quick succession.")
    every: Duration = Field(60.0, ge=1, le=86_400, description="Then one each time that this has passed; the pause doubles while cures do not help.")
    per_hour: int = Field(6, ge=1, le=1000, description="Cures in any hour.")
    cooldown: Duration = Field(0.0, ge=0, le=86_400, description="Beside that, no cure within this time of the last.")
    store: Path | None = Field(
        None,
        description="File in which cures are counted, `budgets.json` in `state_dir` when not said. Processes of one machine that name the same file count together; "
        "what other members of the group tell is then not counted on top.",
    )


class Health(Section):
    """A JSON document in which the service says whether it may be restarted."""

    url: WebUrl = Field(description="Where it is.")
    inside: Container | None = Field(None, description="Asked from inside this container's network.")
    need: Items[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]] = Field(
        min_length=1, description="Keys that must be true, with dots: checks.management_connected."
    )


class Maintenance(Section):
    """A time in which nothing is cured."""

    days: Items[Day] = Field((), description="Days on which it begins; all when not said.")
    start: Clock = Field(alias="from", description="Its begin, like 02:00.")
    to: Clock = Field(description="Its end; before `from` is on the next day.")

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.start == self.to:
            msg = f'it begins and ends at {self.to}; for a whole day say from: "00:00" and to: "23:59"'
            raise ValueError(msg)
        return self


class WatchGuard(Section):
    """What forbids a cure. A cure that is held back stays wanted."""

    health: Health | None = Field(None, description="A document of the service that must not say false.")
    reachable: Items[Url] = Field((), description="What the service needs to come back: one of them must answer.")
    maintenance: Items[Maintenance] = Field((), description="Times in which nothing is cured.")
    zone: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+/-]+$")] = Field("UTC", description="Time zone of these times, like Europe/Berlin.")


class Group(Section):
    """Members on several nodes of which no two are cured at once, unless both are dead."""

    name: Name = Field(description="The group's name, the same on all nodes.")
    members: dict[Node, Items[Url]] = Field(
        default_factory=dict,
        description="The nodes in the order in which they go first, each with the URLs that others probe it by; none: the group is this node's watches only.",
        json_schema_extra=_or_names,
    )
    wait: Duration = Field(15.0, ge=1, le=600, description="The longest wait for another member's proof.")
    lease: ObjectName | None = Field(
        None,
        description="A Lease of the cluster (in `kubernetes.namespace`) that a member holds while it cures; while the cluster cannot be asked, the order decides.",
    )

    @field_validator("members", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return dict.fromkeys((name for name in value if isinstance(name, str)), ())
        if isinstance(value, dict):
            return {name: [urls] if isinstance(urls, str) else urls or () for name, urls in value.items()}
        return value

    @model_validator(mode="after")
    def _lease_of_members(self) -> Self:
        if self.lease is not None and not self.members:
            msg = "lease needs members: while the cluster cannot be asked, their order decides"
            raise ValueError(msg)
        return self

    @field_validator("members")
    @classmethod
    def _several(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        if len(value) == 1:
            msg = "a group of one node names no members; of several, name them all, this node too"
            raise ValueError(msg)
        return value


class Watch(Section):
    """One watch: where the lines come from, what they look like, what confirms them, what cures, what holds back, what proves."""

    name: Name = Field(description="The watch's name.")
    preset: Literal["netbird-proxy"] | None = Field(None, description="Takes what is not said here from a ready-made watch.")
    docker: Container | None = Field(None, description="Follow the log of this container.")
    docker_socket: Path = Field("/var/run/docker.sock", description="The Docker daemon's socket (podman's works too).")
    file: Path | None = Field(None, description="Or follow this file.")
    journald: Unit | None = Field(None, description="Or this unit's journal; journald may hold a line back for 250 ms.")
    command: Words | None = Field(None, description="Or the output of this program.")
    fingerprints: Items[Fingerprint] | None = Field(None, description="What a line looks like that arms the watch.")
    untrusted_after: Items[Annotated[str, Field(min_length=1, max_length=200)]] | None = Field(
        None, description="What stands behind the first of these texts in a line was written by clients, and is not searched."
    )
    burst: BurstOf | None = Field(None, description="How many lines it takes; one when not said.")
    recovered: Items[Fingerprint] | None = Field(None, description="Lines that say the service is well again; for `watch replay` only.")
    blind_after: Duration | None = Field(None, gt=0, description="No line at all for so long is an alarm: the watch may be blind.")
    probe: WatchProbe | None = Field(None, description="What tells whether the service is well.")
    confirm: Literal["probe", "none"] = Field("probe", description="none: a line alone cures. Whoever can write into the log can then restart the service.")
    cure: Items[CureStep] | None = Field(
        None, description="What cures, the lightest first; the followed container's restart when not said.", json_schema_extra=_or_one
    )
    proof: Proof = Field(default_factory=Proof, description="How it is told that a cure helped.")  # type: ignore[arg-type]
    budget: WatchBudget = Field(default_factory=WatchBudget, description="How often a cure may happen.")  # type: ignore[arg-type]
    guard: WatchGuard | None = Field(None, description="What forbids a cure.")
    group: Group | None = Field(None, description="Members on other nodes that must not be cured at the same time.")
    shadow: bool = Field(False, description="Decide and tell, but do nothing.")

    @field_validator("cure", mode="before")
    @classmethod
    def _one_cure(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | dict) else value

    @model_validator(mode="after")
    def _sense(self) -> Self:
        sources = [name for name in ("docker", "file", "journald", "command") if getattr(self, name) is not None]
        if len(sources) > 1:
            msg = f"give at most one of docker, file, journald, command ({' and '.join(sources)} given)"
            raise ValueError(msg)
        if not sources and self.probe is None:
            msg = "neither a log to follow (docker, file, journald, command) nor a probe: nothing would ever be seen"
            raise ValueError(msg)
        if sources and not self.fingerprints and self.preset is None:
            msg = f"{sources[0]} is followed, but no fingerprints say what to look for"
            raise ValueError(msg)
        if self.fingerprints and not sources:
            msg = "fingerprints without a log to follow; say docker, file, journald or command"
            raise ValueError(msg)
        if self.docker is None and (self.cure is None or any(step.is_own for step in self.cure)):
            msg = "the cure is missing: no container is followed that could be restarted; say cure: [{docker: NAME}], {systemd: UNIT}, {command: [...]} or {http: URL}"
            raise ValueError(msg)
        return self

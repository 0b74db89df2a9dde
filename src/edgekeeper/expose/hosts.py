"""The file that names hosts beside those of the cluster: text -> entries -> claims. Pure.

An entry says what an object of the cluster says by its annotations, and goes the same way from there; but a file with a mistake is
refused as a whole, with the place of each mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from edgekeeper.config.kinds import Duration, Items, Port, Section
from edgekeeper.config.kubernetes import ObjectName
from edgekeeper.config.mistakes import read_listing
from edgekeeper.config.yamltext import dotted
from edgekeeper.errors import ConfigError, Mistake
from edgekeeper.expose.annotations import MOST_COUNTRIES, MOST_NETWORKS, country, go_duration, network
from edgekeeper.expose.kinds import Claim, Origin
from edgekeeper.expose.names import host_name
from edgekeeper.model.text import printable

EXAMPLE = "www.example"
_WORDS = {None: None, True: "true", False: "false"}


def _network(text: str) -> str:
    return _with_value(text, network)


def _country(text: str) -> str:
    return _with_value(text, country)


def _with_value(text: str, parse: Any) -> str:
    try:
        return str(parse(text))
    except ValueError as err:
        msg = f"{text!r} {err}"
        raise ValueError(msg) from None


_Networks = Annotated[Items[Annotated[str, AfterValidator(_network)]] | None, Field(max_length=MOST_NETWORKS)]
_Countries = Annotated[Items[Annotated[str, AfterValidator(_country)]] | None, Field(max_length=MOST_COUNTRIES)]


class HostEntry(Section):
    """One host, written as text or as a mapping."""

    short: ClassVar[str] = "text like www.example, or a mapping with host"

    host: str = Field(description="The host's name.")
    klass: ObjectName | Literal[""] = Field("", alias="class", description="Which of the targets it leads to; `default` when not said.")
    listen_port: Port | None = Field(None, description="Port that the proxy listens on; the config's when not said.")
    proxy_protocol: bool | None = Field(None, description="Whether the target is told the client's address; the config's when not said.")
    request_timeout: Duration | None = Field(None, ge=0.001, le=3600, description="How long the proxy tries to reach the target.")
    idle_timeout: Duration | None = Field(None, ge=0.001, le=3600, description="After which silence a connection is closed.")
    allow_cidrs: _Networks = Field(None, description="Only clients from these networks; an empty list lifts a restriction.")
    block_cidrs: _Networks = Field(None, description="No clients from these networks.")
    allow_countries: _Countries = Field(None, description="Only clients from these countries (ISO 3166-1 alpha-2).")
    block_countries: _Countries = Field(None, description="No clients from these countries.")
    delete_policy: Literal["sync", "keep"] = Field("sync", description="keep: its service stays when the entry goes.")
    adopt: bool = Field(False, description="Take over a service for this host that somebody else has made.")
    force_delete: bool = Field(False, description="Its deletion is not held back by the brake.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"host": value} if isinstance(value, str) else value

    @field_validator("host")
    @classmethod
    def _host(cls, value: str) -> str:
        try:
            return host_name(value)
        except ValueError as err:
            raise ValueError(str(err).partition(": ")[2]) from None


class HostsFile(Section):
    """A file that names hosts, watched while edgekeeper runs."""

    hosts: Items[HostEntry] = Field(description="The hosts.")


def parse_hosts(text: str, file: str) -> tuple[HostEntry, ...]:
    """The entries of a hosts file; ConfigError names every mistake in it as ``file:line:column``."""
    document, read, mistakes = read_listing(HostsFile, text, file, "hosts", EXAMPLE)
    entries = read.hosts if read is not None else ()
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.host in seen:
            place = document.place(("hosts", index))
            mistakes.append(Mistake(place.line, place.column, dotted(("hosts", index)), f"{entry.host} is named twice; remove one"))
        seen.add(entry.host)
    if mistakes:
        raise ConfigError(printable(file), tuple(mistakes))
    return entries


def claim_of(entry: HostEntry, prefix: str) -> Claim:
    """An entry as the claim that an object with the same wishes would make; each entry is an object of its own."""
    said = {
        "listen-port": entry.listen_port,
        "proxy-protocol": _WORDS[entry.proxy_protocol],
        "request-timeout": _duration(entry.request_timeout),
        "idle-timeout": _duration(entry.idle_timeout),
        "allow-cidrs": _list(entry.allow_cidrs),
        "block-cidrs": _list(entry.block_cidrs),
        "allow-countries": _list(entry.allow_countries),
        "block-countries": _list(entry.block_countries),
        "delete-policy": entry.delete_policy if entry.delete_policy != "sync" else None,
        "adopt": _WORDS[entry.adopt or None],
        "force-delete": _WORDS[entry.force_delete or None],
    }
    annotations = {f"{prefix}/{key}": str(value) for key, value in said.items() if value is not None}
    return Claim(Origin("File", "", entry.host), (entry.host,), entry.klass, annotations)


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else go_duration(round(seconds * 1000))


def _list(items: Iterable[str] | None) -> str | None:
    return None if items is None else ",".join(items) or "none"

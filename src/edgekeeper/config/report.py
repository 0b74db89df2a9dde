"""``report:`` who the clients are, what counts as hurt, and what the inputs do not say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator

from edgekeeper.config.kinds import Duration, Items, Network, Node, Section

ClassName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$")]
Pattern = Annotated[str, Field(min_length=1, max_length=1000)]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?Z)?$")]
Zone = Annotated[str, Field(pattern=r"^([A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,2}|[+-][0-9]{2}:[0-9]{2})$")]


class Clients(Section):
    """Where the clients of a class come from, and when that was so."""

    short = "a list of networks, a mapping, or a list of mappings"

    networks: Annotated[tuple[Network, ...], Field(strict=False, min_length=1)] = Field(
        description="Networks of the clients' addresses, as the proxy sees them."
    )
    begin: Day | None = Field(None, description="From when on this is so (a day in UTC, or 2026-09-07T04:00Z); always when not said.")
    until: Day | None = Field(None, description="Until when.")
    per_minute: float | None = Field(
        None, gt=0, description="Requests a minute that are due, where these clients ask on a schedule; else the quiet time before tells."
    )


class SourceOf(Section):
    """What a log does not say of itself."""

    match: Annotated[str, Field(pattern=r"^[^\x00\n]{1,500}$")] = Field(description="Which inputs: a file name with * and ?, or a path.")
    name: Annotated[str, Field(pattern=r"^[!-~]{1,100}$")] | None = Field(None, description="What figures call it; the file's name when not said.")
    node: Node | None = Field(None, description="The machine whose clock wrote it.")
    zone: Zone | None = Field(None, description="Time zone of stamps that have none, as Europe/Berlin or +02:00; UTC when not said.")
    clock: Annotated[str, Field(pattern=r"^[+-]?[0-9]+(\.[0-9]+)?(ms|s|m|h)$")] | None = Field(
        None, description="What to add to its stamps, where that is known: 183s, -2s; else it is estimated from events that two clocks saw."
    )
    format: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")] | None = Field(None, description="Its format, where that is not recognised.")


class GapOf(Section):
    """A pair of events whose distance is a figure: a peer that left and came back, a store that was sealed."""

    name: Annotated[str, Field(pattern=r"^[ -~]{1,100}$")] = Field(description="What the figure is called.")
    begin: Pattern = Field(description="RE2 expression that is found in the first event: its kind, object and text.")
    end: Pattern = Field(description="And in the one that ends it.")
    key: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,30}$")] | None = Field(None, description="A named group of both that must be equal.")


class ReportOf(Section):
    """How `edgekeeper report` reads and judges."""

    classes: dict[ClassName, Items[Clients]] = Field(
        default_factory=dict, description="Classes of clients by the networks that they come from; the first that fits counts."
    )
    bad: Annotated[tuple[Annotated[int, Field(ge=400, le=599)], ...], Field(strict=False, min_length=1)] = Field(
        (502, 503, 504), description="Statuses that count as an outage; other 5xx and 499 are counted apart."
    )
    slo: float = Field(0.999, gt=0, lt=1, description="Share of requests, and of time, that is to be good.")
    slo_period: Duration = Field(28 * 86400.0, ge=86400, description="Over which time.")
    reference: Node | None = Field(None, description="The machine whose clock the report goes by; that of the access log with the most lines when not said.")
    sources: Items[SourceOf] = Field((), description="What single logs do not say of themselves; the first that matches counts.")
    gaps: Items[GapOf] = Field((), description="Named pairs of events.")
    feeds: dict[Annotated[str, Field(min_length=1, max_length=256)], Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[a-z0-9.-]+$")]] = Field(
        default_factory=dict, description="Which workload (namespace/name) answers for a route, where its name does not tell."
    )

    @field_validator("classes", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {name: _several(said) for name, said in value.items()} if isinstance(value, Mapping) else value


def _several(said: Any) -> Any:
    """A class as it is meant: several spans of time with their networks, of which one is the usual case."""
    if isinstance(said, Mapping):
        return [said]
    if isinstance(said, list | tuple) and not any(isinstance(one, Mapping) for one in said):
        return [{"networks": said}]
    return said

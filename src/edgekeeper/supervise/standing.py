"""How a supervised engine stands, as every role tells it: its part of the status, its verdict, its alarms. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.supervise.decide import State

WEDGED_S = 5.0
"""Silence of a running engine until it is an alarm: readiness says so after 3 s."""


class _Process(Protocol):
    @property
    def pid(self) -> int: ...


class _Hand(Protocol):
    @property
    def process(self) -> _Process: ...
    @property
    def generation(self) -> str: ...
    @property
    def since(self) -> float: ...


class _Crew(Protocol):
    @property
    def serving(self) -> _Hand | None: ...


class _Actor(Protocol):
    @property
    def crew(self) -> _Crew: ...


class Supervised(Protocol):
    """What is read of a supervisor."""

    @property
    def actor(self) -> _Actor:
        """Who knows the processes."""

    @property
    def state(self) -> State:
        """What the mind knows."""

    @property
    def why(self) -> str:
        """The last decision's reason."""

    @property
    def adopted(self) -> bool:
        """Whether the engine was running when the supervisor came."""

    @property
    def last_change(self) -> Mapping[str, Any]:
        """The last change that was carried out, or refused while it was."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A supervised engine at one moment; ``since`` is Unix time, ``refused`` why the wanted change is not in force."""

    running: bool
    why: str
    pid: int | None = None
    since: float | None = None
    generation: str | None = None
    digest: str | None = None
    refused: str | None = None
    adopted: bool = False
    last_change: Mapping[str, Any] | None = None


def standing(supervisor: Supervised) -> Standing:
    """How the engine of a supervisor stands now."""
    serving, state = supervisor.actor.crew.serving, supervisor.state
    return Standing(
        state.running,
        supervisor.why,
        serving.process.pid if serving is not None else None,
        serving.since if serving is not None else None,
        serving.generation if serving is not None else None,
        state.live,
        state.refused.why if state.refused is not None else None,
        supervisor.adopted,
        supervisor.last_change,
    )


def details(now: Standing, alarms: Mapping[str, str], engine: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a role's status that is the same for every engine; ``engine`` is what this one adds to its own."""
    return {
        "engine": {
            "pid": now.pid,
            "since": now.since,
            "generation": now.generation,
            "digest": now.digest,
            "running": now.running,
            **engine,
        },
        "last_change": dict(now.last_change or {}),
        "last_decision": now.why,
        "refused": now.refused,
        "adopted": now.adopted,
        "alarms": dict(alarms),
    }


def verdict(now: Standing, ready: Verdict, alarms: Mapping[str, str]) -> Verdict:
    """Good when traffic may be sent here; a refused change and alarms are told where people look first."""
    words = ready.why
    if ready.ok and now.refused is not None:
        words += f"; a change is refused, what ran before still runs: {now.refused}"
    if ready.ok and alarms:
        name, why = next(iter(alarms.items()))
        words += f"; {len(alarms)} alarm(s), {name}: {why}"
    return Verdict(Health.OK if ready.ok else Health.BAD, words)


def wedged(engine: str, now: Standing, silent_s: float) -> str | None:
    """The alarm about an engine that runs and has said nothing for so long, or None."""
    if now.pid is None or silent_s < WEDGED_S:
        return None
    return f"{engine} (pid {now.pid}) runs and does not answer; it is not restarted by itself: kill -KILL {now.pid} has a new one started"


def exchanged(engine: str, binary: str, *, same: bool) -> str | None:
    """The alarm about a program that is another than the one whose version was asked at the start, or None."""
    if same:
        return None
    return f"{binary} is another program than at the start of edgekeeper; kill -QUIT and start it again, {engine} goes on meanwhile"

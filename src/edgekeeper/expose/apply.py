"""A plan, carried out: several writes at a time, each host for itself, each journaled with its reason, each read again right before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from edgekeeper.errors import EdgekeeperError, LockHeldError
from edgekeeper.expose import body, mark
from edgekeeper.expose.kinds import Service
from edgekeeper.expose.netbird_say import ApiError
from edgekeeper.expose.plan import Action
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.model.text import printable
from edgekeeper.ports import Journal

STOPS: Final = frozenset({"throttled", "unauthenticated", "not_allowed"})
"""What is not about one host: the rest of the pass would fare the same."""

BROKEN_MOST: Final = 5
"""After so many failures in a row that are no answers, the mesh is taken to be away and the pass ends."""

_AWAY: Final = frozenset({"broken", "unreachable"})

EVENTS: Final = {
    "create": Event.EXPOSE_CREATED,
    "update": Event.EXPOSE_UPDATED,
    "repair": Event.EXPOSE_UPDATED,
    "return": Event.EXPOSE_UPDATED,
    "adopt": Event.EXPOSE_ADOPTED,
    "migrate": Event.EXPOSE_ADOPTED,
    "relinquish": Event.EXPOSE_RELINQUISHED,
    "disable": Event.EXPOSE_DISABLED,
    "delete": Event.EXPOSE_DELETED,
}


class Mesh(Protocol):
    """What is asked of the mesh here; ``netbird.NetBird`` is it."""

    async def service(self, service_id: str, /) -> Service | None:
        """The service now, or None when there is none."""

    async def create(self, body: Mapping[str, Any], /) -> Service:
        """Make it."""

    async def replace(self, service_id: str, body: Mapping[str, Any], /) -> Service:
        """Put the whole object in the place of what is there."""

    async def remove(self, service_id: str, /) -> bool:
        """Delete it; False when it was gone already."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action. ``kind`` is "" when it was done, else the kind of the failure; ``again_s``: when the mesh takes calls again."""

    action: Action
    kind: str = ""
    why: str = ""
    again_s: float | None = None
    dead_target: bool = False

    @property
    def done(self) -> bool:
        """Whether it was."""
        return not self.kind


@dataclass(slots=True)
class _Pass:
    """What the workers of one pass share: what is left to do, and why nobody begins anything any more."""

    left: list[Action]
    out: list[Outcome]
    stop: Outcome | None = None
    broken: int = 0


async def apply(
    actions: Sequence[Action], mesh: Mesh, journal: Journal, *, concurrency: int, may: Callable[[], None], told: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Carry the actions out, in their order as far as several at a time have one; what was not tried is told as ``pending``.

    ``may`` is called right before each write and raises LockHeldError when this process may not write any more.
    """
    out: list[Outcome] = []
    stop: Outcome | None = None
    for stage in _stages(actions):
        if stop is not None:
            out += [Outcome(action, "pending", f"not tried: {stop.why}", stop.again_s) for action in stage]
            continue
        shared = _Pass(list(reversed(stage)), [])
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(stage))):
                group.create_task(_work(shared, mesh, journal, may, told))
        stop = shared.stop
        out += shared.out
        if stop is not None:
            out += [Outcome(action, "pending", f"not tried: {stop.why}", stop.again_s) for action in reversed(shared.left)]
    return out


def _stages(actions: Sequence[Action]) -> Iterable[list[Action]]:
    """What helps clients first, and all of it before anything is taken away."""
    giving = [action for action in actions if action.kind not in {"disable", "delete"}]
    taking = [action for action in actions if action.kind in {"disable", "delete"}]
    return [stage for stage in (giving, taking) if stage]


async def _work(shared: _Pass, mesh: Mesh, journal: Journal, may: Callable[[], None], told: Callable[[Outcome], None]) -> None:
    while shared.left and shared.stop is None:
        action = shared.left.pop()
        outcome = await _one(action, mesh, may)
        shared.out.append(outcome)
        shared.broken = shared.broken + 1 if outcome.kind in _AWAY else 0
        if outcome.kind in STOPS or outcome.kind == "lease" or shared.broken >= BROKEN_MOST:
            shared.stop = outcome
        _journal(outcome, journal)
        told(outcome)


async def _one(action: Action, mesh: Mesh, may: Callable[[], None]) -> Outcome:
    try:
        return await _write(action, mesh, may)
    except ApiError as err:
        return Outcome(action, err.kind, str(err), err.again_s, err.dead_target)
    except LockHeldError as err:
        return Outcome(action, "lease", str(err))
    except EdgekeeperError as err:
        return Outcome(action, "unreachable", str(err))


async def _write(action: Action, mesh: Mesh, may: Callable[[], None]) -> Outcome:
    service = action.service
    if service is None:
        assert action.make is not None  # noqa: S101 - a create has one
        may()
        await mesh.create(action.make())
        return Outcome(action)
    fresh = await mesh.service(service.id)
    if fresh is None:
        return Outcome(action) if action.kind == "delete" else Outcome(action, "changed", "the service has vanished meanwhile; the next pass sees to it")
    if _another(service, fresh):
        return Outcome(action, "changed", "somebody has changed the service meanwhile; the next pass looks anew")
    may()
    if action.kind == "delete":
        await mesh.remove(service.id)
        return Outcome(action)
    assert action.make is not None  # noqa: S101 - what is written has one
    wanted = body.rebased(service.raw, action.make(), fresh.raw)
    if action.kind == "migrate":
        return await _migrate(action, wanted, fresh, mesh)
    await mesh.replace(service.id, wanted)
    return Outcome(action)


async def _migrate(action: Action, wanted: Mapping[str, Any], old: Service, mesh: Mesh) -> Outcome:
    """Delete and make anew, because a mode cannot be changed; when that fails the old one is put back, as it was."""
    await mesh.remove(old.id)
    try:
        await mesh.create(body.in_tls(wanted))
    except (ApiError, EdgekeeperError) as err:
        why = f"{err}; the service before"
        try:
            await mesh.create({key: value for key, value in old.raw.items() if key not in body.ONLY_ANSWERED})
        except EdgekeeperError as again:
            return Outcome(action, "lost", f"{why} could not be put back either: {again}; make it by hand: {printable(str(dict(old.raw)), 2000)}")
        return Outcome(action, getattr(err, "kind", "unreachable"), f"{why} was put back")
    return Outcome(action)


def _another(old: Service, fresh: Service) -> bool:
    """Whether it is not the service any more that was decided about: another host, or another mark."""
    return body.canonical_host(old.host) != body.canonical_host(fresh.host) or mark.read(old.name) != mark.read(fresh.name)


def _journal(outcome: Outcome, journal: Journal) -> None:
    action, event = outcome.action, EVENTS[outcome.action.kind]
    if outcome.done:
        emit(event, f"{action.host}: {printable(action.why)}", level=INFO, host=action.host, action=action.kind)
        journal.write(Entry("expose", event, action.host, "act", printable(action.why), {"action": action.kind}))
        return
    why = f"{action.kind} did not succeed: {printable(outcome.why)}"
    emit(Event.EXPOSE_NOT_DONE, f"{action.host}: {why}", level=WARNING, host=action.host, action=action.kind, kind=outcome.kind)
    journal.write(Entry("expose", Event.EXPOSE_NOT_DONE, action.host, "hold", why, {"action": action.kind, "kind": outcome.kind}))

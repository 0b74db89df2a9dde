"""A plan, carried out: several writes at a time, each host for itself, each journaled with its reason, each read again right before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from edgekeeper.errors import EdgekeeperError, LockHeldError
from edgekeeper.expose import body, mark
from edgekeeper.expose.kinds import Service
from edgekeeper.expose.names import canonical_host
from edgekeeper.expose.netbird_say import ApiError
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.plan import Action
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.model.text import printable
from edgekeeper.ports import Journal

STOPS: Final = frozenset({"throttled", "unauthenticated", "not_allowed"})
"""What is not about one host: the rest of the pass would fare the same."""

TAKES: Final = frozenset({"disable", "delete"})

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


class Old(Protocol):
    """Whether a decision is too old to be acted on."""

    def __call__(self, *, takes: bool) -> str | None:
        """Why, or None. ``takes``: the action takes something away."""


def _fresh(*, takes: bool) -> str | None:
    del takes
    return None


class Mesh(Protocol):
    """What is asked of the mesh here; ``netbird.NetBird`` is it."""

    async def service(self, service_id: str, /) -> Service | None:
        """The service now, or None when there is none."""

    async def create(self, body: Mapping[str, Any], /) -> Service:
        """Make it."""

    async def make_good(self, body: Mapping[str, Any], /) -> Service:
        """Make it in the place of one that the same act has deleted, whoever leads by now."""

    async def replace(self, service_id: str, body: Mapping[str, Any], /) -> Service:
        """Put the whole object in the place of what is there."""

    async def remove(self, service_id: str, /) -> bool:
        """Delete it; False when it was gone already."""


class _OldError(Exception):
    """What is about to be done was decided too long ago."""


@dataclass(frozen=True, slots=True)
class _Hands:
    """What an action is carried out with; see ``apply``."""

    mesh: Mesh
    journal: Journal
    may: Callable[[], None]
    told: Callable[[Outcome], None]
    keep: Callable[[str, Mapping[str, Any] | None], None]


@dataclass(slots=True)
class _Pass:
    """What the workers of one pass share: what is left to do, and why nobody begins anything any more."""

    left: list[Action]
    out: list[Outcome]
    stop: Outcome | None = None
    broken: int = 0


async def apply(
    actions: Sequence[Action],
    mesh: Mesh,
    journal: Journal,
    *,
    concurrency: int,
    may: Callable[[], None],
    old: Old = _fresh,
    told: Callable[[Outcome], None] = lambda _: None,
    keep: Callable[[str, Mapping[str, Any] | None], None] = lambda _host, _raw: None,
) -> list[Outcome]:
    """Carry the actions out, in their order as far as several at a time have one; what was not tried is told as ``pending``.

    ``may`` is called right before each write and raises LockHeldError when this process may not write any more. ``old`` is asked there too:
    where the mesh bears few calls a pass may last for long, and what nobody wanted at its beginning may be wanted by now. ``keep`` is given
    what a migration is about to delete, and None when it is not away any more: should this process die in between, the next pass makes the
    service anew with all that was set in it. It raises when it cannot keep it; then nothing is deleted.
    """
    out: list[Outcome] = []
    stop: Outcome | None = None
    for stage in _stages(actions):
        if stop is not None:
            out += [Outcome(action, "pending", f"not tried: {stop.why}", stop.again_s) for action in stage]
            continue
        shared = _Pass(list(reversed(stage)), [])
        hands = _Hands(mesh, journal, partial(_go, may, old, takes=stage[0].kind in TAKES), told, keep)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(stage))):
                group.create_task(_work(shared, hands))
        stop = shared.stop
        out += shared.out
        if stop is not None:
            out += [Outcome(action, "pending", f"not tried: {stop.why}", stop.again_s) for action in reversed(shared.left)]
    return out


def _go(may: Callable[[], None], old: Old, *, takes: bool) -> None:
    """Raise when what was decided may not be done, or not any more."""
    may()
    why = old(takes=takes)
    if why is not None:
        raise _OldError(why)


def _stages(actions: Sequence[Action]) -> Iterable[list[Action]]:
    """What helps clients first, and all of it before anything is taken away."""
    giving = [action for action in actions if action.kind not in TAKES]
    taking = [action for action in actions if action.kind in TAKES]
    return [stage for stage in (giving, taking) if stage]


async def _work(shared: _Pass, hands: _Hands) -> None:
    while shared.left and shared.stop is None:
        action = shared.left.pop()
        act = _act(action, shared, hands)
        await (_unbroken(act) if action.kind == "migrate" else act)


async def _act(action: Action, shared: _Pass, hands: _Hands) -> None:
    outcome = await _one(action, hands)
    shared.out.append(outcome)
    shared.broken = shared.broken + 1 if outcome.kind in _AWAY else 0
    if outcome.kind in STOPS or outcome.kind in {"lease", "old"} or shared.broken >= BROKEN_MOST:
        shared.stop = outcome
    _journal(outcome, hands.journal)
    hands.told(outcome)


async def _unbroken(act: Coroutine[Any, Any, None]) -> None:
    """Do it to its end, also when it is cancelled meanwhile: between a service's deletion and its making it would be lost with all that was set in it."""
    work = asyncio.ensure_future(act)
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise


async def _one(action: Action, hands: _Hands) -> Outcome:
    try:
        return await _write(action, hands)
    except _OldError as err:
        return Outcome(action, "old", str(err), 0.0)
    except ApiError as err:
        return Outcome(action, err.kind, str(err), err.again_s, err.dead_target)
    except LockHeldError as err:
        return Outcome(action, "lease", str(err))
    except EdgekeeperError as err:
        return Outcome(action, "unreachable", str(err))


async def _write(action: Action, hands: _Hands) -> Outcome:
    service, mesh = action.service, hands.mesh
    if service is None:
        assert action.make is not None  # noqa: S101 - a create has one
        hands.may()
        await mesh.create(action.make())
        hands.keep(action.host, None)
        return Outcome(action)
    fresh = await mesh.service(service.id)
    if fresh is None:
        return Outcome(action) if action.kind == "delete" else Outcome(action, "changed", "the service has vanished meanwhile; the next pass sees to it")
    if _another(service, fresh) or body.strange(fresh.raw) is not None:
        return Outcome(action, "changed", "somebody has changed the service meanwhile; the next pass looks anew")
    hands.may()
    if action.kind == "delete":
        await mesh.remove(service.id)
        return Outcome(action)
    assert action.make is not None  # noqa: S101 - what is written has one
    wanted = body.rebased(service.raw, action.make(), fresh.raw)
    if action.kind == "migrate":
        return await _migrate(action, wanted, fresh, hands)
    await mesh.replace(service.id, wanted)
    return Outcome(action)


async def _migrate(action: Action, wanted: Mapping[str, Any], old: Service, hands: _Hands) -> Outcome:
    """Delete and make anew, because a mode cannot be changed; when that fails the old one is put back, as it was.

    Where an answer was lost, the next write tells: its host is taken as long as a service is there.
    """
    mesh = hands.mesh
    hands.keep(action.host, old.raw)
    try:
        await mesh.remove(old.id)
    except EdgekeeperError as err:
        if not getattr(err, "unsure", False):
            hands.keep(action.host, None)
            raise
    try:
        await mesh.make_good(body.in_tls(wanted))
    except EdgekeeperError as err:
        kind, why = getattr(err, "kind", "unreachable"), str(err)
    else:
        hands.keep(action.host, None)
        return Outcome(action)
    try:
        await mesh.make_good({key: value for key, value in old.raw.items() if key not in body.ONLY_ANSWERED})
    except EdgekeeperError as again:
        if getattr(again, "kind", "") == "taken":
            hands.keep(action.host, None)
            return Outcome(action, kind, f"{why}; the host has a service all the same, so an answer was lost; the next pass looks anew")
        told = printable(str(dict(old.raw)), 2000)
        return Outcome(action, "lost", f"{why}; the service before could not be put back either: {again}; the next pass makes it anew, from: {told}")
    hands.keep(action.host, None)
    return Outcome(action, kind, f"{why}; the service before was put back")


def _another(old: Service, fresh: Service) -> bool:
    """Whether it is not the service any more that was decided about: another host, another mark, or switched on or off."""
    return (
        canonical_host(old.host) != canonical_host(fresh.host)
        or mark.read(old.name) != mark.read(fresh.name)
        or bool(old.raw.get("enabled", True)) != bool(fresh.raw.get("enabled", True))
    )


def _journal(outcome: Outcome, journal: Journal) -> None:
    action, event = outcome.action, EVENTS[outcome.action.kind]
    if outcome.done:
        emit(event, f"{action.host}: {printable(action.why)}", level=INFO, host=action.host, action=action.kind)
        journal.write(Entry("expose", event, action.host, "act", printable(action.why), {"action": action.kind}))
        return
    why = f"{action.kind} did not succeed: {printable(outcome.why)}"
    emit(Event.EXPOSE_NOT_DONE, f"{action.host}: {why}", level=WARNING, host=action.host, action=action.kind, kind=outcome.kind)
    journal.write(Entry("expose", Event.EXPOSE_NOT_DONE, action.host, "hold", why, {"action": action.kind, "kind": outcome.kind}))

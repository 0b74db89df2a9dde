"""One pass: see the sources and the mesh whole, plan, apply, remember, tell. A view that is not whole changes nothing that it does not know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from edgekeeper.config.expose import Expose
from edgekeeper.errors import StepFailedError
from edgekeeper.expose import brake, mark, memory
from edgekeeper.expose.apply import Mesh, apply
from edgekeeper.expose.brake import Limits
from edgekeeper.expose.kinds import Anchor, Footing, Place, Service, Snapshot
from edgekeeper.expose.memory import Kept
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.plan import STALE_S, Plan, Setting, only, plan, targets_of
from edgekeeper.expose.waits import Waits, held_back, noted
from edgekeeper.expose.wishes import wishes
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Clock, Journal

LONGEST_S: Final = 300.0
"""A pass that takes longer (the mesh bears few calls, and there is much to do) goes on as a new one, with a fresh view."""


class Source(Protocol):
    """Where wishes come from; see ``sources``."""

    def snapshot(self) -> Snapshot:
        """What is known now."""

    async def relist(self) -> bool:
        """Ask for full lists once more; whether they came."""


class Ground(Protocol):
    """What is below the services in the mesh; see ``infrastructure``. ``remarks``: what a person should know of it; ``acts``: what was written last."""

    @property
    def remarks(self) -> Sequence[str]:
        """Sentences."""

    @property
    def acts(self) -> Sequence[str]:
        """Sentences."""

    async def ensure(self, addresses: Iterable[str], service_cidr: str | None, *, ports: Iterable[int] = ...) -> Footing:
        """Make and repair it."""

    async def look(self, addresses: Iterable[str], service_cidr: str | None, *, ports: Iterable[int] = ...) -> tuple[Footing, tuple[str, ...]]:
        """What it is, and what would be made."""

    def doubt(self, why: str) -> None:
        """Something does not fit; look at all of it with the next ``ensure``."""


class Services(Mesh, Protocol):
    """The mesh, with the one call of a steady pass."""

    async def services(self) -> Sequence[Service]:
        """All services of the account."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass saw and did. ``steps`` are what would be made below the services (of a plan only).

    What a person should know: ``grounds`` of what is below the services, ``lost`` of targets, ``doubt`` why the next pass will not know what this one has seen.
    """

    plan: Plan
    outcomes: tuple[Outcome, ...] = ()
    steps: tuple[str, ...] = ()
    took_s: float = 0.0
    grounds: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    doubt: str | None = None

    def count(self, *kinds: str) -> int:
        """Actions of these kinds that were done."""
        return sum(1 for one in self.outcomes if one.done and one.action.kind in kinds)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Actions that were not done, the untried ones included."""
        return tuple(one for one in self.outcomes if not one.done)

    @property
    def again_s(self) -> float | None:
        """When the mesh takes calls again, where it has said that it takes none now."""
        return max((one.again_s for one in self.outcomes if one.again_s is not None), default=None)

    def states(self) -> dict[str, tuple[str, str]]:
        """Each host that is wanted or there: one word, and why."""
        out = dict.fromkeys(self.plan.right, ("active", ""))
        out |= {held.host: (held.state, held.why) for held in self.plan.held}
        for action in self.plan.actions:
            out[action.host] = ("wanted", action.why)
        for one in self.outcomes:
            done = {"disable": "leaving", "delete": "gone"}.get(one.action.kind, "active")
            out[one.action.host] = (done, "") if one.done else (one.word, one.why)
        return out

    def only(self, hosts: Collection[str]) -> Pass:
        """The part of it that is about these hosts."""
        return replace(self, plan=only(self.plan, hosts))

    def sentence(self) -> str:
        """The pass in one line."""
        changed = self.count("update", "repair", "return", "adopt", "migrate")
        more = f", {len(self.failed)} not done" if self.failed else ""
        return (
            f"{self.plan.wanted} wanted, {self.count('create')} created, {changed} updated, {self.count('disable')} disabled, "
            f"{self.count('delete')} deleted, {len(self.plan.held)} held{more}"
        )


@dataclass(slots=True)
class Sync:
    """Passes over one config. ``may`` raises LockHeldError when this process must not write (any more)."""

    expose: Expose
    source: Source
    mesh: Services
    ground: Ground
    clock: Clock
    journal: Journal
    file: Path
    told: Callable[[Outcome], None] = lambda _: None
    kept: Kept = field(default_factory=Kept)
    doubt: str | None = None
    waits: Waits = field(default_factory=Waits)

    def __post_init__(self) -> None:
        self.kept, forgotten = memory.recall(self.file)
        if forgotten is not None:  # told once: the pass writes a whole one in its place
            emit(Event.EXPOSE_FORGOTTEN, forgotten, level=WARNING)

    async def look(self, setting: Setting) -> Pass:
        """What a pass would do; nothing is written anywhere."""
        begun = self.clock.monotonic()
        snapshot = self.source.snapshot()
        services = await self.mesh.services()
        places = self._places(snapshot)
        footing, steps = await self.ground.look(_addresses(places), self._cidr(snapshot), ports=_ports(places))
        if steps:  # what is missing would be made first
            made_first = {address: Anchor("(new)", "subnet") for address in _addresses(places)}
            footing = replace(footing, by_address=made_first | dict(footing.by_address))
        first = self.kept.brake.passes == 0
        made = plan(
            snapshot,
            wishes(snapshot.claims, self.expose),
            places,
            footing,
            services,
            self.kept.brake,
            setting,
            self.clock.moment(),
            first=first,
            moving=self.kept.moving,
        )
        return Pass(made, (), steps, self.clock.monotonic() - begun, tuple(self.ground.remarks), _lost(places, snapshot))

    async def once(self, setting: Setting, *, first: bool, may: Callable[[], None], hosts: frozenset[str] | None = None) -> Pass:
        """One pass; an EdgekeeperError when the mesh cannot be seen: then nothing was changed. ``hosts`` limits what is written to these."""
        begun = self.clock.monotonic()
        services = await self.mesh.services()
        for host in self.kept.moving.keys() & {service.host for service in services}:
            self._keep(host, None)  # somebody else has made it meanwhile, and what was set then is history
        snapshot = self.source.snapshot()
        places = self._places(snapshot)
        may()
        footing = await self._footing(places, snapshot, _used(services, setting))
        snapshot, seen_at = self.source.snapshot(), self.clock.monotonic()  # the mesh may have had us wait for minutes
        wanted = wishes(snapshot.claims, self.expose)
        now = self.clock.moment()
        known = brake.resumed(self.kept.brake, now) if first else self.kept.brake
        made = plan(snapshot, wanted, places, footing, services, known, setting, now, first=first, moving=self.kept.moving)
        if hosts is not None:
            made = replace(made, actions=tuple(action for action in made.actions if action.host in hosts))
        made, self.waits = held_back(self.waits, made, self.clock.monotonic())
        self._remember(replace(self.kept, brake=made.memory, places=places, network=snapshot.service_cidr or self.kept.network))

        def old(*, takes: bool) -> str | None:
            age_s = self.clock.monotonic() - seen_at
            return f"it was decided {age_s:.0f} s ago; the next pass looks anew" if age_s > (STALE_S if takes else LONGEST_S) else None

        outcomes = await apply(made.actions, self.mesh, self.journal, concurrency=self.expose.concurrency, may=may, old=old, told=self.told, keep=self._keep)
        self.waits = noted(self.waits, outcomes, self.clock.monotonic())
        for one in outcomes:
            if one.dead_target:
                self.ground.doubt(one.why)
        if self._absent_need_lists(made):
            await self.source.relist()  # for the next pass; after the writes, which are in a hurry
        result = Pass(made, tuple(outcomes), (), self.clock.monotonic() - begun, tuple(self.ground.remarks), _lost(places, snapshot), self.doubt)
        self._tell(result)
        return result

    async def _footing(self, places: Mapping[str, Place], snapshot: Snapshot, used: set[str]) -> Footing:
        """What the targets stand on; looked at once more when a service of ours stands on something else."""
        addresses, cidr = _addresses(places), self._cidr(snapshot)
        ports = _ports(places)
        footing = await self.ground.ensure(addresses, cidr, ports=ports)
        self._tell_acts()
        dead = sorted(used - footing.alive)
        if dead:
            self.ground.doubt(f"services lead to {dead[0]}, which is not there")
            footing = await self.ground.ensure(addresses, cidr, ports=ports)
            self._tell_acts()
        return footing

    def _tell_acts(self) -> None:
        for act in self.ground.acts:
            emit(Event.EXPOSE_REPAIRED, act, level=INFO)
            self.journal.write(Entry("expose", Event.EXPOSE_REPAIRED, "mesh", "act", act))

    def _places(self, snapshot: Snapshot) -> dict[str, Place]:
        """Each class's place now, or the last good one; classes that are not configured any more are forgotten."""
        return {klass: place for klass, place in {**self.kept.places, **snapshot.places}.items() if klass in self.expose.targets}

    def _cidr(self, snapshot: Snapshot) -> str | None:
        """The network of Services; while the cluster does not tell, the last that it told: targets must not move for a question without an answer."""
        return self.expose.service_cidr or snapshot.service_cidr or self.kept.network

    def _absent_need_lists(self, made: Plan) -> bool:
        """Whether a host's absence waits for more full lists: a watch alone lists once."""
        return any(one.lists < self.expose.brake.absent_lists for one in made.memory.absent.values())

    def _remember(self, kept: Kept) -> None:
        if kept != self.kept:
            self.kept = kept
            self.doubt = memory.remember(self.file, kept)

    def _keep(self, host: str, raw: Mapping[str, Any] | None) -> None:
        """Keep what a migration deletes until it is there again; StepFailedError when it cannot be written."""
        moving = {other: one for other, one in self.kept.moving.items() if other != host} | ({host: raw} if raw is not None else {})
        if moving != self.kept.moving:
            self.kept = replace(self.kept, moving=moving)
            self.doubt = memory.remember(self.file, self.kept, sync=True)
            if raw is not None and self.doubt is not None:
                msg = f"{host} is not made anew: what is set in its service could not be kept meanwhile: {self.doubt}"
                raise StepFailedError(msg)

    def _tell(self, result: Pass) -> None:
        quiet = not result.outcomes and not result.plan.refused
        emit(Event.EXPOSE_PASS, result.sentence(), level=INFO, **numbers(result))
        if result.plan.refused:
            emit(Event.EXPOSE_REFUSED, result.plan.refused, level=WARNING)
        if not quiet:
            self.journal.write(Entry("expose", Event.EXPOSE_PASS, "pass", "refuse" if result.plan.refused else "act", result.sentence(), dict(numbers(result))))


def numbers(result: Pass) -> Mapping[str, int | float]:
    """A pass in numbers."""
    return {
        "wanted": result.plan.wanted,
        "managed": result.plan.own,
        "created": result.count("create"),
        "updated": result.count("update", "repair", "return", "adopt", "migrate"),
        "disabled": result.count("disable"),
        "deleted": result.count("delete"),
        "held": len(result.plan.held),
        "failed": len(result.failed),
        "took_s": round(result.took_s, 3),
    }


def setting_of(expose: Expose, *, force: bool = False, adopt: Iterable[str] = ()) -> Setting:
    """What the config says about what may be done."""
    limits = expose.brake
    return Setting(
        expose.owner,
        expose.cluster,
        expose.listen_port,
        expose.proxy_protocol,
        expose.policy,
        Limits(limits.absent_lists, limits.grace, limits.disabled, limits.share, limits.few),
        force,
        frozenset(adopt),
        expose.adopt_by_annotation,
    )


def _addresses(places: Mapping[str, Place]) -> list[str]:
    return sorted({place.address for place in places.values()})


def _ports(places: Mapping[str, Place]) -> list[int]:
    return sorted({place.port for place in places.values()})


def _lost(places: Mapping[str, Place], snapshot: Snapshot) -> tuple[str, ...]:
    """Targets that are not known any more, and what counts in their stead."""
    return tuple(
        f"the target of class {klass}: {why}; {places[klass].address}, where it was last, stays" for klass, why in snapshot.unplaced.items() if klass in places
    )


def _used(services: Iterable[Service], setting: Setting) -> set[str]:
    """The resources that services of ours lead to."""
    out: set[str] = set()
    for service in services:
        own = mark.read(service.name)
        if own is not None and own.ours(setting.owner, setting.cluster):
            out |= {target for target in targets_of(service) if target}
    return out

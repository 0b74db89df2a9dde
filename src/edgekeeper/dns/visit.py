"""Look at, and touch, the engine that a supervisor runs on this machine: for commands beside it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.dns.build import Build, detect
from edgekeeper.engines.dnsdist.seat import Seat
from edgekeeper.engines.dnsdist.topology import Topology
from edgekeeper.engines.dnsdist.view import EngineView
from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.membership.resolve import resolved
from edgekeeper.membership.sources import source_of
from edgekeeper.model.backend import Member
from edgekeeper.ports import Clock
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.stage import Stage


@dataclass(frozen=True, slots=True)
class Running:
    """The engine that serves now: what it was told, its seat, and the build that speaks to it."""

    pid: int
    topology: Topology
    seat: Seat
    build: Build

    async def view(self) -> EngineView:
        """The engine's own view."""
        return await self.build.hands.read(self.seat)


async def running(root: Root) -> Running:
    """The serving engine of this config; MissingError when there is none, or when its files may not be read."""
    assert root.dns is not None  # noqa: S101 - the command has checked it
    state = Path(root.state_dir) / "dns"
    if not (Path(root.run_dir) / "dns" / "engine.json").exists():
        msg = f"no engine of this config runs here ({root.run_dir}/dns says so); start it with: edgekeeper dns run"
        raise MissingError(msg)
    crew = Crew(Path(root.run_dir) / "dns", f"dns:{state.resolve()}")
    found = crew.find().serving
    if found is None:
        msg = "no engine of this config runs here; start it with: edgekeeper dns run"
        raise MissingError(msg)
    build = await detect(root.dns)
    generation = Stage(state, readonly=True).read(found.generation)
    if generation is None:
        msg = f"the running engine (pid {found.process.pid}) has no generation on disk; the supervisor replaces it at its next change"
        raise MissingError(msg)
    topology, seat = build.engine.load(generation.document)
    if seat is None:
        msg = f"generation {generation.name} has no seat; the supervisor replaces it at its next change"
        raise MissingError(msg)
    return Running(found.process.pid, topology, seat, build)


async def members(root: Root, clock: Clock) -> tuple[tuple[Member, ...], str, tuple[str, ...]]:
    """What the source says now, resolved; where from; and what was left out or could not be resolved."""
    assert root.dns is not None  # noqa: S101 - the command has checked it
    async with contextlib.aclosing(source_of(root.dns.members, clock, slice_port=root.dns.members.slice_port, cluster=root.kubernetes)) as source:
        fresh = await source.read()
    found, notes = await resolved(tuple(sorted(set(fresh.members))), {})
    return found, fresh.source, (*fresh.notes, *notes)


async def states(root: Root) -> dict[str, str]:
    """Address to the engine's word about each member; empty when no engine can be asked."""
    with contextlib.suppress(EdgekeeperError):
        view = await (await running(root)).view()
        return {s.address: s.state for s in view.servers}
    return {}

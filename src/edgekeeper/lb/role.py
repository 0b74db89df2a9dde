"""The lb role, wired: inputs -> topology -> supervisor -> HAProxy, and what it says of itself."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.logline import parse_log, was_cut
from edgekeeper.engines.haproxy.topology import Topology, build
from edgekeeper.errors import EdgekeeperError, RefusedError
from edgekeeper.host.watch import changes, fingerprint
from edgekeeper.lb import canary, desired
from edgekeeper.lb.build import Build, detect
from edgekeeper.lb.inputs import Inputs
from edgekeeper.lb.report import Report
from edgekeeper.lb.sweep import Sweeper
from edgekeeper.log import Event, emit
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.status import RoleStatus
from edgekeeper.runtime import Ground, accepted, cancelled, watched
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.enginelog import follow
from edgekeeper.supervise.loop import Supervisor
from edgekeeper.supervise.stage import Stage
from edgekeeper.supervise.standing import exchanged, standing, wedged

LOOK_S = 0.5
"""How often HAProxy is looked at: what it leaves on a dead server is ended within a second of the server's going DOWN."""

HEAL_AFTER, HEAL_EVERY = 3, 120
"""Looks without HAProxy's socket until it is reloaded for it, and until that is tried again."""


async def make(root: Root, ground: Ground) -> LbRole:
    """The role of a config that has it, on the installed HAProxy; MissingError when there is none."""
    assert root.lb is not None  # noqa: S101 - the command has checked it
    return LbRole(root, ground, build=await detect(root.lb, ground.run_dir))


class LbRole:
    """``edgekeeper lb run``."""

    def __init__(self, root: Root, ground: Ground, *, build: Build) -> None:
        assert root.lb is not None  # noqa: S101 - the command has checked it
        self.root = root
        self.lb = root.lb
        self.cluster = root.kubernetes
        self.state = Path(root.state_dir) / "lb"
        self.clock = ground.clock
        self.journal = ground.journal
        self.metrics = ground.metrics
        self.alarms = Alarms("lb", ground.journal)
        self.built = build
        self.canary = Verdict(Health.UNKNOWN, "it has not been tried yet")
        self._program = fingerprint(build.engine.binary)
        self.crew = Crew(ground.run_dir, f"lb:{self.state.resolve()}")
        actor = Actor(
            build.engine, build.hands, Stage(self.state), self.crew, self.clock,
            manner="overlap", stop_timeout_s=self.lb.engine.stop_timeout, drain=_nothing,
        )  # fmt: skip
        self.supervisor = Supervisor("lb", build.engine, actor, self.clock, self.journal, debounce_s=self.lb.debounce, count=self._count)
        self._known = False
        self.inputs = self._new_inputs()
        self.sweeper: Sweeper | None = None
        self._swept: str | None = None
        self._missed = 0
        self.report = Report(self)
        self._watchers: list[asyncio.Task[None]] = []

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:
        """Stop HAProxy, or leave it for the next supervisor."""
        self.supervisor.end(leave=leave)

    def status(self) -> RoleStatus:
        """What the role says of itself."""
        return self.report.status()

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """Take another config; with a mistake in it, the one before stays."""
        root = accepted("lb", self.root, fresh, self.alarms, self.journal)
        if root is None or root.lb is None:
            return
        gone = {service.name for service in self.lb.services} - {service.name for service in root.lb.services}
        self.lb, self.cluster = root.lb, root.kubernetes
        self.inputs = self._new_inputs()
        self._start_watchers(urgent=True)
        for name in desired.stale(self.alarms.raised, gone):
            self.alarms.set(name, None)

    async def run(self) -> None:
        """Do everything until ``end``."""
        background = watched(
            self.alarms,
            {"the engine's log": lambda: follow(self.crew.log, self._pass_on), "the engine's status": self._watch_engine, "the self-test": self._try_canary},
        )
        self._start_watchers()
        try:
            await self.supervisor.run()
        finally:
            await cancelled([*background, *self._watchers])

    # wanting ------------------------------------------------------------------------------

    def want(self, *, urgent: bool = False) -> None:
        """Build the topology of what is known now and hand it to the supervisor; a part of the inputs, before all are read, is nothing to act on."""
        if not self._known:
            return
        try:
            topology = self.topology()
        except EdgekeeperError as err:
            self.alarms.set("topology", f"{err}; what runs stays")
            self.supervisor.unreadable(str(err))
            return
        self.alarms.set("topology", None)
        self.supervisor.want(topology, urgent=urgent)

    def topology(self) -> Topology:
        """The topology of what is known now; RefusedError when there is nothing to serve, or something that is served would be lost."""
        inputs, running = self.inputs, self.supervisor.actor.running_intent()
        found = desired.served({name: len(m) for name, m in inputs.members.items()}, [s.name for s in running.services] if running is not None else ())
        if found.refusal is not None:
            msg = f"service {found.refusal}: {inputs.followers[found.refusal].why}"
            raise RefusedError(msg)
        told = "; ".join(f"{name} is left out until it has members: {inputs.followers[name].why}" for name in found.left_out)
        self.alarms.set("services without members", told or None)
        lb = self.lb.model_copy(update={"services": tuple(service for service in self.lb.services if service.name in found.names)})
        return build(lb, inputs.members, inputs.patiences.timeouts)

    def _new_inputs(self) -> Inputs:
        return Inputs(self.lb, self.state, self.clock, self.journal, self.alarms, self.want, cluster=self.cluster)

    def _start_watchers(self, *, urgent: bool = False) -> None:
        for task in self._watchers:
            task.cancel()
        inputs = self.inputs

        self._known = False

        async def begin() -> None:
            await inputs.begin()
            self._known = True
            self.want(urgent=urgent)
            works = {f"the members of {name}": follower.follow for name, follower in inputs.followers.items()}
            works |= {f"the host names of {name}": follower.follow_names for name, follower in inputs.followers.items()}
            works["the certificates"] = self._follow_files
            self._watchers += watched(self.alarms, works)

        self._watchers = watched(self.alarms, {"inputs": begin})

    async def _follow_files(self) -> None:
        """HAProxy reads certificates at a start or a reload only; one that is half-written is refused by its check, and asked about again."""
        async for _ in changes(desired.files(self.lb)):
            self.supervisor.doubt("a certificate or CA file was renewed")

    # watching the engine ------------------------------------------------------------------

    async def _watch_engine(self) -> None:
        answered = self.clock.monotonic()
        while True:
            running = self.supervisor.actor.running()
            if running is not None and running[1] is not None and self.supervisor.state.running:
                topology, seat = running
                manner = desired.manner(topology, self.lb.settle, cuts_itself=self.canary.health is not Health.BAD)
                if self.sweeper is None or self._swept != seat.master:
                    self.sweeper, self._swept = Sweeper(Admin(seat.master), manner, self.clock, self.journal), seat.master
                    self.report.looked(None, answered)  # what was seen was another process
                self.sweeper.manner = manner
                with contextlib.suppress(EdgekeeperError):
                    await self.sweeper.sweep()
                    answered = self.clock.monotonic()
                    self.report.looked(self.sweeper.picture, answered)
                gone = self._socket_gone(seat.master)
            else:
                answered, gone = self.clock.monotonic(), False
                self.report.looked(None, answered)
            self._alarm(0.0 if gone else self.clock.monotonic() - answered)
            self.report.measure()
            await asyncio.sleep(LOOK_S)

    def _socket_gone(self, path: str) -> bool:
        """Somebody wiped ``run_dir``: HAProxy serves on, but nobody can ask it before it makes its socket anew, which it does at a reload."""
        if Path(path).exists():
            self.alarms.set("socket gone", None)
            self._missed = 0
            return False
        self._missed += 1
        why = f"HAProxy's socket {path} was removed; HAProxy serves on, and a reload brings the socket back"
        self.alarms.set("socket gone", why)
        if self._missed % HEAL_EVERY == HEAL_AFTER:
            self.supervisor.doubt(why)
        return True

    def _alarm(self, silent_s: float) -> None:
        binary = self.built.engine.binary
        self.alarms.set("engine wedged", wedged("HAProxy", standing(self.supervisor), silent_s))
        self.alarms.set("engine changed", exchanged("HAProxy", binary, same=fingerprint(binary) == self._program))
        picture = self.report.picture
        told = desired.alarms(picture.stats if picture else None, len(picture.old) if picture else 0, self.supervisor.actor.running_intent())
        for name, why in told.items():
            self.alarms.set(name, why)

    async def _try_canary(self) -> None:
        """Once per version: whether this HAProxy really ends the sessions of a server that goes DOWN."""
        self.canary = await canary.once(self.built.engine.binary, self.state, self.clock)
        bad = self.canary.health is Health.BAD
        self.alarms.set("self-test", f"{self.canary.why}; edgekeeper ends the sessions of a DOWN server instead" if bad else None)

    def _pass_on(self, line: str) -> None:
        """A line of HAProxy's log as an event; connections that it ended on a dead server are counted."""
        found = parse_log(line)
        if found is None:
            return
        if was_cut(line):
            self.report.cut(self.clock.monotonic())
        level, text = found
        emit(Event.ENGINE_LOG, text, level=level)

    def _count(self, what: str, labels: dict[str, str]) -> None:
        self.metrics.count({"restarts": "edgekeeper_lb_engine_restarts", "renders": "edgekeeper_lb_renders"}[what], labels)


async def _nothing() -> None:
    """HAProxy shares its listeners with a process beside it: nobody is told to go elsewhere before a restart."""

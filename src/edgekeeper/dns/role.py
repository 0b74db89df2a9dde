"""The dns role, wired: inputs -> topology -> supervisor -> dnsdist, and what it says of itself."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from edgekeeper.config.root import Root
from edgekeeper.config.secret import SecretSource
from edgekeeper.dns import desired
from edgekeeper.dns.build import Build, detect
from edgekeeper.dns.inputs import Inputs
from edgekeeper.dns.report import Report
from edgekeeper.engines.dnsdist.logline import parse_log
from edgekeeper.engines.dnsdist.topology import Topology, build
from edgekeeper.errors import EdgekeeperError, RefusedError
from edgekeeper.host import secrets
from edgekeeper.host.files import write_text
from edgekeeper.host.watch import fingerprint
from edgekeeper.log import ERROR, INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.status import RoleStatus
from edgekeeper.runtime import Ground, accepted, cancelled, watched
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.enginelog import follow
from edgekeeper.supervise.loop import Supervisor
from edgekeeper.supervise.stage import Stage
from edgekeeper.supervise.standing import exchanged, standing, wedged

LOOK_S = 1.0
"""How often the engine's own view is read; readiness calls it stale after 3 s."""


async def make(root: Root, ground: Ground, api_key_out: tuple[str, int] | None = None) -> DnsRole:
    """The role of a config that has it, on the installed dnsdist; MissingError when there is none."""
    assert root.dns is not None  # noqa: S101 - the command has checked it
    return DnsRole(root, ground, build=await detect(root.dns), api_key_out=api_key_out)


class DnsRole:
    """``edgekeeper dns run``."""

    def __init__(self, root: Root, ground: Ground, *, build: Build, api_key_out: tuple[str, int] | None) -> None:
        assert root.dns is not None  # noqa: S101 - the command has checked it
        self.root = root
        self.dns = root.dns
        self.cluster = root.kubernetes
        self.state = Path(root.state_dir) / "dns"
        self.metrics = ground.metrics
        self.journal = ground.journal
        self.alarms = Alarms("dns", ground.journal)
        self.draining = False
        self.clock = ground.clock
        self.built = build
        self._api_key_out = api_key_out
        self._api_key_for: object = None
        self._program = fingerprint(build.engine.binary)
        self.crew = Crew(ground.run_dir, f"dns:{self.state.resolve()}")
        actor = Actor(
            build.engine, build.hands, Stage(self.state), self.crew, self.clock,
            manner=self.dns.restart, stop_timeout_s=self.dns.engine.stop_timeout, drain=self._drain,
        )  # fmt: skip
        self.supervisor = Supervisor("dns", build.engine, actor, self.clock, self.journal, debounce_s=self.dns.debounce, count=self._count)
        self._flushes: asyncio.Queue[tuple[str, ...]] = asyncio.Queue()
        self.inputs = self._new_inputs()
        self.report = Report(self)
        self._watchers: list[asyncio.Task[None]] = []

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:
        """Stop dnsdist, or leave it for the next supervisor."""
        self.supervisor.end(leave=leave)

    def status(self) -> RoleStatus:
        """What the role says of itself."""
        return self.report.status()

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """Take another config; with a mistake in it, the one before stays."""
        root = accepted("dns", self.root, fresh, self.alarms, self.journal, self._unusable)
        if root is None or root.dns is None:
            return
        self.dns, self.cluster = root.dns, root.kubernetes
        self.supervisor.actor.manner = self.dns.restart
        before = self.inputs
        self.inputs = self._new_inputs()
        self.inputs.go_on_from(before)
        self._start_watchers(urgent=True)

    def _unusable(self, root: Root) -> str | None:
        """Why another config cannot be taken, or None."""
        asked = root.dns.identity if root.dns is not None else "off"
        return self._unseen(asked) if self.dns.identity != "require" else None

    async def run(self) -> None:
        """Do everything until ``end``."""
        if not self._continue():
            await self._first_look()
        background = watched(
            self.alarms,
            {
                "the engine's log": lambda: follow(self.crew.log, pass_on),
                "the engine's status": self._watch_engine,
                "cache flushes": self._flush_stale,
            },
        )
        self._start_watchers()
        try:
            await self.supervisor.run()
        finally:
            await cancelled([*background, *self._watchers])
            self.inputs.remember_names()

    # wanting ------------------------------------------------------------------------------

    def want(self, *, urgent: bool = False) -> None:
        """Build the topology of what is known now and hand it to the supervisor."""
        try:
            topology = self.topology()
        except EdgekeeperError as err:
            self.alarms.set("topology", f"{err}; what runs stays")
            self.supervisor.unreadable(str(err))
            return
        self.alarms.set("topology", None)
        self.alarms.set("engine", "; ".join(topology.notes) or None)
        self.supervisor.want(topology, urgent=urgent)

    def topology(self) -> Topology:
        """The topology of what is known now; an EdgekeeperError says why there is none."""
        inputs, dns = self.inputs, self.dns
        if not inputs.members:
            raise RefusedError(inputs.follower.why)
        if dns.tls.dir is not None and inputs.certificate is None:
            raise RefusedError(self.alarms.raised.get("certificate", "no certificate has been read yet"))
        serving, why = desired.in_service(inputs.members, inputs.drained.names, inputs.heard.resting, forced=inputs.drained.forced)
        self.alarms.set("drained members", why or None)
        return build(
            dns, serving, tuple(inputs.zones), self.built.features,
            proxy_secret=secrets.read(dns.proxy_protocol) if isinstance(dns.proxy_protocol, SecretSource) else None,
            forward=inputs.forward, forgiving=inputs.judgement.forgiving, enforce_identity=inputs.judgement.enforce_identity,
            certificate=inputs.certificate,
        )  # fmt: skip

    def _continue(self) -> bool:
        """Whether an engine runs already; what was forgiven its members at the first start is forgiven still."""
        found = self.crew.find().serving
        if found is None:
            return False
        generation = Stage(self.state).read(found.generation)
        with contextlib.suppress(ValueError, AttributeError):
            topology, _ = self.built.engine.load(generation.document if generation is not None else "")
            self.inputs.judgement = desired.Judgement(topology.forgiving, topology.enforce_identity, {}, {})
        return True

    async def _first_look(self) -> None:
        """Before the very first start, ask: can health and identity be held against these members at all."""
        inputs = self.inputs
        inputs.remember()
        inputs.read_drained()
        inputs.read_certificate()
        await inputs.follower.read_once()
        if not inputs.members:
            return
        with contextlib.suppress(EdgekeeperError):
            await inputs.look(first=True)
        unseen = self._unseen(self.dns.identity)
        if unseen is not None and not self._required_before():
            raise RefusedError(unseen)

    def _unseen(self, identity: str) -> str | None:
        """Why identity must not be required yet: of members that never said their name nobody knows whether they can. None when it may."""
        missing = self.inputs.unnamed() if identity == "require" else ()
        if not missing:
            return None
        told = {m.name: self.inputs.judgement.identity.get(m.address, "silent") for m in self.inputs.members}
        who = ", ".join(f"{name} ({told.get(name, 'silent')})" for name in missing[:5])
        return f"identity: require, but these members have never answered their name: {who}; set it on them, or say identity: observe"

    def _required_before(self) -> bool:
        """Whether the last accepted configuration required it already: then one member that is dead or new keeps no edge down."""
        found = Stage(self.state, readonly=True).current()
        with contextlib.suppress(ValueError):
            topology, _ = self.built.engine.load(found.document if found is not None else "")
            return any(backend.identity for backend in topology.backends)
        return False

    def _new_inputs(self) -> Inputs:
        inputs = Inputs(self.dns, self.state, self.clock, self.journal, self.alarms, self.want, cluster=self.cluster)
        inputs.flush = self._flushes.put_nowait
        return inputs

    def _start_watchers(self, *, urgent: bool = False) -> None:
        for task in self._watchers:
            task.cancel()
        inputs = self.inputs

        async def begin() -> None:
            inputs.remember()
            inputs.read_drained()
            inputs.read_certificate()
            await inputs.follower.read_once()
            self.want(urgent=urgent)
            self._watchers += watched(
                self.alarms,
                {
                    "the members": inputs.follower.follow,
                    "host names": inputs.follower.follow_names,
                    "the members' own word": inputs.watch_what_members_say,
                    "drained members": inputs.watch_drained,
                    "zones": inputs.watch_zones,
                    "the certificate": inputs.watch_certificate,
                },
            )

        self._watchers = watched(self.alarms, {"inputs": begin})

    # watching the engine ------------------------------------------------------------------

    async def _watch_engine(self) -> None:
        answered = self.clock.monotonic()
        while True:
            running = self.supervisor.actor.running()
            if running is not None and self.supervisor.state.running:
                await self._api_key(running[1])
                with contextlib.suppress(EdgekeeperError):
                    self.report.looked(await self.built.hands.status(running[1]), self.clock.monotonic())
                    answered = self.clock.monotonic()
            else:
                answered = self.clock.monotonic()
            self._alarm_about_engine(self.clock.monotonic() - answered)
            self.report.measure()
            await asyncio.sleep(LOOK_S)

    def _alarm_about_engine(self, silent_s: float) -> None:
        """A wedged engine, or another program than the one that was asked for its version, needs a person."""
        binary = self.built.engine.binary
        self.alarms.set("engine wedged", wedged("dnsdist", standing(self.supervisor), silent_s))
        self.alarms.set("engine changed", exchanged("dnsdist", binary, same=fingerprint(binary) == self._program))

    async def _flush_stale(self) -> None:
        while True:
            zones = await self._flushes.get()
            running = self.supervisor.actor.running()
            if running is None:
                continue  # an engine that is started has empty caches
            for zone in zones:
                await self.built.hands.flush(running[1], zone)
                self.metrics.count("edgekeeper_dns_cache_flushes")
                why = f"the serial of {zone} changed; its cached answers are thrown away"
                emit(Event.CACHE_FLUSHED, why)
                self.journal.write(Entry("dns", Event.CACHE_FLUSHED, zone, "act", why))

    async def _api_key(self, seat: Any) -> None:
        """Hand the API key of this start to who needs it (a metrics scraper in a group of its own)."""
        if self._api_key_out is None or self._api_key_for == seat:
            return
        path, group = self._api_key_out
        write_text(path, seat.api_key + "\n", mode=0o640, group=group)
        self._api_key_for = seat

    async def _drain(self) -> None:
        """Say "not ready" for a moment before a restart that loses queries."""
        self.draining = True
        try:
            await asyncio.sleep(self.dns.drain)
        finally:
            self.draining = False

    def _count(self, what: str, labels: dict[str, str]) -> None:
        self.metrics.count({"restarts": "edgekeeper_dns_engine_restarts", "renders": "edgekeeper_dns_renders"}[what], labels)


def pass_on(line: str) -> None:
    """A line of dnsdist's log as an event; the fields keep dnsdist's own names."""
    fields = parse_log(line)
    level = {"Error": ERROR, "Critical": ERROR, "Alert": ERROR, "Emergency": ERROR, "Warning": WARNING}.get(fields.get("prio", ""), INFO)
    emit(Event.ENGINE_LOG, fields.pop("msg", line), level=level, **{f"dnsdist_{k.replace('.', '_')}": v for k, v in fields.items() if k != "ts"})

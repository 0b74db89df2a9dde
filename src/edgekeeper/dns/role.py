"""The dns role, wired: inputs -> topology -> supervisor -> dnsdist, and what it says of itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgekeeper.config.root import Root
from edgekeeper.config.secret import SecretSource
from edgekeeper.dns import desired
from edgekeeper.dns.build import Build
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
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.server import Voice, serve
from edgekeeper.ports import Clock, Journal
from edgekeeper.runtime import kept_alive
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.enginelog import follow
from edgekeeper.supervise.loop import Supervisor
from edgekeeper.supervise.stage import Stage

DEFAULT_OPS = "127.0.0.1:8084"
WEDGED_S = 5.0
"""Silence of a running engine until it is an alarm: readiness says so after 3 s."""

LOOK_S = 1.0
"""How often the engine's own view is read; readiness calls it stale after 3 s."""


class DnsRole:
    """``edgekeeper dns run``. ``reload_config`` reads the file again (only commands may)."""

    def __init__(
        self,
        root: Root,
        node: str,
        run_dir: Path,
        clock: Clock,
        journal: Journal,
        reload_config: Callable[[], Root],
        *,
        build: Build,
        api_key_out: tuple[str, int] | None,
    ) -> None:
        assert root.dns is not None  # noqa: S101 - the command has checked it
        self.root = root
        self.dns = root.dns
        self.node = node
        self.state = Path(root.state_dir) / "dns"
        self.metrics = Metrics()
        self.journal = journal
        self.alarms = Alarms("dns", journal)
        self.draining = False
        self.clock = clock
        self._reload_config = reload_config
        self.built = build
        self._api_key_out = api_key_out
        self._api_key_for: object = None
        self._program = fingerprint(build.engine.binary)
        self.crew = Crew(run_dir, f"dns:{self.state.resolve()}")
        actor = Actor(
            build.engine, build.hands, Stage(self.state), self.crew, clock,
            manner=self.dns.restart, stop_timeout_s=self.dns.engine.stop_timeout, drain=self._drain,
        )  # fmt: skip
        self.supervisor = Supervisor("dns", build.engine, actor, clock, journal, debounce_s=self.dns.debounce, count=self._count)
        self._flushes: asyncio.Queue[tuple[str, ...]] = asyncio.Queue()
        self.inputs = self._new_inputs()
        self.report = Report(self)
        self._watchers: list[asyncio.Task[None]] = []
        self._ended = False

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:
        """Stop dnsdist, or leave it for the next supervisor."""
        self._ended = True
        self.supervisor.end(leave=leave)

    def reload(self) -> None:
        """Read the config again; with a mistake in it, the one before stays."""
        try:
            root = self._reload_config()
        except EdgekeeperError as err:
            mistakes = str(err).replace("\n", "; ")
            self.alarms.set("config", f"{mistakes}; the configuration before stays")
            self.journal.write(Entry("dns", Event.CONFIG_REFUSED, "config", "refuse", f"{mistakes}; the configuration before stays"))
            return
        if root.dns is None:
            self.alarms.set("config", "the config has no dns section any more; the configuration before stays, stop this role to end it")
            return
        unseen = self._unseen(root.dns.identity) if self.dns.identity != "require" else None
        if unseen is not None:
            self.alarms.set("config", f"{unseen}; the configuration before stays")
            self.journal.write(Entry("dns", Event.CONFIG_REFUSED, "config", "refuse", f"{unseen}; the configuration before stays"))
            return
        self.alarms.set("config", None)
        fixed = [name for name in ("run_dir", "state_dir", "ops") if getattr(root, name) != getattr(self.root, name)]
        fixed += ["dns.engine"] if root.dns.engine != self.dns.engine else []
        self.alarms.set("restart needed", f"changes in {', '.join(fixed)} count after a restart of edgekeeper" if fixed else None)
        self.dns = root.dns
        self.supervisor.actor.manner = self.dns.restart
        before = self.inputs
        self.inputs = self._new_inputs()
        self.inputs.go_on_from(before)
        self._start_watchers(urgent=True)

    async def run(self) -> None:
        """Do everything until ``end``."""
        if not self._continue():
            await self._first_look()
        background = [
            asyncio.create_task(self._forever("the engine's log", lambda: follow(self.crew.log, pass_on))),
            asyncio.create_task(self._forever("the engine's status", self._watch_engine)),
            asyncio.create_task(self._forever("cache flushes", self._flush_stale)),
            asyncio.create_task(self._forever("ops", self._serve)),
        ]
        self._start_watchers()
        try:
            await self.supervisor.run()
        finally:
            for task in (*background, *self._watchers):
                task.cancel()
            await asyncio.gather(*background, *self._watchers, return_exceptions=True)
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
            raise RefusedError(inputs.why_members)
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
        await inputs.read_members(inputs.source())
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
        inputs = Inputs(self.dns, self.state, self.clock, self.journal, self.alarms, self.want)
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
            await inputs.read_members(inputs.source())
            self.want(urgent=urgent)
            self._watchers += [
                asyncio.create_task(self._forever(name, work))
                for name, work in (
                    ("the members", inputs.watch_members),
                    ("host names", inputs.watch_names),
                    ("the members' own word", inputs.watch_what_members_say),
                    ("drained members", inputs.watch_drained),
                    ("zones", inputs.watch_zones),
                    ("the certificate", inputs.watch_certificate),
                )
            ]

        self._watchers = [asyncio.create_task(self._forever("inputs", begin))]

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
        serving = self.crew.serving
        wedged = serving is not None and silent_s >= WEDGED_S
        pid = serving.process.pid if serving is not None else 0
        heal = f"dnsdist (pid {pid}) runs and does not answer; it is not restarted by itself: kill -KILL {pid} has a new one started"
        self.alarms.set("engine wedged", heal if wedged else None)
        changed = fingerprint(self.built.engine.binary) != self._program
        other = f"{self.built.engine.binary} is another program than at the start of edgekeeper; kill -QUIT and start it again, dnsdist goes on meanwhile"
        self.alarms.set("engine changed", other if changed else None)

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

    # ops ----------------------------------------------------------------------------------

    async def _serve(self) -> None:
        ops = self.root.ops
        token = secrets.read(ops.token_file) if ops.token_file else None
        await serve(ops, DEFAULT_OPS, Voice(self.report.document, self.report.ready, self.metrics.text), token)

    def _count(self, what: str, labels: dict[str, str]) -> None:
        self.metrics.count({"restarts": "edgekeeper_dns_engine_restarts", "renders": "edgekeeper_dns_renders"}[what], labels)

    async def _forever(self, name: str, work: Callable[[], Any]) -> None:
        await kept_alive(name, work, lambda why: self.alarms.set(f"watcher {name}", why))


def pass_on(line: str) -> None:
    """A line of dnsdist's log as an event; the fields keep dnsdist's own names."""
    fields = parse_log(line)
    level = {"Error": ERROR, "Critical": ERROR, "Alert": ERROR, "Emergency": ERROR, "Warning": WARNING}.get(fields.get("prio", ""), INFO)
    emit(Event.ENGINE_LOG, fields.pop("msg", line), level=level, **{f"dnsdist_{k.replace('.', '_')}": v for k, v in fields.items() if k != "ts"})

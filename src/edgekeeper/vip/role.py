"""The vip role, wired: config and peers -> topology -> supervisor -> keepalived, with a lookout on who holds what."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.engines.keepalived import live
from edgekeeper.engines.keepalived.dump import Dump
from edgekeeper.engines.keepalived.hands import stranger
from edgekeeper.engines.keepalived.logline import parse_log
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Topology, build
from edgekeeper.errors import EdgekeeperError, RefusedError, UsageError
from edgekeeper.host.files import make_folder
from edgekeeper.host.watch import changes, fingerprint
from edgekeeper.log import Event, emit
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.status import RoleStatus
from edgekeeper.runtime import Ground, Role, accepted, cancelled, watched
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.enginelog import follow
from edgekeeper.supervise.loop import Supervisor
from edgekeeper.supervise.shield import Step
from edgekeeper.supervise.stage import Stage
from edgekeeper.supervise.standing import exchanged
from edgekeeper.vip.build import Build, detect, program, script_user
from edgekeeper.vip.check import place_of
from edgekeeper.vip.command import Commands
from edgekeeper.vip.handover import STOP_WAIT_S
from edgekeeper.vip.reader import reads
from edgekeeper.vip.report import Report
from edgekeeper.vip.scene import Scene

FOLDER_MODE = 0o755
"""The script user must reach its own folder, and what the peers said."""
LOOK_S = 0.5
ASK_EVERY_S = 5.0
STRANGERS_EVERY_S = 10.0


async def make(root: Root, ground: Ground) -> Role:
    """The role of a config that has it: on the installed keepalived (MissingError when there is none), or looking on where a cluster moves the VIPs."""
    assert root.vip is not None  # noqa: S101 - the command has checked it
    if root.vip.provider != "keepalived":
        from edgekeeper.vip.observer import Observer  # noqa: PLC0415 - needs the extra kube

        return Observer(root, ground)
    place_of(root, ground.node)
    return VipRole(root, ground, build=await detect(root.vip, ground.run_dir))


class VipRole:
    """``edgekeeper vip run``."""

    def __init__(self, root: Root, ground: Ground, *, build: Build) -> None:
        assert root.vip is not None  # noqa: S101 - the command has checked it
        self.root = self._started = root
        self.vips = root.vip
        self.node = ground.node
        self.folder = ground.run_dir
        self.clock = ground.clock
        self.journal = ground.journal
        self.metrics = ground.metrics
        self.alarms = Alarms("vip", ground.journal)
        self.built = build
        self._program = fingerprint(build.engine.binary)
        self._prepare()
        state = Path(root.state_dir) / "vip"
        self.crew = Crew(ground.run_dir, f"vip:{state.resolve()}", mode=FOLDER_MODE)
        actor = Actor(
            build.engine, build.hands, Stage(state), self.crew, self.clock,
            manner="plain", stop_timeout_s=self.vips.engine.stop_timeout, drain=_nothing, shield=self._shield,
        )  # fmt: skip
        self.supervisor = Supervisor("vip", build.engine, actor, self.clock, self.journal, debounce_s=self.vips.debounce, count=self._count)
        self.scene = Scene(
            root, ground, self.alarms, running=self.supervisor.actor.serves, doubt=self.supervisor.doubt, elsewhere=self.supervisor.surroundings_changed
        )
        self.report = Report(self)
        self.commands = Commands(self.scene, self.folder)
        self._watchers: list[asyncio.Task[None]] = []
        self._ask_at = 0.0
        self._unheard = False
        self._strangers_at = 0.0

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:
        """Stop keepalived, or leave it for the next supervisor."""
        self.supervisor.end(leave=leave)

    def status(self) -> RoleStatus:
        """What the role says of itself."""
        return self.report.status()

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """Take another config; with a mistake in it, the one before stays."""
        root = accepted("vip", self._started, fresh, self.alarms, self.journal, self._refusal)
        if root is None or root.vip is None:
            return
        self.root, self.vips = root, root.vip
        self.scene.reload(root)
        self._start_watchers()
        self.want(urgent=True)

    async def run(self) -> None:
        """Do everything until ``end``."""
        self.scene.begin()
        background = watched(
            self.alarms,
            {
                "the engine's log": lambda: follow(self.crew.log, self._pass_on),
                "the engine's program": self._watch_engine,
                "commands": self.commands.serve,
                **self.scene.works(),
            },
        )
        self._start_watchers()
        self.want()
        try:
            await self.supervisor.run()
        finally:
            await cancelled([*background, *self._watchers])
            self.scene.end()

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
        self.scene.rewrite(self.supervisor.actor.running_intent() or topology)
        self.supervisor.want(topology, urgent=urgent)

    def topology(self) -> Topology:
        """The topology of what is known now; RefusedError when nobody could take a VIP, or one would change its VRID."""
        found = build(
            self.vips, self.node, place_of(self.root, self.node), str(self.folder), program(), script_user(self.vips), hmac=self.built.features.hmac
        )  # fmt: skip
        running = self.supervisor.actor.running_intent()
        refusal = live.renumbered(running, found) if running is not None else None
        if refusal is not None:
            raise RefusedError(refusal)
        return found

    def _refusal(self, fresh: Root) -> str | None:
        if fresh.vip is not None and fresh.vip.provider != "keepalived":
            return f"the provider became {fresh.vip.provider}; stop this role (TERM) first, so that its VIPs are let go"
        return None

    def _prepare(self) -> None:
        """The folders that keepalived, its children and its script user need."""
        make_folder(self.folder, FOLDER_MODE)
        fifo = make_folder(self.folder / "fifo", 0o755, ours=False)
        make_folder(self.folder / "dumps")
        user = script_user(self.vips)
        try:
            entry = pwd.getpwnam(user)
            # A FIFO that is there before keepalived is kept over its reloads and its end, and may belong to the one who reads it.
            pipe = fifo / "vrrp.fifo"
            if not pipe.is_fifo():
                pipe.unlink(missing_ok=True)
                os.mkfifo(pipe, 0o600)
            if os.geteuid() == 0:
                os.chown(fifo, entry.pw_uid, entry.pw_gid)
                os.chown(pipe, entry.pw_uid, entry.pw_gid)
        except (KeyError, OSError) as err:
            msg = f"the script user {user} cannot be given {fifo}: {err}; name another one in vip.engine.script_user"
            raise UsageError(msg) from err

    def _start_watchers(self) -> None:
        for task in self._watchers:
            task.cancel()
        works: dict[str, Callable[[], Awaitable[None]]] = {}
        if self.vips.peers is not None:
            file = self.vips.peers.file
            works["the peers file"] = lambda: self._follow_peers(file)
        self._watchers = watched(self.alarms, works)

    async def _follow_peers(self, file: str) -> None:
        async for _ in changes([file]):
            self.want()

    # shielding clients --------------------------------------------------------------------

    @asynccontextmanager
    async def _shield(self, step: Step) -> AsyncIterator[None]:
        """Held VIPs are covered before keepalived is touched; what becomes of the covers depends on the step."""
        scene, began = self.scene, self.clock.monotonic()
        pages = [page for page in scene.book.pages.values() if page.held and not page.busy]
        for page in pages:
            scene.handover.cover(page)
        try:
            yield
        finally:
            if step is Step.STOP:
                pages += [page for page in scene.book.pages.values() if page.covered_at is not None and page not in pages]  # a drain was under way
                await scene.handover.settle(pages, began, min(STOP_WAIT_S, self.vips.handover))
            elif step is Step.RELOAD:
                scene.lookout.reread()
                for page in pages:
                    page.busy = False  # one that is still held loses its cover at the next look, another one when it has an owner
                    scene.lookout.evaluate(page)
            else:
                for page in pages:
                    page.busy = False

    # watching the engine ------------------------------------------------------------------

    async def _watch_engine(self) -> None:
        while True:
            binary, running = self.built.engine.binary, self.supervisor.actor.running_intent()
            if running is not None:
                self.scene.rewrite(running)
            self.alarms.set("engine changed", exchanged("keepalived", binary, same=fingerprint(binary) == self._program))
            self._look_after_folder()
            self._look_for_strangers()
            await self._fill_in()
            self.report.measure()
            await asyncio.sleep(LOOK_S)

    def _look_after_folder(self) -> None:
        """Somebody wiped run_dir: keepalived goes on, but hears nothing of its track files before it reads them anew."""
        if (self.folder / "fifo" / "vrrp.fifo").is_fifo() and (self.folder / "dumps").is_dir() and self.scene.weights.path(self.vips.vips[0].name).exists():
            self._have_it_looked_at()
            return
        try:
            self._prepare()
            self.scene.restore()
            self.scene.lookout.write_down()  # before another reader comes: a reload tells it BACKUP_PRIORITY of an owner, and no state (2.2.7, 2.3.4)
        except EdgekeeperError as err:
            self.alarms.set("folder", f"{self.folder} was removed and cannot be made anew: {err}")
            return
        self.alarms.set("folder", None)
        self._unheard = True
        self._have_it_looked_at()

    def _have_it_looked_at(self) -> None:
        """A folder that was removed twice within the pause between two reloads must not leave keepalived deaf."""
        if self._unheard and self.supervisor.state.running:
            self._unheard = not self.scene.doubt(f"{self.folder} was removed; a reload has keepalived look at its files anew")

    def _look_for_strangers(self) -> None:
        """A keepalived that somebody started beside ours would be refused at the next change only."""
        now, serving = self.clock.monotonic(), self.crew.serving
        if now >= self._strangers_at and serving is not None:
            self._strangers_at = now + STRANGERS_EVERY_S
            self.alarms.set("another keepalived", stranger(Seat(str(self.folder)), serving.process.pid))

    async def _fill_in(self) -> None:
        """keepalived tells changes only: after a renamed instance, or a run_dir that was wiped, it is asked what it holds."""
        running, now = self.supervisor.actor.running(), self.clock.monotonic()
        serving = self.crew.serving
        blank = [page for page in self.scene.book.pages.values() if page.state == "UNKNOWN"]
        unsure = blank or (self.scene.lookout.stale and reads(self.folder / "fifo" / "vrrp.fifo"))
        if not unsure or running is None or running[1] is None or serving is None or not self.supervisor.state.running or now < self._ask_at:
            return
        self._ask_at = now + ASK_EVERY_S
        said = await self.built.hands.ask(running[1], serving.process.pid)
        if isinstance(said, Dump):
            self.scene.lookout.fill_in({name: (held.state, held.effective) for name, held in said.instances.items()})

    def _pass_on(self, line: str) -> None:
        found = parse_log(line)
        if found is not None:
            level, text = found
            emit(Event.ENGINE_LOG, text, level=level)

    def _count(self, what: str, labels: dict[str, str]) -> None:
        if what == "renders":
            self.metrics.count("edgekeeper_vip_reloads", labels)
        else:
            self.metrics.count("edgekeeper_vip_engine_restarts", labels)


async def _nothing() -> None:
    """Clients are looked after by the shield."""

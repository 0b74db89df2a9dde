"""``edgekeeper lb guard``: watch over a HAProxy that is not ours and whose configuration may not change.

Twice a second it looks through the stats socket (or master socket), once a second the probe asks every server that it is to ask;
``decide`` says what to do, and this carries it out: budget first, then the journal, then the mark on disk, then HAProxy.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgekeeper.engines.haproxy.admin import Admin, word
from edgekeeper.engines.haproxy.stats import ServerStat, split_address
from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host import budgets
from edgekeeper.lb import decide as mind
from edgekeeper.lb.decide import Act, FreeSessions, Key, Mark, MarkServer, Note, Picture, ReleaseServer, Rules, State
from edgekeeper.lb.marks import read_marks, write_marks
from edgekeeper.lb.scene import Scene, View, end_sessions
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.budget import Budget, Window
from edgekeeper.model.entry import Entry
from edgekeeper.model.reach import Reach
from edgekeeper.ports import Clock, Journal
from edgekeeper.probe import blackhole
from edgekeeper.probe.blackhole import Question

STORE = "budgets.json"
KUBE_PORT = 6443
STALE_S = 15.0
"""A round of the probe that began so long ago says nothing about now."""
_UNRESOLVED = {"0.0.0.0", "::", ""}  # noqa: S104 - what HAProxy shows for a server without an address
_ABOUT = {
    "blind": (Event.LB_GUARD_BLIND, "hold", WARNING),
    "sighted": (Event.LB_GUARD_SEES, "act", INFO),
    "adopted": (Event.LB_MARK_ADOPTED, "act", INFO),
    "forgotten": (Event.LB_MARK_FORGOTTEN, "act", WARNING),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a guard is told. ``probe`` is the path that servers are asked for, None: they are not asked.

    ``backends`` limits it to these; otherwise sessions are freed in all, and the probe asks servers on port 6443. ``limit`` acts are
    allowed in ``window_s`` seconds. With ``dry_run`` it only says what it would do.
    """

    socket: str
    rules: Rules = field(default_factory=Rules)
    probe: str | None = "/readyz"
    tls: bool = True
    backends: tuple[str, ...] = ()
    limit: int = 6
    window_s: float = 600.0
    dry_run: bool = False
    every_s: float = 0.5
    probe_every_s: float = 1.0
    first_byte_s: float = blackhole.FIRST_BYTE_S


class Guard:
    """One guard; ``folder`` is its own below ``state_dir``, where ``budgets.json`` is kept for all."""

    def __init__(self, settings: Settings, folder: Path, state_dir: Path, clock: Clock, journal: Journal) -> None:
        self.settings = settings
        self._folder = folder
        self._store = state_dir / STORE
        self._key = f"lb-guard:{settings.socket}"
        self._clock = clock
        self._journal = journal
        self._admin = Admin(settings.socket)
        self._scene = Scene(self._admin, clock)
        self._budget = Budget((Window(settings.limit, settings.window_s),))
        self._state = State(self._budget)
        self._stats: Mapping[Key, ServerStat] = {}
        self._rounds: deque[tuple[float, asyncio.Task[dict[Key, Reach]]]] = deque()
        self._said: dict[str, str] = {}
        self._adopt = True
        self._acts = False
        self._ending = asyncio.Event()

    # what commands call -------------------------------------------------------------------

    async def run(self) -> None:
        """Watch until TERM, INT or QUIT. Marks stay: a server that is a black hole is one without a guard too."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, self._heard, number)
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, emit, Event.SIGNAL_RECEIVED, f"{number.name}: ignored, a guard has nothing to read again")
        await self.watch()

    async def watch(self) -> None:
        """Watch until ``end``."""
        marks = read_marks(self._folder)
        self._state = replace(self._state, budget=budgets.look(self._store, self._key, self._budget, self._clock.moment()), marks=marks)
        self._log(Event.LB_GUARD_STARTED, "guard", "act", self._sentence(len(marks)))
        asking = asyncio.create_task(self._ask_all_the_time())
        try:
            while not self._ending.is_set():
                await self._turn()
                await self._pause(self.settings.every_s)
        finally:
            asking.cancel()
            for _, task in self._rounds:
                task.cancel()
            await asyncio.gather(asking, *(task for _, task in self._rounds), return_exceptions=True)
        kept = ", ".join("/".join(key) for key in self._state.marks)
        undo = f"{kept} stay in MAINT: the next guard adopts them, `edgekeeper lb guard --release-all` undoes them"
        self._log(Event.LB_GUARD_ENDED, "guard", "act", undo if kept else "no server is marked")

    def end(self) -> None:
        """End ``watch`` after what it does right now."""
        self._ending.set()

    async def release_all(self) -> tuple[str, ...]:
        """Take every server that a guard marked out of MAINT; what was done, as sentences. Raises as ``Admin`` does."""
        self._state = replace(self._state, marks=read_marks(self._folder))
        view = await self._scene.see()
        known, self._adopt = tuple(self._state.marks), False
        # A guard that was killed between the command and its confirmation has marked too: the mind tells which marks are there.
        self._think(Picture(view.servers, view.worker, "", None, view.picture.info.start_time), view)
        said = []
        for key in known:
            name, mark = "/".join(key), self._state.marks.get(key)
            if mark is not None and mark.done:
                await self._release(ReleaseServer(*key, "a person asked for it"), view)
                said.append(f"{name} is released" if key not in self._state.marks else f"{name} could not be released; the log says why")
            else:
                self._forget(key)
                said.append(f"{name} was not in MAINT by a mark of guard; the mark is forgotten")
        return tuple(said)

    def _heard(self, number: signal.Signals) -> None:
        emit(Event.SIGNAL_RECEIVED, f"{number.name}: guard ends")
        self.end()

    def _sentence(self, marks: int) -> str:
        s = self.settings
        where = f"backends {', '.join(s.backends)}" if s.backends else "all backends"
        asks = f"asks {s.probe} {'over TLS' if s.tls else 'in plain'}" if s.probe is not None else "asks no server"
        dry = "dry run, nothing is done: " if s.dry_run else ""
        rules = f"sessions are freed after {s.rules.hold_s:g} s DOWN or MAINT, at most {s.limit} acts in {s.window_s:g} s"
        return f"{dry}watches {s.socket}: {where}, {rules}; {asks}; {marks} marks of an earlier guard"

    # looking ------------------------------------------------------------------------------

    async def _turn(self) -> None:
        try:
            view = await self._scene.see()
            await self._may_act(view)
        except EdgekeeperError as err:
            self._acts = False
            self._rounds.clear()
            self._think(Picture(blind=str(err)), None)
            return
        wanted = self.settings.backends
        self._stats = {(s.backend, s.server): s for s in view.picture.stats.servers if not wanted or s.backend in wanted}
        asked = self._asked()
        servers = tuple(replace(s, probed=s.key in asked) for s in view.servers if s.key in self._stats)
        missing = [name for name in wanted if name not in {s.backend for s in servers}]
        there = ", ".join(sorted({s.backend for s in view.servers}))
        self._once("backends", f"blind: HAProxy has no backend {', '.join(missing)}; it has {there}" if missing else "", "the backends are there")
        self._once("old workers", f"{'; '.join(view.gaps)}; the current worker is watched all the same" if view.gaps else "", "all workers can be seen")
        for act in self._think(Picture(servers, view.worker, "", self._round(), view.picture.info.start_time), view):
            if self._ending.is_set():
                return
            await self._carry_out(act, view)

    async def _may_act(self, view: View) -> None:
        """RefusedError, saying what to change, when the socket's level lets us look and not act: known at the start, not when it matters."""
        if not self._acts and not self.settings.dry_run:
            admin, prefix = view.picture.way(view.worker)
            await admin.ask("shutdown session 0x0", worker=prefix)  # there is no such session
            self._acts = True

    def _think(self, picture: Picture, view: View | None) -> tuple[Act, ...]:
        before = self._state.marks
        decision = mind.decide(self._state, picture, self.settings.rules, self._clock.monotonic(), self._clock.wall())
        self._state = decision.state
        for note in decision.notes:
            self._note(note)
        if view is not None and self._adopt:
            self._adopt = False
            for key in self._state.marks:
                if before[key].done:
                    self._note(
                        Note("/".join(key), "adopted", f"{'/'.join(key)} was marked by an earlier guard ({before[key].why}); it is released when it answers")
                    )
        if self._state.marks != before and not picture.blind:
            self._keep_marks()
        return decision.acts

    def _once(self, name: str, blind: str, well: str) -> None:
        """Tell once per change what cannot be seen, and that it can again."""
        if self._said.get(name, "") != blind:
            self._said[name] = blind
            self._note(Note(name, "blind" if blind else "sighted", blind or well))

    # asking -------------------------------------------------------------------------------

    def _asked(self) -> dict[Key, tuple[str, int]]:
        """The servers that the probe asks, with their addresses."""
        if self.settings.probe is None:
            return {}
        found = {}
        for key, stat in self._stats.items():
            host, port = split_address(stat.address)
            if port and host not in _UNRESOLVED and not host.startswith("/") and (self.settings.backends or port == KUBE_PORT):
                found[key] = (host, port)
        return found

    async def _ask_all_the_time(self) -> None:
        """A round begins each second, whatever became of the one before: three silences take five seconds, not nine."""
        while True:
            if asked := self._asked():
                self._rounds.append((self._clock.monotonic(), asyncio.create_task(self._ask(asked))))
            await asyncio.sleep(self.settings.probe_every_s)

    async def _ask(self, asked: Mapping[Key, tuple[str, int]]) -> dict[Key, Reach]:
        """One round; an address that several backends have is asked once."""
        s = self.settings
        places = sorted(set(asked.values()))
        questions = (Question(host, port, s.probe or "/", s.tls, first_byte_s=s.first_byte_s) for host, port in places)
        answers = dict(zip(places, await asyncio.gather(*map(blackhole.ask, questions)), strict=True))
        return {key: answers[place].reach for key, place in asked.items()}

    def _round(self) -> Mapping[Key, Reach] | None:
        """The oldest round that has ended and is not too old; in the order in which they began."""
        while self._rounds and self._rounds[0][1].done():
            began, task = self._rounds.popleft()
            if not task.cancelled() and task.exception() is None and self._clock.monotonic() - began < STALE_S:
                return task.result()
        return None

    # acting -------------------------------------------------------------------------------

    async def _carry_out(self, act: Act, view: View) -> None:
        if self.settings.dry_run:
            self._would(act)
            return
        if isinstance(act, ReleaseServer):
            await self._release(act, view)
            return
        try:
            answer = budgets.spend(self._store, self._key, self._budget, self._clock.moment())
            refusal = None if answer.allowed else f"the budget is spent: {answer.why}"
        except EdgekeeperError as err:
            refusal = str(err)
        if refusal is not None:
            self._refuse(act, refusal)
        elif isinstance(act, FreeSessions):
            await self._free(act.backend, act.server, act.workers, act.why, view)
        else:
            await self._mark(act, view)

    async def _mark(self, act: MarkServer, view: View) -> None:
        key, name = (act.backend, act.server), f"{act.backend}/{act.server}"
        self._log(Event.LB_SERVER_MARKED, name, "act", f"{act.why}: it is put into MAINT and its sessions are ended")
        before = self._state
        intended = replace(before, marks={**before.marks, key: Mark(self._clock.wall(), view.worker, False, act.why)})
        try:
            write_marks(self._folder, intended.marks)
        except EdgekeeperError as err:
            self._refuse(act, str(err))
            return
        try:
            said = await self._set(act, "maint", view)
        except StepFailedError as err:
            self._state = mind.unsure(before, act, view.worker, self._clock.wall())
            self._log(Event.LB_HELD, name, "hold", f"whether {name} was put into MAINT is not known: {err}; the next look will tell", WARNING)
            return
        except EdgekeeperError as err:
            said = str(err)
        if said:
            self._keep_marks()
            self._refuse(act, said)
            return
        self._state = mind.done(self._state, act, view.worker, self._clock.wall())
        self._keep_marks()
        try:
            fresh = await self._scene.see()
        except EdgekeeperError as err:
            self._log(Event.LB_HELD, name, "hold", f"{name} is in MAINT, but its sessions could not be ended: {err}; they are when it can be seen", WARNING)
            return
        workers = tuple(pid for server in fresh.servers if server.key == key for pid, number in server.sessions if number)
        await self._free(*key, workers, f"{name} was put into MAINT", fresh)

    async def _release(self, act: ReleaseServer, view: View) -> None:
        name = f"{act.backend}/{act.server}"
        self._log(Event.LB_SERVER_RELEASED, name, "act", f"{name} {act.why}: it is taken out of MAINT")
        try:
            said = await self._set(act, "ready", view)
        except EdgekeeperError as err:
            said = str(err)
        if said:
            self._refuse(act, said)
            return
        self._state = mind.done(self._state, act, view.worker, self._clock.wall())
        self._keep_marks()

    async def _set(self, act: Act, to: str, view: View) -> str:
        """Set the server's state; what HAProxy says against it, or an empty string."""
        admin, prefix = view.picture.way(view.worker)
        return (await admin.ask(f"set server {word(act.backend)}/{word(act.server)} state {to}", worker=prefix)).strip()

    async def _free(self, backend: str, server: str, workers: tuple[int, ...], why: str, view: View) -> None:
        name = f"{backend}/{server}"
        ended = await end_sessions(view, backend, server, workers)
        words = "; ".join((f"{why}: {ended.total} sessions ended in {len(ended.cut)} workers", *ended.notes))
        data = {"sessions": ended.total, "workers": {str(pid): number for pid, number in ended.cut.items()}}
        emit(Event.LB_SESSIONS_FREED, words, level=WARNING if ended.notes else INFO, server=name, **data)
        self._journal.write(Entry("lb", Event.LB_SESSIONS_FREED, name, "act" if ended.total or not ended.notes else "refuse", words, data))

    def _refuse(self, act: Act, why: str) -> None:
        """An act that could not be carried out: told once per reason, and judged anew."""
        self._state = mind.undone(self._state, act)
        name = f"{act.backend}/{act.server}"
        if self._said.get(f"{type(act).__name__} {name}") != why:
            self._said[f"{type(act).__name__} {name}"] = why
            self._log(Event.LB_HELD, name, "suppress", f"{act.why}; nothing was done: {why}", WARNING)

    def _would(self, act: Act) -> None:
        self._state = mind.undone(self._state, act)
        what = {FreeSessions: "its sessions would be ended", MarkServer: "it would be put into MAINT", ReleaseServer: "it would be released"}[type(act)]
        key = f"dry {type(act).__name__} {act.backend}/{act.server}"
        if key not in self._said:
            self._said[key] = what
            self._log(Event.LB_HELD, f"{act.backend}/{act.server}", "hold", f"dry run: {act.why}; {what}")

    # keeping ------------------------------------------------------------------------------

    def _forget(self, key: Key) -> None:
        self._state = replace(self._state, marks={k: mark for k, mark in self._state.marks.items() if k != key})
        self._keep_marks()

    def _keep_marks(self) -> None:
        try:
            write_marks(self._folder, self._state.marks)
            self._said.pop("marks", None)
        except EdgekeeperError as err:  # what is there says more marks than there are, or unconfirmed ones: the next start compares with HAProxy
            if "marks" not in self._said:
                self._said["marks"] = str(err)
                self._log(Event.LB_HELD, "marks", "hold", str(err), WARNING)

    def _note(self, note: Note) -> None:
        event, decision, level = _ABOUT.get(note.kind, (Event.LB_HELD, "suppress", WARNING))
        self._log(event, note.object, decision, note.why, level)

    def _log(self, event: Event, name: str, decision: str, why: str, level: int = INFO) -> None:
        emit(event, why, level=level, object=name)
        self._journal.write(Entry("lb", event, name, decision, why))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return

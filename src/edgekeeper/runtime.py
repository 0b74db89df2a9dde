"""What every role's ``run`` shares: roles in one process, signals that only enqueue, one lock each, one ops listener, an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from edgekeeper import __version__
from edgekeeper.config.root import Root
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import secrets
from edgekeeper.host.files import locked, make_folder
from edgekeeper.log import ERROR, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.server import Voice, serve
from edgekeeper.ops.status import RoleStatus, document, readiness
from edgekeeper.ports import Clock, Journal

RETRY_S = 5.0
"""A watcher that failed is started again after this long."""

FIRST_ENDS_S = 30.0
"""How long the roles that stop first may take; then the others are stopped all the same."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""A role that cannot start beside others is tried again after a pause that doubles, from the one to the other."""


class Role(Protocol):
    """What the runtime asks of a role."""

    def status(self) -> RoleStatus:
        """What it says of itself; cheap, it only reads."""

    async def run(self) -> None:
        """Do the role's work until ``end`` was called."""

    def end(self, *, leave: bool) -> None:
        """End it: stop the engine, or leave it for the next supervisor. Counts before ``run`` too."""

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """The config as it is now; or why it cannot be used, then the one before stays and an alarm says so."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a role stands on: its node, its own folder below ``run_dir``, and what all roles of the process share."""

    node: str
    run_dir: Path
    clock: Clock
    journal: Journal
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Post:
    """A role that this process runs: the name of its section, and how it is made of a config (an error says why it cannot be).

    One that stops ``first`` has stopped before the others begin to: it hands over what clients reach the others by.
    """

    name: str
    make: Callable[[Root], Awaitable[Role]]
    first: bool = False


@contextlib.contextmanager
def alone(run_dir: str, role: str, state_dir: str | None = None) -> Iterator[Path]:
    """The role's folder below ``run_dir``, held by this process alone, as is the one below ``state_dir``; LockHeldError when it is not.

    Both: a run_dir may be wiped while its lock is held, and another config may name the same state_dir, whose engine would then
    have two masters.
    """
    make_folder(run_dir, 0o755, ours=False)
    folder = make_folder(Path(run_dir) / role)
    with contextlib.ExitStack() as held:
        held.enter_context(locked(folder / "lock", f"edgekeeper {role} with run_dir {run_dir}"))
        if state_dir is not None and Path(state_dir).resolve() != Path(run_dir).resolve():
            make_folder(state_dir, 0o755, ours=False)
            held.enter_context(locked(make_folder(Path(state_dir) / role) / "lock", f"edgekeeper {role} with state_dir {state_dir}"))
        yield folder


class Runtime:
    """The roles of one process. ``reread`` reads the config again (only commands may); ``listen`` is where ops are served when it does not say.

    The error of a role that stands alone ends the process with its exit code; beside others it is
    told and tried again, because the others' engines need their supervisor.
    """

    def __init__(
        self,
        posts: Sequence[Post],
        root: Root,
        node: str,
        clock: Clock,
        journal: Journal,
        metrics: Metrics,
        *,
        reread: Callable[[], Root],
        listen: str,
    ) -> None:
        self._shifts = {post.name: _Shift(post, root, journal, alone=len(posts) == 1) for post in posts}
        self._first = [self._shifts[post.name] for post in posts if post.first]
        self._ending: asyncio.Task[None] | None = None
        self._ops = root.ops
        self._node = node
        self._clock = clock
        self._journal = journal
        self._metrics = metrics
        self._reread = reread
        self._listen = listen
        self._alarms = Alarms("ops", journal)

    async def run(self) -> None:
        """Run all roles with their signals: TERM and INT stop, QUIT leaves the engines, HUP reloads, USR1 and USR2 do nothing."""
        self._hear()
        work = [asyncio.create_task(shift.work()) for shift in self._shifts.values()]
        ops = asyncio.create_task(self._speak())
        try:
            await asyncio.gather(*work)
        finally:
            await cancelled([*work, ops, *([self._ending] if self._ending is not None else [])])

    def end(self, *, leave: bool) -> None:
        """End all roles: those that stop first, then the others; all at once when the engines are left."""
        if leave or not self._first:
            for shift in self._shifts.values():
                shift.end(leave=leave)
            return
        for shift in self._first:
            shift.end(leave=False)
        if self._ending is None:
            self._ending = asyncio.create_task(self._end_others())

    async def _end_others(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ENDS_S):
                await asyncio.gather(*(shift.over.wait() for shift in self._first))
        for shift in self._shifts.values():
            shift.end(leave=False)

    def reload(self) -> None:
        """Read the config once, for all roles."""
        fresh: Root | EdgekeeperError
        try:
            fresh = self._reread()
        except EdgekeeperError as err:
            fresh = err
        for shift in self._shifts.values():
            shift.reload(fresh)

    def status(self, roles: Collection[str] | None = None) -> dict[str, Any]:
        """The status document of these roles, as far as there are such; of all when None."""
        now = datetime.fromtimestamp(self._clock.wall(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return document(self._node, __version__, now, self._told(roles))

    def ready(self) -> tuple[bool, str]:
        """Whether traffic may be sent here, and why."""
        return readiness(self._told())

    def _told(self, roles: Collection[str] | None = None) -> dict[str, RoleStatus]:
        return {name: shift.status() for name, shift in self._shifts.items() if roles is None or name in roles}

    def _measured(self) -> bytes:
        self._metrics.set("edgekeeper_journal_lost", getattr(self._journal, "lost_total", 0))
        return self._metrics.text()

    async def _speak(self) -> None:
        """Serve ops, once every role has been tried: before, there is nothing to say."""
        for shift in self._shifts.values():
            await shift.tried.wait()
        await kept_alive("ops", self._serve, lambda why: self._alarms.set("listener", why))

    async def _serve(self) -> None:
        token = secrets.read(self._ops.token_file) if self._ops.token_file else None
        await serve(self._ops, self._listen, Voice(self.status, self.ready, self._measured), token)

    def _hear(self) -> None:
        loop = asyncio.get_running_loop()

        def heard(number: signal.Signals, what: str, act: Callable[[], None]) -> None:
            emit(Event.SIGNAL_RECEIVED, f"{number.name}: {what}")
            act()

        engines = "the engine" if len(self._shifts) == 1 else "the engines"
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, heard, number, f"stopping {engines}", lambda: self.end(leave=False))
        loop.add_signal_handler(signal.SIGQUIT, heard, signal.SIGQUIT, f"leaving {engines} running", lambda: self.end(leave=True))
        loop.add_signal_handler(signal.SIGHUP, heard, signal.SIGHUP, "reading the config again", self.reload)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, heard, number, f"ignored, it would kill {engines}", lambda: None)


class _Shift:
    """One role from its first try to its end."""

    def __init__(self, post: Post, root: Root, journal: Journal, *, alone: bool) -> None:
        self.tried = asyncio.Event()
        self.over = asyncio.Event()
        self._post = post
        self._root = root
        self._alone = alone
        self._role: Role | None = None
        self._said = Verdict(Health.UNKNOWN, "it is being started")
        self._alarms = Alarms(post.name, journal)
        self._leave: bool | None = None
        self._wake = asyncio.Event()

    def status(self) -> RoleStatus:
        if self._role is not None:
            return self._role.status()
        return RoleStatus(self._said, self._said, {"alarms": dict(self._alarms.raised)})

    def end(self, *, leave: bool) -> None:
        self._leave = leave
        self._wake.set()
        if self._role is not None:
            self._role.end(leave=leave)

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        if isinstance(fresh, Root) and getattr(fresh, self._post.name) is not None:
            self._root = fresh
            self._wake.set()
        if self._role is not None:
            self._role.reload(fresh)
        elif isinstance(fresh, EdgekeeperError):
            emit(Event.CONFIG_REFUSED, f"{fresh}; the configuration before stays", level=ERROR)

    async def work(self) -> None:
        try:
            await self._work()
        finally:
            self.over.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE_S
        while self._leave is None:
            begun = loop.time()
            try:
                await self._once()
                return
            except EdgekeeperError as err:
                if self._alone:
                    raise
                why = str(err).replace("\n", "; ")
            except Exception as err:
                if self._alone:
                    raise
                why = f"it failed: {type(err).__name__}"
                emit(Event.INTERNAL_ERROR, f"{self._post.name}: {why}: {err}", level=ERROR)
            if loop.time() - begun > LONGEST_PAUSE_S:
                pause = FIRST_PAUSE_S
            self._said = Verdict(Health.BAD, f"{why}; the other roles go on, this one is tried again")
            self._alarms.set("role", self._said.why)
            self.tried.set()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _once(self) -> None:
        used = self._root
        role = await self._post.make(used)
        while used is not self._root:  # read again while it was made
            used = self._root
            role = await self._post.make(used)
        self._role = role
        self.tried.set()
        well = asyncio.get_running_loop().call_later(RETRY_S, self._alarms.set, "role", None)
        try:
            if self._leave is not None:
                role.end(leave=self._leave)
            await role.run()
        finally:
            well.cancel()
            self._role = None


def restart_needed(started: Root, fresh: Root, role: str) -> str | None:
    """The sentence about what changed in a config and counts after a restart of edgekeeper only, or None."""
    fixed = [name for name in ("run_dir", "state_dir", "ops") if getattr(fresh, name) != getattr(started, name)]
    engines = [getattr(getattr(root, role), "engine", None) for root in (started, fresh)]
    fixed += [f"{role}.engine"] if engines[0] != engines[1] else []
    return f"changes in {', '.join(fixed)} count after a restart of edgekeeper" if fixed else None


def accepted(
    role: str, started: Root, fresh: Root | EdgekeeperError, alarms: Alarms, journal: Journal, refusal: Callable[[Root], str | None] = lambda _: None
) -> Root | None:
    """The config that a role takes at a reload, or None: then the one before stays, and an alarm and an entry say why.

    ``started`` is the config at the role's start; ``refusal`` is why the role itself cannot take it.
    """
    if isinstance(fresh, EdgekeeperError):
        why: str | None = str(fresh).replace("\n", "; ")
    elif getattr(fresh, role) is None:
        why = f"the config has no {role} section any more; stop this role to end it"
    else:
        why = refusal(fresh)
        if why is None:
            alarms.set("config", None)
            alarms.set("restart needed", restart_needed(started, fresh, role))
            return fresh
    alarms.set("config", f"{why}; the configuration before stays")
    journal.write(Entry(role, Event.CONFIG_REFUSED, "config", "refuse", f"{why}; the configuration before stays"))
    return None


def watched(alarms: Alarms, works: Mapping[str, Callable[[], Awaitable[None]]]) -> list[asyncio.Task[None]]:
    """Start watchers, each kept alive, with an alarm of its own while it fails."""

    def task(name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        return asyncio.create_task(kept_alive(name, work, lambda why: alarms.set(f"watcher {name}", why)))

    return [task(name, work) for name, work in works.items()]


async def cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """End tasks and wait for their end."""
    ended = list(tasks)
    for task in ended:
        task.cancel()
    await asyncio.gather(*ended, return_exceptions=True)


async def kept_alive(name: str, work: Callable[[], Awaitable[None]], failed: Callable[[str | None], None]) -> None:
    """Run a watcher for ever: what it raises is told and tried again, because the engine must not suffer for it.

    ``failed`` is told why, and None once the work is done, or has gone on for as long as a pause lasts.
    """
    loop = asyncio.get_running_loop()
    while True:
        well = loop.call_later(RETRY_S, failed, None)
        try:
            await work()
            failed(None)
            return
        except EdgekeeperError as err:
            failed(f"{name} failed: {err}; trying again in {RETRY_S:g} s")
        except Exception as err:  # noqa: BLE001 - a bug in a watcher must not end the supervisor
            emit(Event.INTERNAL_ERROR, f"{name} failed: {type(err).__name__}: {err}; trying again in {RETRY_S:g} s", level=ERROR)
            failed(f"{name} failed: {type(err).__name__}; trying again in {RETRY_S:g} s")
        finally:
            well.cancel()
        await asyncio.sleep(RETRY_S)

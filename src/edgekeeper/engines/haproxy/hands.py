"""``ports.Hands`` for HAProxy: what its validator cannot see, proof of a start, reloads and live changes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import resource
import secrets
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgekeeper.config.kinds import split_host_port
from edgekeeper.engines.haproxy import render, state, stats
from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.features import Features
from edgekeeper.engines.haproxy.live import Departure, commands
from edgekeeper.engines.haproxy.quote import command_word
from edgekeeper.engines.haproxy.seat import Seat, make
from edgekeeper.engines.haproxy.topology import Bind, Topology
from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host import owner
from edgekeeper.host.files import make_folder, write_text
from edgekeeper.host.process import children

PROVE_DEADLINE_S = 10.0
PROVE_EVERY_S = 0.02
FIRST_ANSWER_S = 0.25
"""A 3.2.26 that has just opened its socket never answers one question in twenty: it is asked again soon, and each time a little more patiently."""
RELOAD_DEADLINE_S = 12.0
"""A reload takes 0.1 to 0.2 s (2.6 to 3.2); one that cannot have a port gives up after 2.1 s by itself."""
LIVE_DEADLINE_S = 20.0
LEAVE_S = 5.0
"""How long what a leaving server has in hand may take, before its connections are ended."""
_FAILED = re.compile(r"\[failed: (\d+)\]")
_DONE = re.compile(r"registered|deleted|changed|no need to change|Already exists a server|already|^$", re.IGNORECASE)
_RESERVED = 100
"""Descriptors of listeners, checks, sockets and threads."""
_LONGEST_SOCKET_PATH = 100  # HAProxy adds a suffix while it takes a socket over; the kernel takes 107 bytes


class HaproxyHands:
    """What is done to, and asked of, a HAProxy with these features, whose sockets lie in ``folder``."""

    def __init__(self, features: Features, folder: str) -> None:
        self.features = features
        self._folder = folder

    def new_seat(self, intent: Any) -> Seat:  # noqa: ARG002 - the port's shape
        """Fresh paths, so that a process beside another has sockets of its own, and a state file that says nothing yet."""
        seat = make(self._folder, secrets.token_hex(3))
        with contextlib.suppress(EdgekeeperError, OSError):  # without one it only warns
            make_folder(self._folder)
            for old in Path(self._folder).glob("servers-*.state"):
                if not Path(str(old).replace("servers-", "master-").replace(".state", ".sock")).exists():
                    old.unlink()
            write_text(Path(seat.state), state.EMPTY, sync=False)
        return seat

    async def preflight(self, intent: Any, seat: Any, beside: Any | None, serving: int | None = None) -> str | None:  # noqa: ARG002 - the port's shape
        """Why it would not start, or would not reload: HAProxy's check opens no listener, and a reload onto one that is taken hurts all others for 2 s."""
        topology: Topology = intent
        refusal = _sense(topology) or _sockets(seat) or _descriptors(topology)
        if refusal is not None:
            return refusal
        ours = {serving, *children(serving)} if serving is not None else set()  # a listener that one of its workers has is no obstacle
        for bind in _binds(topology):
            refusal = await asyncio.to_thread(_bindable, bind, ours)
            if refusal is not None:
                return refusal
        return None

    async def prove(self, intent: Any, seat: Any, pid: int) -> str | None:
        """That the newest worker of master ``pid`` runs this configuration, has every listener and every server, and answers."""
        wanted = render.description(render.text(intent, seat, self.features))
        missing: str | None = "it does not answer"
        try:
            async with asyncio.timeout(PROVE_DEADLINE_S):
                loop, patience = asyncio.get_running_loop(), FIRST_ANSWER_S
                while True:
                    asked = loop.time()
                    missing = await self._missing(intent, seat, pid, wanted, patience)
                    if missing is None:
                        return None
                    if loop.time() - asked >= patience:
                        patience *= 1.5
                    await asyncio.sleep(PROVE_EVERY_S)
        except TimeoutError:
            return f"HAProxy did not prove itself within {PROVE_DEADLINE_S:g} s: {missing}"

    async def reload(self, new: Any, seat: Any, pid: int) -> str | None:
        """Save what the worker knows of its servers, have the master start a new worker, and prove that one."""
        master = Admin(seat.master)
        try:
            if not Path(seat.master).exists():
                self._by_signal(seat, pid)
                return await self.prove(new, seat, pid)
            before = await self._current(master)
            self._save(seat, new, await master.ask("show servers state", worker=before))
            failed = await self._failures(master)
            with contextlib.suppress(EdgekeeperError):  # 2.6 ends the conversation, because the master runs itself anew
                said = await Admin(seat.master, deadline_s=RELOAD_DEADLINE_S).ask("reload")
                if "Success=0" in said:
                    return "HAProxy's master could not load the new configuration; the worker before it serves on"
            refusal = await self._exchanged(master, before, failed)
        except (EdgekeeperError, OSError) as err:
            return f"HAProxy could not be told to reload: {err}"
        return refusal if refusal is not None else await self.prove(new, seat, pid)

    async def live(self, old: Any, new: Any, seat: Any) -> str | None:
        """Bring the difference into the running worker and read it back; a sentence when they differ."""
        said, gone = commands(old, new)
        admin = Admin(seat.master)
        try:
            async with asyncio.timeout(LIVE_DEADLINE_S):
                worker = await self._current(admin)
                for command in said:
                    answer = (await admin.ask(command, worker=worker)).strip()
                    if not all(_DONE.search(line) for line in answer.splitlines()):
                        return f"HAProxy answered {answer.splitlines()[0][:200]!r} to {command.split(' check ', 1)[0]!r}"
                await self._see_off(admin, worker, gone)
                return state.difference(new, stats.parse_servers_state(await admin.ask("show servers state", worker=worker)))
        except TimeoutError:
            return f"the live change was not done within {LIVE_DEADLINE_S:g} s"
        except EdgekeeperError as err:
            return str(err)

    async def _see_off(self, admin: Admin, worker: int, gone: tuple[Departure, ...]) -> None:
        """Let leaving servers finish for a moment, then take them away."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LEAVE_S
        places = [f"{command_word(item.backend)}/{command_word(item.server)}" for item in gone]
        for place in places:
            await admin.ask(f"set server {place} weight 0", worker=worker)
        while places and loop.time() < end:
            held = {f"{s.backend}/{s.server}": s.scur for s in stats.parse_stat(await admin.ask("show stat", worker=worker)).servers}
            if not any(held.get(place) for place in places):
                break
            await asyncio.sleep(0.1)
        for place in places:
            await admin.ask(f"set server {place} state maint", worker=worker)
            await admin.ask(f"shutdown sessions server {place}", worker=worker)
        for place in places:
            while "deleted" not in (answer := await admin.ask(f"del server {place}", worker=worker)):
                if "No such server" in answer or "pointing to it" in answer:
                    break
                await asyncio.sleep(0.05)  # idle connections to it are still being closed

    # asking -------------------------------------------------------------------------------

    async def _missing(self, topology: Topology, seat: Seat, pid: int, wanted: str, patience_s: float) -> str | None:
        """What is not proven yet, or None."""
        if not Path(seat.master).exists():
            return f"master {pid} has not opened its socket yet"
        master = Admin(seat.master, deadline_s=patience_s)
        try:
            workers = await master.workers()
            if master.peer_pid not in (pid, None):
                return f"{seat.master} is that of process {master.peer_pid}, not of {pid}"
            current = next((worker.pid for worker in workers if worker.current), None)
            if current is None:
                return f"master {pid} has no worker yet"
            info = stats.parse_info(await master.ask("show info", worker=current))
            if info.description != wanted:
                return f"worker {current} runs another configuration ({info.description or 'it does not say which'})"
            listed = stats.parse_servers_state(await master.ask("show servers state", worker=current))
        except EdgekeeperError as err:
            return str(err)
        for bind in _binds(topology):
            host, port = split_host_port(bind.address)
            if not await asyncio.to_thread(owner.owns, current, host, port, "tcp"):
                return f"worker {current} does not listen on {bind.address}"
        return state.difference(topology, listed)

    async def _current(self, master: Admin) -> int:
        workers = await master.workers()
        # After a reload that failed, the worker before it serves on and the master counts it among the old ones.
        found = min(workers, key=lambda worker: (not worker.current, worker.reloads), default=None)
        if found is None:
            msg = "HAProxy's master has no worker"
            raise StepFailedError(msg)
        return found.pid

    async def _failures(self, master: Admin) -> int:
        told = _FAILED.search(await master.ask("show proc"))
        return int(told[1]) if told else 0

    def _by_signal(self, seat: Seat, pid: int) -> None:
        """Somebody wiped the folder of the sockets: the master makes its own anew when a signal has it reload (2.6 to 3.2).

        What the worker knows of its servers cannot be asked then, so the next one begins with all of them UP.
        """
        make_folder(self._folder)
        write_text(Path(seat.state), state.EMPTY, sync=False)
        os.kill(pid, signal.SIGUSR2)

    async def _exchanged(self, master: Admin, before: int, failed: int) -> str | None:
        """Wait until another worker is the newest one; a sentence when the master gave up."""
        why = "it does not answer"
        try:
            async with asyncio.timeout(RELOAD_DEADLINE_S):
                while True:
                    with contextlib.suppress(EdgekeeperError):  # the master is away while it runs itself anew
                        if any(worker.current and worker.pid != before for worker in await master.workers()):
                            return None
                        if await self._failures(master) > failed:
                            return "HAProxy's master could not load the new configuration; the worker before it serves on"
                        why = f"worker {before} is still the newest"
                    await asyncio.sleep(PROVE_EVERY_S)
        except TimeoutError:
            return f"HAProxy's master did not reload within {RELOAD_DEADLINE_S:g} s: {why}"

    def _save(self, seat: Seat, new: Topology, said: str) -> None:
        """What is known of the servers, for the next worker; what the new configuration says otherwise is left out."""
        write_text(Path(seat.state), state.kept(new, stats.parse_servers_state(said)), sync=False)


def _sense(topology: Topology) -> str | None:
    if not topology.services:
        return "there is no service; HAProxy would serve nobody"
    for service in topology.services:
        if not service.servers:
            return f"service {service.name} has no member; HAProxy would refuse everybody"
        if not any(server.weight for server in service.servers):
            return f"every member of {service.name} is drained; HAProxy would refuse everybody"
        names = [server.name for server in service.servers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            return f"two members of {service.name} would be called {twice}; give them names"
    return None


def _sockets(seat: Seat) -> str | None:
    for path in (seat.master, seat.admin, seat.state):
        if len(path.encode()) > _LONGEST_SOCKET_PATH:
            return f"{path} is longer than a socket's path may be ({_LONGEST_SOCKET_PATH} bytes); choose a shorter run_dir"
        folder = Path(path).parent
        try:
            if not stat.S_ISDIR(folder.stat().st_mode):
                return f"{folder} is no folder; HAProxy's sockets go there"
        except OSError as err:
            return f"{folder} cannot be used for HAProxy's sockets: {err.strerror or err}"
    return None


def _descriptors(topology: Topology) -> str | None:
    """HAProxy's check does not look at this, and its start dies of it."""
    if topology.max_connections is None:
        return None
    needed = 2 * topology.max_connections + _RESERVED
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or needed <= hard:
        return None
    return f"{topology.max_connections} connections need {needed} descriptors, and this process may hand on {hard}; raise LimitNOFILE, or say fewer"


def _binds(topology: Topology) -> Iterator[Bind]:
    for service in topology.services:
        yield from service.binds
    if topology.stats is not None:
        yield Bind(topology.stats)


def _bindable(bind: Bind, ours: set[int]) -> str | None:
    """Why a listener cannot be had, or None; one that our own worker has can be handed over."""
    host, port = split_host_port(bind.address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if bind.transparent:
                probe.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND, which socket has no name for
            probe.bind((host, port))
    except OSError as err:
        # Also one on another address of the same port: HAProxy listens beside itself (SO_REUSEPORT).
        if err.errno == errno.EADDRINUSE and owner.all_his(ours, host, port, "tcp"):
            return None
        what = os.strerror(err.errno) if err.errno else str(err)
        if err.errno == errno.EADDRNOTAVAIL:
            return f"{bind.address} is not an address of this machine ({what}); say transparent: true where a VIP comes and goes"
        if err.errno == errno.EADDRINUSE and (other := owner.holder(host, port, "tcp")) is not None:
            what = f"{what} by process {other}"
        return f"{bind.address} cannot be listened on: {what}"
    return None

"""The shared supervisor over an engine, fake or real, with what a test needs to look at it and to hurt it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from tests.fakes.pair import FakeEngine, FakeHands, Intent

from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist.engine import DnsdistEngine
from edgekeeper.engines.dnsdist.features import parse
from edgekeeper.engines.dnsdist.hands import DnsdistHands
from edgekeeper.engines.dnsdist.topology import build
from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.engine import HaproxyEngine
from edgekeeper.engines.haproxy.features import parse as parse_haproxy
from edgekeeper.engines.haproxy.hands import HaproxyHands
from edgekeeper.engines.haproxy.stats import parse_servers_state
from edgekeeper.engines.haproxy.topology import build as build_haproxy
from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.engines.keepalived.features import parse as parse_keepalived
from edgekeeper.engines.keepalived.hands import KeepalivedHands
from edgekeeper.engines.keepalived.topology import build as build_keepalived
from edgekeeper.host import addresses
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.process import marked, parent
from edgekeeper.model.backend import Member
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Engine, Hands
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import MARK, Crew
from edgekeeper.supervise.loop import Supervisor, intent_digest
from edgekeeper.supervise.stage import Stage
from edgekeeper.vip.place import of_nodes

DEADLINE_S = 15.0


class Kit(Protocol):
    """What differs between the engines: how an intent is written, and how the engine is asked."""

    engine: Engine
    hands: Hands
    reloads: bool
    """Whether it reads its files again without an exchange of processes; it has workers then."""

    def intent(self, ports: list[int], members: tuple[str, ...]) -> Any:
        """What shall run."""

    def unacceptable(self, intent: Any) -> Any:
        """The same with something that only the engine's validator refuses."""

    def needs(self, intent: Any, seat: Any) -> int:
        """The last of the ports without which it is not proven."""

    def listens(self, port: int) -> bool:
        """Whether somebody has bound the port."""

    async def members(self, seat: Any) -> set[str]:
        """Whom the running engine holds."""


class FakeKit:
    """The engine of ``fakes/engine.py``."""

    reloads = False

    def __init__(self) -> None:
        self.engine, self.hands = FakeEngine(), FakeHands()

    def intent(self, ports: list[int], members: tuple[str, ...], **script: str) -> Intent:
        return Intent(tuple(f"127.0.0.1:{port}" for port in ports), members, tuple(script.items()))

    def unacceptable(self, intent: Intent) -> Intent:
        return replace(intent, script=(("check", "refuse"),))

    def needs(self, intent: Any, seat: Any) -> int:
        return int(seat.control)

    def listens(self, port: int) -> bool:
        return bound(port, socket.SOCK_DGRAM)

    async def members(self, seat: Any) -> set[str]:
        return set((await self.hands.ask(seat))["members"])


class DnsdistKit:
    """A real dnsdist. Its members do not answer: the contract is about the engine, and each is held all the same."""

    reloads = False

    def __init__(self, binary: Path) -> None:
        told = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True)
        self._features = parse(told.stdout)
        self.engine, self.hands = DnsdistEngine(self._features, "auto", str(binary)), DnsdistHands(self._features)

    def intent(self, ports: list[int], members: tuple[str, ...]) -> Any:
        listen = [f"127.0.0.1:{port}" for port in ports]
        dns = Root.model_validate({"dns": {"listen": listen, "members": {"static": ["127.0.0.1:9"]}, "proxy_protocol": "off"}}).dns
        assert dns is not None
        found = tuple(Member(name, f"127.0.0.{number}", 9) for number, name in enumerate(members, 2))
        return build(dns, found, (), self._features)

    def unacceptable(self, intent: Any) -> Any:
        return replace(intent, acl=("not a network",))

    def needs(self, intent: Any, seat: Any) -> int:
        return int(seat.api_port)

    def listens(self, port: int) -> bool:
        return bound(port, socket.SOCK_DGRAM)

    async def members(self, seat: Any) -> set[str]:
        return {server.name for server in (await self.hands.read(seat)).servers}


class HaproxyKit:
    """A real HAProxy, whose members do not answer either; its sockets lie in ``folder``, which must have a short path."""

    reloads = True

    def __init__(self, binary: Path, folder: Path) -> None:
        told = subprocess.run([binary, "-vv"], capture_output=True, text=True, timeout=10, check=True)
        features = parse_haproxy(told.stdout)
        self.engine, self.hands = HaproxyEngine(features, str(binary)), HaproxyHands(features, str(folder))

    def intent(self, ports: list[int], members: tuple[str, ...]) -> Any:
        listen = [f"127.0.0.1:{port}" for port in ports]
        service = {"name": "web", "listen": listen, "kind": "tcp", "members": {"static": ["127.0.0.1:9"]}}
        lb = Root.model_validate({"lb": {"services": [service]}}).lb
        assert lb is not None
        return build_haproxy(lb, {"web": tuple(Member(name, f"127.0.0.{number}", 9) for number, name in enumerate(members, 2))}, {})

    def unacceptable(self, intent: Any) -> Any:
        return replace(intent, services=(replace(intent.services[0], balance="nonsense"),))

    def needs(self, intent: Any, seat: Any) -> int:
        return int(intent.services[0].binds[-1].address.rpartition(":")[2])

    def listens(self, port: int) -> bool:
        return bound(port, socket.SOCK_STREAM)

    async def members(self, seat: Any) -> set[str]:
        master = Admin(seat.master)
        worker = next(worker.pid for worker in await master.workers() if worker.current)
        return {row.server for row in parse_servers_state(await master.ask("show servers state", worker=worker))}


class KeepalivedKit:
    """A real keepalived with a VIP for each port and a peer for each member, none of which is there. It wants ``own_network``."""

    reloads = True

    def __init__(self, binary: Path, folder: Path) -> None:
        told = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True)
        self._features = parse_keepalived(told.stdout + told.stderr)
        self.engine, self.hands = KeepalivedEngine(self._features, str(binary)), KeepalivedHands(str(folder))
        self._folder, self._vips = folder, dict[int, int]()
        for part in ("fifo", "dumps"):
            (folder / part).mkdir()

    def intent(self, ports: list[int], members: tuple[str, ...]) -> Any:
        numbers = [self._vips.setdefault(port, 101 + len(self._vips)) for port in ports]
        vips = [{"name": f"v{n}", "address": f"192.0.2.{n}/24", "vrid": n, "probe": "none"} for n in numbers]
        nodes = {"edge": {"address": OWN}, **{name: {"address": f"192.0.2.{20 + 'abc'.index(name[-1])}"} for name in members}}
        root = Root.model_validate({"node": "edge", "nodes": nodes, "vip": {"interface": "eth0", "advert": "50ms", "vips": vips}})
        assert root.vip is not None
        return build_keepalived(root.vip, "edge", of_nodes(root.vip, "edge", root.nodes), str(self._folder), ("/usr/bin/true",), "root", hmac=False)

    def unacceptable(self, intent: Any) -> Any:
        return replace(intent, instances=tuple(replace(each, priority=300) for each in intent.instances))

    def needs(self, intent: Any, seat: Any) -> int:
        raise NotImplementedError  # it needs no port

    def listens(self, port: int) -> bool:
        """Whether its VIP is held, or will be in a moment."""
        end = time.monotonic() + 2
        while not (held := f"192.0.2.{self._vips.get(port)}" in {each.address for each in addresses.held()}) and time.monotonic() < end:
            if self._pid() is None:
                break
            time.sleep(0.02)
        return held

    async def members(self, seat: Any) -> set[str]:
        pid = self._pid()
        assert pid is not None
        dump = await self.hands.ask(seat, pid)
        assert not isinstance(dump, str), dump
        return {f"ns-{'abc'[int(peer.rpartition('.')[2]) - 20]}" for instance in dump.instances.values() for peer in instance.peers}

    def _pid(self) -> int | None:
        file = Path(self.hands.new_seat(None).pid_file("parent"))
        return int(file.read_text()) if file.exists() else None


OWN = "192.0.2.11"
_NEW_NETWORK = 0x40000000


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """This thread, and all that it starts, in a network of its own with an interface eth0; needs root."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(_NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "unshare")
        lines = ("link set lo up", "link add eth0 type veth peer name other", "link set other up", f"address add {OWN}/24 dev eth0", "link set eth0 up")
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, timeout=10, check=True)
        yield
    finally:
        assert libc.setns(before, _NEW_NETWORK) == 0
        os.close(before)


SUITES = {"2.6": "1.7", "3.2": "2.1", "2.2.7": "1.7", "2.3.4": "2.1"}
"""Versions of HAProxy and keepalived lie beside these of dnsdist."""


@contextlib.contextmanager
def kit_of(name: str, real_engine: Callable[..., Path]) -> Iterator[Kit]:
    """``fake``, ``dnsdist 2.1``, ``HAProxy 3.2``."""
    program, _, version = name.partition(" ")
    if program in ("HAProxy", "keepalived"):
        with tempfile.TemporaryDirectory(prefix="ek-") as folder:
            kind: Callable[[Path, Path], Kit] = HaproxyKit if program == "HAProxy" else KeepalivedKit
            yield kind(real_engine(SUITES[version], program.lower()), Path(folder))
    else:
        yield FakeKit() if program == "fake" else DnsdistKit(real_engine(version))


@dataclass
class Rig:
    """One role's folders; supervisors come and go over them."""

    folder: Path
    kit: Kit
    manner: str = "overlap"
    stop_timeout_s: float = 5.0
    journal: list[Entry] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    _past: list[Crew] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mark = f"contract:{self.folder}"
        self.port, self.spare = free_port(), free_port()
        self.supervisor = self.new()

    def new(self) -> Supervisor:
        """A supervisor, as a newly started one would be."""
        clock = SystemClock()
        self.crew = Crew(self.folder / "run", self.mark)
        self.stage = Stage(self.folder / "state")
        actor = Actor(
            self.kit.engine,
            self.kit.hands,
            self.stage,
            self.crew,
            clock,
            manner=self.manner,
            stop_timeout_s=self.stop_timeout_s,
            drain=lambda: asyncio.sleep(0.1),
        )
        self.supervisor = Supervisor("contract", self.kit.engine, actor, clock, self, debounce_s=0.0, count=lambda *_: None)
        return self.supervisor

    def write(self, entry: Entry) -> None:
        self.journal.append(entry)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Supervisor]:
        """The supervisor at work; stopped with its engine at the end, whatever happens."""
        task = self._task = asyncio.create_task(self.supervisor.run())
        try:
            yield self.supervisor
        finally:
            self.supervisor.end(leave=False)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(task, DEADLINE_S)
            self.kill_all()

    async def abandon(self) -> Supervisor:
        """As after ``kill -9`` of the supervisor: it does nothing any more, and a new one has only the disk."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._past.append(self.crew)
        return self.new()

    async def again(self, intent: Any, pid: int) -> None:
        """Wait until another process than ``pid`` has the intent in force."""
        await self.until(
            lambda: self.in_force(intent) and self.crew.serving is not None and self.pids() == [self.crew.serving.process.pid] != [pid], "another runs it"
        )

    def kill_all(self) -> None:
        """End every engine of this rig."""
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for crew in (*self._past, self.crew):
            for hand in (crew.serving, crew.beside):
                if hand is not None and hand.process._child is not None:
                    hand.process._child.wait(5)

    def pids(self) -> list[int]:
        """All engines that run, by their environment, without their workers."""
        every = self.family()
        return [pid for pid in every if parent(pid) not in every]

    def family(self) -> list[int]:
        """All engines that run, with their workers."""
        return [pid for pid, _ in marked(MARK, self.mark)]

    def in_force(self, intent: Any) -> bool:
        """Whether this is what is proven to run."""
        state = self.supervisor.state
        return state.running and state.changing is None and state.good == state.live == intent_digest(self.kit.engine, intent)

    async def begin(self, *members: str) -> Any:
        """Want the first intent, and wait until it is in force."""
        intent = self.kit.intent([self.port], members or ("ns-a", "ns-b"))
        await self.want(intent)
        return intent

    async def want(self, intent: Any) -> None:
        """Want something and wait until it is in force."""
        self.supervisor.want(intent)
        await self.until(lambda: self.in_force(intent), "it is in force")

    async def until(self, true: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
        """Wait until something is so."""
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline_s
        while loop.time() < end:
            found = true()
            if found:
                return found
            await asyncio.sleep(0.01)
        log = (self.folder / "run" / "engine.log").read_text(errors="replace") if (self.folder / "run" / "engine.log").exists() else ""
        raise AssertionError(f"not within {deadline_s:g} s: {what}; {self.supervisor.why}; {self.supervisor.state}\n{log[-2000:]}")

    async def held(self) -> set[str]:
        """Whom the engine holds."""
        running = self.supervisor.actor.running()
        assert running is not None
        return await self.kit.members(running[1])

    def told(self, event: str) -> list[str]:
        """The reasons of all entries of this event."""
        return [entry.why for entry in self.journal if str(entry.event) == event]


def bound(port: int, kind: socket.SocketKind) -> bool:
    """Whether somebody has bound the port."""
    with socket.socket(type=kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1 if kind == socket.SOCK_STREAM else 0)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def free_port() -> int:
    """A loopback port that is free for UDP and TCP."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as stream, socket.socket(type=socket.SOCK_DGRAM) as datagram, contextlib.suppress(OSError):
            datagram.bind(stream.getsockname())
            return int(stream.getsockname()[1])

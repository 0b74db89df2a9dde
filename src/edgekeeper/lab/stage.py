"""The stage of one run: namespaces, members, the edge, the client's load, and the timeline."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from edgekeeper.errors import StepFailedError
from edgekeeper.lab import records
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.engines import EngineAt
from edgekeeper.lab.netns import Net
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.topology import FRONT, MEMBERS, Plan
from edgekeeper.probe import packet

MEMBER_PORT = 5353
NAMES = tuple(f"ns-{letter}" for letter in "abcdefghijkl")


@dataclass(slots=True)
class Mark:
    """One line of the timeline, in seconds since the load began (before: negative)."""

    at_s: float
    what: str


@dataclass(slots=True)
class LoadRun:
    """A running load: when it began, and where its records go."""

    actor: Actor
    started: float
    out: Path
    duration: float
    transport: str

    async def at(self, seconds: float) -> None:
        """Wait until so many seconds after the load began."""
        await asyncio.sleep(max(0.0, self.started + seconds - time.monotonic()))

    async def finish(self) -> tuple[records.Record, ...]:
        """Wait for the load's end and read its records."""
        code = await self.actor.wait(self.duration + 30.0)
        if code:
            msg = f"the load generator ended with code {code} ({self.actor.tail()}); the drill stops"
            raise StepFailedError(msg)
        return records.read(self.out.read_text(encoding="ascii").splitlines())

    async def stop(self) -> records.Tally:
        """End it now: what is under way is waited for. Its figures."""
        self.actor.signal(signal.SIGTERM)
        return await self.tally()

    async def tally(self) -> records.Tally:
        """Wait for the end; its figures."""
        return records.tally(await self.finish(), datagrams=self.transport == "udp")

    def summary(self) -> dict[str, Any]:
        """The summary that the load printed: handshakes, ends, certificates."""
        found: dict[str, Any] = json.loads(self.actor.log.read_text(encoding="ascii").splitlines()[-1])
        return found


@dataclass(slots=True)
class Stage:
    """Everything that a script may touch. ``quick`` asks for the short form (continuous integration)."""

    side: Side
    engine: EngineAt
    net: Net
    folder: Path
    quick: bool = False
    policy: str = "chashed"
    timeline: list[Mark] = field(default_factory=list)
    members: dict[str, Actor] = field(default_factory=dict)
    actors: list[Actor] = field(default_factory=list)
    closing: list[Callable[[], None]] = field(default_factory=list)
    """What is done when the run ends, before its processes are stopped."""
    _zero: float = field(default_factory=time.monotonic)
    _loads: int = 0
    _begun: bool = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for close in self.closing:
            close()
        for actor in reversed(self.actors):
            await actor.stop(2.0)

    # --- who is on the stage

    async def spawn(self, namespace: str, name: str, argv: list[str]) -> Actor:
        """Start a process; it is stopped when the run ends."""
        actor = await Actor.start(self.net, namespace, name, argv, folder=self.folder)
        self.actors.append(actor)
        return actor

    async def add_members(self, count: int, *options: str) -> None:
        """Start ``count`` small DNS servers and wait until each answers."""
        pairs = list(zip(NAMES, MEMBERS, strict=False))[:count]
        for name, address in pairs:
            await self.add_member(name, address, *options)
        for name, address in pairs:
            await self.until(f"member {name} answers", partial(self._member_answers, self.members[name], address))

    async def _member_answers(self, actor: Actor, address: str) -> bool:
        actor.must_run()
        return await self.ask("edge" if "edge" in self.net.name else "client", address, MEMBER_PORT, "health.example.", "TXT") is not None

    async def add_member(self, name: str, address: str, *options: str) -> Actor:
        """Start one small DNS server; its answers end in the last byte of its address."""
        argv = [sys.executable, "-m", "edgekeeper.lab.member", "--listen", f"{address}:{MEMBER_PORT}", "--name", name, "--answer", address]
        actor = await self.spawn("members", name, [*argv, "--control", str(self.folder / f"{name}.sock"), *options])
        self.members[name] = actor
        return actor

    async def tell(self, name: str, command: str) -> str:
        """Give a member a command (``mode drop``, ``delay 1.6 clients``); its answer."""
        reader, writer = await asyncio.open_unix_connection(self.folder / f"{name}.sock")
        writer.write(command.encode() + b"\n")
        said = (await asyncio.wait_for(reader.readline(), 5.0)).decode().strip()
        writer.close()
        if said != "ok" and command.split(maxsplit=1)[0] != "asked":
            msg = f"member {name} did not take {command!r}: {said}; the drill stops"
            raise StepFailedError(msg)
        return said

    # --- what the client does

    async def load(self, *options: str, qps: float = 500, duration: float = 5.0, transport: str = "udp", server: str = f"{FRONT}:53") -> LoadRun:
        """Start asking from the client's namespace; returns once it has begun."""
        self._loads += 1
        out = self.folder / f"load-{self._loads}.jsonl"
        argv = [sys.executable, "-m", "edgekeeper.lab.load", "--server", server, "--qps", str(qps), "--duration", str(duration)]
        actor = await self.spawn("client", f"load-{self._loads}", [*argv, "--transport", transport, "--out", str(out), *options])

        async def begun() -> bool:
            actor.must_run()
            return b"\n" in await asyncio.to_thread(actor.log.read_bytes)

        await self.until("the load has begun", begun, every=0.005)
        started = float(actor.log.read_text(encoding="ascii").splitlines()[0])
        self.begins(started)
        self.note(f"the client asks {qps:g} questions a second over {transport} for {duration:g} s")
        return LoadRun(actor, started, out, duration, transport)

    async def ask(self, namespace: str, host: str, port: int, name: str, qtype: str = "A", timeout: float = 0.5) -> packet.Reply | None:
        """One question over UDP from a namespace; None when no answer came."""
        loop = asyncio.get_running_loop()
        sock = self.net.socket(namespace, socket.SOCK_DGRAM, socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            sock.connect((host, port))
            ident = time.monotonic_ns() & 0xFFFF
            await loop.sock_sendall(sock, packet.question(ident, name, qtype))
            async with asyncio.timeout(timeout):
                while (reply := packet.parse(await loop.sock_recv(sock, 4096))).ident != ident:
                    pass
        except (OSError, ValueError):
            return None
        finally:
            sock.close()
        return reply

    async def all_serve(self, count: int, *, server: str = FRONT, timeout_s: float = 15.0) -> None:
        """Wait until the client is answered by each of ``count`` members (A answers tell who)."""
        seen: set[str] = set()
        serial = 0

        async def more() -> bool:
            nonlocal serial
            serial += 1
            reply = await self.ask("client", server, 53, f"w{serial}.warm.example.")
            if reply is not None and reply.rcode == 0:
                seen.update(reply.addresses)
            return len(seen) >= count

        await self.until(f"all {count} members serve", more, timeout_s=timeout_s, every=0.01)

    def measured(self, tally: records.Tally, **more: float) -> Measured:
        """The figures of a load, with the outage that its client saw put on the timeline."""
        if tally.outage is not None:
            lost = f"{tally.unanswered_3s} of {tally.asked} questions unanswered within 3 s, {tally.wrong} answered with an error"
            self.place(tally.outage.first_bad, "first question lost")
            self.place(tally.outage.last_bad, f"last question lost: the outage was {tally.outage.text()}; {lost}")
        else:
            self.note(f"all {tally.asked} questions answered, {tally.late} of them late, the latest after {tally.latest_s:.2f} s")
        return Measured({**tally.figures(), **more}, tally.outage)

    # --- time

    @property
    def zero(self) -> float:
        """The timeline's zero on the monotonic clock."""
        return self._zero

    def begins(self, started: float) -> None:
        """The first load gives the timeline its zero (monotonic clock); a later one does not."""
        if self._begun:
            return
        self._begun = True
        for mark in self.timeline:
            mark.at_s += self._zero - started
        self._zero = started

    def place(self, moment: float, what: str) -> None:
        """Put a line on the timeline at a moment of the monotonic clock."""
        self.timeline.append(Mark(moment - self._zero, what))
        self.timeline.sort(key=lambda mark: mark.at_s)

    def note(self, what: str) -> None:
        """Put a line on the timeline."""
        self.timeline.append(Mark(time.monotonic() - self._zero, what))

    async def until(self, what: str, check: Callable[[], Awaitable[object]], *, timeout_s: float = 15.0, every: float = 0.05) -> float:
        """Ask ``check`` until it says yes; how long that took. StepFailedError at the deadline."""
        began = time.monotonic()
        while not await check():
            if time.monotonic() - began > timeout_s:
                last = " · ".join(f"{a.name}: {a.tail()}" for a in self.actors if a.code not in {None, 0, -15, -9})
                msg = f"waited {timeout_s:g} s in vain until {what}{'; ended: ' + last if last else ''}; the drill stops"
                raise StepFailedError(msg)
            await asyncio.sleep(every)
        return time.monotonic() - began


def plan_for(plan: Plan) -> Net:
    """The network of one run."""
    return Net(plan, serial=time.monotonic_ns() % 100_000)


__all__ = ["MEMBER_PORT", "NAMES", "LoadRun", "Mark", "Measured", "Stage", "plan_for"]

"""Control-plane servers behind an edge, and the clients in front of it: what every drill of HAProxy has on its stage."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from edgekeeper.errors import StepFailedError
from edgekeeper.lab import held
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.certs import Authority
from edgekeeper.lab.hold import SERVER_NAME
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT, MEMBERS

API_PORT = 6443
WEB_PORT = 8080
API = f"{FRONT}:{API_PORT}"
"""The control plane as clients reach it."""
WEB = f"{FRONT}:{WEB_PORT}"
"""An ordinary web service beside it, without TLS."""
SERVERS = tuple(f"cp{n}" for n in range(1, 13))


@dataclass(slots=True)
class HoldRun:
    """Running clients: when they began, and where their records go."""

    actor: Actor
    started: float
    out: Path
    duration: float

    async def at(self, seconds: float) -> None:
        """Wait until so many seconds after the clients began."""
        await asyncio.sleep(max(0.0, self.started + seconds - time.monotonic()))

    async def stop(self) -> held.Held:
        """End them now: what is under way is waited for. Their records."""
        self.actor.signal(signal.SIGTERM)
        return await self.finish()

    async def finish(self) -> held.Held:
        """Wait for the end and read the records."""
        code = await self.actor.wait(max(0.0, self.started + self.duration - time.monotonic()) + 30.0)
        if code:
            msg = f"the clients ended with code {code} ({self.actor.tail()}); the drill stops"
            raise StepFailedError(msg)
        return held.read(self.out.read_text(encoding="ascii").splitlines())

    async def tally(self) -> held.Tally:
        """Wait for the end; the figures."""
        return held.tally(await self.finish())


class Cluster:
    """The servers of one drill, their authority, and ways to ask through the edge."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.authority = Authority(stage.folder)
        self._leaf = self.authority.issue(SERVER_NAME)
        self._trust = ssl.create_default_context(cafile=self.authority.ca_file)
        self._loads = 0

    async def start(self, count: int = 3, *, web: bool = False) -> None:
        """Start ``count`` servers (and as many web servers named ``web1`` ...) and wait until each answers."""
        for name, address in list(zip(SERVERS, MEMBERS, strict=False))[:count]:
            await self.add(name, f"{address}:{API_PORT}", "--cert", str(self._leaf / "tls.crt"), "--key", str(self._leaf / "tls.key"))
            if web:
                await self.add(name.replace("cp", "web"), f"{address}:{WEB_PORT}")
        for name, address in servers(count):
            await self.stage.until(f"{name} answers", lambda a=address: self.ask(a, namespace="edge"))  # type: ignore[misc]
        for name, address in web_servers(count) if web else ():
            await self.stage.until(f"{name} answers", lambda a=address: self.ask(a, namespace="edge", tls=False))  # type: ignore[misc]

    async def add(self, name: str, address: str, *options: str) -> Actor:
        """Start one server."""
        argv = [sys.executable, "-m", "edgekeeper.lab.apiserver", "--listen", address, "--name", name]
        actor = await self.stage.spawn("members", name, [*argv, "--control", str(self.stage.folder / f"{name}.sock"), *options])
        self.stage.members[name] = actor
        return actor

    async def squat(self, address: str) -> Actor:
        """Another program takes an address of the edge's machine."""
        actor = await self.stage.spawn("edge", "squatter", [sys.executable, "-m", "edgekeeper.lab.apiserver", "--listen", address, "--name", "squatter"])
        await self.stage.until("the port is taken", lambda: self.ask(address, namespace="edge", tls=False))
        return actor

    async def ask(self, server: str = API, *, namespace: str = "client", path: str = "/version", tls: bool = True, timeout: float = 1.0) -> str:
        """One request on a connection of its own: who answered; empty when nobody did."""
        host, _, port = server.rpartition(":")
        sock = self.stage.net.socket(namespace)
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(timeout):
                await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
                reader, writer = await asyncio.open_connection(sock=sock, ssl=self._trust if tls else None, server_hostname=SERVER_NAME if tls else None)
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {SERVER_NAME}\r\nConnection: close\r\n\r\n".encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            return ""
        finally:
            if writer is not None:
                writer.transport.abort()
            sock.close()
        return next((line.partition(": ")[2] for line in head if line.startswith("x-served-by")), "")

    async def all_serve(self, count: int, server: str = API, *, tls: bool = True, timeout_s: float = 20.0) -> None:
        """Wait until the client is answered by each of ``count`` servers."""
        seen: set[str] = set()

        async def more() -> bool:
            seen.add(await self.ask(server, tls=tls))
            return len(seen - {""}) >= count

        await self.stage.until(f"all {count} servers answer at {server}", more, timeout_s=timeout_s, every=0.02)

    async def hold(
        self,
        *options: str,
        clients: int = 9,
        every: float = 0.25,
        fresh: float = 0.0,
        duration: float = 8.0,
        server: str = API,
        tls: bool = True,
        ca_file: Path | None = None,
    ) -> HoldRun:
        """Start the clients; returns once every warm one has been answered. ``ca_file``: of other servers than ours."""
        self._loads += 1
        out = self.stage.folder / f"hold-{self._loads}.jsonl"
        argv = [sys.executable, "-m", "edgekeeper.lab.hold", "--server", server, "--clients", str(clients), "--every", str(every), "--fresh", str(fresh)]
        argv += ["--ca", str(ca_file or self.authority.ca_file)] if tls else []
        actor = await self.stage.spawn("client", f"hold-{self._loads}", [*argv, "--duration", str(duration), "--out", str(out), *options])

        async def begun() -> bool:
            actor.must_run()
            return b"\n" in await asyncio.to_thread(actor.log.read_bytes)

        await self.stage.until("the clients have begun", begun, every=0.01)
        started = float(actor.log.read_text(encoding="ascii").splitlines()[0])
        self.stage.begins(started)
        parts = [f"{clients} clients keep one connection each" if clients else "", f"{fresh:g} fresh clients a second" if fresh else ""]
        self.stage.note(f"{' and '.join(p for p in parts if p)} ask at {server} for {duration:g} s")
        return HoldRun(actor, started, out, duration)

    def measured(self, found: held.Held, **more: float) -> Measured:
        """The figures of the clients, with what they saw put on the timeline."""
        figures = held.tally(found)
        worst = [r for r in found.requests if r.kind == "warm" and r.client == figures.victim]
        bad = [r for r in worst if not r.ok]
        if bad:
            self.stage.place(bad[0].sent, f"client {figures.victim} asks and has no answer")
            good = next((r for r in worst if r.ok and r.sent > bad[0].sent), None)
            cut = next((c for c in found.cuts if c.client == figures.victim and c.at >= bad[0].sent), None)
            if cut is not None:
                self.stage.place(cut.at, f"client {figures.victim}: {cut.why}")
            if good is not None:
                self.stage.place(good.done, f"client {figures.victim} is answered by {good.by}: it was without an answer for {figures.longest_s:.2f} s")
            else:
                self.stage.place(bad[-1].done, f"client {figures.victim} had {len(bad)} requests in vain, none of its later ones was answered")
        fresh = [r for r in found.requests if r.kind == "fresh"]
        if fresh:
            bad_at = max((r.sent for r in fresh if not r.ok), default=None)
            since = "" if bad_at is None else f"; after {bad_at - self.stage.zero:.1f} s every one was answered"
            self.stage.note(f"of {figures.fresh_asked} fresh clients {figures.fresh_asked - figures.fresh_unanswered} were answered{since}")
        lost = f"{figures.unanswered} of {figures.asked} requests lost, {figures.cuts} connections cut"
        self.stage.note(f"{lost}; the longest time without an answer was {figures.longest_s:.2f} s{self._unserved(figures)}")
        return Measured({**figures.figures(), **more}, figures.outage)

    @staticmethod
    def _unserved(figures: held.Tally) -> str:
        return f", and {figures.unserved} clients had none until the end" if figures.unserved else ""


def servers(count: int = 3) -> tuple[tuple[str, str], ...]:
    """Names and addresses of the first ``count`` servers."""
    return tuple((name, f"{address}:{API_PORT}") for name, address in list(zip(SERVERS, MEMBERS, strict=False))[:count])


def web_servers(count: int = 3) -> tuple[tuple[str, str], ...]:
    """Names and addresses of the web servers on the same machines."""
    return tuple((name.replace("cp", "web"), f"{address}:{WEB_PORT}") for name, address in list(zip(SERVERS, MEMBERS, strict=False))[:count])


async def admin(path: Path, command: str, timeout: float = 2.0) -> str:
    """One command on a stats socket; its answer, empty when there is none (a drill's own look at HAProxy)."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(command.encode() + b"\n")
                return (await reader.read()).decode(errors="replace")
            finally:
                writer.close()
    return ""


async def server_at(path: Path, server: str) -> tuple[str, str]:
    """The backend that has a server of this name, and what HAProxy says of it (``UP``, ``DOWN``, ``MAINT``); empty when it says nothing.

    Of several backends it is the one with the shortest name: the others are twins of it, ``k8s-api-open`` of ``k8s-api``.
    """
    rows = [line.split(",") for line in (await admin(path, "show stat")).splitlines()]
    found = [(fields[0], fields[17]) for fields in rows if len(fields) > 17 and fields[1] == server]
    return min(found, key=lambda one: len(one[0]), default=("", ""))

"""A HAProxy as somebody else wrote it, three TLS servers behind it that misbehave on demand, and clients that keep one session each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.stats import ServerStat, parse_stat
from edgekeeper.lab.certs import Authority

from .edge import engines, free_ports

SUITES = {"2.6": "debian12", "3.0": "debian13", "3.2": "testing"}
NAMES = ("cp1", "cp2", "cp3")
SHALLOW = "check inter 200ms fall 2 rise 2"
DEEP = "check check-ssl verify none inter 200ms fall 2 rise 2"


def binary(version: str) -> str:
    return str(engines() / SUITES[version] / "bin" / "haproxy")


class Server:
    """A TLS server: ``ok`` answers with its name, ``hole`` takes connections and requests and is silent, ``unready`` says 500."""

    def __init__(self, name: str, context: ssl.SSLContext) -> None:
        self.name, self.mode, self.port = name, "ok", 0
        self._context = context
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._context)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                if self.mode == "hole":
                    continue
                status = "500 No" if self.mode == "unready" else "200 OK"
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(self.name)}\r\n\r\n{self.name}".encode())
        self._writers.discard(writer)
        writer.transport.abort()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()


class Session:
    """A client with one connection that it keeps; ``server`` is who answered first."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = ""
        self.ended_at: float | None = None
        self._writer = writer
        self._reader = reader
        self._answers: asyncio.Queue[str] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, port: int) -> Session:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self = cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context))
        self._task = asyncio.create_task(self._read())
        self.server = await self.ask()
        return self

    async def ask(self) -> str:
        """Who answers on the kept connection."""
        self._writer.write(b"GET /who HTTP/1.1\r\nHost: x\r\n\r\n")
        return await asyncio.wait_for(self._answers.get(), 2)

    async def _read(self) -> None:
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
            while True:
                head = await self._reader.readuntil(b"\r\n\r\n")
                length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
                self._answers.put_nowait((await self._reader.readexactly(length)).decode())
        self.ended_at = time.monotonic()

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._writer.transport.abort()


class Balancer:
    """The whole stage: ``folder`` has the sockets, ``port`` is where clients connect."""

    def __init__(self, version: str, folder: Path, check: str, *, directive: bool, level: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf = Authority(folder).issue()
        context.load_cert_chain(leaf / "tls.crt", leaf / "tls.key")
        self.servers = {name: Server(name, context) for name in NAMES}
        self.folder, self.version = folder, version
        (self.port,) = free_ports(1)
        self.socket, self.master = str(folder / "admin.sock"), str(folder / "master.sock")
        self.admin = Admin(self.socket)
        self.check = check + (" on-marked-down shutdown-sessions" if directive else "")
        self.level = level
        self.twins: tuple[str, ...] = ()
        self.sessions: list[Session] = []
        self.process: asyncio.subprocess.Process | None = None

    def config(self) -> str:
        lines = [f"    server {name} 127.0.0.1:{server.port} {{}}" for name, server in self.servers.items()]
        http = ["    option httpchk GET /readyz", "    http-check expect status 200"] if "check-ssl" in self.check else []
        backends = []
        for name, check in (("api", self.check), *((twin, "") for twin in self.twins)):
            backends += [f"backend {name}", "    balance roundrobin", *http, *(line.format(check) for line in lines)]
        fallback = [f"    use_backend {self.twins[0]} if {{ nbsrv(api) eq 0 }}"] if self.twins else []
        return "\n".join([
            "global", f"    stats socket {self.socket} mode 600 level {self.level} expose-fd listeners", "    nbthread 1", "    hard-stop-after 60s",
            "defaults", "    mode tcp", "    timeout connect 1s", "    timeout client 1h", "    timeout server 1h", "    timeout check 300ms",
            "frontend front", f"    bind 127.0.0.1:{self.port}", *fallback, "    default_backend api", *backends, "",
        ])  # fmt: skip

    async def start(self) -> None:
        for server in self.servers.values():
            await server.start()
        path = self.folder / "haproxy.cfg"
        path.write_text(self.config(), encoding="utf-8")
        with (self.folder / "haproxy.log").open("wb") as log:
            argv = [binary(self.version), "-W", "-S", self.master, "-f", str(path)]
            self.process = await asyncio.create_subprocess_exec(*argv, stdout=log, stderr=log, start_new_session=True)
        await self.until(lambda: Path(self.socket).exists() and Path(self.master).exists())
        await self.until_state(lambda found: all(s.status.startswith("UP") for s in found.values()))

    async def open(self, number: int) -> list[Session]:
        """So many sessions, one after the other."""
        opened = [await Session.open(self.port) for _ in range(number)]
        self.sessions += opened
        return opened

    async def state(self) -> dict[str, ServerStat]:
        """The servers of the backend api as the current worker sees them."""
        return {s.server: s for s in parse_stat(await self.admin.ask("show stat")).of("api")}

    async def until_state(self, true: Callable[[dict[str, ServerStat]], bool], deadline_s: float = 8.0) -> float:
        """The moment when it becomes true of the servers."""
        ends = time.monotonic() + deadline_s
        found: dict[str, ServerStat] = {}
        while time.monotonic() < ends:
            with contextlib.suppress(Exception):
                found = await self.state()
                if found and true(found):
                    return time.monotonic()
            await asyncio.sleep(0.05)
        raise AssertionError({name: s.status for name, s in found.items()}, (self.folder / "haproxy.log").read_text())

    @staticmethod
    async def until(true: Callable[[], bool], deadline_s: float = 8.0) -> float:
        """The moment when it becomes true."""
        ends = time.monotonic() + deadline_s
        while time.monotonic() < ends:
            if true():
                return time.monotonic()
            await asyncio.sleep(0.02)
        raise AssertionError("not so within the deadline")

    async def reload(self) -> None:
        """Reload, and wait until a new worker answers."""
        master = Admin(self.master)
        before = (await master.workers())[0].pid
        with contextlib.suppress(Exception):
            await master.ask("reload")
        ends = time.monotonic() + 8
        while time.monotonic() < ends:
            with contextlib.suppress(Exception):
                workers = await master.workers()
                if workers and workers[0].current and workers[0].pid != before:
                    await self.until_state(lambda found: all(s.status.startswith("UP") for s in found.values()))
                    return
            await asyncio.sleep(0.05)
        raise AssertionError("no new worker")

    def signal(self, number: int) -> None:
        """To the workers and the master."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii").split()
        for pid in (*map(int, children), self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    async def stop(self) -> None:
        for session in self.sessions:
            await session.close()
        for server in self.servers.values():
            await server.stop()
        if self.process is not None:
            with contextlib.suppress(OSError):
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGKILL)
                self.process.kill()
            await self.process.wait()


@contextlib.asynccontextmanager
async def balancer(
    version: str, folder: Path, check: str = DEEP, *, directive: bool = False, level: str = "admin", twins: tuple[str, ...] = ()
) -> AsyncIterator[Balancer]:
    """A running stage, ended in any case."""
    stage = Balancer(version, folder, check, directive=directive, level=level)
    stage.twins = twins
    try:
        await stage.start()
        yield stage
    finally:
        await stage.stop()

"""A load balancer on loopback for tests: three members, a real HAProxy under a real supervisor, and clients that ask all the time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from .edge import Edge, engines, free_ports, until

SUITES = ("debian12", "debian13", "testing")
HEALTH = "/healthz"


def haproxy(suite: str = "testing") -> str:
    """A real HAProxy; its absence is a failure, never a skip."""
    binary = engines() / suite / "bin" / "haproxy"
    assert binary.exists(), f"{binary} is missing; run script/engines {suite}"
    return str(binary)


class Loop:
    """An event loop in a thread of its own, so that tests can be written as plain stories."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.submit(work).result(10)

    def close(self) -> None:
        async def end() -> None:
            await asyncio.sleep(0.05)  # who was just accepted gets to its first line, whose end closes it
            for _ in range(50):  # an accept that was under way makes a task and a transport of its own, later on a busy machine
                tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                left = list(getattr(self._loop, "_transports", {}).values())
                for transport in left:
                    transport.abort()
                await asyncio.sleep(0.01)
                if not tasks and not left:
                    return

        self.do(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


@dataclass
class Member:
    """Answers each HTTP request with its name; ``hangs``: accepts and reads, and answers nothing; ``sick``: its health says 503."""

    name: str
    port: int = 0
    hangs: bool = False
    sick: bool = False
    served: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in tuple(self._open):
                writer.transport.abort()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while asked := await reader.readuntil(b"\r\n\r\n"):
                while self.hangs:  # noqa: ASYNC110 - a test says so from another thread
                    await asyncio.sleep(0.05)
                health = HEALTH.encode() in asked
                self.served += not health
                status = b"503 Unavailable" if health and self.sick else b"200 OK"
                writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(self.name), self.name.encode()))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()


class Connection:
    """One kept connection through the balancer."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), 3)
        self.sock.settimeout(3)

    def ask(self, path: str = "/") -> str:
        """Who answers; empty when the connection was ended."""
        try:
            self.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: www.example\r\n\r\n".encode())
            said = self.sock.recv(4096)
            return said.rpartition(b"\r\n\r\n")[2].decode()
        except ConnectionError:
            return ""

    def cut(self) -> bool:
        """Whether the other side has ended it."""
        self.sock.setblocking(False)
        try:
            return self.sock.recv(4096) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        finally:
            self.sock.settimeout(3)

    def close(self) -> None:
        self.sock.close()


class Load:
    """Asks ``rate`` times a second on fresh connections; ``failed`` holds when and why of each request that was not answered within 3 s."""

    def __init__(self, loop: Loop, port: int, rate: float = 100.0) -> None:
        self._loop, self._port, self._rate = loop, port, rate
        self.asked = 0
        self.failed: list[tuple[float, str]] = []
        self.names: set[str] = set()
        self._stop = False

    def __enter__(self) -> Self:
        self._running = self._loop.submit(self._run())
        until(lambda: self.asked > 5, "the load runs")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._running.result(10)

    async def _run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        begun, number = time.monotonic(), 0
        while not self._stop:
            task = asyncio.create_task(self._one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
            await asyncio.sleep(max(0.0, begun + number / self._rate - time.monotonic()))
        await asyncio.gather(*tasks)

    async def _one(self) -> None:
        began = time.time()
        self.asked += 1
        try:
            async with asyncio.timeout(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(b"GET / HTTP/1.1\r\nHost: www.example\r\nConnection: close\r\n\r\n")
                    said = await reader.readuntil(b"\r\n\r\n")
                    if b" 200 " not in said:
                        raise ConnectionError(said[:40])
                    length = int(said.lower().partition(b"content-length: ")[2].split()[0])
                    self.names.add((await reader.readexactly(length)).decode())
                finally:
                    writer.transport.abort()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as err:
            self.failed.append((began, repr(err)))


class Fleet(Edge):
    """``edgekeeper lb run`` before three members; everything it starts ends with it."""

    role = "lb"

    def __init__(self, folder: Path, binary: str, *, extra: str = "", kind: str = "tcp", services: str = "") -> None:
        self.loop = Loop()
        self.made = {name: Member(name) for name in ("web-a", "web-b", "web-c", "web-d")}
        for member in self.made.values():
            self.loop.do(member.start())
        self.kind, self.services, self.service = kind, services, ""
        super().__init__(folder, binary, extra=extra)
        self.names = list(self.made)
        self.member_ports = [member.port for member in self.made.values()]
        self.write_members(self.names[:3])

    def write_config(self) -> None:
        """The config as it is wanted now."""
        listen = ", ".join(f'"127.0.0.1:{port}"' for port in self.listen)
        self.config.write_text(
            f"node: edge-a\nrun_dir: {self.folder}/run\nstate_dir: {self.folder}/state\nops: {{listen: 127.0.0.1:{self.ops}}}\n"
            f"lb:\n  debounce: 100ms\n  engine: {{binary: {self.binary}}}\n{self.extra}"
            f"  services:\n  - name: web\n    listen: [{listen}]\n    kind: {self.kind}\n    members: {{file: {self.members}}}\n"
            f"    health: {{type: http, path: {HEALTH}, interval: 200ms, fast_interval: 100ms, timeout: 500ms, fall: 2, rise: 2}}\n"
            f"    timeouts: {{connect: 1s}}\n{self.service}{self.services}"
        )

    def write_members(self, names: list[str], **said: str) -> None:
        """The members file, replaced in one step; ``said`` is more of one member, like ``{"web_a": "weight: 5"}``."""
        lines = []
        for name in names:
            more = said.get(name.replace("-", "_"), "")
            lines.append(f"  - {{name: {name}, host: 127.0.0.1, port: {self.member_ports[self.names.index(name)]}{', ' + more if more else ''}}}\n")
        new = self.members.with_suffix(".new")
        new.write_text("members:\n" + "".join(lines) if lines else "members: []\n")
        new.replace(self.members)

    def status(self) -> dict[str, Any]:
        """The lb part of /status; empty when nobody answers for a while."""
        end = time.monotonic() + 3
        while not (found := super().status()) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def changed(self, run: subprocess.Popen[bytes], how: str = "reload") -> None:
        """Have the config as it is wanted now read, and wait until it is in force."""
        before = self.status()["last_change"].get("at")
        self.write_config()
        run.send_signal(signal.SIGHUP)
        until(lambda: self.status().get("last_change", {}).get("at", before) != before, f"the config is in force\n{self.said()[-3000:]}")
        last = self.status()["last_change"]
        assert (last["ok"], last["how"]) == (True, how), last

    def servers(self) -> dict[str, dict[str, Any]]:
        """The servers of the first service, by name, as /status tells them."""
        services = self.status().get("services") or [{"servers": []}]
        return {server["name"]: server for server in services[0]["servers"]}

    def states(self) -> dict[str, str]:
        """The servers' states."""
        return {name: server["state"] for name, server in self.servers().items()}

    def held(self) -> set[str]:
        """Names of the servers that HAProxy has."""
        return {name for name, state in self.states().items() if state != "absent"}

    def wait_up(self, names: list[str] | None = None) -> dict[str, Any]:
        """Wait until exactly these servers are there and UP."""
        wanted = dict.fromkeys(names or self.names[:3], "UP")
        until(lambda: self.ready() and self.states() == wanted, f"{sorted(wanted)} are UP, {self.states()}\n{self.said()[-3000:]}")
        return self.status()

    def workers(self) -> list[dict[str, Any]]:
        """HAProxy's workers as /status tells them."""
        return list(self.status().get("engine", {}).get("workers", ()))

    def worker(self) -> int:
        """The pid of the current worker."""
        return next(int(worker["pid"]) for worker in self.workers() if worker["current"])

    def masters(self) -> list[int]:
        """The pids of the HAProxys that are nobody's worker."""
        every = self.engines()
        return [pid for pid in every if _parent(pid) not in every]

    def connection(self, port: int | None = None) -> Connection:
        """A kept connection through the balancer."""
        made = Connection(port or self.port)
        self._connections.append(made)
        return made

    def answers(self, port: int | None = None) -> str:
        """Who answers on a fresh connection; empty when nobody does."""
        with contextlib.suppress(OSError):
            connection = Connection(port or self.port)
            try:
                return connection.ask()
            finally:
                connection.close()
        return ""

    def load(self, rate: float = 100.0, port: int | None = None) -> Load:
        """Requests all the time."""
        return Load(self.loop, port or self.port, rate)

    def record(self) -> dict[str, Any]:
        """The record of the engines."""
        found: dict[str, Any] = json.loads((self.folder / "run" / "lb" / "engine.json").read_text())
        return found

    _connections: list[Connection] = []  # noqa: RUF012 - closed and emptied with each fleet

    def close(self) -> None:
        while self._connections:
            self._connections.pop().close()
        super().close()
        for member in self.made.values():
            self.loop.do(member.stop())
        self.loop.close()


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


@contextlib.contextmanager
def fleet(folder: Path, suite: str = "testing", **said: Any) -> Iterator[Fleet]:
    """A fleet with its members running, ended whatever happens."""
    made = Fleet(folder, haproxy(suite), **said)
    try:
        yield made
    finally:
        made.close()


__all__ = ["SUITES", "Connection", "Fleet", "Load", "Member", "fleet", "free_ports", "haproxy", "until"]

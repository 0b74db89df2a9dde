"""Real HAProxy processes for the tests of this folder, each on ports of its own, ended by its process id."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes.haproxy import lb_of

from edgekeeper.engines.haproxy import stats
from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.engine import HaproxyEngine
from edgekeeper.engines.haproxy.features import Features, parse
from edgekeeper.engines.haproxy.hands import HaproxyHands
from edgekeeper.engines.haproxy.seat import Seat
from edgekeeper.engines.haproxy.topology import Topology, build
from edgekeeper.model.backend import Member

SUITES = {"2.6": "debian12", "3.0": "debian13", "3.2": "testing"}


def free_port() -> int:
    """A port of 127.0.0.1 that is free."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Haproxy:
    """One version of HAProxy, and the processes of it that a test started."""

    def __init__(self, path: Path, folder: Path) -> None:
        told = subprocess.run([path, "-vv"], capture_output=True, text=True, timeout=10, check=True)
        self.features: Features = parse(told.stdout)
        self.engine = HaproxyEngine(self.features, str(path))
        self.folder = folder
        self.hands = HaproxyHands(self.features, str(folder / "run"))
        self._children: list[subprocess.Popen[bytes]] = []

    def topology(self, *services: dict[str, Any], members: tuple[Member, ...] = (), **said: Any) -> Topology:
        """What HAProxy shall be; each service that names no listener gets one of its own."""
        full = [
            {"name": f"web{number}", "listen": f"127.0.0.1:{free_port()}", "kind": "tcp", "members": {"static": ["x=192.0.2.1:80"]}, **service}
            for number, service in enumerate(services or ({},))
        ]
        section = lb_of({"services": full, **said})
        return build(section, {service.name: members for service in section.services}, {})

    def write(self, topology: Topology, seat: Seat) -> str:
        """A folder with the file."""
        folder = self.folder / "current"
        folder.mkdir(exist_ok=True)
        for name, text in self.engine.files(topology, seat).items():
            (folder / name).write_text(text, encoding="utf-8")
        return str(folder)

    def check(self, topology: Topology) -> tuple[str | None, str]:
        """What the real validator says, as the product reads it, and its own words."""
        done = subprocess.run(
            self.engine.check_argv(self.write(topology, self.hands.new_seat(topology))), capture_output=True, text=True, timeout=20, check=False
        )
        return self.engine.judge(done.returncode, done.stdout + done.stderr), done.stdout + done.stderr

    def start(self, topology: Topology, *, proven: bool = True) -> tuple[Seat, int]:
        """Start a process and wait until it has proven itself."""
        seat = self.hands.new_seat(topology)
        with (self.folder / "log").open("ab") as log:
            child = subprocess.Popen(self.engine.run_argv(self.write(topology, seat), seat), stdout=log, stderr=log, start_new_session=True)
        self._children.append(child)
        if proven:
            assert asyncio.run(self.hands.prove(topology, seat, child.pid)) is None, self.log()
        return seat, child.pid

    def reload(self, topology: Topology, seat: Seat, pid: int) -> str | None:
        """Give it another file and have it read."""
        self.write(topology, seat)
        return asyncio.run(self.hands.reload(topology, seat, pid))

    def ask(self, seat: Seat, command: str) -> str:
        """The current worker's answer."""

        async def work() -> str:
            master = Admin(seat.master)
            return await master.ask(command, worker=next(worker.pid for worker in await master.workers() if worker.current))

        return asyncio.run(work())

    def servers(self, seat: Seat) -> dict[str, stats.ServerStat]:
        """The servers by ``backend/server``."""
        return {server.name: server for server in stats.parse_stat(self.ask(seat, "show stat")).servers}

    def workers(self, seat: Seat) -> list[int]:
        """The pids of the workers, the current one first."""
        return [worker.pid for worker in asyncio.run(Admin(seat.master).workers())]

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        for child in self._children:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait(5)
        self._children.clear()


class Answerer:
    """A server of HTTP that says its name on every request; ``hangs``: it reads and says nothing. ``seen`` counts requests that are no checks."""

    def __init__(self, name: str) -> None:
        self.name, self.hangs, self.seen = name, False, 0
        self._open: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._door.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def member(self) -> Member:
        return Member(self.name, "127.0.0.1", self.port)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            while asked := client.recv(4096):
                if asked.startswith(b"PROXY") or b"edgekeeper-check" not in asked:
                    self.seen += 1
                if self.hangs:
                    continue
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(self.name), self.name.encode()))

    def close(self) -> None:
        for each in (self._door, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Client:
    """A kept connection."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), 3)
        self.sock.settimeout(3)

    def ask(self) -> str:
        """Who answers; empty when nobody does."""
        try:
            self.sock.sendall(b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n")
            head, _, body = self.sock.recv(4096).partition(b"\r\n\r\n")
        except OSError:
            return ""
        return body.decode() if re.match(rb"HTTP/1.. 200 ", head) else ""

    def cut(self) -> bool:
        """Whether the connection was ended."""
        self.sock.settimeout(0)
        try:
            return self.sock.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.sock.settimeout(3)

    def close(self) -> None:
        self.sock.close()


def answers(port: int) -> str:
    """Who answers on a fresh connection; empty when nobody does."""
    try:
        client = Client(port)
    except OSError:
        return ""
    try:
        return client.ask()
    finally:
        client.close()


def until(true: Callable[[], Any], what: str, deadline_s: float = 8.0) -> Any:
    """Wait until something is so."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {deadline_s:g} s: {what}")

"""A small edge on loopback for tests: three real members, a real dnsdist under a real supervisor, and a client."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from edgekeeper.probe.packet import parse, question

HERE = Path(__file__).resolve().parent
DEADLINE_S = 20.0


def engines() -> Path:
    """The folder of the prefixes that ``script/engines`` makes."""
    return Path(os.environ.get("EDGEKEEPER_ENGINES", str(Path.home() / ".cache/edgekeeper/engines")))


def dnsdist(suite: str = "testing") -> str:
    """A real dnsdist; its absence is a failure, never a skip."""
    binary = engines() / suite / "bin" / "dnsdist"
    assert binary.exists(), f"{binary} is missing; run script/engines {suite}"
    return str(binary)


def free_ports(count: int) -> list[int]:
    """Loopback ports that are free for UDP and TCP, all different."""
    held = []
    ports: list[int] = []
    while len(ports) < count:
        port = 20_000 + secrets.randbelow(12_000)  # below the ephemeral range: a connection to a port of it may meet itself
        udp, tcp = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
        held += [udp, tcp]
        with contextlib.suppress(OSError):
            udp.bind(("127.0.0.1", port))
            tcp.bind(("127.0.0.1", port))
            ports.append(port)
    for each in held:
        each.close()
    return ports


def until(true: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """Wait until something is so; an AssertionError names what never was."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {deadline_s:g} s: {what}")


def answered(port: int, name: str = "www.example.", timeout_s: float = 1.0) -> bool:
    """Whether one question is answered NOERROR."""
    ident = secrets.randbelow(65536)
    with socket.socket(type=socket.SOCK_DGRAM) as asker:
        asker.settimeout(timeout_s)
        try:
            asker.sendto(question(ident, name), ("127.0.0.1", port))
            return parse(asker.recv(4096)).rcode == 0
        except (OSError, ValueError):
            return False


@dataclass
class Client:
    """Asks about 200 times a second from many source ports; counts what is never answered within 2 s."""

    port: int
    asked: int = 0
    lost: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        askers = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(40)]
        waiting: dict[tuple[int, int], float] = {}
        number = 0
        for asker in askers:
            asker.connect(("127.0.0.1", self.port))
            asker.setblocking(False)
        last = None
        while last is None or time.monotonic() < last:
            if self._stop.is_set():
                last = last or time.monotonic() + 2.0
            else:
                index, number = number % 40, number + 1
                ident = number % 65536
                with contextlib.suppress(OSError):
                    askers[index].send(question(ident, f"n{number}.example."))
                waiting[index, ident] = time.monotonic()
                self.asked += 1
            for index, asker in enumerate(askers):
                with contextlib.suppress(OSError):
                    while True:
                        data = asker.recv(4096)
                        if parse(data).rcode == 0:
                            waiting.pop((index, int.from_bytes(data[:2], "big")), None)
            if last is not None and not waiting:
                break
            time.sleep(0.005)
        self.lost = len(waiting)
        for asker in askers:
            asker.close()


class Edge:
    """The edge of one test; everything it starts ends with it."""

    role = "dns"

    def __init__(self, folder: Path, binary: str, *, extra: str = "", members: int = 3) -> None:
        self.folder = folder
        self.port, self.ops, self.spare, *self.member_ports = free_ports(3 + members)
        self.names = [f"ns-{chr(97 + i)}" for i in range(members)]
        self.config = folder / "edgekeeper.yaml"
        self.members = folder / "members.yaml"
        self.binary = binary
        self.extra = extra
        self.listen = [self.port]
        self._members: dict[str, subprocess.Popen[bytes]] = {}
        self._runs: list[subprocess.Popen[bytes]] = []
        self.write_members(self.names)
        self.write_config()

    def write_config(self) -> None:
        """The config as it is wanted now."""
        listen = ", ".join(f'"127.0.0.1:{port}"' for port in self.listen)
        self.config.write_text(
            f"node: edge-a\nrun_dir: {self.folder}/run\nstate_dir: {self.folder}/state\nops: {{listen: 127.0.0.1:{self.ops}}}\n"
            f"dns:\n  listen: [{listen}]\n  members: {{file: {self.members}}}\n  proxy_protocol: off\n  debounce: 1s\n"
            f"  health: {{name: health.example., type: TXT}}\n  engine: {{binary: {self.binary}}}\n{self.extra}"
        )

    def write_members(self, names: list[str]) -> None:
        """The members file, replaced in one step as editors do."""
        text = "".join(f"  - {name}=127.0.0.1:{self.member_ports[self.names.index(name)]}\n" for name in names)
        new = self.members.with_suffix(".new")
        new.write_text(f"members:\n{text}")
        new.replace(self.members)

    def start_members(self) -> None:
        """Start the members."""
        for name, port in zip(self.names, self.member_ports, strict=True):
            self._members[name] = subprocess.Popen(
                [sys.executable, "-m", "edgekeeper.lab.member", "--listen", f"127.0.0.1:{port}", "--name", name, "--control", str(self.folder / f"{name}.sock")],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        for name, port in zip(self.names, self.member_ports, strict=True):
            until(lambda port=port: answered(port, timeout_s=0.1), f"member {name} answers")

    def tell(self, name: str, command: str) -> str:
        """Make a member misbehave."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.folder / f"{name}.sock"))
            control.sendall(command.encode() + b"\n")
            return control.recv(1024).decode().strip()

    def run(self, *, wrapper: tuple[str, ...] = (), env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a supervisor (by way of ``wrapper``, where a test needs to look inside)."""
        command = wrapper or (sys.executable, "-m", "edgekeeper")
        log = (self.folder / f"run-{len(self._runs)}.log").open("wb")
        run = subprocess.Popen(
            [*command, "--config", str(self.config), self.role, "run"],
            stdout=log, stderr=log, start_new_session=True, env={**os.environ, **(env or {})},
        )  # fmt: skip
        log.close()
        self._runs.append(run)
        return run

    def said(self, number: int = -1) -> str:
        """What a supervisor wrote."""
        number = number % len(self._runs)
        return (self.folder / f"run-{number}.log").read_text(errors="replace")

    def status(self) -> dict[str, Any]:
        """The role's part of /status; empty when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops}/status", timeout=2) as answer:
                found: dict[str, Any] = json.load(answer)["roles"][self.role]
                return found
        except (OSError, ValueError, KeyError):
            return {}

    def page(self, path: str) -> str:
        """A page of the ops port, whatever its code."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops}{path}", timeout=2) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as err:
            return err.read().decode()

    def ready(self) -> bool:
        """Whether /healthz/ready says so."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops}/healthz/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def wait_ready(self) -> dict[str, Any]:
        """Wait until the edge is ready, and its status."""
        until(self.ready, f"the edge is ready\n{self.said()[-2000:]}")
        return self.status()

    def held(self) -> set[str]:
        """Names of the members that the engine holds."""
        return {b["name"] for b in self.status().get("backends", ()) if b["state"] != "absent"}

    def engines(self) -> list[int]:
        """Pids of all engines that were started for this edge."""
        mark = f"EDGEKEEPER_ENGINE={self.role}:{(self.folder / 'state' / self.role).resolve()}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes().split(b"\0") and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                        found.append(int(entry.name))
        return found

    def close(self) -> None:
        """End everything that this edge started."""
        for run in self._runs:
            with contextlib.suppress(ProcessLookupError):
                run.kill()
            run.wait()
        for pid in self.engines():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for member in self._members.values():
            member.kill()
            member.wait()


@contextlib.contextmanager
def edge(folder: Path, suite: str = "testing", *, extra: str = "") -> Iterator[Edge]:
    """An edge with its members running, ended whatever happens."""
    made = Edge(folder, dnsdist(suite), extra=extra)
    try:
        made.start_members()
        yield made
    finally:
        made.close()

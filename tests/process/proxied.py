"""A real HAProxy in front of servers that hold thousands of connections, reloaded as often as a test wants."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from edgekeeper.host.process import start_time

from .edge import engines, free_ports, until

HERE = Path(__file__).resolve().parent
SUITES = {"2.6": "debian12", "3.0": "debian13", "3.2": "testing"}


def haproxy(version: str) -> str:
    """A real HAProxy; its absence is a failure, never a skip."""
    binary = engines() / SUITES[version] / "bin" / "haproxy"
    assert binary.exists(), f"{binary} is missing; run script/engines {SUITES[version]}"
    return str(binary)


class Held:
    """A process of ``held.py`` and the way to give it orders."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-S", str(HERE / "held.py"), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def order(self, *words: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.wait(5)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


class Proxied:
    """Servers cp1 to cp3 with a health check each, HAProxy as Debian starts it (master-worker, a master socket), and clients."""

    def __init__(self, folder: Path, version: str, *, directive: bool = False, master: bool = True, master_level: str = "") -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._limits = (soft, hard)
        self.folder, self.version = folder, version
        self.servers = {name: Held("serve", name) for name in ("cp1", "cp2", "cp3")}
        self.clients: list[Held] = []
        (self.port,) = free_ports(1)
        self.admin, self.master = str(folder / "admin.sock"), str(folder / "master.sock")
        self.directive = " on-marked-down shutdown-sessions" if directive else ""
        self.write()
        words = ["-S", self.master + master_level] if master else []
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen([haproxy(version), "-W", *words, "-f", str(folder / "haproxy.cfg")], stdout=self.log, stderr=self.log)
        try:
            until(lambda: "UP" in self.status("cp3"), "HAProxy answers")
        except BaseException:
            self.__exit__()
            raise

    def write(self, more: str = "") -> None:
        lines = []
        for name, server in self.servers.items():
            main, check = server.order("ports")
            lines.append(f"  server {name} 127.0.0.1:{main} check port {check} inter 200ms fall 1 rise 1{self.directive}")
        text = f"""global
  stats socket {self.admin} mode 600 level admin
  stats socket {self.folder}/user.sock mode 600 level user
  stats socket {self.folder}/operator.sock mode 600 level operator
  maxconn 9900
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen api
  bind 127.0.0.1:{self.port} backlog 8192
  balance roundrobin
{chr(10).join(lines)}
{more}"""
        (self.folder / "haproxy.cfg").write_text(text)

    def ask(self, command: str, path: str = "") -> str:
        """What HAProxy answers, by the simplest of clients."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            until(lambda: sock.connect_ex(path or self.admin) == 0, "HAProxy takes the connection", 2)
            sock.sendall(command.encode() + b"\n")
            sock.shutdown(socket.SHUT_WR)
            found = b""
            while piece := sock.recv(65536):
                found += piece
        return found.decode()

    def status(self, server: str) -> str:
        try:
            rows = [line.split(",") for line in self.ask("show stat").splitlines()]
        except OSError:
            return ""
        return next((row[17] for row in rows if row[:2] == ["api", server]), "")

    def workers(self) -> list[int]:
        """The pids of the workers, the current one first."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return sorted((int(pid) for pid in children), key=lambda pid: (start_time(pid) or 0, pid), reverse=True)

    def reload(self) -> None:
        """Another worker takes over; the one before keeps its sessions."""
        before = self.pid()
        self.process.send_signal(signal.SIGUSR2)
        until(lambda: self.pid() not in (0, before), "the new worker answers")
        until(lambda: "UP" in self.status("cp3"), "its checks are through")

    def pid(self) -> int:
        """The current worker's, by its own word."""
        try:
            return next((int(line.split()[1]) for line in self.ask("show info").splitlines() if line.startswith("Pid:")), 0)
        except OSError:
            return 0

    def open(self, count: int, net: int, each: int) -> dict[str, int]:
        """Clients on 127.0.<net>.x, ``each`` from one address; how many each server holds."""
        self.clients.append(Held("connect"))
        found: dict[str, int] = self.clients[-1].order("open", count, self.port, net, each)
        return found

    def asked(self) -> dict[str, int]:
        """All clients ask on all of their connections who holds them."""
        total: dict[str, int] = {}
        for clients in self.clients:
            for name, count in clients.order("ask").items():
                total[name] = total.get(name, 0) + count
        return total

    def cut(self) -> dict[str, int]:
        """How many connections the clients lost, by the server that held them."""
        total: dict[str, int] = {}
        for clients in self.clients:
            for name, count in clients.order("cut").items():
                total[name] = total.get(name, 0) + count
        return total

    def sick(self, server: str) -> None:
        """The server fails its check from now on, and goes on holding its connections."""
        self.servers[server].order("sick")
        until(lambda: self.status(server).startswith("DOWN"), f"{server} is DOWN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for held in (*self.clients, *self.servers.values()):
            held.close()
        if self.process.poll() is None:
            for pid in self.workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(10)
        self.log.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)

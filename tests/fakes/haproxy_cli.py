"""The command line of a HAProxy with workers that reloads left behind, as its master socket has it, without a process.

Its answers are those of a real 3.2 in ``tests/golden/haproxy/said`` with other values in them; what it says in words
was measured on 2.6.12 and 3.2.26 (the same on both):

- a worker that a reload left behind calls every server what it was at the reload, and answers "Proxy is disabled.";
- a session that was ended is answered with an empty line, one that is not there with "No such session (use 'show sess').";
- a level that is too low is answered with "Permission denied"; ``show sess`` needs operator, to end sessions needs admin.

Unlike a real one it ends a session at once: there, one that is being ended is listed for an instant longer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from edgekeeper.engines.haproxy.admin import Admin

SAID = Path(__file__).resolve().parents[1] / "golden" / "haproxy" / "said" / "3.2"
MASTER = 9
ADDRESS = "127.0.0.1:6443"
KNOWN = ("api", "api-open")
"""The backends of the configuration."""
LEVELS = ("user", "operator", "admin")


def _said(name: str) -> str:
    return (SAID / f"{name}.txt").read_text(encoding="utf-8")


def _two(name: str) -> tuple[str, str]:
    """A session of a client and the one that asks; threads list them in any order."""
    found = re.split(r"^(?=0x)", _said(name), flags=re.MULTILINE)[1:]
    return next(text for text in found if "=api" in text), next(text for text in found if "=GLOBAL" in text)


HEAD, FRONTEND, DOWN, UP, MAINT, BACKEND = _said("show_stat").splitlines()
COLUMNS = {name: place for place, name in enumerate(HEAD.removeprefix("# ").split(",")) if name not in ("", "-")}
INFO = _said("show_info")
PROCESSES, MASTERS, *_ = _said("show_proc").splitlines()
VERSION = MASTERS.split()[-1]
SHORT, CLI_SHORT = _two("show_sess_old")
LONG, CLI_LONG = _two("show_sess_all_old")


@dataclass
class Held:
    """A session as a worker has it; ``address`` is where it is connected to, ``age`` in seconds, below 60 (HAProxy goes on in minutes)."""

    id: str
    source: str
    server: str
    backend: str = "api"
    address: str = ADDRESS
    age: int = 5

    def short(self) -> str:
        """Its line of ``show sess``."""
        return _put(
            SHORT,
            (r"^0x\w+", self.id),
            (r"(?<= src=)\S+", self.source),
            (r"(?<= be=)\S+", self.backend),
            (r"(?<= srv=)\S+", self.server),
            (r"(?<= age=)\S+", f"{self.age}s"),
        )

    def long(self) -> str:
        """Its lines of ``show sess all``."""
        return _put(
            LONG,
            (r"^0x\w+", self.id),
            (r"(?<= source=)\S+", self.source),
            (r"(?<=\n  backend=)\S+", self.backend),
            (r"(?<=\n  server=)\S+", self.server),
            (r"(?<=\n  server=)(\S+ \(id=\d+\)) addr=\S+", rf"\1 addr={self.address}"),
            (r"(?<= age=)\w+(?=\)\n)", f"{self.age}s"),
        )


class FakeHaproxy:
    """Workers by pid with their sessions, the current one first; ``statuses`` are those of the servers as the current worker sees them.

    A test may change everything while it runs: ``before`` is called with each command before it is carried out.
    """

    def __init__(self, statuses: Mapping[str, str], sessions: Mapping[int, list[Held]]) -> None:
        self.statuses = dict(statuses)
        self.workers = dict(sessions)
        self.current = next(iter(self.workers))
        self.backends: tuple[str, ...] = KNOWN
        """Those whose servers are checked; in the others of ``KNOWN`` they are "no check"."""
        self.frozen: set[int] = set()
        """Workers that take commands and never answer."""
        self.level = "admin"
        self.before: Callable[[str], None] = lambda _: None
        self.said: list[tuple[int, str]] = []
        """What a worker was told to do: every command but ``show``."""
        self.ended: list[Held] = []

    def answers(self, line: str) -> Iterator[str]:
        """What a line of one or several commands is answered with, command by command; TimeoutError where no answer would come."""
        for part in line.split(";"):
            prefix, command = re.fullmatch(r"\s*(?:@!(\d+) )?(.*?)\s*", part).groups()
            if prefix is None:
                yield self._master(command)
            elif int(prefix) not in self.workers:
                yield f"Can't find the target PID matching the prefix '@!{prefix}'\n"
            elif int(prefix) in self.frozen:
                raise TimeoutError
            else:
                yield self._worker(int(prefix), command) + "\n"

    def _master(self, command: str) -> str:
        return self._processes() + "\n" if command == "show proc" else _unknown(command) + "\n"

    def _worker(self, pid: int, command: str) -> str:
        if not command.startswith("show "):
            self.said.append((pid, command))
        self.before(command)
        match command.split():
            case ["show", "info"]:
                return _put(INFO, (r"(?<=\nPid: )\d+", str(pid)), (r"(?<=\nStopping: )\d+", str(int(pid != self.current))))
            case ["show", "stat"]:
                return "".join(f"{row}\n" for row in self._rows(pid))
            case ["show", "sess", *form] if form in ([], ["all"]):
                return self._needs("operator") or self._sessions(pid, long=bool(form))
            case ["shutdown", "sessions", "server", name]:
                return self._needs("admin") or self._end_all(pid, *name.split("/"))
            case ["shutdown", "session", pointer]:
                return self._needs("admin") or self._end_one(pid, pointer)
        return _unknown(command)

    def _needs(self, level: str) -> str:
        return "" if LEVELS.index(self.level) >= LEVELS.index(level) else "Permission denied\n"

    def _processes(self) -> str:
        def row(pid: int, kind: str, reloads: str) -> str:
            return "".join(f"{cell:<16}" for cell in (pid, kind, reloads, "0d00h01m00s"))[:64] + f"{VERSION:<15}"

        old = [pid for pid in self.workers if pid != self.current]
        lines = [PROCESSES, row(MASTER, "master", f"{len(old)} [failed: 0]"), "# workers", row(self.current, "worker", "0")]
        lines += ["# old workers", *(row(pid, "worker", str(reloads)) for reloads, pid in enumerate(old, 1))] if old else []
        return "\n".join(lines) + "\n"

    def _rows(self, pid: int) -> Iterator[str]:
        current = pid == self.current
        yield HEAD
        for number, backend in enumerate(KNOWN, 2):
            place = {"pxname": backend, "iid": number}
            held = [s.server for s in self.workers[pid] if s.backend == backend]
            if backend == KNOWN[0]:  # the other one gets its connections from it and has no listener
                total = len(self.workers[pid])
                yield _row(FRONTEND, **place, status="OPEN" if current else "STOP", scur=total, smax=total, stot=total)
            usable = 0
            for sid, server in enumerate(self.statuses, 1):
                status = self._status(pid, backend, server)
                usable += status.startswith(("UP", "no check"))
                count = held.count(server)
                address = "" if "resolution" in status else ADDRESS
                yield _row(_like(status), **place, svname=server, sid=sid, status=status, scur=count, smax=count, stot=count, addr=address)
            yield _row(
                BACKEND, **place, status="UP" if usable else "DOWN", weight=usable, act=usable, uweight=usable, scur=len(held), smax=len(held), stot=len(held)
            )

    def _status(self, pid: int, backend: str, server: str) -> str:
        if backend not in self.backends:
            return "no check"
        return self.statuses[server] if pid == self.current else "UP"

    def _sessions(self, pid: int, *, long: bool) -> str:
        # The session that asks is listed too, and not as the last.
        first, *rest = [s.long() if long else s.short() for s in self.workers[pid]] or [""]
        return "".join((first, CLI_LONG if long else CLI_SHORT, *rest))

    def _end_all(self, pid: int, backend: str, server: str) -> str:
        if backend not in KNOWN:
            return "No such backend.\n"
        # What an old worker has sessions on, its configuration had.
        had = {s.server for s in self.workers[pid]} if pid != self.current else set()
        if server not in self.statuses and server not in had:
            return "No such server.\n"
        if pid != self.current:
            return "Proxy is disabled.\n"
        self._end(pid, lambda s: (s.backend, s.server) == (backend, server))
        return ""

    def _end_one(self, pid: int, pointer: str) -> str:
        return "" if self._end(pid, lambda s: int(s.id, 16) == int(pointer, 16)) else "No such session (use 'show sess').\n"

    def _end(self, pid: int, chosen: Callable[[Held], bool]) -> int:
        gone = [s for s in self.workers[pid] if chosen(s)]
        self.workers[pid] = [s for s in self.workers[pid] if not chosen(s)]
        self.ended += gone
        return len(gone)


class FakeAdmin(Admin):
    """``Admin`` on the master socket of a fake: all of it is the real one but the connection, so that what it checks and refuses is checked here too."""

    def __init__(self, haproxy: FakeHaproxy) -> None:
        super().__init__("/run/haproxy-master.sock")
        self._haproxy = haproxy

    async def _connect(self) -> tuple[asyncio.StreamReader, Any]:
        reader = asyncio.StreamReader()

        def write(line: bytes) -> None:
            try:
                for answer in self._haproxy.answers(line.decode()):
                    reader.feed_data(answer.encode())
                reader.feed_eof()
            except TimeoutError as err:  # instead of a wait for the deadline
                reader.set_exception(err)

        async def drain() -> None:
            pass

        return reader, SimpleNamespace(write=write, drain=drain, can_write_eof=lambda: False, transport=SimpleNamespace(abort=lambda: None))


def _put(text: str, *values: tuple[str, str]) -> str:
    """The text with other values, each in the first place that its pattern names."""
    for pattern, value in values:
        text, count = re.subn(pattern, value, text, count=1)
        assert count, f"{pattern} is nowhere in what HAProxy said"
    return text


def _row(row: str, **values: object) -> str:
    cells = row.split(",")
    for name, value in values.items():
        cells[COLUMNS[name]] = str(value)
    return ",".join(cells)


def _like(status: str) -> str:
    """The row of a server of this status, or of one that differs from it in no more than the word."""
    if status == "no check":
        return _row(MAINT, chkfail="", chkdown="", downtime="")
    return {"MAINT": MAINT, "DOWN": DOWN}.get(status.split(maxsplit=1)[0], UP)


def _unknown(command: str) -> str:
    words = f"Unknown command: '{command.split(maxsplit=1)[0]}', but maybe one of the following ones is a better match:\n"
    return words + "  quit                                    : disconnect\n"

"""Real dnsdist processes for the tests of this folder, each on ports of its own, ended by its process id."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.dns import Dns
from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist import hands
from edgekeeper.engines.dnsdist.engine import DnsdistEngine
from edgekeeper.engines.dnsdist.features import Features, parse
from edgekeeper.engines.dnsdist.hands import DnsdistHands
from edgekeeper.engines.dnsdist.seat import Seat
from edgekeeper.engines.dnsdist.topology import Topology, build
from edgekeeper.model.backend import Member

from . import haproxies

FORMS = {"1.7": ("1.7", "lua"), "1.9": ("1.9", "lua"), "2.1": ("2.1", "yaml"), "2.1-lua": ("2.1", "lua")}


PROXY_V2 = b"\r\n\r\n\0\r\nQUIT\n"


def free_port() -> int:
    """A port of 127.0.0.1 that is free for TCP and UDP, and that no outgoing connection takes meanwhile."""
    return hands._free_ports(1)[0]


class Engine:
    """One form of dnsdist, and the processes of it that a test started."""

    def __init__(self, path: Path, renderer: str, folder: Path) -> None:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=True)
        self.features: Features = parse(told.stdout)
        self.engine = DnsdistEngine(self.features, renderer, str(path))
        self.hands = DnsdistHands(self.features)
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        self._made = 0

    def topology(self, members: tuple[Member, ...], zones: tuple[str, ...] = (), *, secret: str | None = None, **said: Any) -> Topology:
        """The topology of a small config; ``said`` is more of the section dns, forward and certificate go to ``build``."""
        extra = {key: said.pop(key) for key in ("forward", "certificate", "forgiving", "enforce_identity") if key in said}
        return build(self.dns(**said), members, zones, self.features, proxy_secret=secret, **extra)

    def dns(self, **said: Any) -> Dns:
        base = {"listen": [f"127.0.0.1:{free_port()}"], "members": {"static": ["127.0.0.1:5353"]}, "proxy_protocol": "off"}
        dns = Root.model_validate({"dns": {**base, **said}}).dns
        assert dns is not None
        return dns

    def write(self, topology: Topology, seat: Seat) -> str:
        """A folder with the files."""
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir()
        for name, text in self.engine.files(topology, seat).items():
            (folder / name).write_text(text, encoding="utf-8")
        return str(folder)

    def check(self, topology: Topology, seat: Seat | None = None) -> str | None:
        """What the real validator says, as the product reads it."""
        folder = self.write(topology, seat or self.hands.new_seat(topology))
        done = subprocess.run(self.engine.check_argv(folder), capture_output=True, text=True, timeout=20, check=False)
        return self.engine.judge(done.returncode, done.stdout + done.stderr)

    def start(self, topology: Topology, seat: Seat | None = None) -> tuple[Seat, int]:
        """Start a process and wait until it has proven itself."""
        seat, pid = self.spawn(topology, seat)
        assert asyncio.run(self.hands.prove(topology, seat, pid)) is None, self.log()
        return seat, pid

    def spawn(self, topology: Topology, seat: Seat | None = None) -> tuple[Seat, int]:
        """Start a process."""
        seat = seat or self.hands.new_seat(topology)
        folder = self.write(topology, seat)
        with (Path(folder) / "log").open("wb") as log:
            child = subprocess.Popen(self.engine.run_argv(folder, None), stdout=log, stderr=log, start_new_session=True)
        self._children.append(child)
        return seat, child.pid

    def pids(self) -> list[int]:
        """The processes that run, oldest first."""
        return [child.pid for child in self._children]

    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self._folder.glob("*/log")))

    def stop(self) -> None:
        for child in self._children:
            child.kill()
            child.wait(5)
        self._children.clear()


@pytest.fixture(params=list(FORMS))
def dnsdist(request: pytest.FixtureRequest, tmp_path: Path, real_engine: Callable[[str], Path]) -> Iterator[Engine]:
    """Every form of every version, one after the other."""
    version, renderer = FORMS[request.param]
    engine = Engine(real_engine(version), renderer, tmp_path)
    yield engine
    engine.stop()


@pytest.fixture
def newest(tmp_path: Path, real_engine: Callable[[str], Path]) -> Iterator[Engine]:
    """2.1 with YAML, for what only it can."""
    engine = Engine(real_engine("2.1"), "yaml", tmp_path)
    yield engine
    engine.stop()


class Answerer:
    """A member that answers every question with one TXT string, or with an rcode."""

    def __init__(self, text: str) -> None:
        self.text, self.rcode, self.silent, self.deaf_to = text, 0, False, b""
        self.heard: list[bytes] = []
        self.slow_s = 0.0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                asked, who = self._socket.recvfrom(4096)
            except OSError:
                return
            if not asked:
                return
            self.heard.append(asked)
            if asked[:12] == PROXY_V2:  # a PROXY header stands before the question
                asked = asked[16 + int.from_bytes(asked[14:16], "big") :]
            if self.silent or (self.deaf_to and self.deaf_to in asked):
                continue
            end = 12
            while asked[end]:
                end += asked[end] + 1
            data = bytes([len(self.text)]) + self.text.encode()
            answer = b"\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x01" + len(data).to_bytes(2, "big") + data
            rcode = self.rcode if asked[end + 4] == 1 else 0  # what is asked in class CH is answered
            head = asked[:2] + (0x8180 | rcode).to_bytes(2, "big") + bytes.fromhex("0001000100000000")
            packet = head + asked[12 : end + 5] + answer
            if self.slow_s and b"health" not in asked:
                threading.Timer(self.slow_s, self._send, (packet, who)).start()
            else:
                self._send(packet, who)

    def _send(self, packet: bytes, who: Any) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendto(packet, who)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def answerer() -> Iterator[Callable[[str], Answerer]]:
    made: list[Answerer] = []

    def make(text: str = "x") -> Answerer:
        made.append(Answerer(text))
        return made[-1]

    yield make
    for item in made:
        item.close()


@pytest.fixture(params=list(haproxies.SUITES))
def haproxy(request: pytest.FixtureRequest, tmp_path: Path, real_engine: Callable[..., Path]) -> Iterator[haproxies.Haproxy]:
    """Every version of HAProxy, one after the other."""
    made = haproxies.Haproxy(real_engine({"2.6": "1.7", "3.0": "1.9", "3.2": "2.1"}[request.param], "haproxy"), tmp_path)
    yield made
    made.stop()


@pytest.fixture
def server() -> Iterator[Callable[[str], haproxies.Answerer]]:
    """Servers that say their names."""
    made: list[haproxies.Answerer] = []

    def make(name: str) -> haproxies.Answerer:
        made.append(haproxies.Answerer(name))
        return made[-1]

    yield make
    for item in made:
        item.close()

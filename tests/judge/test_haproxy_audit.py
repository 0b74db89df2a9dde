"""`edgekeeper audit --socket` beside a real HAProxy with a pinned client, and the sum of its report beside a stop watch."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.operator import carry_out

from edgekeeper.doctor.examine import examine
from edgekeeper.doctor.facts import HaproxyFacts
from edgekeeper.engines.haproxy.cfg import Source, read, readings
from edgekeeper.engines.haproxy.cfg_health import detection_of, speaks_tls

VERSIONS = {"2.6": "1.7", "3.0": "1.9", "3.2": "2.1"}
"""HAProxy's version to that of dnsdist in the same release of Debian, by which the engines are found."""

CONFIG = """\
global
    stats socket {socket} mode 600 level admin
defaults
    mode tcp
    option httpchk GET /readyz
    timeout connect 1s
    timeout client 1h
    timeout server 1h
listen plain
    bind 127.0.0.1:{front}
    server s1 127.0.0.1:{port} check inter 300ms fall 3
backend timed
    timeout check 200ms
    server s1 127.0.0.1:{port} check inter 400ms fall 3
backend fast
    server s1 127.0.0.1:{port} check inter 500ms fastinter 100ms fall 3
"""
TLS = """\
global
    stats socket {socket} mode 600 level admin
defaults
    mode http
    option httpchk
    timeout connect 1s
    timeout client 1s
    timeout server 1s
    default-server check verify none inter 100ms fall 1
backend said
    server s 127.0.0.1:{port} check-ssl
backend taken-over
    server s 127.0.0.1:{port} ssl
backend another-port
    server s 127.0.0.1:{port} ssl port {port}
backend another-address
    server s 127.0.0.1:{port} ssl addr 127.0.0.1
backend both
    server s 127.0.0.1:{port} ssl port {port} check-ssl
backend not-at-all
    server s 127.0.0.1:{port} ssl no-check-ssl
backend by-rule
    http-check connect ssl
    server s 127.0.0.1:{port}
backend by-rule-default
    http-check connect default
    server s 127.0.0.1:{port} ssl
backend by-rule-plain
    http-check connect
    server s 127.0.0.1:{port} check-ssl
"""
"""The server speaks plain HTTP: a check that opens TLS fails there, one that does not passes."""

OVERHEAD_S = 0.35
"""What a poll, a timer and a busy machine may add."""


class Hangs:
    """A server that answers every request with 200, and from some moment accepts and never answers."""

    def __init__(self) -> None:
        self.silent = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self.listener.getsockname()[1])
        self.held: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            self.held.append(one)
            threading.Thread(target=self._answer, args=(one,), daemon=True).start()

    def _answer(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while one.recv(4096):
                if not self.silent:
                    one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def close(self) -> None:
        for one in [self.listener, *self.held]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Running:
    """A real HAProxy in front of it."""

    def __init__(self, binary: Path, folder: Path, config: str = CONFIG, *, healthy: bool = True) -> None:
        self.server = Hangs()
        self.socket = folder / "s"
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.front = int(one.getsockname()[1])
        self.text = config.replace("{socket}", str(self.socket)).replace("{port}", str(self.server.port)).replace("{front}", str(self.front))
        self.file = folder / "haproxy.cfg"
        self.file.write_text(self.text)
        with (folder / "log").open("wb") as log:
            self.child = subprocess.Popen([binary, "-db", "-f", self.file], stdout=log, stderr=log)
        until = time.monotonic() + 10
        while not (states := self.states()) or (healthy and "DOWN" in states.values()):
            assert self.child.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)

    def states(self) -> dict[str, str]:
        """The status of each server by its backend; nothing while nobody listens."""
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(5)
                one.connect(str(self.socket))
                one.sendall(b"show stat\n")
                said = b""
                while piece := one.recv(65536):
                    said += piece
        except OSError:
            return {}
        rows = [line.split(",") for line in said.decode().splitlines()]
        return {row[0]: row[17] for row in rows if len(row) > 17 and row[1] not in {"svname", "FRONTEND", "BACKEND"}}

    def stop(self) -> None:
        self.child.kill()
        self.child.wait(5)
        self.server.close()


@pytest.fixture(params=VERSIONS)
def running(request: pytest.FixtureRequest, tmp_path: Path, real_engine: Callable[..., Path]) -> Iterator[Running]:
    one = Running(real_engine(VERSIONS[request.param], "haproxy"), tmp_path)
    yield one
    one.stop()


def audit(*words: str) -> tuple[int, Any, float]:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "edgekeeper", "audit", *words, "-o", "json"], capture_output=True, text=True, timeout=20, check=False)
    return done.returncode, json.loads(done.stdout), time.monotonic() - began


@pytest.mark.engine
def test_the_sum_is_what_the_engine_takes_and_the_pinned_client_is_named(running: Running) -> None:
    client = socket.create_connection(("127.0.0.1", running.front), timeout=5)
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert client.recv(100)
    code, told, _ = audit(str(running.file), "--socket", str(running.socket), "--only", "HAP002")
    assert (code, told["findings"]) == (0, []), "a session on a server that is up is nobody's business"

    running.server.silent = True
    began = time.monotonic()
    down: dict[str, float] = {}
    while len(down) < 3:
        for backend, status in running.states().items():
            if status.startswith("DOWN"):
                down.setdefault(backend, time.monotonic() - began)
        assert time.monotonic() - began < 10, (down, running.states())
        time.sleep(0.02)
    config = read([Source("haproxy.cfg", running.text)])
    for proxy in config.backends():
        expected = detection_of(config, proxy)
        assert expected is not None
        assert expected.least_s - 0.05 <= down[proxy.name] <= expected.most_s + OVERHEAD_S, (proxy.name, down, expected.sentence)

    code, told, took = audit(str(running.file), "--socket", str(running.socket))
    client_address = "{}:{}".format(*client.getsockname())
    client.close()
    assert code == 1
    assert took < 2
    first = told["findings"][0]
    assert (first["id"], first["severity"], first["object"]) == ("HAP002", "CRIT", "server plain/s1")
    assert client_address in first["evidence"]
    assert first["place"] == {"file": str(running.file), "line": 11}
    assert not [row for row in told["not_judged"] if "HAP002" in row["ids"]]


@pytest.mark.engine
def test_a_file_that_was_written_after_the_start_is_told(running: Running) -> None:
    code, told, _ = audit(str(running.file), "--socket", str(running.socket), "--only", "HAP012")
    assert (code, told["findings"]) == (0, [])
    later = time.time() + 30
    os.utime(running.file, (later, later))
    code, told, _ = audit(str(running.file), "--socket", str(running.socket), "--only", "HAP012")
    assert (code, [f["id"] for f in told["findings"]]) == (1, ["HAP012"])


@pytest.mark.engine
@pytest.mark.parametrize("version", VERSIONS)
def test_which_checks_open_tls(version: str, tmp_path: Path, real_engine: Callable[..., Path]) -> None:
    running = Running(real_engine(VERSIONS[version], "haproxy"), tmp_path, TLS, healthy=False)
    try:
        time.sleep(1)
        states = running.states()
    finally:
        running.stop()
    config = read([Source("haproxy.cfg", running.text)])
    assert {p.name: speaks_tls(p, p.servers[0]) for p in config.backends()} == {name: status.startswith("DOWN") for name, status in states.items()}


@pytest.mark.engine
@pytest.mark.parametrize("version", VERSIONS)
def test_haproxy_takes_every_fix(version: str, tmp_path: Path, real_engine: Callable[..., Path]) -> None:
    """One after the other, until nothing is left that says its words; where HAProxy refuses what was there before, it has no more to say after."""
    binary, file = real_engine(VERSIONS[version], "haproxy"), tmp_path / "haproxy.cfg"

    def alerts(text: str) -> set[str]:
        """What HAProxy refuses, without the lines and the names of servers."""
        file.write_text(text)
        done = subprocess.run([binary, "-c", "-f", file], capture_output=True, text=True, timeout=20, check=False)
        said = [line for line in (done.stdout + done.stderr).splitlines() if "[ALERT]" in line]
        return {re.sub(r"\(\d+\)|\[/\S+\]|'[^']*'", "", line) for line in said} if done.returncode else set()

    for case in sorted((Path(__file__).resolve().parents[1] / "golden" / "haproxy" / "audit").glob("*.cfg")):
        text = before = case.read_text()
        for _ in range(20):
            found = examine(HaproxyFacts(readings=readings([Source("haproxy.cfg", text)]))).findings
            after = next((after for finding in found if (after := carry_out(text, finding.fix)) is not None), None)
            if after is None:
                break
            text = after
        else:
            pytest.fail(f"{case.name}: the fixes never end")
        left = alerts(text)
        assert not left or left <= alerts(before), (case.name, left)

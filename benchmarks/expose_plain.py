"""What a controller of the field takes against a mesh that answers in 20 ms: its first pass and a steady one; for ``expose`` to be measured beside.

``python benchmarks/expose_plain.py [HOSTS]`` runs it alone. The fake of the mesh is a process of its own, so that it costs neither side anything.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from edgekeeper.host import control
from edgekeeper.lab.netbird_state import DOMAIN
from edgekeeper.lab.plain_expose import PlainExpose

LATENCY_S = 0.02
CIDR, TARGET = "198.51.100.0/24", "198.51.100.10"


class Mesh:
    """The fake as a process: ``url`` and ``token`` to reach it, ``order`` to command it, ``cpu_s`` of its own."""

    def __init__(self, latency_s: float = LATENCY_S) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._socket = Path(self._folder.name, "netbird.sock")
        argv = [sys.executable, "-m", "edgekeeper.lab.netbird", "--listen", "127.0.0.1:0", "--control", str(self._socket)]
        self._process = subprocess.Popen(argv)
        until = time.monotonic() + 20
        while not self._socket.is_socket():
            assert self._process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        where = self.order(do="where")
        self.url: str = where["url"]
        self.token: str = where["token"]
        self.order(do="latency", seconds=latency_s)

    def order(self, **request: Any) -> dict[str, Any]:
        """One command of its control socket."""
        said = asyncio.run(control.ask(self._socket, request, 10))
        assert said["ok"], said
        return said

    def cpu_s(self) -> float:
        """Seconds of processor that the fake has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        self._folder.cleanup()


def hosts(count: int) -> list[str]:
    """As many names under the domain that the fake knows."""
    return [f"host-{index:05}.{DOMAIN}" for index in range(count)]


@dataclass(frozen=True)
class Plain:
    """Of so many hosts: seconds of the first pass and of a steady one, calls of the steady one by method."""

    count: int
    first_s: float
    steady_s: float
    steady_calls: dict[str, int]


def measure(count: int, latency_s: float = LATENCY_S) -> Plain:
    """The first pass and a steady one, in the same run."""
    with Mesh(latency_s) as mesh:
        controller = PlainExpose(mesh.url, mesh.token, cidr=CIDR)
        begun = time.perf_counter()
        controller.sync(hosts(count), TARGET)
        between = time.perf_counter()
        steady = controller.sync(hosts(count), TARGET)
        ended = time.perf_counter()
        controller.mesh.close()
        assert mesh.order(do="counters")["writes"] == count + 4
    return Plain(count, between - begun, ended - between, dict(steady))


if __name__ == "__main__":
    found = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
    each_ms = found.first_s / found.count * 1000
    sys.stdout.write(f"first pass of {found.count} hosts: {found.first_s:.1f} s ({each_ms:.1f} ms a host, one after the other)\n")
    sys.stdout.write(f"steady pass: {found.steady_s:.2f} s, {found.steady_calls}\n")

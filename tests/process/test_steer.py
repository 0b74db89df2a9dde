"""Steering from outside: two processes share a UDP port, and every datagram goes where it is sent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.host import steer

pytestmark = pytest.mark.root

SOCKETS = 3
COUNTER = """
import select, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
found = []
for _ in range(int(sys.argv[3])):
    one = socket.socket(family, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((sys.argv[1], int(sys.argv[2])))
    found.append(one)
print("ready", flush=True)
while True:
    for one in select.select(found, [], [])[0]:
        data, who = one.recvfrom(100)
        one.sendto(sys.argv[4].encode(), who)
"""


class Pair:
    """Two processes, ``old`` and ``new``, with some sockets each on one address."""

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as free:
            free.bind((host, 0))
            self.port = free.getsockname()[1]
        self.host, self.family = host, family
        self.listen = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.old = self.start("old")
        self.new = self.start("new")

    def start(self, name: str) -> subprocess.Popen[bytes]:
        made = subprocess.Popen([sys.executable, "-I", "-S", "-c", COUNTER, self.host, str(self.port), str(SOCKETS), name], stdout=subprocess.PIPE)
        assert made.stdout is not None
        assert made.stdout.readline() == b"ready\n"
        return made

    def answers(self, count: int = 120) -> dict[str, int]:
        """Who answers that many datagrams, each from a port of its own."""
        told = {"old": 0, "new": 0, "nobody": 0}
        askers = [socket.socket(self.family, socket.SOCK_DGRAM) for _ in range(count)]
        for asker in askers:
            asker.settimeout(2)
            asker.sendto(b"?", (self.host, self.port))
        for asker in askers:
            try:
                told[asker.recv(10).decode()] += 1
            except TimeoutError:
                told["nobody"] += 1
            asker.close()
        return told

    def steer(self, pid: int, first: int) -> None:
        steer.attach(pid, [self.listen], {self.listen: SOCKETS}, {self.listen: first})

    def close(self) -> None:
        for each in (self.old, self.new):
            each.kill()
            each.wait()
            assert each.stdout is not None
            each.stdout.close()


@pytest.fixture(params=["127.0.0.1", "::1"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(request.param)
    yield made
    made.close()


def test_every_datagram_goes_where_it_is_steered_and_detaching_leaves_nothing(pair: Pair) -> None:
    shared = pair.answers()
    assert shared["old"]
    assert shared["new"]
    pair.steer(pair.old.pid, 0)
    assert pair.answers() == {"old": 120, "new": 0, "nobody": 0}
    pair.steer(pair.new.pid, SOCKETS)
    assert pair.answers() == {"old": 0, "new": 120, "nobody": 0}
    assert steer.detach(pair.new.pid, [pair.listen]) == 1
    assert steer.detach(pair.new.pid, [pair.listen]) == 0
    assert steer.detach(pair.old.pid, [pair.listen]) == 0
    again = pair.answers()
    assert again["old"]
    assert again["new"]


def test_the_death_of_the_old_one_loses_nothing_and_no_borrowed_socket_outlives_it(pair: Pair) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count is wanted
    pair.steer(pair.old.pid, 0)
    pair.steer(pair.new.pid, SOCKETS)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    pair.old.kill()
    pair.old.wait()
    assert pair.answers() == {"old": 0, "new": 120, "nobody": 0}
    assert steer.detach(pair.new.pid, [pair.listen]) == 1
    assert pair.answers() == {"old": 0, "new": 120, "nobody": 0}


def test_the_sockets_of_a_process_are_those_of_that_address(pair: Pair) -> None:
    assert len(steer.sockets(pair.old.pid, pair.listen)) == SOCKETS
    other = pair.listen.rpartition(":")[0] + ":1"
    assert steer.sockets(pair.old.pid, other) == []
    with pytest.raises(MissingError, match="has no UDP socket on"):
        steer.attach(pair.old.pid, [other], {other: 1}, {other: 0})
    assert steer.detach(pair.old.pid, [other]) == 0


def test_a_process_that_is_gone_is_an_error_and_no_traceback(pair: Pair) -> None:
    pair.old.kill()
    pair.old.wait()
    with pytest.raises((EdgekeeperError, OSError)):
        pair.steer(pair.old.pid, 0)


def test_without_the_right_it_says_which(pair: Pair) -> None:
    """As another user, who may not look into the engine."""
    code = (
        "import os\nfrom edgekeeper.host import steer\n"  # while it may read the program
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"try: steer._borrowed({pair.old.pid}, 3).__enter__()\n"
        "except Exception as err: print(type(err).__name__, err)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20)
    assert "MissingError" in done.stdout or "PermissionError" in done.stdout, done.stderr
    assert "ptrace rights over the engine are missing" in done.stdout


def test_time_is_short(pair: Pair) -> None:
    begun = time.monotonic()
    pair.steer(pair.old.pid, 0)
    steer.detach(pair.old.pid, [pair.listen])
    assert time.monotonic() - begun < 0.5

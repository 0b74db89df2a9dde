"""The track script: whatever hangs, it answers within 900 ms, and tells death from what is ill behind a living engine."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgekeeper.model.selfname import SELF_NAME
from edgekeeper.vip.look import Target, look
from edgekeeper.vip.question import section

START = "import sys; from edgekeeper.cli.main import main; main()"
HARD_S = 0.9
HEAVY = (
    "pydantic", "typer", "click", "asyncio", "dataclasses", "inspect", "pathlib", "tempfile", "threading", "logging", "json", "ssl", "subprocess", "argparse",
    "datetime", "email", "http", "urllib", "ipaddress", "rich", "unicodedata",
)  # fmt: skip


def probe(*words: object, stdout: int = subprocess.PIPE, start: str = START) -> tuple[int, str, float]:
    """Exit code, what it printed, and seconds from its start."""
    begun = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", start, "vip", "probe", "--vip", "dns", *map(str, words)], stdout=stdout, stderr=subprocess.PIPE) as child:
        code = child.wait(10)
        took = time.monotonic() - begun
        said = child.stdout.read().decode() if child.stdout else ""
    return code, said, took


class Server:
    """A DNS server that answers its questions with RCODEs: ``name`` for any name, ``alive`` for the engine's own; None is silence."""

    def __init__(self, name: int | None, alive: int | None = None, *, lie: bool = False, deaf: int = 0) -> None:
        self._codes, self._lie, self.deaf = (name, alive), lie, deaf
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed
            self._answer()

    def _answer(self) -> None:
        own = section(SELF_NAME, "TXT")
        while True:
            asked, who = self._socket.recvfrom(4096)
            if not asked:
                return
            if self.deaf:
                self.deaf -= 1
                continue
            code = self._codes[own in asked]
            if code is None:
                continue
            ident = bytes([asked[0] ^ 1, asked[1]]) if self._lie else asked[:2]
            self._socket.sendto(ident + b"\x81" + bytes([0x80 | code]) + asked[4:], who)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def server() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(*said: int | None, **more: int) -> Server:
        made.append(Server(*said, **more))
        return made[-1]

    yield make
    for item in made:
        item.close()


@pytest.fixture
def speaks() -> Iterator[Callable[[bytes | None], str]]:
    """Makes a TCP server that says these bytes to everybody and closes; with None it takes connections and is silent."""
    opened: list[socket.socket] = []

    def make(said: bytes | None) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        opened.append(listener)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    opened.append(peer)
                    if said is not None:
                        if said:
                            peer.recv(4096)
                            for piece in said.split(b"(later)"):
                                peer.sendall(piece)
                                time.sleep(0.02 * (b"(later)" in said))
                        peer.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield make
    for item in opened:
        with contextlib.suppress(OSError):
            item.shutdown(socket.SHUT_RDWR)
        item.close()


def dns(address: str) -> list[str]:
    return ["--dns", address, "--qname", "health.example.", "--qtype", "TXT"]


def peers(folder: Path, *, health: str = "good", can_take: bool = True, ago_s: float = 0.2) -> Path:
    at = time.monotonic() - ago_s
    path = folder / "peers.json"
    said = {"health": health, "usable": 3, "can_take": can_take}
    path.write_text(json.dumps({"schema": 1, "mono": at, "peers": {"edge-b": {"mono": at, "vips": {"dns": said}}}}))
    return path


def refused() -> str:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{held.getsockname()[1]}"


@pytest.mark.parametrize(
    ("codes", "kind"),
    [((0, 0), "good"), ((3, None), "good"), ((2, 0), "members"), ((2, None), "members"), ((5, 3), "members"), ((None, 3), "members"), ((None, None), "silent")],
)
def test_dns_in_every_state(server, codes, kind):
    asked = Target("dns", server(*codes).address, "health.example.", "TXT")
    begun = time.monotonic()
    assert look(asked, 0.2).kind == kind
    assert time.monotonic() - begun < 0.22 + 0.03  # and what this test's own threads take


def test_an_answer_to_another_question_is_none_and_a_lost_one_is_asked_again(server):
    assert look(Target("dns", server(0, 0, lie=True).address, "health.example.", "A"), 0.15).kind == "silent"
    assert look(Target("dns", server(0, 0, deaf=4).address, "health.example.", "A"), 0.4).kind == "good"


def test_a_refused_port_is_death(speaks):
    address = refused()
    for target in (Target("dns", address, "a.", "A"), Target("tcp", address), Target("http", address, url=f"http://{address}/")):
        assert look(target, 0.3).kind == "dead"
    assert look(Target("tcp", speaks(None)), 0.3).kind == "good"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "good"),
        (b"HTTP/1.0 302 Found\r\nLocation: /\r\n\r\n", "good"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "members"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nno server", "members"),
        (b"HTTP/1.1 503 No\r\nEdgekeeper-State: draining\r\n\r\n", "draining"),
        (b"HTTP/1.1 503 No\r\n\r\nlameduck", "draining"),
        (b"HTTP/1.1 503 No\r\n\r\n(later)lame(later)duck", "draining"),
        (b"220 mail.example ESMTP\r\n", "members"),
        (b"", "dead"),
        (None, "silent"),
    ],
)
def test_http_in_every_state(speaks, said, kind):
    address = speaks(said)
    begun = time.monotonic()
    assert look(Target("http", address, url=f"http://{address}/health"), 0.2).kind == kind
    assert time.monotonic() - begun < 0.25


def test_https_without_tls_behind_it_and_a_silent_handshake(speaks):
    plain, silent = speaks(b"HTTP/1.1 400 Bad Request\r\n\r\n"), speaks(None)
    assert look(Target("http", plain, url=f"https://{plain}/"), 0.3).kind == "members"
    assert look(Target("http", silent, url=f"https://{silent}/"), 0.2).kind == "silent"


def test_silence_fails_in_time_and_says_why(server):
    code, said, took = probe(*dns(server(None, None).address))
    assert (code, took < HARD_S) == (1, True), (said, took)
    assert said.startswith("dns: FAIL (silent): 127.0.0.1:")
    assert said.count("\n") == 1


def test_what_is_behind_a_living_engine_moves_the_vip_to_a_better_peer_only(server, tmp_path):
    ill = dns(server(2, 0).address)
    assert probe(*ill)[0] == 0
    assert probe(*ill, "--peers", peers(tmp_path))[0] == 1
    assert probe(*ill, "--peers", peers(tmp_path, health="members"))[0] == 0
    assert probe(*ill, "--peers", peers(tmp_path, ago_s=9))[0] == 0
    (tmp_path / "peers.json").write_text('{"peers": {"edge-b": {"mo')
    assert probe(*ill, "--peers", tmp_path / "peers.json")[0] == 0


def test_death_moves_it_unless_no_peer_is_better_off(tmp_path):
    assert probe("--tcp", refused())[0] == 1
    code, said, _ = probe("--tcp", refused(), "--peers", peers(tmp_path, health="dead", can_take=False))
    assert code == 0
    assert "kept all the same: edge-b freshly says" in said


@pytest.mark.parametrize("hangs", ["api", "key", "peers", "http", "resolver"])
def test_whatever_hangs_it_is_over_in_time(server, speaks, tmp_path, hangs):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "key").write_text("k" * 20)
    silent, good, dead = speaks(None), dns(server(0, 0).address), dns(server(None, None).address)
    api = ["--dnsdist-api", f"http://{silent}", "--require-backends", "1", "--dnsdist-api-key-file"]
    words, expected = {
        "api": ([*good, *api, tmp_path / "key"], 0),
        "key": ([*good, *api, tmp_path / "fifo"], 0),
        "peers": ([*dead, "--peers", tmp_path / "fifo"], 1),
        "http": (["--http", f"http://{silent}/"], 1),
        "resolver": (["--tcp", "no-such-host.example:1"], 0),
    }[hangs]
    if hangs == "resolver":  # a lookup that never ends: the name server of this machine may answer at once
        slow = "import socket, time\nreal = socket.getaddrinfo\nsocket.getaddrinfo = lambda *a: real(*a) if a[5:] else time.sleep(5)\n"
        code, said, took = probe(*words, start=slow + START)
        expected = 1
    else:
        code, said, took = probe(*words)
    assert (code, took < HARD_S) == (expected, True), (said, took)


def test_a_look_that_never_ends_is_ended(speaks):
    stuck = "import time\nfrom edgekeeper.vip import track\ntrack.look = lambda *_: time.sleep(5)\n"
    code, said, took = probe("--tcp", speaks(None), start=stuck + START)
    assert (code, took < HARD_S) == (1, True), took
    assert said == "FAIL (late): no verdict within 860 ms of the start\n"


def test_nobody_who_reads_and_nobody_there_hold_it_up(server):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"x" * 65536):
            pass
    os.set_blocking(writer, True)
    code, _, took = probe(*dns(server(None, None).address), stdout=writer)
    assert (code, took < HARD_S) == (1, True), took
    os.close(reader)
    code, _, took = probe(*dns(server(0, 0).address), stdout=writer)
    os.close(writer)
    assert (code, took < HARD_S) == (0, True), took


def test_a_wrong_command_line_is_told_in_one_line():
    code, said, _ = probe("--tcp", "nonsense\x1b[2J")
    assert (code, said) == (2, "")


def test_the_usual_look_imports_little(server):
    listing = "import os, sys\nend = os._exit\nos._exit = lambda code: (sys.stderr.write(' '.join(sys.modules)), sys.stderr.flush(), end(code))\n"
    words = [sys.executable, "-c", listing + START, "vip", "probe", "--vip", "dns", *dns(server(0, 0).address)]
    found = set(subprocess.run(words, capture_output=True, text=True, check=True, timeout=10).stderr.split())
    bare = set(subprocess.run([sys.executable, "-c", "import socket, sys; print(*sys.modules)"], capture_output=True, text=True, check=True).stdout.split())
    assert not {name for name in found - bare if name.split(".")[0] in HEAVY}
    assert len(found - bare) < 36, sorted(found - bare)

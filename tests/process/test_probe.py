"""The outage meter against real servers on loopback: black holes, refusals, and a connection pinned to something dead."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.lab.certs import Authority
from edgekeeper.meter.meter import Meter, Pace
from edgekeeper.model.sample import Sample
from edgekeeper.probe.target import parse


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def member() -> Iterator[int]:
    """A DNS server of the lab; its port."""
    port = free_port()
    argv = [sys.executable, "-m", "edgekeeper.lab.member", "--listen", f"127.0.0.1:{port}", "--name", "ns-a"]
    server = subprocess.Popen(argv)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            break
        time.sleep(0.02)
    yield port
    server.kill()
    server.wait()


def measure(urls: list[str], pace: Pace, around: Callable[[], Coroutine[Any, Any, None]] | None = None) -> list[Sample]:
    """Run the meter; ``around`` runs beside it."""
    found: list[Sample] = []

    async def run() -> None:
        beside = asyncio.create_task(around()) if around is not None else None
        await asyncio.sleep(0.05)
        await Meter([parse(u) for u in urls], pace, lambda sample, _: found.append(sample)).run()
        if beside is not None:
            beside.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beside

    asyncio.run(run())
    return found


def test_dns_over_udp_and_tcp_says_who_answered(member: int) -> None:
    base = f"dns://127.0.0.1:{member}/health.example?type=TXT"
    found = measure([base, f"{base}&transport=tcp"], Pace(every_s=0.05, count=5, warm=True))
    assert len(found) == 20
    assert all(s.ok and s.answered_by == "ns-a" for s in found)
    fresh_tcp = [s for s in found if s.conn == "fresh" and "tcp" in s.target]
    assert all(s.connect_ms is not None and s.tls_ms is None for s in fresh_tcp)


def test_a_refusal_and_an_error_code_in_plain_words(member: int) -> None:
    closed = free_port()
    found = measure(
        [f"tcp://127.0.0.1:{closed}", f"dns://127.0.0.1:{closed}/x.example", f"dns://127.0.0.1:{member}/x.example?type=A"], Pace(every_s=0.05, count=2)
    )
    assert {s.error for s in found if str(closed) in s.target} == {"refused"}
    assert all(s.ok for s in found if str(member) in s.target)


def test_a_black_hole_never_delays_the_next_question() -> None:
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    found = measure([f"dns://127.0.0.1:{silent.getsockname()[1]}/x.example"], Pace(every_s=0.05, timeout_s=0.6, count=10))
    silent.close()
    sent = sorted(s.sent for s in found)
    assert len(found) == 10
    assert all(not s.ok and s.error is not None and s.error.startswith("timed out") for s in found)
    assert sent[-1] - sent[0] < 0.6, "ten questions 50 ms apart, although each waits 600 ms"


def test_it_is_told_how_far_a_question_came() -> None:
    """A server that accepts and says nothing is another fault than one that cannot be reached."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        port = silent.getsockname()[1]
        urls = [f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{port}/", f"dns://127.0.0.1:{port}/x.example?transport=tcp"]
        found = measure(urls, Pace(every_s=0.05, timeout_s=0.2, count=1))
    assert [s.error for s in sorted(found, key=lambda s: urls.index(s.target))] == [
        "timed out (TCP stands, no byte of an answer came)",
        "timed out (TCP stands, the TLS handshake did not end)",
        "timed out (TCP stands, no byte of an answer came)",
    ]
    assert all(s.connect_ms is not None for s in found)


def test_marks_are_one_of_a_kind_and_leave_the_target_as_it_was() -> None:
    asked: list[bytes] = []

    async def server() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append((await reader.readuntil(b"\r\n\r\n")).split()[1])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", port):
            await asyncio.sleep(3600)

    port = free_port()
    urls = [f"http://127.0.0.1:{port}/ping", f"http://127.0.0.1:{port}/ping?a=b"]
    found = measure(urls, Pace(every_s=0.05, count=3, mark=True), server)
    assert {s.target for s in found} == set(urls)
    paths = {f"/ping{'?a=b&' if s.target.endswith('b') else '?'}kp={s.id}".encode() for s in found}
    assert paths == set(asked)
    assert len(paths) == 6
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert measure([f"tcp://127.0.0.1:{other.getsockname()[1]}"], Pace(count=1, mark=True))[0].id is None


def test_a_kept_connection_shows_what_a_fresh_one_hides() -> None:
    """The server answers new connections and lets the old one hang: what a pinned session sees."""
    stuck: list[bool] = []

    async def server() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            answered = 0
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await reader.readuntil(b"\r\n\r\n"):
                    answered += 1
                    if answered > 3:
                        stuck.append(True)
                        continue
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            writer.transport.abort()

        async with await asyncio.start_server(serve, "127.0.0.1", port):
            await asyncio.sleep(3600)

    port = free_port()
    found = measure([f"http://127.0.0.1:{port}/"], Pace(every_s=0.05, timeout_s=0.2, count=8, warm=True), server)
    fresh, warm = ([s for s in sorted(found, key=lambda s: s.sent) if s.conn == c] for c in ("fresh", "warm"))
    assert all(s.ok for s in fresh)
    assert [s.ok for s in warm] == [True] * 3 + [False] * 5
    assert stuck


def test_tls_is_checked_unless_told_otherwise(tmp_path: Path) -> None:
    leaf = Authority(tmp_path).issue()
    port = free_port()

    async def server() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(leaf / "tls.crt", leaf / "tls.key")
        async with await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", port, ssl=context):
            await asyncio.sleep(3600)

    found = measure([f"tls://127.0.0.1:{port}", f"tls://127.0.0.1:{port}?verify=no"], Pace(every_s=0.05, count=2), server)
    strict = [s for s in found if "verify" not in s.target]
    assert all(not s.ok and s.error is not None and s.error.startswith("TLS: ") for s in strict)
    assert all(s.ok and s.tls_ms is not None for s in found if "verify" in s.target)


def command(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "edgekeeper", "probe", *argv], capture_output=True, text=True, timeout=30, check=False)


def test_the_command_records_summarizes_and_fails_when_told_to(member: int, tmp_path: Path) -> None:
    record = tmp_path / "probe.jsonl"
    url, closed = f"dns://127.0.0.1:{member}/health.example?type=TXT", f"tcp://127.0.0.1:{free_port()}"
    done = command(url, closed, "--every", "50ms", "--count", "4", "--record", str(record), "--fail-if", "unanswered > 0", "-o", "json")
    assert done.returncode == 1, done.stderr
    out = json.loads(done.stdout)
    assert out["schema"] == 1
    assert [t["unanswered"] for t in out["targets"]] == [0, 4]
    assert [f["target"] for f in out["failed"]] == [closed]
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 8
    keys = {"schema", "ts", "target", "conn", "sent", "done", "ok", "slow", "error", "connect_ms", "tls_ms", "first_byte_ms", "answered_by"}
    assert all(set(line) == keys for line in lines)


def test_ctrl_c_gives_the_summary(member: int) -> None:
    argv = [sys.executable, "-m", "edgekeeper", "probe", f"dns://127.0.0.1:{member}/health.example?type=TXT", "--every", "50ms"]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.0)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=10)
    assert running.returncode == 0, err
    assert "no failure seen in" in out
    assert "Traceback" not in err


def test_an_end_does_not_wait_for_a_long_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        argv = [sys.executable, "-m", "edgekeeper", "probe", url, "--timeout", "50s", "--every", "100ms", "--duration", "300ms", "-o", "json"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["targets"][0]["verdict"] == "nothing asked"
    assert "Traceback" not in done.stderr

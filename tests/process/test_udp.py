"""One datagram and its answer, and the members' own answers on the path that dnsdist asks them."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from edgekeeper.dns.desired import Observation
from edgekeeper.dns.observe import PROXY_LOCAL, observe, serial
from edgekeeper.host.udp import exchange
from edgekeeper.lab.member import Manner, answer, strip_proxy
from edgekeeper.model.backend import Member

Reply = Callable[[bytes], list[bytes]]


class Server:
    """Answers each datagram with some."""

    def __init__(self, reply: Reply, host: str = "127.0.0.1") -> None:
        self.reply, self.host = reply, host
        self.heard: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            data, who = self._socket.recvfrom(4096)
            if data == b"end":
                return
            self.heard.append(data)
            for each in self.reply(data):
                self._socket.sendto(each, who)

    def close(self) -> None:
        with socket.socket(self._socket.family, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", (self.host, self.port))
        self._thread.join(5)
        self._socket.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def start(reply: Reply, host: str = "127.0.0.1") -> Server:
        made.append(Server(reply, host))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_strays_are_passed_over_and_the_answer_is_taken(serve: Callable[..., Server], host: str) -> None:
    server = serve(lambda _: [b"late one", b"forged", b"ours"], host)
    found = asyncio.run(exchange(host, server.port, b"?", lambda data: data == b"ours", 2))
    assert found == b"ours"


def test_silence_is_a_timeout_and_only_strays_are_silence(serve: Callable[..., Server]) -> None:
    for reply in ([], [b"stray"] * 3):
        server = serve(lambda _, reply=reply: reply)
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            asyncio.run(exchange("127.0.0.1", server.port, b"?", lambda data: data == b"ours", 0.2))
        assert time.monotonic() - begun < 1


def test_a_closed_port_is_told_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(OSError, match="refused"):
        asyncio.run(exchange("127.0.0.1", 1, b"?", lambda _: True, 5))
    assert time.monotonic() - begun < 1


def member(serve: Callable[..., Server], manner: Manner, *, proxy: bool = False) -> tuple[Member, Server]:
    def reply(data: bytes) -> list[bytes]:
        packet, size = strip_proxy(data)
        if proxy and not size:
            return []
        found, _ = answer(packet, manner)
        return [found] if found is not None else []

    server = serve(reply)
    return Member(manner.name, "127.0.0.1", server.port), server


def observed(found: Member, question: tuple[str, str] = ("health.example.", "TXT"), *, proxy: bool = False) -> Observation:
    return asyncio.run(observe([found], question, proxy=proxy, deadline_s=0.3))[found.address]


def test_a_member_says_how_it_is_and_who(serve: Callable[..., Server]) -> None:
    manner = Manner("ns-a")
    found, _ = member(serve, manner)
    assert observed(found) == Observation("NOERROR", "ns-a")
    assert observed(found, ("www.example.", "A")) == Observation("NOERROR", "ns-a")
    manner.draining = True
    assert observed(found) == Observation("NOERROR", "ns-a draining")
    manner.mode = "refused"
    assert observed(found).rcode == "REFUSED"
    manner.mode = "drop"
    silent = observed(found)
    assert (silent.rcode, silent.says) == (None, None)
    assert "no answer within 0.3 s" in silent.error


def test_a_member_that_wants_a_proxy_header_is_asked_with_one(serve: Callable[..., Server]) -> None:
    found, server = member(serve, Manner("ns-a"), proxy=True)
    assert observed(found, proxy=True).rcode == "NOERROR"
    assert all(data.startswith(PROXY_LOCAL) for data in server.heard)
    assert observed(found, proxy=False).rcode is None


def test_an_answer_to_somebody_else_is_none(serve: Callable[..., Server]) -> None:
    server = serve(lambda data: [bytes([data[0] ^ 1]) + data[1:2] + b"\x81\x80" + data[4:], data])
    assert observed(Member("ns-a", "127.0.0.1", server.port)).rcode is None


def test_garbage_is_no_answer_and_no_traceback(serve: Callable[..., Server]) -> None:
    server = serve(lambda data: [data[:2] + b"\x81\x80" + b"\x00\x01\xff"])
    assert observed(Member("ns-a", "127.0.0.1", server.port)).rcode is None


def test_a_round_asks_everybody_at_the_same_time(serve: Callable[..., Server]) -> None:
    silent = [Member("", "127.0.0.1", serve(lambda _: []).port) for _ in range(20)]
    begun = time.monotonic()
    assert len(asyncio.run(observe(silent, ("health.example.", "TXT"), proxy=False, deadline_s=0.3))) == 20
    assert time.monotonic() - begun < 1.5


def test_a_serial_is_told_by_the_first_that_knows_the_zone(serve: Callable[..., Server]) -> None:
    refusing, _ = member(serve, Manner("ns-a", mode="refused"))
    knowing, _ = member(serve, Manner("ns-b", serial=7))
    assert asyncio.run(serial([refusing, knowing], "a.example.", proxy=False, deadline_s=0.3)) == 7
    assert asyncio.run(serial([refusing], "a.example.", proxy=False, deadline_s=0.3)) is None
    assert asyncio.run(serial([], "a.example.", proxy=False, deadline_s=0.3)) is None

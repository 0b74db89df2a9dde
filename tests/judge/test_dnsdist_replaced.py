"""No query is lost or answered with an error while members change, all of them at once too.

The queries come so fast (2,000 a second) that a pool that is empty between two console commands is met (while there
was one, 41 of 48 runs of these tests failed).
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Self

import pytest

from edgekeeper.model.backend import Member

pytestmark = pytest.mark.engine

EVERY_S = 0.0005
IN_FLIGHT = 64
"""Unanswered queries at one time, far fewer than a socket's buffer holds: where a busy machine lets the answering threads wait, the kernel drops none."""
LAST_ANSWERS_S = 3.0
ROUNDS = 3
HEALTH = {"name": "health.example.", "type": "TXT", "rise": 9}
"""Who is new earns its place only after all the rounds."""


@dataclass
class Asker:
    """Asks one listener as fast as ``EVERY_S`` in a thread of its own, a name of its own each time, and reads what comes back."""

    place: tuple[str, int]
    sent: int = 0
    answered: set[int] = field(default_factory=set)
    refused: int = 0

    def __post_init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(self.place)
        self._socket.settimeout(0.2)
        self._done = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._ask, self._hear)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the last answers."""
        self._done.set()
        self._threads[0].join(5)
        end = time.monotonic() + LAST_ANSWERS_S
        while len(self.answered) < self.sent and time.monotonic() < end:
            time.sleep(0.02)
        self.sent, last = -1, self.sent
        self._threads[1].join(5)
        self.sent = last
        self._socket.close()

    def _ask(self) -> None:
        due = time.monotonic()
        while not self._done.is_set():
            if self.sent - len(self.answered) < IN_FLIGHT:
                number = (self.sent & 0xFFFF).to_bytes(2, "big")
                self._socket.send(number + bytes.fromhex("01000001000000000000") + b"\x08n%07d\x03lan" % self.sent + bytes.fromhex("0000100001"))
                self.sent += 1
            due = max(due + EVERY_S, time.monotonic() - 0.05)  # who was held up does not catch up all at once
            time.sleep(max(0.0, due - time.monotonic()))

    def _hear(self) -> None:
        while self.sent >= 0:
            try:
                answer = self._socket.recv(512)
            except TimeoutError:
                continue
            self.answered.add(int(answer[14:21]))
            self.refused += answer[3] & 15 != 0


def up(engine, seat, count):
    end = time.monotonic() + 10
    while sum(server.up for server in asyncio.run(engine.hands.status(seat)).servers) < count:
        assert time.monotonic() < end, "the members did not come up"
        time.sleep(0.05)


def lost(engine, topologies, rounds):
    """How many queries got an error and how many no answer while the engine goes from each to the next, ``rounds`` times round."""
    seat, _ = engine.start(topologies[0])
    up(engine, seat, len(topologies[0].backends))
    host, _, port = topologies[0].listeners[0].address.rpartition(":")
    with Asker((host, int(port))) as asker:
        for _ in range(rounds):
            for old, new in zip(topologies, (*topologies[1:], topologies[0]), strict=True):
                assert asyncio.run(engine.hands.live(old, new, seat)) is None
    assert asker.sent > 100, "too few were asked to say anything"
    return asker.refused, asker.sent - len(asker.answered)


def members(answerer, name, count=3, pools=()):
    return tuple(Member(f"{name}{i}", "127.0.0.1", answerer(f"{name}{i}").port, pools) for i in range(count))


def test_all_members_are_replaced_at_once(dnsdist, answerer):
    said = {"listen": dnsdist.dns().listen, "health": HEALTH}
    assert lost(dnsdist, [dnsdist.topology(members(answerer, name, 2), **said) for name in ("old-", "new-")], ROUNDS) == (0, 0)


def test_members_move_and_change_and_the_last_one_goes(dnsdist, answerer):
    first, second = members(answerer, "ns-"), members(answerer, "ns-")
    said = {"listen": dnsdist.dns().listen, "health": HEALTH}
    steps = [
        dnsdist.topology(first, **said),
        dnsdist.topology(second, **said),  # the same names at other addresses
        dnsdist.topology(second, forgiving=True, **said),  # the same with another health check
        dnsdist.topology(first[:1], **said),
        dnsdist.topology(second[1:], **said),
    ]
    assert lost(dnsdist, steps, 1) == (0, 0)


def test_a_pool_is_not_held_by_members_of_another_one(dnsdist, answerer):
    said = {"listen": dnsdist.dns().listen, "health": HEALTH}
    others = members(answerer, "auth-", pools=("authoritative",))
    assert lost(dnsdist, [dnsdist.topology((*members(answerer, name, 1, ("resolver",)), *others), **said) for name in ("old-", "new-")], 1) == (0, 0)


def test_a_forwarded_zone_comes_and_goes(dnsdist, answerer):
    said = {"listen": dnsdist.dns().listen, "health": HEALTH}
    everywhere, there = members(answerer, "ns-", 1), members(answerer, "lan-", 1)
    assert lost(dnsdist, [dnsdist.topology(everywhere, forward=forward, **said) for forward in ({"lan.": there}, {})], ROUNDS) == (0, 0)

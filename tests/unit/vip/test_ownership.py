"""An owner among others: settles, names a rival, tells the network, steps aside; over a wire and a keepalived in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.keepalived import topology

from edgekeeper.errors import StepFailedError
from edgekeeper.model.entry import Entry
from edgekeeper.vip import ownership
from edgekeeper.vip.bell import Bell
from edgekeeper.vip.book import Book, Page
from edgekeeper.vip.decide import Peering
from edgekeeper.vip.drained import Drained
from edgekeeper.vip.ownership import LOOK_EVERY, Ownership
from edgekeeper.vip.weight import TrackFile, Weight

PEER, IP = "192.0.2.12", "192.0.2.50"
LOW = 2  # of 254 and 253 the lowest is 253; 252 is below it


class Node:
    """A node that holds ``v0``; what it knows of its one peer is the test's to say."""

    def __init__(self, folder: Path) -> None:
        self.now, self.journal, self.alarms, self.seen = 1000.0, [], {}, []  # type: tuple[float, list[Entry], dict[str, str | None], list[str]]  # type: ignore[assignment]
        self.book, self.bell, self.weights, self.drained = Book(), Bell(), TrackFile(folder, "weight"), Drained(folder)
        self.book.rewrite(topology(advert="50ms").instances)
        self.page.held, self.page.held_since = True, self.now
        self.peering, self.heard, self.unheard = Peering(able=("edge-b",)), [True], False  # type: tuple[Peering, list[bool | None], bool]  # type: ignore[assignment]
        self.own = Ownership(
            self.book, self, self.weights, self.drained, self.bell, self, self, self,  # type: ignore[arg-type]
            peering=lambda _: self.peering, heard_since=lambda _: self.heard, unheard=lambda: self.unheard, lowest=lambda _: 253, names=lambda: {PEER: "edge-b"},
        )  # fmt: skip

    @property
    def page(self) -> Page:
        return self.book.pages["v0"]

    @property
    def weight(self) -> int:
        return self.weights.read("v0")

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    def write(self, entry: Entry) -> None:
        self.journal.append(entry)

    def set(self, name: str, why: str | None) -> None:
        self.alarms[name] = why

    def cover(self, page: Page) -> None:
        self.seen.append("cover")
        page.busy = True

    def look(self, times: int = 1) -> None:
        during(self, lambda: [self.own.look() for _ in range(times)])


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node(tmp_path)
    monkeypatch.setattr(ownership, "ANNOUNCE_EVERY_S", 0.0)
    monkeypatch.setattr(ownership, "announce", lambda interface, ip: made.seen.append(f"announce {ip} on {interface}"))
    return made


def during(node: Node, work: Callable[[], Any]) -> None:
    """Do it in a loop, and wait for what it began."""

    async def both() -> None:
        work()
        await asyncio.gather(*node.own._announcing, *node.own.yielding.values())

    asyncio.run(both())


def test_an_owner_that_every_peer_has_heard_of_announces_less_and_has_its_own_priority_again_when_it_is_none(node: Node) -> None:
    node.heard = [False]
    node.look()
    assert node.weight == Weight.SERVING
    node.heard = [True]
    node.look()
    assert node.weight == LOW
    node.page.held = False
    node.look()
    assert node.weight == Weight.SERVING


def test_what_somebody_else_wrote_stays_and_what_went_stale_is_put_right(node: Node) -> None:
    node.look()
    node.weights.write("v0", Weight.SERVING)  # a hand-over of which nothing is known here
    node.look(LOOK_EVERY)
    assert node.weight == LOW
    node.weights.write("v0", Weight.FAULT)
    node.page.held = False
    node.look(2 * LOOK_EVERY)
    assert node.weight == Weight.FAULT


@pytest.mark.parametrize("why", ["busy", "drained"])
def test_the_weight_of_a_hand_over_is_not_touched(node: Node, why: str) -> None:
    if why == "busy":
        node.page.busy = True
    else:
        node.drained.set("v0", drained=True)
    node.look(2 * LOOK_EVERY)
    assert node.weight == Weight.SERVING


def test_when_a_contest_ends_the_owner_that_stays_tells_the_network_once(node: Node) -> None:
    node.peering = Peering(able=("edge-b",), holders=("edge-b",))
    node.look()
    assert node.weight == Weight.SERVING, "contested: it announces all that it has"
    node.peering = Peering(able=("edge-b",))
    node.look(3)
    assert node.seen == [f"announce {IP} on eth0"] * ownership.ANNOUNCED
    assert [(str(e.event), e.decision) for e in node.journal] == [("vip.announced", "act")]


def test_who_lost_it_or_is_alone_all_the_time_tells_nobody(node: Node) -> None:
    node.unheard = True
    node.look()
    node.page.held, node.unheard = False, False
    node.look(3)
    assert (node.seen, node.journal) == ([], [])


def test_an_interface_that_cannot_be_spoken_on_ends_the_telling(node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: str) -> None:
        msg = "the network is down"
        raise StepFailedError(msg)

    monkeypatch.setattr(ownership, "announce", refuse)
    node.unheard = True
    node.look()
    node.unheard = False
    node.look()
    assert "the network is down; keepalived announces it within 30 s" in caplog.text


def test_a_second_owner_is_named_by_its_status_or_its_adverts(node: Node) -> None:
    node.peering = Peering(holders=("edge-b",))
    node.look()
    assert node.alarms["v0 owners"] is None, "a hand-over has two for a moment"
    node.now += 1
    node.look()
    assert node.alarms["v0 owners"] == f"VIP v0 ({IP}) has two owners, this node and edge-b: edge-b says that it holds the VIP too"
    node.peering = Peering()
    for at in range(1, 20):
        node.page.advert(node.now + 0.05 * at, PEER, 253)
    node.now += 1
    node.look()
    assert "two owners, this node and edge-b: adverts of another owner" in (node.alarms["v0 owners"] or "")
    node.now += 1
    node.look()
    assert node.alarms["v0 owners"] is None


def test_a_thawed_node_steps_aside_covered_for_a_peer_that_still_announces_itself(node: Node) -> None:
    said: list[int] = []
    write = node.weights.write

    def told(name: str, value: int) -> None:
        write(name, value)
        said.append(int(value))
        if value == Weight.FAULT:
            node.page.held = False
            node.page.advert(node.now + 2, PEER, 254)

    node.weights.write = told  # type: ignore[method-assign]
    node.page.advert(node.now + 1, PEER, 254)
    during(node, lambda: node.own.thawed(5.0))
    assert said == [Weight.FAULT, Weight.SERVING]
    assert node.seen == ["cover"]
    assert not node.page.busy
    assert [(str(e.event), e.object) for e in node.journal] == [("vip.yielded", "v0")]


@pytest.mark.parametrize("what", ["nobody", "before", "busy", "not held"])
def test_a_thawed_node_moves_nothing_else(node: Node, what: str) -> None:
    if what != "nobody":
        node.page.advert(node.now + (0 if what == "before" else 1), PEER, 254)
    node.page.busy = what == "busy"
    node.page.held = what != "not held"
    during(node, lambda: node.own.thawed(5.0))
    assert (node.seen, node.journal, node.weight) == ([], [], Weight.SERVING)


def test_a_file_that_cannot_be_written_is_an_alarm_until_it_can(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        msg = "no space left"
        raise StepFailedError(msg)

    with monkeypatch.context() as patched:
        patched.setattr(node.weights, "write", full)
        node.own.weigh("v0", 0)
    assert node.alarms["v0 weight"] == "keepalived cannot be told about v0: no space left"
    node.own.weigh("v0", 0)
    assert node.alarms["v0 weight"] is None

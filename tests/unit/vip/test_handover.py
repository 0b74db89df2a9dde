"""Planned hand-overs, over a kernel, a keepalived and a peer in memory: what is done in which order, and what is left when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.keepalived import topology

from edgekeeper.errors import StepFailedError
from edgekeeper.model.entry import Entry
from edgekeeper.vip import handover
from edgekeeper.vip.bell import Bell
from edgekeeper.vip.book import Book, Page
from edgekeeper.vip.decide import Peering
from edgekeeper.vip.drained import Drained
from edgekeeper.vip.handover import Done, Handover
from edgekeeper.vip.weight import Weight

PEER = "192.0.2.12"


class Scene:
    """Two VIPs that this node holds. ``seen`` is what was done; ``keepalived`` is what a written weight leads to."""

    def __init__(self, folder: Path) -> None:
        self.now, self.seen, self.journal = 100.0, [], []  # type: tuple[float, list[str], list[Entry]]  # type: ignore[assignment]
        self.book, self.bell, self.drained = Book(), Bell(), Drained(folder)
        self.book.rewrite(topology({"name": "dns"}, {"name": "web"}, advert="50ms").instances)
        for page in self.book.pages.values():
            page.held = True
        self.peering, self.dead, self.refusal = Peering(able=("edge-b",)), False, None  # type: tuple[Peering, bool, str | None]  # type: ignore[assignment]
        self.keepalived: Callable[[Page, int], None] = self.obeys
        self.claims: str | None = None
        self.handover = Handover(
            self.book, self, self, self.drained, self.bell, self, self,  # type: ignore[arg-type]
            peering=lambda _: self.peering, dead=lambda _: self.dead, names=lambda: {PEER: "edge-b"}, claimant=lambda name, since: self.claims, deadline_s=0.02,
        )  # fmt: skip

    def monotonic(self) -> float:
        self.now += 0.001
        return self.now

    def wall(self) -> float:
        return self.now

    def put(self, ip: str, interface: str) -> str | None:
        self.seen.append(f"cover {ip} {interface}")
        return self.refusal

    def take(self, ip: str) -> None:
        self.seen.append(f"uncover {ip}")

    def write(self, *said: Any) -> None:
        if isinstance(said[0], Entry):
            self.journal.append(said[0])
            return
        name, value = said
        self.seen.append(f"weight {name} {int(value)}")
        self.keepalived(self.book.pages[name], value)

    def obeys(self, page: Page, value: int) -> None:
        """FAULT: the address goes, and the peer announces itself 8 ms later."""
        if value == Weight.FAULT and page.held:
            page.held, page.left_at = False, self.monotonic()
            page.advert(page.left_at + 0.008, PEER, 200)

    def alone(self, page: Page, value: int) -> None:
        """Nobody takes it; without FAULT this node does again."""
        page.held, page.left_at = value != Weight.FAULT, self.monotonic()

    @property
    def page(self) -> Page:
        return self.book.pages["dns"]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(handover, "SETTLE_S", 0.0)
    return Scene(tmp_path)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


IP = "192.0.2.50"


def test_a_drain_covers_first_lets_go_then_and_uncovers_last(scene: Scene) -> None:
    done = run(scene.handover.drain("dns", force=False))
    assert scene.seen == [f"cover {IP} eth0", "weight dns 300", f"uncover {IP}"]
    assert (done.ok, done.code) == (True, 0)
    assert done.why.startswith("dns moved to edge-b (192.0.2.12) after ")
    assert done.why.endswith(" nobody's for 8 ms of it")
    assert scene.drained.names == {"dns"}
    assert (scene.page.busy, scene.page.covered_at) == (False, None)
    assert [(entry.decision, entry.why) for entry in scene.journal] == [("act", done.why)]


def test_a_rebalance_ends_as_a_backup_that_may_take_it_again(scene: Scene) -> None:
    assert run(scene.handover.rebalance("dns")).ok
    assert scene.seen == [f"cover {IP} eth0", "weight dns 300", f"uncover {IP}", "weight dns 0"]
    assert scene.drained.names == set()


@pytest.mark.parametrize("what", ["drain", "rebalance"])
def test_when_nobody_takes_it_the_weight_goes_back_before_the_cover_does(scene: Scene, what: str) -> None:
    scene.keepalived = scene.alone
    done = run(scene.handover.drain("dns", force=False) if what == "drain" else scene.handover.rebalance("dns"))
    assert scene.seen == [f"cover {IP} eth0", "weight dns 300", "weight dns 0", f"uncover {IP}"]
    assert (done.ok, done.code) == (False, 5)
    assert done.why == "nobody took dns within 0.02 s; this node holds it again"
    assert scene.drained.names == set()
    assert [entry.decision for entry in scene.journal] == ["refuse"]


def test_an_advert_from_before_is_no_take_over(scene: Scene) -> None:
    scene.page.advert(scene.now - 0.01, PEER, 200)
    scene.keepalived = scene.alone
    assert not run(scene.handover.rebalance("dns")).ok


@pytest.mark.parametrize("what", ["drain", "rebalance"])
def test_nothing_is_touched_while_no_peer_could_take_it(scene: Scene, what: str) -> None:
    scene.peering = Peering(unable=("edge-b",))
    done = run(scene.handover.drain("dns", force=False) if what == "drain" else scene.handover.rebalance("dns"))
    assert (done.ok, done.code, scene.seen, scene.drained.names) == (False, 3, [], frozenset())
    assert "edge-b cannot take it" in done.why


def test_a_peer_that_says_that_it_owns_it_is_enough_where_its_adverts_are_cut_off(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the cover stays for longer: that peer tells the network only when it learns that it is alone."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(handover.asyncio, "sleep", sleep)
    scene.keepalived, scene.claims = scene.alone, "edge-b"
    done = asyncio.run(scene.handover.drain("dns", force=False))
    assert done.ok, done.why
    assert done.why.startswith("dns moved to edge-b after")
    assert scene.seen == ["cover 192.0.2.50 eth0", "weight dns 300", "uncover 192.0.2.50"]
    assert slept == [handover.BOTH_S]


def test_a_hand_over_is_given_up_when_a_living_peer_must_have_taken_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cover answers no ARP: one that waits for the whole deadline outlives the clients' neighbour entries."""
    waited: list[float] = []

    async def until(_true: Callable[[], bool], deadline_s: float) -> bool:
        waited.append(deadline_s)
        return False

    monkeypatch.setattr(scene.bell, "until", until)
    scene.handover.deadline_s = 60.0
    done = run(scene.handover.drain("dns", force=False))
    assert not done.ok
    assert waited[0] == pytest.approx(3 * 0.05 + 255 / 256 * 0.05 + handover.SPARE_S)
    scene.handover.deadline_s, scene.page.held = 0.1, True
    run(scene.handover.drain("dns", force=False))
    assert waited[2] == 0.1


def test_a_weight_that_cannot_be_taken_back_is_told_with_what_to_do(scene: Scene) -> None:
    def full(_page: Page, value: int) -> None:
        if value == Weight.SERVING:
            msg = "no space left"
            raise StepFailedError(msg)
        scene.obeys(scene.page, value)

    scene.keepalived = full
    done = run(scene.handover.rebalance("dns"))
    assert (done.ok, done.code) == (False, 5)
    assert done.why.endswith("no space left; once it can be written again: edgekeeper vip undrain dns")


def test_force_drains_all_the_same(scene: Scene) -> None:
    scene.peering = Peering()
    assert run(scene.handover.drain("dns", force=True)).ok


def test_a_dead_service_is_handed_over_without_a_cover(scene: Scene) -> None:
    scene.dead = True
    done = run(scene.handover.drain("dns", force=False))
    assert scene.seen == ["weight dns 300"]
    assert done.ok
    assert "uncovered (the local service is dead): 8 ms without an owner" in done.why


def test_a_cover_that_cannot_be_is_told_with_what_it_cost(scene: Scene) -> None:
    scene.refusal = "192.0.2.50 cannot be covered: the right to is missing"
    done = run(scene.handover.drain("dns", force=False))
    assert done.ok
    assert scene.refusal in done.why
    assert scene.page.covered_at is None


def test_one_that_is_not_held_here_is_not_taken_until_it_is_undrained(scene: Scene) -> None:
    scene.page.held = False
    assert run(scene.handover.rebalance("dns")) == Done(ok=True, why="dns is not held here; nothing to do")
    assert scene.seen == []
    assert run(scene.handover.drain("dns", force=False)).ok
    assert (scene.seen, scene.drained.names) == (["weight dns 300"], {"dns"})
    assert scene.handover.undrain("dns").ok
    assert (scene.seen[1:], scene.drained.names) == (["weight dns 0"], frozenset())


def test_what_nobody_knows_is_named(scene: Scene) -> None:
    for done in (run(scene.handover.drain("x", force=True)), run(scene.handover.rebalance("x")), scene.handover.undrain("x")):
        assert (done.ok, done.code, done.why) == (False, 2, "there is no VIP 'x'; there are dns, web")


def test_a_weight_that_cannot_be_written_leaves_no_cover(scene: Scene) -> None:
    def full(*_: Any) -> None:
        msg = "no space left"
        raise StepFailedError(msg)

    scene.keepalived = full
    done = run(scene.handover.drain("dns", force=False))
    assert (done.ok, done.code) == (False, 5)
    assert "no space left" in done.why
    assert scene.seen[-2:] == [f"uncover {IP}", "weight dns 0"]
    assert not scene.page.busy


def test_a_drain_that_cannot_be_remembered_does_not_last(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weight alone would keep the node in FAULT with nobody knowing why."""

    def full(*_: Any, **__: Any) -> None:
        msg = "no space left"
        raise StepFailedError(msg)

    monkeypatch.setattr(scene.drained, "set", full)
    done = run(scene.handover.drain("dns", force=False))
    assert (done.ok, done.code) == (False, 5)
    assert scene.seen[-1] == "weight dns 0"


def test_one_vip_at_a_time(scene: Scene) -> None:
    async def work() -> None:
        scene.keepalived = lambda page, value: None
        first, second = (asyncio.create_task(scene.handover.drain(name, force=False)) for name in ("dns", "web"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert [said.split()[0] for said in scene.seen] == ["cover", "weight"]
        scene.keepalived = scene.obeys
        scene.obeys(scene.page, Weight.FAULT)
        scene.bell.ring()
        assert [done.ok for done in await asyncio.gather(first, second)] == [True, True]

    run(work())


def test_a_hand_over_that_is_cut_off_takes_its_cover_along(scene: Scene) -> None:
    async def work() -> None:
        scene.handover.deadline_s, scene.keepalived = 60, lambda page, value: None
        task = asyncio.create_task(scene.handover.drain("dns", force=False))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert scene.seen[-1] == f"uncover {IP}"

    run(work())


def test_the_end_of_a_stop_waits_for_every_peer_and_no_longer_than_told(scene: Scene) -> None:
    pages = list(scene.book.pages.values())

    async def stop(deadline_s: float) -> None:
        for page in pages:
            scene.handover.cover(page)
            page.held, page.left_at = False, scene.monotonic()
        await scene.handover.settle(pages, 100.0, deadline_s)

    run(stop(0.0))
    assert scene.seen[-2:] == [f"uncover {IP}", "uncover 192.0.2.51"]
    assert not any(page.busy for page in pages)
    for page in pages:
        page.advert(scene.monotonic(), PEER, 200)
    run(asyncio.wait_for(stop(60), 1))


def test_the_end_of_a_stop_does_not_wait_for_what_cannot_come(scene: Scene) -> None:
    pages = list(scene.book.pages.values())
    for page in pages:
        page.held = False
    scene.peering = Peering(unable=("edge-b",))
    run(asyncio.wait_for(scene.handover.settle(pages, 100.0, 60), 1))

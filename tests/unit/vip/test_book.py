"""What a node knows of each VIP: by the kernel, by keepalived, by the wire."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fakes.keepalived import topology

from edgekeeper.vip.book import REMEMBERED, Book, Page

DNS, SIX = topology({"name": "dns", "vrid": 53}, {"name": "six", "vrid": 6, "address": "2001:db8::53/64"}, advert="1s").instances
PEER, OTHER = "192.0.2.12", "192.0.2.13"


@pytest.mark.parametrize(
    ("held", "told", "state"),
    [
        (True, "MASTER", "MASTER"), (True, "UNKNOWN", "MASTER"), (True, "FAULT", "MASTER"), (False, "MASTER", "BACKUP"),
        (False, "BACKUP", "BACKUP"), (False, "FAULT", "FAULT"), (False, "STOP", "STOP"), (False, "UNKNOWN", "UNKNOWN"),
    ],
)  # fmt: skip
def test_the_kernel_wins_over_what_was_told_last(held: bool, told: str, state: str) -> None:
    """After both keepalived were killed nothing is told any more: the state must not be MASTER for ever."""
    assert Page(DNS, held=held, told=told).state == state


def heard(page: Page, *adverts: tuple[float, str, int]) -> list[bool]:
    return [page.advert(at, source, priority) for at, source, priority in adverts]


def test_the_first_advert_is_a_new_owner_and_the_next_ones_are_not() -> None:
    page = Page(DNS)
    assert page.heard_ago(1.0) is None
    assert heard(page, (1.0, PEER, 200), (2.0, PEER, 200), (3.0, PEER, 200)) == [True, False, False]
    assert page.owned_since == 1.0
    assert page.heard_ago(3.5) == 0.5


def test_after_a_silence_it_is_a_new_ownership() -> None:
    page = Page(DNS)
    assert heard(page, (1.0, PEER, 200), (2.69, PEER, 200), (4.5, PEER, 200)) == [True, False, True]
    assert page.owned_since == 4.5


def test_who_lets_go_owns_no_more() -> None:
    page = Page(DNS)
    assert heard(page, (1.0, PEER, 200), (1.5, PEER, 0)) == [True, False]
    assert (page.owned_since, page.heard_ago(2.0)) == (None, None)
    assert heard(page, (1.52, OTHER, 180)) == [True], "the next owner is a new one, however soon"
    assert page.owned_since == 1.52


def test_a_flood_of_adverts_is_not_remembered_for_ever() -> None:
    page = Page(DNS)
    heard(page, *((n / 100, PEER, 200) for n in range(10 * REMEMBERED)))
    assert len(page.adverts) == REMEMBERED
    assert page.owned_since == 0.0


def test_what_there_is_to_decide_about() -> None:
    page = Page(DNS, held=False, left_at=9.0, covered_at=9.5, busy=True)
    page.advert(9.75, PEER, 200)
    sight = page.sight(10.0, dead=True, running=False, deadline_s=7.0)
    assert (sight.held, sight.left, sight.covered, sight.peer, sight.peer_new) == (False, 1.0, 0.5, 0.25, 0.25)
    assert (sight.dead, sight.running, sight.busy, sight.deadline_s, sight.advert_s) == (True, False, True, 7.0, 1.0)
    page.held = True
    assert page.sight(10.0, dead=False, running=True, deadline_s=7.0).left is None, "what is held has not left"
    empty = Page(DNS).sight(10.0, dead=False, running=True, deadline_s=7.0)
    assert (empty.left, empty.covered, empty.peer, empty.peer_new) == (None, None, None, None)


def test_a_book_finds_a_vip_by_its_vrid_and_family_and_by_its_address() -> None:
    book = Book()
    book.rewrite([DNS, SIX])
    assert [page.instance.name for page in (book.by_vrid(53, 4), book.by_vrid(6, 6)) if page] == ["dns", "six"]
    assert (book.by_vrid(53, 6), book.by_vrid(6, 4), book.by_vrid(7, 4)) == (None, None, None)
    assert book.by_address("2001:db8::53") is book.pages["six"]
    assert book.by_address("192.0.2.99") is None


def test_what_is_known_stays_over_a_change_that_leaves_the_address_where_it_is() -> None:
    book = Book()
    book.rewrite([DNS, SIX])
    page = book.pages["dns"]
    page.held, page.covered_at = True, 5.0
    changed = replace(DNS, priority=9, peers=(PEER, OTHER))
    book.rewrite([changed])
    assert list(book.pages) == ["dns"]
    assert book.pages["dns"] is page
    assert page.instance is changed
    for elsewhere in (replace(DNS, interface="eth1"), replace(DNS, address="192.0.2.99/24")):
        fresh = Book()
        fresh.pages = {"dns": page}
        fresh.rewrite([elsewhere])
        assert fresh.pages["dns"].held is False, "another address, or another place: nothing is known of it"


def test_adverts_of_a_rival_count_while_they_go_on_and_since_this_node_is_an_owner_too() -> None:
    page = Page(DNS, held=True, held_since=10.0)
    heard(page, (9.0, PEER, 200), (10.5, PEER, 200), (11.5, PEER, 200))
    assert [at for at, _, _ in page.rival_adverts(11.6)] == [10.5, 11.5]
    assert page.rival_adverts(11.5 + 1.5 + 0.3) == []
    assert Page(DNS, held=True, held_since=10.0).rival_adverts(11.0) == []

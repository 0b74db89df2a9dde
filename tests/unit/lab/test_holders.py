"""Who held a VIP when."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.lab.holders import Change, holding, spans, worst

VIP = "192.0.2.53"


def change(at: float, node: str, present: bool, interface: str = "eth", address: str = VIP) -> Change:
    return Change(at, node, interface, address, present)


def test_a_hand_over_with_a_gap() -> None:
    found = holding([change(0.0, "a", True), change(2.0, "a", False), change(2.25, "b", True)], VIP, 1.0, 5.0)
    assert (found.two_s, found.none_s, found.moves, found.last) == (0.0, 0.25, 1, frozenset("b"))
    assert found.moved_at == (2.25,)


def test_two_owners_and_their_longest_time_together() -> None:
    changes = [change(0.0, "a", True), change(1.0, "b", True), change(1.5, "a", False), change(2.0, "a", True), change(4.0, "b", False)]
    found = holding(changes, VIP, 0.0, 5.0)
    assert (found.two_s, found.two_from, found.moves) == (2.0, 2.0, 2)


def test_two_of_three_that_change_are_one_time_of_two_owners() -> None:
    changes = [change(0.0, "a", True), change(1.0, "b", True), change(2.0, "c", True), change(2.0, "a", False), change(3.0, "b", False)]
    assert holding(changes, VIP, 0.0, 5.0).two_s == 2.0


def test_a_move_and_back_are_two_moves_but_a_pause_is_none() -> None:
    back = [change(0, "a", True), change(1, "a", False), change(1, "b", True), change(2, "b", False), change(2, "a", True)]
    assert holding(back, VIP, 0, 3).moves == 2
    assert holding([change(0, "a", True), change(1, "a", False), change(2, "a", True)], VIP, 0, 3).moves == 0


def test_a_shadow_is_no_owner() -> None:
    changes = [change(0.0, "a", True), change(1.0, "a", True, "lo"), change(1.1, "a", False), change(1.4, "b", True), change(1.5, "a", False, "lo")]
    found = holding(changes, VIP, 0.0, 3.0)
    assert (round(found.none_s, 6), round(found.shadow_s, 6), found.two_s) == (0.3, 0.5, 0.0)


def test_a_node_off_the_wire_holds_nothing() -> None:
    found = holding([change(0.0, "a", True), change(0.0, "b", True), change(1.0, "a", False, "")], VIP, 0.0, 3.0)
    assert (found.two_s, found.last) == (1.0, frozenset("b"))


def test_other_addresses_and_other_times_do_not_count() -> None:
    changes = [change(0.0, "a", True), change(0.5, "b", True, address="192.0.2.54"), change(9.0, "b", True)]
    assert holding(changes, VIP, 1.0, 5.0).figures() == {"two_owners_s": 0.0, "no_owner_s": 0.0, "owner_changes": 0, "shadow_s": 0.0, "owners_at_end": 1}


def test_the_worst_of_several() -> None:
    good = holding([change(0.0, "a", True)], VIP, 0.0, 2.0)
    bad = holding([change(1.0, "a", True)], VIP, 0.0, 2.0)
    none = holding([], VIP, 0.0, 2.0)
    assert worst({"x": good, "y": bad, "z": none}) == {"two_owners_s": 0.0, "no_owner_s": 2.0, "shadow_s": 0.0, "owner_changes": 0, "without_one_owner": 1}


@settings(max_examples=30)
@given(st.lists(st.builds(change, st.floats(0, 10), st.sampled_from("ab"), st.booleans(), st.sampled_from(["eth", "lo", ""])), max_size=8))
def test_spans_cover_the_time_without_a_gap(changes: list[Change]) -> None:
    found = spans(changes, VIP, 1.0, 9.0)
    assert found[0].start == 1.0
    assert found[-1].end == 9.0
    assert all(a.end == b.start and a != b for a, b in itertools.pairwise(found))

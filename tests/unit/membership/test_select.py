from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.membership.select import HOLD_S, Holding, hold_left, select
from edgekeeper.model.backend import Member, Membership


def some(*names: str) -> tuple[Member, ...]:
    return tuple(Member(name, f"192.0.2.{ord(name)}", 53) for name in sorted(names))


def seen(members: tuple[Member, ...], *, by_person: bool = False) -> Membership:
    return Membership(members, "the API", 0.0, by_person)


def test_a_new_member_and_a_gone_one_count_at_once_and_are_named() -> None:
    chosen = select(some("a", "b"), seen(some("b", "c")), None, 0)
    assert (chosen.members, chosen.decision) == (some("b", "c"), "act")
    assert chosen.why == "the API: 1 gone (a) and 1 new (c), 2 in all"


def test_the_same_again_is_no_decision() -> None:
    chosen = select(some("a", "b"), seen((*some("b", "a"), *some("a"))), None, 0)
    assert (chosen.members, chosen.decision) == (some("a", "b"), "none")


def test_an_empty_answer_is_no_order_to_delete_everything() -> None:
    for by_person in (True, False):
        chosen = select(some("a"), seen((), by_person=by_person), None, 0)
        assert (chosen.members, chosen.decision) == (some("a"), "suppress")
        assert "the last full set of 1 stays" in chosen.why
    assert select((), seen(()), None, 0).decision == "suppress"


def test_a_loss_of_more_than_half_from_an_api_waits_for_one_confirmation() -> None:
    held = select(some("a", "b", "c"), seen(some("a")), None, 100)
    assert (held.members, held.decision) == (some("a", "b", "c"), "hold")
    confirmed = select(held.members, seen(some("a")), held.holding, 101)
    assert (confirmed.members, confirmed.decision, confirmed.holding) == (some("a"), "act", None)


def test_a_transient_view_drops_nobody() -> None:
    held = select(some("a", "b", "c"), seen(some("a")), None, 100)
    back = select(held.members, seen(some("a", "b", "c")), held.holding, 101)
    assert (back.members, back.decision, back.holding) == (some("a", "b", "c"), "none", None)


def test_what_a_person_edited_is_never_held() -> None:
    assert select(some("a", "b", "c"), seen(some("a"), by_person=True), None, 0).decision == "act"


def test_the_loss_of_half_or_of_one_is_not_held() -> None:
    assert select(some("a", "b", "c", "d"), seen(some("a", "b")), None, 0).decision == "act"
    assert select(some("a"), seen(some("b")), None, 0).decision == "act"


def test_the_time_that_is_left_to_hold() -> None:
    holding = Holding(some("a"), 100.0, some("a", "b", "c"))
    assert hold_left(holding, 103.0) == HOLD_S - 3
    assert hold_left(holding, 100.0 + HOLD_S + 1) == 0


def test_while_a_loss_is_held_the_new_ones_serve_already() -> None:
    """Where everybody is replaced at once, the lost are dead: waiting would leave nobody."""
    held = select(some("a", "b", "c"), seen(some("d")), None, 100)
    assert (held.members, held.decision) == (some("a", "b", "c", "d"), "hold")
    more = select(held.members, seen(some("d", "e")), held.holding, 101)
    assert (more.members, more.decision) == (some("a", "b", "c", "d", "e"), "hold")
    assert "lost 3 of 3" in more.why
    confirmed = select(more.members, seen(some("d", "e")), more.holding, 102)
    assert (confirmed.members, confirmed.decision) == (some("d", "e"), "act")
    back = select(more.members, seen(some("a", "b", "c")), more.holding, 102)
    assert (back.members, back.decision) == (some("a", "b", "c"), "act")


def test_who_has_moved_or_was_renamed_is_not_lost_and_never_there_twice() -> None:
    before = some("a", "b", "c", "d")
    moved = (Member("a", "192.0.2.1", 53), Member("b", "192.0.2.2", 53), Member("z", before[2].host, 53))
    chosen = select(before, seen(moved), None, 0)
    assert (chosen.members, chosen.decision) == (tuple(sorted(moved)), "act")
    held = select(before, seen(moved[:1]), None, 0)
    assert (held.members, held.decision) == (tuple(sorted((moved[0], *before[1:]))), "hold")


def test_what_a_source_left_out_is_told_when_nobody_is_left() -> None:
    told = Membership((), "the API", 0.0, by_person=False, notes=("none of 3 endpoints is ready",))
    assert select(some("a"), told, None, 0).why == "the API names no members (none of 3 endpoints is ready); the last full set of 1 stays"


snapshots = st.lists(st.sampled_from("abcdef"), max_size=6).map(lambda names: some(*set(names)))


@settings(max_examples=75, deadline=None)
@given(snapshots, st.lists(st.tuples(snapshots, st.booleans(), st.floats(0.1, 8)), max_size=20))
def test_the_whole_new_set_counts_at_once_and_a_loss_is_held_for_so_long_only(
    first: tuple[Member, ...], views: list[tuple[tuple[Member, ...], bool, float]]
) -> None:
    current, holding, now = first, None, 0.0
    held_since: float | None = None
    for members, by_person, passed in views:
        now += passed
        chosen = select(current, seen(members, by_person=by_person), holding, now)
        assert set(chosen.members) <= {*current, *members}
        assert set(members) <= set(chosen.members)
        assert chosen.members or not current
        assert chosen.why
        if chosen.decision == "hold":
            held_since = now if held_since is None else held_since
            assert now - held_since < HOLD_S
            assert not by_person
        else:
            held_since = None
            assert chosen.members == members or not members
        current, holding = chosen.members, chosen.holding

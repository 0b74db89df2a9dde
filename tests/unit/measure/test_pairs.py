"""Events become intervals, each begin with the next end of its key."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.measure.pairs import Event, pairs


def event(at: float, key: str, begins: bool) -> Event[None]:
    return Event(at, key, begins, None)


def test_keys_are_paired_apart_and_a_begin_told_again_is_the_same() -> None:
    found, lonely = pairs([event(5, "b", True), event(1, "a", True), event(2, "a", True), event(4, "a", False), event(0, "b", False), event(9, "a", True)])
    assert [(p.key, p.begin.at, p.end.at if p.end else None, p.again) for p in found] == [("a", 1, 4, 1), ("b", 5, None, 0), ("a", 9, None, 0)]
    assert [e.at for e in lonely] == [0]
    assert [p.length_s for p in found] == [3, None, None]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.booleans()), max_size=20))
def test_every_event_is_accounted_for(told: list[tuple[int, str, bool]]) -> None:
    found, lonely = pairs([event(*one) for one in told])
    assert sum(1 + p.again for p in found) == sum(begins for _, _, begins in told)
    assert len(lonely) + sum(p.end is not None for p in found) == sum(not begins for _, _, begins in told)
    assert all(p.length_s is None or p.length_s >= 0 for p in found)

"""From single looks to whether a node yields."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.vip.health import Counts, blind, counted

FALL, RISE = 2, 3


def after(looks: str, counts: Counts = Counts()) -> list[bool]:  # noqa: B008 - frozen
    """Whether it yields after each look: ``x`` failed, ``.`` good, ``?`` blind."""
    out = []
    for look in looks:
        counts = counted(counts, fails={"x": True, ".": False, "?": None}[look], fall=FALL, rise=RISE)
        out.append(counts.bad)
    return out


def test_so_many_in_a_row_and_no_fewer() -> None:
    assert after("x.x.x.x.") == [False] * 8
    assert after("xx") == [False, True]
    assert after("xx..x...") == [False, True, True, True, True, True, True, False]
    assert after("") == []


def test_a_blind_look_counts_for_nothing_and_breaks_no_row() -> None:
    assert after("?x?x?") == [False, False, False, True, True]
    assert after("xx.?.?.?") == [False, True, True, True, True, True, False, False]
    assert after("?" * 50) == [False] * 50


@given(st.text("x.?", max_size=40))
def test_blind_looks_change_nothing(looks: str) -> None:
    seen = [bad for look, bad in zip(looks, after(looks), strict=True) if look != "?"]
    assert seen == after(looks.replace("?", ""))


@given(st.text("x.", max_size=40))
def test_it_yields_after_a_row_of_failures_and_stays_so_until_a_row_of_good_ones(looks: str) -> None:
    bad, at = False, 0
    found = after(looks)
    for kind, group in groupby(looks):
        length = len(list(group))
        need = FALL if kind == "x" else RISE
        if bad != (kind == "x") and length >= need:
            assert found[at + need - 1] is not bad
            assert found[at : at + need - 1] == [bad] * (need - 1)
            bad = not bad
        else:
            assert found[at : at + length] == [bad] * length
        at += length


def test_a_look_that_began_late_by_more_than_half_its_period_is_blind() -> None:
    assert not blind(due=10.0, began=10.1, period_s=0.2)
    assert blind(due=10.0, began=10.11, period_s=0.2)
    assert not blind(due=10.0, began=9.9, period_s=0.2)

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.kube.decide import BURST, LIST_AFTER, LIST_AGAIN_S, Pace, behind, following, pause, wants_list

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=5)


def rounds(seconds: float, took_s: float, chances: list[float], *, failed: bool, well: bool = False) -> int:
    """How many rounds a reflector makes in a time, when each takes so long and ends so."""
    now, pace, count = 0.0, Pace(), 0
    while now < seconds:
        count += 1
        now += took_s
        if well:
            pace = pace.well()
        pace, wait = pace.ended(now, failed=failed, chance=chances[count % len(chances)])
        now += wait
    return count


@settings(max_examples=15)
@given(st.floats(0.001, 3), CHANCES)
def test_a_server_that_is_down_is_asked_at_most_once_a_second(took_s, chances):
    assert rounds(60, took_s, chances, failed=True) <= 60 + BURST


@settings(max_examples=10)
@given(st.floats(0.001, 3), CHANCES, st.booleans())
def test_one_that_ends_each_watch_at_once_in_order_or_not_is_not_asked_more_often(took_s, chances, failed):
    assert rounds(60, took_s, chances, failed=failed, well=True) <= 60 + BURST + 1


def test_a_server_that_is_back_is_asked_within_five_seconds_however_long_it_was_away():
    pace = Pace()
    for second in range(200):
        pace, wait = pace.ended(float(second * 5), failed=True, chance=1.0)
        assert wait <= 5


def test_orderly_windows_follow_each_other_without_a_pause():
    pace = Pace()
    for window in range(1, 20):
        pace, wait = pace.ended(window * 10.0, failed=False, chance=1.0)
        assert wait == 0


def test_a_pause_grows_and_leaves_half_of_itself_to_chance():
    assert [pause(n, 1.0) for n in (1, 2, 3, 6, 50)] == pytest.approx([0.2, 0.4, 0.8, 5, 5])
    assert [pause(n, 0.0) for n in (1, 2, 3, 6, 50)] == pytest.approx([0, 0.2, 0.4, 2.5, 2.5])


def test_a_kind_that_the_cluster_does_not_know_is_asked_for_seldom():
    assert Pace().ended(0.0, failed=True, absent=True, chance=0.0)[1] == 15


def test_the_list_is_read_when_there_is_nothing_to_go_on_from_when_going_on_fails_and_when_it_is_old():
    assert wants_list(Pace(), "", 0)
    assert not wants_list(Pace(failures=1), "7", 10)
    assert all(wants_list(Pace(failures=LIST_AFTER + more), "7", 10) for more in range(4))
    assert [wants_list(Pace(failures=LIST_AFTER + more), "7", 10, relisted=True) for more in range(4)] == [True, False, False, True]
    assert wants_list(Pace(), "7", LIST_AGAIN_S)


@pytest.mark.parametrize(("told", "known", "lost"), [("9", "10", True), ("10", "10", False), ("11", "9", False), ("", "10", False), ("9", "opaque", False)])
def test_a_cluster_whose_version_is_lower_has_lost_the_known_one(told, known, lost):
    assert behind(told, known) is lost


def test_servers_are_asked_in_turn():
    servers = ("a", "b", "c")
    assert [following(servers, used) for used in ("a", "b", "c", "gone")] == ["b", "c", "a", "a"]
    assert following(("a",), "a") == "a"

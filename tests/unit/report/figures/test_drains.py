"""Drains out of what several sources tell, with and without times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fakes.studies import T0, mark, roll, study

from edgekeeper.report.figures.drains import TAIL_S, drain_of, drains, fdrains
from edgekeeper.report.kinds import Kind
from edgekeeper.report.study import Drain


def test_a_dated_drain_has_all_its_times() -> None:
    made = study(roll("n1", 100.0, "git/gitea-0", "home/ha-pg-1"))
    (found,) = drains(made)
    assert found == Drain("n1", T0 + 100, T0 + 300, T0 + 160, ("git/gitea-0", "home/ha-pg-1"), "roll", T0 + 110)


def test_the_next_node_is_cordoned_early_and_pods_stay_with_the_one_that_is_drained() -> None:
    marks = [
        mark(0, Kind.CORDONED, "n1", "roll"),
        mark(1, Kind.CORDONED, "n2", "roll"),
        mark(5, Kind.EVICTED, "a/x-0", "roll"),
        mark(9, Kind.DRAINED, "n1", "roll"),
        mark(100, Kind.UNCORDONED, "n1", "roll"),
        mark(110, Kind.EVICTED, "a/x-0", "roll"),
        mark(115, Kind.EVICTED, "a/y-0", "roll"),
        mark(120, Kind.DRAINED, "n2", "roll"),
    ]
    found = drains(study(marks))
    assert [(d.node, d.pods) for d in found] == [("n1", ("a/x-0",)), ("n2", ("a/x-0", "a/y-0"))]
    assert found[1].begin == T0 + 1
    assert found[1].evicting == T0 + 110
    assert drain_of(found, T0 + 50, T0 + 60) is found[0]  # the cordon of n2 alone decides nothing
    assert drain_of(found, T0 + 112, T0 + 130) is found[1]


def test_a_drain_that_was_given_up_does_not_hand_its_pods_to_the_next_node() -> None:
    marks = [
        mark(0, Kind.CORDONED, "n1", "roll"),
        mark(5, Kind.EVICTED, "a/x-0", "roll"),
        mark(50, Kind.UNCORDONED, "n1", "roll"),
        mark(60, Kind.CORDONED, "n2", "roll"),
        mark(65, Kind.EVICTED, "a/y-0", "roll"),
        mark(70, Kind.DRAINED, "n2", "roll"),
    ]
    assert [(d.node, d.pods) for d in drains(study(marks))] == [("n1", ("a/x-0",)), ("n2", ("a/y-0",))]


def test_a_log_without_times_tells_who_and_events_tell_when() -> None:
    undated = [
        mark(None, Kind.CORDONED, "n1", "drain-n1.txt"),
        mark(None, Kind.EVICTED, "git/gitea-0", "drain-n1.txt"),
        mark(None, Kind.DRAINED, "n1", "drain-n1.txt"),
    ]
    dated = [
        mark(100, Kind.NODE_STATE, "n1", "events", state="NotSchedulable", stamp_s=1.0),
        mark(140, Kind.NODE_STATE, "n1", "events", state="NotReady", stamp_s=1.0),
        mark(200, Kind.NODE_STATE, "n1", "events", state="Schedulable", stamp_s=1.0),
    ]
    (found,) = drains(study([*undated, *dated]))
    assert (found.node, found.begin, found.end, found.pods) == ("n1", T0 + 100, T0 + 200, ("git/gitea-0",))


def test_the_same_drain_told_twice_is_one_and_two_of_a_node_are_two() -> None:
    told = roll("n1", 100.0, "git/gitea-0")
    again = [replace(m, source="kubectl") for m in told]
    assert len(drains(study([*told, *again]))) == 1
    later = roll("n1", 800.0, "git/gitea-0")
    both = drains(study([*told, *again, *later]))
    assert [d.begin for d in both] == [T0 + 100, T0 + 800]


def test_logs_without_any_time_keep_their_order_and_say_so() -> None:
    made = study(
        [mark(None, kind, thing, file) for file, node in (("1", "n1"), ("2", "n2")) for kind, thing in ((Kind.CORDONED, node), (Kind.EVICTED, "a/x-0"))]
    )
    made.drains = drains(made)
    assert [d.node for d in made.drains] == ["n1", "n2"]
    figure = fdrains(made)
    assert figure.answer == "2 nodes drained, n1 then n2; 2 pods moved"
    assert "No time is known" in figure.notes[0]


def test_a_healthy_node_was_not_drained() -> None:
    assert drains(study([mark(10, Kind.UNCORDONED, "n1"), mark(10, Kind.NODE_STATE, "n2", state="Ready")])) == ()
    assert not fdrains(study()).measured


@pytest.mark.parametrize(("begin", "end", "of"), [(90, 99, None), (90, 111, 0), (300 + TAIL_S - 1, 400, 0), (301 + TAIL_S, 400, None)])
def test_an_outage_belongs_to_the_drain_it_overlaps(begin: float, end: float, of: int | None) -> None:
    found = drains(study(roll("n1", 100.0, "a/x-0")))
    assert drain_of(found, T0 + begin, T0 + end) is (None if of is None else found[of])


def test_without_an_uncordon_a_drain_ends_with_the_next() -> None:
    open_ended = [Drain("n1", T0, None, T0 + 30, (), "", T0 + 5), Drain("n2", T0 + 300, None, T0 + 330, (), "", T0 + 305)]
    assert drain_of(open_ended, T0 + 250, T0 + 260) is open_ended[0]
    assert drain_of(open_ended, T0 + 330, T0 + 340) is open_ended[1]
    assert drain_of(open_ended, T0 + 2000, T0 + 2010) is None

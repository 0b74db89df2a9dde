from __future__ import annotations

from dataclasses import replace

import pytest

from edgekeeper.vip.owner import Answer, Count, Row, table, well, with_wire
from edgekeeper.vip.peersay import PeerVip

HELD = PeerVip("MASTER", held=True, health="good", can_take=True, priority=254, configured_priority=254, since=1000.0)
REST = PeerVip("BACKUP", health="good", can_take=True, priority=253, configured_priority=253, since=900.0)
WANTED = {"dns": "192.0.2.53/24"}
SILENT = "did not answer"


def row(*vips: PeerVip | None) -> Row:
    answers = [Answer(f"edge-{chr(97 + i)}", {"dns": vip} if vip else None, "" if vip else SILENT) for i, vip in enumerate(vips)]
    (found,) = table(answers, WANTED)
    return found


def test_one_owner_is_well() -> None:
    found = row(HELD, REST)
    assert found == Row("dns", "192.0.2.53/24", Count.ONE, ("edge-a",), 1000.0, {"edge-a": 254, "edge-b": 253}, ())
    assert well([found])


@pytest.mark.parametrize(
    ("vips", "count", "note"),
    [
        ((HELD, HELD), Count.TWO, "edge-a and edge-b own it at the same time"),
        ((HELD, HELD, HELD), Count.TWO, "edge-a, edge-b and edge-c own it at the same time"),
        ((REST, REST), Count.NONE, "nobody owns it"),
        ((REST, None), Count.NONE, "nobody who answers owns it"),
    ],
)
def test_two_owners_and_none_are_not_well(vips: tuple[PeerVip | None, ...], count: Count, note: str) -> None:
    found = row(*vips)
    assert (found.count, found.notes[0], found.since) == (count, note, None)
    assert not well([found])


def test_who_does_not_answer_may_own_it_too() -> None:
    found = row(HELD, None)
    assert found.count is Count.ONE
    assert found.notes == ("edge-b is unheard and may own it too",)
    assert found.priorities == {"edge-a": 254, "edge-b": None}
    assert "edge-b and edge-c are unheard and may own it" in row(REST, None, None).notes


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (replace(REST, shadow=True), "edge-b covers it until its clients are elsewhere"),
        (replace(REST, state="MASTER"), "keepalived on edge-b says MASTER, but the address is not there"),
        (replace(REST, state="FAULT", drained=True), "drained on edge-b"),
        (replace(REST, state="FAULT"), "edge-b is FAULT"),
        (replace(REST, health="silent", why="no answer"), "silent on edge-b: no answer"),
        (replace(REST, configured_priority=255), "edge-b has the higher priority; `edgekeeper vip rebalance` on edge-a hands it over"),
    ],
)
def test_what_else_a_person_should_know(other: PeerVip, note: str) -> None:
    found = row(HELD, other)
    assert found.notes == (note,)
    assert found.count is Count.ONE


def test_rows_are_those_of_the_config_in_its_order_and_what_only_a_node_names() -> None:
    answers = [Answer("edge-a", {"web": HELD, "dns": HELD, "old": replace(HELD, address="192.0.2.9/24")}), Answer("edge-b", {"dns": REST, "web": REST})]
    found = table(answers, {"web": "192.0.2.80/24", "dns": "192.0.2.53/24"})
    assert [(r.vip, r.address) for r in found] == [("web", "192.0.2.80/24"), ("dns", "192.0.2.53/24"), ("old", "192.0.2.9/24")]
    assert found[2].notes == ("edge-b does not know it; are the configs the same?", "it is not in the config here")


MAC = "02:00:00:00:00:01"


def test_claims_on_the_wire() -> None:
    """A machine does not hear itself: one other claim beside an own one is two."""
    one, none = row(HELD, None), row(REST, None)
    assert with_wire(one, [MAC], held_here=False).count is Count.ONE
    assert with_wire(one, [], held_here=True).notes == one.notes
    both = with_wire(one, [MAC], held_here=True)
    assert (both.count, both.notes[0]) == (Count.TWO, f"on the wire {MAC} and this node claim it at the same time")
    assert with_wire(one, [MAC, "02:00:00:00:00:02"], held_here=False).count is Count.TWO
    assert with_wire(one, [], held_here=False).notes[-1] == "nobody claims it on the wire here"
    assert with_wire(none, [MAC], held_here=False).notes[0] == f"{MAC} claims it on the wire"

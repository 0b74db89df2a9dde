from __future__ import annotations

from edgekeeper.dns.compare import rows
from edgekeeper.engines.dnsdist.view import Server
from edgekeeper.model.backend import Member

A, B = Member("ns-a", "192.0.2.1", 53), Member("", "192.0.2.2", 53)


def server(name: str, address: str, *pools: str, state: str = "up") -> Server:
    return Server("", name, address, pools, state, 0, 0)


def test_every_difference_between_source_and_engine_is_a_row_with_words() -> None:
    held = (server("ns-a", "192.0.2.1:53", "authoritative", "resolver"), server("ns-x", "192.0.2.9:53", "resolver", state="down"))
    found = rows((A, B), held, frozenset())
    assert [(r.name, r.source, r.engine, r.difference) for r in found] == [
        ("ns-a", "present", "up", ""),
        ("192.0.2.2:53", "present", "absent", "not in the engine yet"),
        ("ns-x", "absent", "down", "not in the source any more"),
    ]
    assert found[0].pools == "authoritative,resolver"


def test_drained_members_are_missed_by_nobody() -> None:
    found = rows((A, B), (server("ns-a", "192.0.2.1:53"),), frozenset({"ns-a", B.address}))
    assert [(r.source, r.difference) for r in found] == [("drained", "drained, but still in the engine"), ("drained", "")]


def test_an_engine_that_could_not_be_asked_differs_in_nothing() -> None:
    assert [(r.engine, r.difference) for r in rows((A,), None, frozenset())] == [("not asked", "")]


def test_servers_of_forward_rules_are_no_members() -> None:
    assert [r.name for r in rows((A,), (server("ns-a", A.address), server("f", "192.0.2.7:53", "forward-x")), frozenset())] == ["ns-a"]

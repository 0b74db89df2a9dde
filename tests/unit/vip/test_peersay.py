from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.vip.peersay import UNHEARD_S, PeerView, PeerVip, every_s, heard, read, report, said, unheard

VIP = {
    "name": "dns", "address": "192.0.2.53/24", "state": "MASTER", "priority": 254, "configured_priority": 254, "since": 1000.5, "held": True, "shadow": False,
    "health": "good", "why": "it answers", "usable": 3, "drained": False, "can_take": True,
}  # fmt: skip


def status(*vips: object, node: str = "edge-b") -> dict[str, object]:
    return {"schema": 1, "node": node, "ts": "2026-11-30T00:00:00Z", "roles": {"vip": {"verdict": "ok", "why": "", "vips": list(vips)}}}


def one(**other: object) -> PeerVip:
    return said("edge-b", 200, json.dumps(status({**VIP, **other})))[0]["dns"]


def test_what_a_node_says_is_read() -> None:
    found, why = said("edge-b", 200, json.dumps(status(VIP)))
    assert why == ""
    assert dict(found) == {"dns": PeerVip("MASTER", True, "good", 3, True, 254, 254, 1000.5, False, False, "192.0.2.53/24", "it answers")}


@pytest.mark.parametrize(
    ("key", "value", "known"),
    [
        ("state", "Master", "UNKNOWN"), ("state", ["x"], "UNKNOWN"), ("held", 1, False), ("held", "true", False), ("can_take", "yes", False),
        ("health", "fine", "unknown"), ("health", {}, "unknown"), ("usable", True, None), ("usable", -1, None), ("usable", 2.0, None), ("priority", 256, 0),
        ("since", float("inf"), None), ("since", True, None), ("since", 10**400, None), ("why", "a\x1b[2J", "a\\x1b[2J"), ("why", 7, ""),
    ],
)  # fmt: skip
def test_what_is_strange_is_unknown_and_the_rest_of_it_counts(key: str, value: object, known: object) -> None:
    found = one(**{key: value})
    assert getattr(found, key) == known
    assert found.configured_priority == 254


@pytest.mark.parametrize(
    ("code", "text", "why"),
    [
        (401, "", "HTTP status 401; check ops.token_file and the certificates"),
        (503, "", "HTTP status 503"),
        (200, "", "is not JSON"),
        (200, "[" * 100_000, "is not JSON"),
        (200, "[]", "is not a status of schema 1"),
        (200, json.dumps({**status(VIP), "schema": 2}), "is not a status of schema 1"),
        (200, json.dumps({**status(VIP), "node": "edge-a"}), "edge-a answers in the place of edge-b"),
        (200, json.dumps({**status(VIP), "node": "\x1b" * 100}), r"\\x1b\\x1b.* answers in the place"),
        (200, json.dumps({**status(VIP), "roles": {}}), "runs no vip role"),
        (
            200,
            json.dumps({**status(VIP), "roles": {"vip": {"verdict": "bad", "why": "keepalived is not there"}}}),
            "says nothing of its vips: keepalived is not",
        ),
    ],
)
def test_an_answer_that_says_nothing_of_vips_is_told_with_its_reason(code: int, text: str, why: str) -> None:
    found, told = said("edge-b", code, text)
    assert found == {}
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(told)


def test_what_is_too_much_is_left_out() -> None:
    many = [{**VIP, "name": f"v{i}"} for i in range(1000)]
    assert len(said("edge-b", 200, json.dumps(status(*many, {**VIP, "name": "x" * 64})))[0]) == 200
    assert said("edge-b", 200, json.dumps(status({**VIP, "name": "x" * 64}, {**VIP, "name": "a\n"}, {**VIP, "name": 1}, 7)))[0] == {}
    assert len(one(why="x" * 5000).why) == 300


anything = st.recursive(
    st.none() | st.booleans() | st.text(max_size=4) | st.floats() | st.integers(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["name", "held", "roles", "vip", "vips", "schema", "x"]), below, max_size=3),
    max_leaves=12,
)


@given(anything)
@settings(max_examples=40)
def test_no_answer_is_an_error(value: object) -> None:
    for document in (
        value,
        {**status(), "roles": value},
        {**status(), "roles": {"vip": value}},
        status(value),
        status({**VIP, "since": value, "usable": value}),
    ):
        found, why = read("edge-b", document)
        assert why or all(vip.state for vip in found.values())


def test_a_node_is_heard_for_so_long_after_its_last_answer() -> None:
    now = 100.0
    assert heard(PeerView("edge-b"), now) == "never"
    assert heard(PeerView("edge-b", now - UNHEARD_S + 0.01), now) == "ok"
    assert heard(PeerView("edge-b", now - UNHEARD_S), now) == "stale"
    assert unheard(PeerView("edge-b", now - 1.0), now) is None
    assert unheard(PeerView("edge-b", now - 2.0, "it hangs"), now) == "edge-b has not been heard for 2.0 s and may own it too: it hangs"
    assert unheard(PeerView("edge-b", None, "not asked yet"), now) == "edge-b has not been heard yet and may own it too: not asked yet"


@pytest.mark.parametrize("peers", range(1, 20))
def test_one_lost_answer_makes_nobody_unheard(peers: int) -> None:
    assert 0.5 <= every_s(peers) <= every_s(peers + 1)
    assert 2 * every_s(peers) < UNHEARD_S


def test_what_the_track_script_reads() -> None:
    views = {"edge-b": PeerView("edge-b", 99.5, "", {"dns": PeerVip(health="members", usable=2, can_take=True)}), "edge-c": PeerView("edge-c", None, "refused")}
    assert json.loads(report(views, 100.0)) == {
        "schema": 1,
        "mono": 100.0,
        "peers": {"edge-b": {"mono": 99.5, "vips": {"dns": {"health": "members", "usable": 2, "can_take": True}}}, "edge-c": {"mono": None, "vips": {}}},
    }

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.siblingsay import Seen, SiblingView, SiblingWatch, read, said

WATCH = {
    "name": "proxy", "group": "mesh", "members": ["edge-a", "edge-b"], "state": "proving", "wants": False, "yields": False, "curing": True, "curing_s": 1.5,
    "probe": {"ok": False, "why": "no answer", "age_s": 0.2}, "spent_ages_s": [70.0, 1.6], "seen": {"edge-a": {"ok": True, "age_s": 0.4, "why": "fine", "round": 7}},
}  # fmt: skip


def status(*watches: object, node: str = "edge-b") -> dict[str, object]:
    return {"schema": 1, "node": node, "roles": {"watch": {"verdict": "ok", "why": "", "watches": list(watches)}}}


def one(**other: object) -> SiblingWatch:
    return said("edge-b", 200, json.dumps(status({**WATCH, **other})))[0]["proxy"]


def test_what_a_sibling_says_is_read() -> None:
    assert one() == SiblingWatch(
        "mesh", ("edge-a", "edge-b"), "proving", False, False, True, 1.5, False, 0.2, (1.6, 70.0), {"edge-a": Seen(True, 0.4, "fine", 7)}
    )


@pytest.mark.parametrize(
    ("key", "value", "attribute", "known"),
    [
        ("state", "Quiet", "state", "unknown"), ("state", ["quiet"], "state", "unknown"), ("wants", 1, "wants", False), ("curing", "yes", "curing", False),
        ("curing_s", -1, "curing_s", None), ("curing_s", float("nan"), "curing_s", None), ("curing_s", True, "curing_s", None), ("curing_s", 10**400, "curing_s", None),
        ("probe", [], "well", None), ("probe", {"ok": "yes"}, "well", None), ("spent_ages_s", [1, "x", -3, None, 2.5], "spent_s", (1.0, 2.5)),
        ("spent_ages_s", 5, "spent_s", ()), ("members", "edge-a", "members", ()), ("members", [7], "members", ("",)), ("group", "a\x1b[2J", "group", "a\\x1b[2J"),
        ("seen", {"edge-a": {"ok": 1, "age_s": 0, "round": 1}}, "seen", {}), ("seen", {"edge-a": {"ok": True, "age_s": 0, "round": -1}}, "seen", {}),
        ("seen", {"\n": {"ok": True, "age_s": 0, "round": 1}}, "seen", {}), ("seen", ["edge-a"], "seen", {}),
    ],
)  # fmt: skip
def test_what_is_strange_is_unknown_and_the_rest_of_it_counts(key: str, value: object, attribute: str, known: object) -> None:
    found = one(**{key: value})
    assert getattr(found, attribute) == known
    assert found.group == "mesh" or key == "group"


@pytest.mark.parametrize(
    ("code", "text", "why"),
    [
        (401, "", "edge-b answered with HTTP status 401; check ops.token_file and the certificates"),
        (200, "[" * 100_000, "the answer of edge-b is not JSON"),
        (200, json.dumps({**status(WATCH), "schema": 2}), "the answer of edge-b is not a status of schema 1; update the older of the two"),
        (200, json.dumps(status(WATCH, node="edge-a\n")), "edge-a\\n answers in the place of edge-b; correct the ops address in nodes:"),
        (200, json.dumps({**status(), "roles": {}}), "edge-b answers, but runs no watch role"),
        (200, json.dumps({**status(), "roles": {"watch": {"why": "it fails"}}}), "the watch role of edge-b says nothing of its watches: it fails"),
    ],
)
def test_an_answer_that_says_nothing_of_watches_is_told_with_its_reason(code: int, text: str, why: str) -> None:
    assert said("edge-b", code, text) == ({}, why)


def test_what_is_too_much_is_left_out() -> None:
    many = [{**WATCH, "name": f"w{i}"} for i in range(300)]
    assert len(read("edge-b", status(*many))[0]) == 100
    assert read("edge-b", status({**WATCH, "name": "x" * 129}, {**WATCH, "name": "a\n"}, {**WATCH, "name": 1}, 7))[0] == {}
    big = one(spent_ages_s=[1.0] * 500, members=["m"] * 500, seen={f"n{i}": {"ok": True, "age_s": 1, "why": "x" * 999, "round": i} for i in range(500)})
    assert (len(big.spent_s), len(big.members), len(big.seen), len(big.seen["n1"].why)) == (100, 50, 50, 300)


anything = st.recursive(
    st.none() | st.booleans() | st.text(max_size=4) | st.floats() | st.integers(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["name", "seen", "watch", "probe", "ok", "x"]), below, max_size=3),
    max_leaves=8,
)


@given(anything)
@settings(max_examples=25)
def test_no_answer_is_an_error(value: object) -> None:
    items = ({**WATCH, key: value} for key in WATCH)
    for document in (value, {**status(), "roles": value}, {**status(), "roles": {"watch": value}}, status(value), status(*items)):
        assert read("edge-b", document)[1] or True


def test_what_was_said_stays_when_nothing_more_is_heard() -> None:
    view = SiblingView("edge-b", 0.0, 9.0, 9.1, 9.0, "", watches={"proxy": one(), "other": one(group="else")})
    gone = view.failing("refused", 9.5)
    assert (gone.answered, gone.tried, gone.why) == (9.1, 9.5, "refused")
    assert view.failing("no token", None).tried == 9.0
    assert gone.of("mesh") == (one(),)

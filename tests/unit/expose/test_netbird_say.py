"""Answers are read strictly: what is torn or strange is an error, and never an empty list."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose import netbird_say as say
from edgekeeper.expose.netbird_say import ApiError, UnreadableError

SERVICE = {"id": "s1", "domain": "Git.Home.Example.", "name": "n", "future": {"x": [1]}, "targets": []}
RESOURCE = {"id": "r1", "name": "n", "address": "198.51.100.0/24", "type": "subnet", "enabled": True, "groups": None}


@settings(max_examples=20)
@given(st.integers(0, 200), st.sampled_from(["[", "{", "null", "true", "3", '"x"', ""]))
def test_a_list_that_is_cut_anywhere_is_an_error(cut: int, other: str) -> None:
    whole = json.dumps([SERVICE, {**SERVICE, "id": "s2"}])
    with pytest.raises(UnreadableError):
        say.items(whole[: min(cut, len(whole) - 1)], say.service)
    with pytest.raises(UnreadableError):
        say.items(other, say.service)


def test_null_is_no_resources_and_no_other_kind_of_nothing_is() -> None:
    assert say.items("null", say.resource, null=True) == ()
    assert say.items("[]", say.service) == ()
    for text in ("", " ", "{}", '{"message": "x"}', "<html>"):
        with pytest.raises(UnreadableError):
            say.items(text, say.resource, null=True)


@pytest.mark.parametrize("wrong", [None, "x", 3, [], {}, {"id": "", "domain": "a"}, {"id": "a"}, {"id": 3, "domain": "a"}, {"id": "a", "domain": None}])
def test_one_item_that_is_no_service_spoils_the_list(wrong: Any) -> None:
    with pytest.raises(UnreadableError):
        say.items(json.dumps([SERVICE, wrong]), say.service)


@pytest.mark.parametrize("domain", [None, "", 5, "absent"])
def test_a_strange_service_of_somebody_elses_stops_nobody(domain: Any) -> None:
    odd = {"id": "s2", "name": "by hand", "targets": None} | ({} if domain == "absent" else {"domain": domain})
    assert [one.host for one in say.items(json.dumps([odd, SERVICE]), say.service)] == ["", "git.home.example"]


def test_a_service_keeps_what_this_version_does_not_know() -> None:
    (found,) = say.items(json.dumps([SERVICE]), say.service)
    assert (found.id, found.host, found.name) == ("s1", "git.home.example", "n")
    assert found.raw == SERVICE


@pytest.mark.parametrize("nothing", [None, "absent", []])
def test_nested_lists_may_be_null_or_absent(nothing: Any) -> None:
    said = {"id": "x", "name": "n", "address": "192.0.2.9/32", "type": "host"}
    if nothing != "absent":
        said |= {"resources": nothing, "routers": nothing, "groups": nothing, "peer_groups": nothing, "rules": nothing}
    assert say.network(said).resources == ()
    assert say.resource(said).groups == ()
    assert say.router(said).groups == ()
    assert say.policy(said).resources == ()


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (429, "too many requests", "throttled"),
        (412, "could not derive cluster from domain a.example: no proxy clusters available", "no_cluster"),
        (412, "could not derive cluster from domain a.example: domain a.example does not match any available proxy cluster", "unknown_domain"),
        (412, "resource r is in use by proxy s", "in_use"),
        (412, "something else", "invalid"),
        (409, "domain already taken", "taken"),
        (401, "token invalid", "unauthenticated"),
        (403, "permission denied", "not_allowed"),
        (404, "not found", "absent"),
        (400, "couldn't parse json request", "invalid"),
        (422, "listen_port is required for tls services", "invalid"),
        (500, "internal server error", "broken"),
        (502, "", "broken"),
    ],
)
def test_errors_are_told_apart(status: int, message: str, kind: str) -> None:
    err = say.problem("a.example cannot be published", status, json.dumps({"message": message.upper(), "code": status}), write=True)
    assert (err.kind, err.status, err.message) == (kind, status, message)
    assert err.unsure == (status >= 500)
    assert err.exit_code == (6 if kind in {"unauthenticated", "not_allowed"} else 5)
    assert str(err).startswith(f"a.example cannot be published: NetBird answered {status}")
    assert "; " in str(err), "and what happens instead"


def test_a_dead_target_is_recognised() -> None:
    for message in ('resource target "x" not found in account', 'target "x" has target_type "subnet" but resource is of type "host"'):
        assert say.problem("w", 422, json.dumps({"message": message})).dead_target
    assert not say.problem("w", 422, '{"message": "service name is required"}').dead_target


def test_what_a_server_says_cannot_reach_a_terminal_or_fill_a_log() -> None:
    err = say.problem("w", 422, json.dumps({"message": "\x1b[2J\n" + "x" * 10_000}))
    assert str(err).isprintable()
    assert len(str(err)) < 500
    assert say.problem("w", 502, "<html><body>nginx</body></html>").message == ""
    assert say.problem("w", 502, "[" * 100_000).kind == "broken"


def test_no_answer_to_a_write_may_have_been_one() -> None:
    err: EdgekeeperError = say.unreachable("w", "it hangs", write=True)
    assert isinstance(err, ApiError)
    assert err.unsure
    assert err.exit_code == 6
    assert not say.unreachable("w", "it hangs").unsure


@settings(max_examples=20)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(max_size=5), s, max_size=3)
    )
)
def test_whatever_is_said_is_read_or_refused(said: Any) -> None:
    for one in (say.service, say.network, say.resource, say.router, say.group, say.policy, say.done):
        with contextlib.suppress(UnreadableError):
            one(said)


def test_who_stands_in_the_way_is_told() -> None:
    assert "sends us elsewhere, which is not followed" in str(say.problem("services cannot be listed", 302, "<html>"))
    with pytest.raises(UnreadableError, match="page of HTML"):
        say.items(" <!doctype html>", say.service)

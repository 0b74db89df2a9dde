"""A plan, carried out on a mesh in memory: in which order, by whom, and what becomes of the rest when something goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.errors import LockHeldError, MissingError
from edgekeeper.expose.apply import EVENTS
from edgekeeper.expose.kinds import Place, Service
from edgekeeper.expose.netbird_say import ApiError, NoAccessError
from edgekeeper.expose.plan import Kind
from edgekeeper.log import Event

from .written import Journal, Mesh, action, api, http, made, mark, only, run, said

# order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_all_that_helps_clients_is_done_before_anything_is_taken_away(concurrency):
    actions = [action("delete", "a"), action("disable", "b"), action("create", "c"), action("update", "d"), action("create", "e"), action("repair", "f")]
    mesh = Mesh(*(one.service for one in actions if one.service is not None))
    outcomes = run(actions, mesh, concurrency=concurrency)
    assert all(one.done for one in outcomes)
    assert sorted(mesh.done[:4]) == [("POST", "c"), ("POST", "e"), ("PUT", "d"), ("PUT", "f")]
    assert sorted(mesh.done[4:]) == [("DELETE", "a"), ("PUT", "b")]


def test_one_at_a_time_is_the_order_of_the_plan():
    actions = [action("create", host) for host in ("b", "a", "d", "c")]
    mesh = Mesh()
    assert [one.action.host for one in run(actions, mesh)] == ["b", "a", "d", "c"]
    assert [host for _, host in mesh.done] == ["b", "a", "d", "c"]


@pytest.mark.parametrize(("concurrency", "count", "most"), [(4, 20, 4), (16, 5, 5), (1, 5, 1)])
def test_no_more_calls_at_once_than_are_allowed(concurrency, count, most):
    mesh = Mesh()
    run([action("create", f"{i}") for i in range(count)], mesh, concurrency=concurrency)
    assert (mesh.most, len(mesh.there)) == (most, count)


def test_nothing_to_do_is_nothing():
    assert run([], Mesh()) == []


# who may write --------------------------------------------------------------------------------


def test_the_lease_is_asked_after_the_look_and_right_before_each_write():
    asked: list[str] = []
    services = [made("b"), made("c"), made("d")]
    mesh = Mesh(*services, fails=lambda method, host: asked.append(f"{method} {host}"))
    actions = [action("create", "a"), action("update", "b", services[0]), action("disable", "c", services[1]), action("delete", "d", services[2])]
    run(actions, mesh, may=lambda: asked.append("may"))
    assert asked == ["may", "POST a", "GET b", "may", "PUT b", "GET c", "may", "PUT c", "GET d", "may", "DELETE d"]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_end_of_the_term_stops_the_pass_and_the_rest_is_pending(concurrency):
    left = [3]

    def may() -> None:
        left[0] -= 1
        if left[0] < 0:
            msg = "the lead is lost"
            raise LockHeldError(msg)

    hosts = [f"{i:02}" for i in range(12)]
    mesh = Mesh(made("gone"))
    outcomes = run([*(action("create", host) for host in hosts), action("delete", "gone")], mesh, concurrency=concurrency, may=may)
    kinds = said(outcomes)
    assert len(mesh.done) == 3
    assert sum(one.done for one in outcomes) == 3
    assert 1 <= sum(kind == "lease" for kind in kinds.values()) <= concurrency
    assert kinds["gone"] == "pending"
    assert "id-gone" in mesh.there
    assert "not tried: the lead is lost" in next(one.why for one in outcomes if one.kind == "pending")


# what ends a pass, and what does not ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["throttled", "unauthenticated", "not_allowed"])
def test_what_is_not_about_one_host_ends_the_pass(kind):
    error = NoAccessError(kind, "POST services", 403, "no", again_s=7.0) if kind != "throttled" else api(kind, 429, again_s=7.0)
    mesh = Mesh(made("gone"), fails=only("POST", error, "b"))
    outcomes = run([*(action("create", host) for host in "abcd"), action("delete", "gone")], mesh)
    assert said(outcomes) == {"a": "", "b": kind, "c": "pending", "d": "pending", "gone": "pending"}
    assert mesh.done == [("POST", "a"), ("POST", "b")]
    assert {one.again_s for one in outcomes if one.kind == "pending"} == {7.0}


@pytest.mark.parametrize("kind", ["no_cluster", "unknown_domain", "taken", "invalid", "in_use", "absent"])
def test_a_host_that_is_refused_stops_no_other(kind):
    mesh = Mesh(made("gone"), fails=only("POST", api(kind, 412)))
    outcomes = run([*(action("create", f"{i:02}") for i in range(12)), action("delete", "gone")], mesh)
    assert set(said(outcomes).values()) == {kind, ""}
    assert "id-gone" not in mesh.there


@pytest.mark.parametrize("error", [api("broken"), api("unreachable", 0), MissingError("nobody is there")])
def test_five_that_are_no_answers_in_a_row_end_the_pass(error):
    mesh = Mesh(fails=only("POST", error))
    outcomes = run([action("create", f"{i:02}") for i in range(12)], mesh)
    assert len(mesh.done) == 5
    assert list(said(outcomes).values()) == [getattr(error, "kind", "unreachable")] * 5 + ["pending"] * 7


@pytest.mark.parametrize("between", [None, api("taken", 409)])
def test_an_answer_between_them_says_that_the_mesh_is_there(between):
    def fails(method: str, host: str) -> Exception | None:
        return between if int(host) % 5 == 4 else api("broken")

    outcomes = run([action("create", f"{i:02}") for i in range(20)], Mesh(fails=fails))
    assert "pending" not in said(outcomes).values()


# what somebody else did meanwhile -------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"domain": "other.example"},
        {"name": "mine now"},
        {"name": mark("b").text},
        {"name": mark("a").gone().text},
        {"enabled": False},
        {"targets": "odd"},
    ],
    ids=["another host", "no mark", "another object's", "leaving", "switched off", "a form that is not understood"],
)
@pytest.mark.parametrize("kind", ["update", "disable", "delete", "migrate", "adopt"])
def test_what_is_another_service_than_the_one_that_was_decided_about_is_not_written(kind, changed):
    before = made("a")
    raw = {**before.raw, **changed}
    mesh = Mesh()
    mesh.there["id-a"] = Service("id-a", raw["domain"], raw["name"], raw)
    (outcome,) = run([action(kind, "a", before)], mesh)
    assert (outcome.kind, mesh.done) == ("changed", [])
    assert "somebody has changed" in outcome.why


def test_a_host_that_differs_in_capitals_is_the_same_service():
    mesh = Mesh(replace(made("a.example"), host="A.Example."))
    assert run([action("update", "a.example")], mesh)[0].done


def test_what_has_vanished_is_deleted_already_and_is_made_by_the_next_pass():
    for kind, became in (("delete", ""), ("update", "changed"), ("disable", "changed"), ("migrate", "changed")):
        mesh = Mesh()
        assert [one.kind for one in run([action(kind, "a")], mesh)] == [became]
        assert mesh.done == []


def test_what_somebody_set_after_the_look_is_not_taken_away_by_the_write():
    before = made("a", future={"x": 1})
    mesh = Mesh(Service("id-a", "a", before.name, {**before.raw, "access_restrictions": {"allowed_cidrs": ["192.0.2.0/24"]}}))
    assert run([action("update", "a", before, Place("10.96.0.99", 443))], mesh)[0].done
    now = mesh.there["id-a"].raw
    assert (now["access_restrictions"], now["targets"][0]["host"], now["future"]) == ({"allowed_cidrs": ["192.0.2.0/24"]}, "10.96.0.99", {"x": 1})
    assert "meta" not in now


# a pass that lasts ----------------------------------------------------------------------------


@pytest.mark.parametrize(("takes", "gives"), [(None, None), ("too old", None), ("too old", "too old")])
def test_what_was_decided_too_long_ago_is_left_to_the_next_pass_which_comes_at_once(takes, gives):
    def old(*, takes: bool) -> str | None:
        return why["takes" if takes else "gives"]

    why = {"takes": takes, "gives": gives}
    services = [made("b"), made("c"), made("d")]
    actions = [action("create", "a"), action("update", "b", services[0]), action("disable", "c", services[1]), action("delete", "d", services[2])]
    mesh = Mesh(*services)
    kinds = said(outcomes := run(actions, mesh, old=old))
    assert [kinds["a"], kinds["b"]] == (["old", "pending"] if gives else ["", ""])
    assert [kinds["c"], kinds["d"]] == (["pending", "pending"] if gives else ["old", "pending"] if takes else ["", ""])
    assert {one.again_s for one in outcomes if not one.done} <= {0.0}
    assert len(mesh.done) == (0 if gives else 2 if takes else 4)


# what is told ---------------------------------------------------------------------------------


def test_each_write_is_in_the_journal_with_its_reason_and_so_is_each_that_failed():
    journal, heard = Journal(), []
    services = {host: made(host) for host in "bcdefgh"}
    services["f"] = http("f")
    kinds: dict[str, Kind] = {"a": "create", "b": "update", "c": "return", "d": "repair", "e": "adopt", "f": "migrate", "g": "disable", "h": "delete"}
    actions = [action(kind, host, services.get(host)) for host, kind in kinds.items()]
    run(actions, Mesh(*services.values()), journal=journal, told=lambda one: heard.append((one.action.host, one.kind)))
    assert [(entry.object, entry.event, entry.data) for entry in journal.entries] == [(host, EVENTS[kind], {"action": kind}) for host, kind in kinds.items()]
    assert {entry.decision for entry in journal.entries} == {"act"}
    assert [entry.why for entry in journal.entries] == [one.why for one in actions]
    assert heard == [(host, "") for host in kinds]
    journal.entries.clear()
    heard.clear()
    odd = replace(action("create", "a"), why="x\x1b[2J")
    run([odd], Mesh(fails=only("POST", api("taken", 409))), journal=journal, told=lambda one: heard.append((one.action.host, one.kind)))
    (entry,) = journal.entries
    assert (entry.event, entry.decision, entry.data) == (Event.EXPOSE_NOT_DONE, "hold", {"action": "create", "kind": "taken"})
    assert entry.why.startswith("create did not succeed: PUT services/x: NetBird answered 409 no")
    assert heard == [("a", "taken")]
    run([odd], Mesh(), journal=journal)
    assert "\x1b" not in journal.entries[-1].why


def test_a_dead_target_and_the_time_of_the_next_call_reach_the_pass():
    dead = ApiError("invalid", "PUT", 422, "resource target res-1 not found in account")
    (outcome,) = run([action("create", "a")], Mesh(fails=only("POST", dead)))
    assert outcome.dead_target
    (outcome,) = run([action("create", "a")], Mesh(fails=only("POST", api("throttled", 429, again_s=10.0))))
    assert (outcome.dead_target, outcome.again_s) == (False, 10.0)


# whatever happens -----------------------------------------------------------------------------

FAULTS = st.sampled_from(["", "", "", "taken", "broken", "throttled", "unreachable", "absent"])
KINDS = st.sampled_from(["create", "update", "return", "repair", "adopt", "migrate", "disable", "delete"])


@settings(max_examples=25)
@given(st.lists(st.tuples(KINDS, FAULTS, st.booleans()), max_size=12), st.integers(1, 4))
def test_every_action_has_exactly_one_outcome_whatever_happens(drawn, concurrency):
    hosts = {f"{i:02}": one for i, one in enumerate(drawn)}
    actions = [action(kind, host) for host, (kind, _, _) in hosts.items()]
    there = [one.service for one in actions if one.service is not None and not hosts[one.host][2]]

    def fails(_: str, host: str) -> Exception | None:
        return api(hosts[host][1]) if hosts[host][1] else None

    mesh, heard = Mesh(*there, fails=fails), []
    outcomes = run(actions, mesh, concurrency=concurrency, told=heard.append)
    assert sorted(one.action.host for one in outcomes) == sorted(hosts)
    assert [one for one in outcomes if one.kind != "pending"] == heard
    for one in outcomes:
        assert one.done == (not one.kind)
        assert one.done or one.why
        if one.action.kind in {"disable", "delete"} and one.done:  # then everything before was at least tried
            assert not any(other.kind == "pending" for other in outcomes if other.action.kind not in {"disable", "delete"})

"""Passes one after the other: what each sees, does, and leaves for the next."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from edgekeeper.errors import EdgekeeperError, LockHeldError, StepFailedError
from edgekeeper.expose.kinds import Origin, Place, Service
from edgekeeper.expose.mark import Mark
from edgekeeper.expose.netbird_say import ApiError
from edgekeeper.expose.sync import numbers, setting_of
from edgekeeper.log import Event

from .passing import PLACE, World, refusal


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "memory.json")


# a pass ---------------------------------------------------------------------------------------


def test_a_pass_looks_asks_whether_it_may_and_writes_and_the_next_one_only_looks(world):
    world.wants("a", "b")
    done = world.once(first=True, may=lambda: world.calls.append("may"))
    assert world.calls == ["services", "may", "ensure", "may", "WRITE a", "may", "WRITE b"]
    assert (done.count("create"), world.told) == (2, list(done.outcomes))
    assert world.asked == [(["10.96.0.10"], None, [443])]
    again = world.once()
    assert (world.calls, again.plan.actions) == (["services", "ensure"], ())
    assert again.sentence() == "2 wanted, 0 created, 0 updated, 0 disabled, 0 deleted, 0 held"
    assert [entry.event for entry in world.entries] == [Event.EXPOSE_CREATED, Event.EXPOSE_CREATED, Event.EXPOSE_PASS]  # a quiet pass is no decision


def test_a_mesh_that_cannot_be_seen_changes_nothing_not_even_the_memory(world):
    world.wants("a", "b")
    world.once(first=True)
    before = world.sync.kept
    world.wants("a")
    world.broken = refusal("broken", 500)
    with pytest.raises(EdgekeeperError):
        world.once()
    assert world.sync.kept == before
    assert world.calls == ["services"]


def test_who_may_not_write_does_not_even_make_a_network(world):
    def may() -> None:
        msg = "the lead is lost"
        raise LockHeldError(msg)

    world.wants("a")
    with pytest.raises(LockHeldError):
        world.once(may=may)
    assert world.calls == ["services"]


def test_only_the_hosts_that_are_meant_are_written(world):
    world.wants("a", "b", "c")
    done = world.once(hosts=frozenset({"b"}))
    assert world.wrote() == ["b"]
    assert [one.action.host for one in done.outcomes] == ["b"]


def test_what_is_done_below_the_services_is_in_the_journal(world):
    world.acts = ("the network edgekeeper is made: done",)
    world.once()
    assert [(entry.event, entry.decision, entry.why) for entry in world.entries] == [(Event.EXPOSE_REPAIRED, "act", "the network edgekeeper is made: done")]


def test_a_look_writes_nothing_anywhere_and_shows_what_would_come_of_what_is_missing(world):
    world.wants("a")
    world.steps = ("the network edgekeeper is made",)
    world.remarks = ("there are two networks of this name",)
    found = asyncio.run(world.sync.look(setting_of(world.sync.expose)))
    assert [(action.kind, action.host) for action in found.plan.actions] == [("create", "a")]
    assert (found.steps, found.grounds) == (world.steps, world.remarks)
    assert found.states() == {"a": ("wanted", found.plan.actions[0].why)}
    assert world.calls == ["services", "look"]
    assert (world.services_there, world.file.exists()) == ({}, False)
    world.steps = ()
    assert asyncio.run(world.sync.look(setting_of(world.sync.expose))).plan.actions[0].body["targets"][0]["target_id"] == "res-1"


def test_a_look_tells_what_the_first_pass_after_a_start_would_not_do(world):
    world.wants("a", "b")
    world.once(first=True)
    world.wants("b")
    world.file.unlink()
    found = asyncio.run(world.again().look(setting_of(world.sync.expose)))
    assert [held.why for held in found.plan.held] == ["no object wants it; the first pass after a start deletes nothing"]


# a service of ours that leads nowhere ---------------------------------------------------------


def test_a_service_that_leads_to_what_is_not_there_makes_the_ground_be_looked_at_again(world):
    world.wants("a")
    world.once()
    world.alive = frozenset({"res-2"})
    done = world.once()
    assert world.calls == ["services", "ensure", "ensure", "WRITE a"]
    assert world.doubts == ["services lead to res-1, which is not there"]
    assert done.count("repair") == 1
    assert world.hosts()["a"].raw["targets"][0]["target_id"] == "res-2"


def test_where_a_service_of_somebody_else_leads_is_no_concern(world):
    world.wants("a")
    for name in ("by hand", Mark.of("home", "b", Origin("Ingress", "x", "y")).text, Mark.of("other", "a", Origin("Ingress", "x", "y")).text):
        world.services_there[name] = Service(name, f"{name}.example", name, {"targets": [{"target_id": "res-9"}], "name": name})
    world.once()
    assert (world.calls.count("ensure"), world.doubts) == (1, [])


def test_a_write_that_is_refused_for_its_target_is_a_doubt(world):
    world.wants("a", "b")
    world.refuses["a"] = ApiError("invalid", "it cannot be published", 422, "resource target res-1 not found in account")
    world.refuses["b"] = ApiError("invalid", "it cannot be published", 422, "something else")
    world.once()
    assert world.doubts == [str(world.refuses["a"])]


# absences -------------------------------------------------------------------------------------


def test_full_lists_are_asked_for_only_while_an_absence_waits_for_them_and_after_the_writes(world):
    world.wants("a", "b", "c")
    world.once(first=True)
    assert world.relists == 0
    world.wants("b", "c", "d")
    done = [world.once(later=200) for _ in range(6)]
    assert world.relists == 2
    assert [one.count("disable") for one in done].index(1) == 2
    world.wants("b", "c", "d")
    world.seen = replace(world.seen, whole=False)
    world.once()
    assert world.relists == 2


def test_the_relist_comes_after_the_writes_which_are_in_a_hurry(world):
    world.wants("a", "b")
    world.once(first=True)
    world.wants("b", "c")
    world.once()
    assert world.calls == ["services", "ensure", "WRITE c", "relist"]


def test_an_absence_is_remembered_over_a_restart(world):
    world.wants("a", "b")
    world.once(first=True)
    world.wants("b")
    world.once()
    world.once()
    world.again()
    assert world.sync.kept.brake.absent["a"].lists == 2
    done = [world.once(later=100 + 150 * turn, first=turn == 0) for turn in range(3)]
    assert [one.count("disable") for one in done] == [0, 1, 0]  # not in the first pass


def test_an_absence_of_before_another_one_was_the_writer_counts_for_nothing(world):
    world.wants("a", "b")
    world.once(first=True)
    world.wants("b")
    for _ in range(3):
        world.once()
    day = world.once(later=86_400, first=True)  # "a" was wanted all the time, and has vanished a moment ago
    assert [one.state for one in day.plan.held] == ["absent"]
    assert [world.once(later=100).count("disable") for _ in range(4)] == [0, 0, 1, 0]


def test_a_memory_that_cannot_be_read_is_told_and_begun_anew(world, caplog):
    world.file.write_text("{")
    world.again()
    assert "cannot be read; absences are counted anew" in caplog.text
    assert world.sync.doubt is None
    world.wants("a")
    world.once()
    assert json.loads(world.file.read_text())["passes"] == 1


def test_one_that_cannot_be_written_is_a_doubt_until_it_can(world, tmp_path):
    world.file = tmp_path / "none" / "memory.json"
    world.again()
    world.wants("a")
    assert world.once().count("create") == 1
    assert "would count absences anew" in (world.sync.doubt or "")
    world.file.parent.mkdir()
    world.once()
    assert world.sync.doubt is None


# places ---------------------------------------------------------------------------------------


def test_while_a_target_is_not_known_the_last_place_stays_over_a_restart_too_and_is_told(world):
    world.wants("a")
    world.once()
    world.seen = replace(world.seen, places={}, unplaced={"default": "Service traefik/traefik is not there"})
    for _ in range(2):
        done = world.once()
        assert done.plan.actions == done.plan.held == ()
        assert done.lost == ("the target of class default: Service traefik/traefik is not there; 10.96.0.10, where it was last, stays",)
        world.again()
    world.seen = replace(world.seen, places={"default": Place("10.96.0.11", 443)}, unplaced={})
    done = world.once()
    assert (done.count("update"), done.lost) == (1, ())
    assert world.hosts()["a"].raw["targets"][0]["host"] == "10.96.0.11"


def test_the_place_of_a_class_that_is_not_configured_any_more_is_forgotten(world):
    world.more = {"targets": {"default": "10.96.0.10", "old": "10.96.0.11"}}
    world.again()
    world.seen = replace(world.seen, places={"default": PLACE, "old": Place("10.96.0.11", 8443)})
    world.once()
    assert world.asked[-1] == (["10.96.0.10", "10.96.0.11"], None, [443, 8443])
    world.more = {}
    world.again()
    world.once()
    assert set(world.sync.kept.places) == {"default"}
    assert world.asked[-1] == (["10.96.0.10"], None, [443])


def test_the_network_of_services_is_the_config_s_then_the_cluster_s_then_the_last_that_it_told(world):
    world.once()
    world.seen = replace(world.seen, service_cidr="10.96.0.0/12")
    world.once()
    world.seen = replace(world.seen, service_cidr=None)
    world.again()
    world.once()
    world.once()
    world.more = {"service_cidr": "10.96.0.0/16"}
    world.seen = replace(world.seen, service_cidr="10.96.0.0/12")
    world.again()
    world.once()
    assert [cidr for _, cidr, _ in world.asked] == [None, "10.96.0.0/12", "10.96.0.0/12", "10.96.0.0/12", "10.96.0.0/16"]


# a pass that lasts ----------------------------------------------------------------------------


def test_a_pass_that_lasts_takes_nothing_away_on_an_old_view_and_ends_in_time(world):
    world.more = {"brake": {"absent_lists": 1, "grace": "0s"}, "concurrency": 1}
    world.again()
    world.wants(*"abcd")
    world.once(first=True)
    world.wants(*"bcd", *(f"n{i}" for i in range(8)))
    world.slow_s = 50.0
    done = world.once()
    kinds = [(one.action.host, one.kind) for one in done.outcomes]
    assert kinds[:8] == [*((f"n{i}", "") for i in range(7)), ("n7", "old")]
    assert kinds[8:] == [("a", "pending")]
    assert done.again_s == 0.0
    world.slow_s = 0.0
    assert [one.action.kind for one in world.once().outcomes] == ["create", "disable"]
    world.wants(*"cd", "new", *(f"n{i}" for i in range(8)))
    world.slow_s = 61.0
    assert [(one.action.host, one.kind) for one in world.once().outcomes if one.action.host in ("new", "b")] == [("new", ""), ("b", "old")]


# a migration ----------------------------------------------------------------------------------


def by_hand(world: World) -> None:
    raw = {"name": "old", "domain": "a", "mode": "http", "enabled": True, "targets": [], "access_restrictions": {"allowed_cidrs": ["192.0.2.0/24"]}}
    world.services_there["id-a"] = Service("id-a", "a", "old", raw)


def test_what_a_migration_deletes_is_on_the_disk_until_it_is_there_again(world):
    world.wants("a")
    by_hand(world)
    world.refuses["a"] = refusal("broken", 500)
    (lost,) = world.once(adopt=["a"]).failed
    assert (lost.kind, world.services_there) == ("lost", {})
    world.refuses.clear()
    world.again()  # another process
    assert world.once(later=60).count("create") == 1
    assert world.hosts()["a"].raw["access_restrictions"] == {"allowed_cidrs": ["192.0.2.0/24"]}
    assert world.sync.kept.moving == world.again().kept.moving == {}


def test_nothing_is_deleted_that_could_not_be_kept(world, tmp_path):
    world.file = tmp_path / "none" / "memory.json"
    world.again()
    world.wants("a")
    by_hand(world)
    (failed,) = world.once(adopt=["a"]).failed
    assert "is not made anew" in failed.why
    assert (world.hosts()["a"].name, world.wrote()) == ("old", [])
    with pytest.raises(StepFailedError):
        world.sync._keep("b", {})


# what is told ---------------------------------------------------------------------------------


def test_a_refusal_is_in_the_journal_with_the_numbers_each_time(world):
    world.more = {"brake": {"absent_lists": 1, "grace": "0s"}}
    world.again()
    world.wants(*"abcdefgh")
    world.once(first=True)
    world.wants("a")
    world.entries.clear()
    done = world.once()
    assert done.plan.refused is not None
    (entry,) = world.entries
    assert (entry.event, entry.decision, entry.object, entry.data["held"]) == (Event.EXPOSE_PASS, "refuse", "pass", 7)


def test_the_numbers_and_words_of_a_pass_are_those_of_its_outcomes(world):
    world.wants("a", "b", "c")
    world.refuses["b"] = refusal("unknown_domain")
    done = world.once(later=0)
    assert dict(numbers(done)) == {
        "wanted": 3, "managed": 0, "created": 2, "updated": 0, "disabled": 0, "deleted": 0, "held": 0, "failed": 1, "took_s": 0.0
    }  # fmt: skip
    assert done.sentence() == "3 wanted, 2 created, 0 updated, 0 disabled, 0 deleted, 0 held, 1 not done"
    assert done.states() == {"a": ("active", ""), "b": ("domain-unknown", str(refusal("unknown_domain"))), "c": ("active", "")}
    part = done.only({"b"})
    assert [action.host for action in part.plan.actions] == ["b"]

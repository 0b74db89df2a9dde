"""Hosts whose write the mesh refuses: when each is tried again."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.expose.kinds import Place
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.plan import Action
from edgekeeper.expose.sync import Pass

from .passing import World, refusal


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "memory.json")


# hosts whose write is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("unknown_domain", "domain-unknown"),
        ("no_cluster", "proxy-offline"),
        ("taken", "conflict"),
        ("invalid", "refused"),
        ("in_use", "pending"),
        ("broken", "pending"),
        ("unreachable", "pending"),
    ],
)
def test_a_host_that_is_refused_waits_and_says_for_how_long(world, kind, state):
    world.wants("a")
    world.refuses["a"] = refusal(kind)
    assert world.once().states() == {"a": (state, str(refusal(kind)))}
    done = world.once(later=29)
    assert [(held.host, held.state, held.why) for held in done.plan.held] == [("a", state, f"{refusal(kind)}; tried again in 1 s")]
    assert done.states()["a"][0] == state
    world.once(later=1)
    assert world.wrote() == ["a"]


@pytest.mark.parametrize("kind", ["unknown_domain", "broken"])
def test_the_pause_doubles_up_to_a_quarter_of_an_hour(world, kind):
    world.wants("a")
    world.refuses["a"] = refusal(kind)
    tried = []
    for _ in range(128):
        world.once(later=30)
        tried += [world.now] if world.wrote() else []
    assert [after - before for before, after in pairwise(tried)] == [30, 60, 120, 240, 480, 900, 900, 900]
    del world.refuses["a"]
    world.once(later=900)
    assert (world.wrote(), world.once(later=1).plan.held) == (["a"], ())


@pytest.mark.parametrize("kind", ["absent", "throttled"])
def test_what_is_over_with_the_next_look_waits_for_nothing(world, kind):
    world.wants("a")
    world.refuses["a"] = refusal(kind, 404)
    for _ in range(3):
        world.once(later=1)
        assert world.wrote() == ["a"]


def test_the_pause_is_forgotten_once_it_is_done_not_wanted_or_wanted_otherwise(world):
    world.wants("a")
    world.refuses["a"] = refusal("invalid")
    for later in (0, 30, 60):
        world.once(later=later)
    assert (world.once(later=1).plan.actions, world.wrote()) == ((), [])
    world.wants("a", request_timeout="5s")
    world.once(later=1)  # another wish may fare better
    assert world.wrote() == ["a"]
    world.wants()
    world.once(later=1)
    world.wants("a", request_timeout="5s")
    world.once(later=1)
    assert world.wrote() == ["a"]
    assert "tried again in 20 s" in world.once(later=10).plan.held[0].why  # 30 s again: from the beginning
    del world.refuses["a"]
    world.once(later=30)
    assert world.wrote() == ["a"]
    world.refuses["a"] = refusal("invalid")
    world.seen = replace(world.seen, places={"default": Place("10.96.0.11", 443)})
    world.once(later=0)
    assert "tried again in 29 s" in world.once(later=1).plan.held[0].why


def test_one_that_fails_beside_one_that_succeeds_waits_and_so_does_one_that_was_not_tried(world):
    world.wants("a", "b")
    world.refuses["b"] = refusal("broken")
    world.once(later=0)
    world.once(later=1)
    assert world.wrote() == []
    world.wants("b", "c")
    world.refuses["c"] = refusal("invalid")
    world.once(later=1)
    assert world.wrote() == ["c"]
    world.once(later=1)
    assert world.wrote() == []


@pytest.mark.parametrize(("kind", "again"), [("no_cluster", True), ("broken", True), ("unknown_domain", False), ("taken", False)])
def test_a_write_that_succeeds_ends_the_pauses_of_what_was_not_about_one_host(world, kind, again):
    world.wants("a", "b")
    world.refuses["a"] = world.refuses["b"] = refusal(kind)
    for later in (0, 30, 60):  # both wait for two minutes
        world.once(later=later)
    world.refuses.clear()
    world.wants("a", "b", "c")
    world.once(later=1)
    assert world.wrote() == ["c"]
    world.once(later=1)
    assert world.wrote() == (["a", "b"] if again else [])


def test_when_the_mesh_takes_calls_again_is_the_latest_that_was_said():
    plan: Any = None
    action = Action("create", "a", "")
    assert Pass(plan, (Outcome(action, "throttled", "", 10.0), Outcome(action, "pending", "", 120.0), Outcome(action))).again_s == 120.0
    assert Pass(plan, (Outcome(action),)).again_s is None

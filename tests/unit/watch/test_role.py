"""The role: another config changes the watches that are others now, and nothing of the rest."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.load import parse
from edgekeeper.config.root import Root
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.journal import FileJournal
from edgekeeper.ops.metrics import Metrics
from edgekeeper.runtime import Ground
from edgekeeper.watch import memory
from edgekeeper.watch.role import WatchRole

NODES = {name: {"address": "192.0.2.1", "ops": "http://127.0.0.1:1"} for name in ("edge-a", "edge-b")}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground("edge-a", tmp_path / "run", SystemClock(), FileJournal(tmp_path, "edge-a", SystemClock()), Metrics())


def root(folder: Path, *watches: dict[str, Any], nodes: dict[str, Any] | None = None) -> Root:
    """A config with watches that follow a file and ask nobody."""
    made = [{"file": str(folder / "log"), "fingerprints": ["it is stuck"], "cure": {"command": ["true"]}, **watch} for watch in watches]
    said = {"node": "edge-a", "nodes": nodes or NODES, "run_dir": str(folder / "run"), "state_dir": str(folder), "watch": made}
    return parse(json.dumps(said), "edge.yaml").root


def test_watches_that_are_the_same_go_on_and_all_begin_anew_where_nodes_are_others(tmp_path: Path, ground: Ground) -> None:
    role = WatchRole(root(tmp_path, {"name": "web"}, {"name": "mesh"}), ground)
    before = dict(role.posts)
    role.reload(root(tmp_path, {"name": "web", "shadow": True}, {"name": "mesh"}))
    assert role.posts["web"] is not before["web"]
    assert role.posts["mesh"] is before["mesh"]
    role.reload(root(tmp_path, {"name": "mesh"}, nodes={"edge-a": NODES["edge-a"]}))
    assert list(role.posts) == ["mesh"]
    assert role.posts["mesh"] is not before["mesh"]


def test_a_watch_that_is_gone_leaves_no_memory_and_no_alarm_and_a_changed_one_its_memory(tmp_path: Path, ground: Ground) -> None:
    files = [memory.file(tmp_path / "watch", name) for name in ("gone", "web")]

    async def story() -> None:
        role = WatchRole(root(tmp_path, {"name": "gone"}, {"name": "web"}, {"name": "same"}), ground)
        await role._settle()
        for name in ("gone", "web", "same"):
            role.alarms.set(f"watch {name}: wanted", "not now")
        role.reload(root(tmp_path, {"name": "web", "shadow": True}, {"name": "same"}))
        for file in files:
            memory.remember(file, memory.Memory("a line"))
        await role._settle()
        assert [file.exists() for file in files] == [False, True]
        assert list(role.alarms.raised) == ["watch same: wanted"]
        role.end(leave=False)
        await role.run()

    asyncio.run(story())


def test_what_siblings_tell_counts_unless_the_store_is_one_that_is_shared_with_them(tmp_path: Path, ground: Ground) -> None:
    group = {"name": "mesh", "members": {"edge-a": [], "edge-b": []}}
    for budget, others in (({}, (7.0,)), ({"store": str(tmp_path / "shared.json")}, ())):
        role = WatchRole(root(tmp_path, {"name": "web", "group": group, "budget": budget}), ground)
        role.siblings.spent_s = lambda _: (7.0,)  # type: ignore[method-assign]
        role._rewrite(root(tmp_path, {"name": "web", "group": group, "budget": budget, "shadow": True}))
        assert tuple(role.posts["web"].patrol._shared.others_s()) == others

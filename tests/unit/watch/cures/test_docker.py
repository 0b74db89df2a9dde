from __future__ import annotations

from dataclasses import replace

from edgekeeper.model.container import Container
from edgekeeper.watch.cures.docker import _proof

BEFORE = Container("1" * 64, "mesh", "proxy:1", "running", 7, "", "2026-11-30T12:00:00.000000001Z", False, 10, "json-file", (), ())
AFTER = replace(BEFORE, pid=8, started="2026-11-30T12:00:05Z")


def test_a_cure_is_proven_by_a_start_that_is_newer() -> None:
    assert _proof(BEFORE, AFTER) is None
    assert "was not started anew" in (_proof(BEFORE, BEFORE) or "")


def test_one_that_ended_again_is_not_cured() -> None:
    assert _proof(BEFORE, replace(AFTER, status="restarting")) == "container mesh was started and is restarting again; its log says why"


def test_one_that_never_ran_counts_as_older_than_any_start() -> None:
    assert _proof(replace(BEFORE, status="created", started="0001-01-01T00:00:00Z"), AFTER) is None

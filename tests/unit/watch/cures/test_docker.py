from __future__ import annotations

import asyncio
from dataclasses import replace

from edgekeeper.model.container import Container, Which
from edgekeeper.watch.cures.docker import DockerCure, _proof

BEFORE = Container("1" * 64, "mesh", "proxy:1", "running", 7, "", "2026-11-30T12:00:00.000000001Z", False, 10, (), ())
AFTER = replace(BEFORE, pid=8, started="2026-11-30T12:00:05Z")


def test_a_cure_is_proven_by_a_start_that_is_newer() -> None:
    assert _proof(BEFORE, AFTER) is None
    assert "was not started anew" in (_proof(BEFORE, BEFORE) or "")


def test_one_that_ended_again_is_not_cured() -> None:
    assert _proof(BEFORE, replace(AFTER, status="restarting")) == "container mesh was started and is restarting again; its log says why"


def test_one_that_never_ran_counts_as_older_than_any_start() -> None:
    assert _proof(replace(BEFORE, status="created", started="0001-01-01T00:00:00Z"), AFTER) is None


class _Asked:
    """A Docker that knows one container."""

    def __init__(self, found: Container) -> None:
        self._found = found

    async def find(self, _: Which) -> Container:
        return self._found


def _ready(status: str, started: str = "2026-11-30T10:00:00Z", since: float = 0.0, *, ours: bool = False) -> str | None:
    found = replace(BEFORE, status=status, started=started)
    return asyncio.run(DockerCure(_Asked(found), Which(name="mesh-proxy")).ready(ours=ours, since=since))  # type: ignore[arg-type]


TEN = 1796032800.0
"""2026-11-30 10:00 UTC."""


def test_what_somebody_stopped_is_left_alone_and_what_a_cure_of_ours_left_so_is_not() -> None:
    assert "start it yourself" in (_ready("exited", since=TEN + 5) or "")
    assert _ready("exited", since=TEN + 5, ours=True) is None
    assert _ready("paused", since=TEN + 5) is None
    assert _ready("running", since=TEN + 5) is None


def test_what_was_started_after_it_had_failed_has_to_fail_again() -> None:
    assert "has to fail again" in (_ready("running", since=TEN - 1) or "")
    assert _ready("running", since=TEN - 3600) is None, "the clock was set back"

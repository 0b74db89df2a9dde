"""What the watches say of themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.fakes.turned import TurnedClock
from tests.unit.watch.onstage import Stage, tell

from edgekeeper.ops.metrics import Metrics
from edgekeeper.watch.patrol import Patrol
from edgekeeper.watch.report import item, measure, status

QUIET: dict[str, Any] = {"name": "web", "state": "quiet", "why": "it begins", "seeing": True, "sight": "", "probe": {"ok": True}, "recovered_s": None}


def test_one_watch_through_a_wedge(tmp_path: Path) -> None:
    made = Stage(tmp_path)

    async def story(patrol: Patrol) -> None:
        def told() -> dict[str, Any]:
            return item(patrol, TurnedClock(), None, None)

        quiet = told()
        assert (quiet["state"], quiet["seeing"], quiet["probe"]["ok"], quiet["spent_ages_s"], quiet["line"]) == ("quiet", True, True, [], None)
        assert 0 <= quiet["probe"]["age_s"] <= 1.1
        made.guard.why = "the management is unreachable"
        made.wedge()
        await asyncio.sleep(2)
        held = told()
        assert (held["state"], held["held_by"], held["suppressed_for_s"], held["probe"]["ok"]) == ("wanted", "guard", None, False)
        assert "the management is unreachable" in held["why"]
        assert held["line"].startswith("WARN couldn't")
        made.guard.why = None
        await asyncio.sleep(1)
        assert (told()["state"], told()["held_by"], len(told()["spent_ages_s"])) == ("curing", None, 1)
        await asyncio.sleep(9)
        proved = told()
        assert (proved["state"], proved["cures"], proved["line"]) == ("quiet", 1, None)
        assert proved["recovered_s"][0] <= proved["recovered_s"][1]
        assert abs(proved["last_cure_s"] - 9.5) < 0.6

    tell(made, story)


def test_the_verdict_names_what_is_down_blind_or_in_doubt_and_each_once() -> None:
    found = status([QUIET], {})
    assert (found.verdict.health, found.verdict.why) == ("ok", "1 watch, nothing is wrong")
    down = {**QUIET, "name": "mesh", "state": "wanted", "why": "not now: the management is unreachable"}
    blind = {**QUIET, "name": "log", "seeing": False, "sight": "there is no such container"}
    alarms = {"watch mesh: wanted": "not now", "watch log: blind": "it cannot be followed", "watch log: memory": "the disk is full", "config": "it is broken"}
    found = status([QUIET, down, blind], alarms)
    assert found.verdict.health == "bad"
    assert found.verdict.why == (
        "mesh is wanted: not now: the management is unreachable; log is blind: there is no such container; watch log: memory: the disk is full; config: it is broken"
    )
    assert found.ready.health == "ok", "it watches: what it watches may be down"
    assert found.details["alarms"] == alarms


def test_a_watch_that_is_gone_is_gone_from_the_metrics_too() -> None:
    metrics = Metrics()
    measure([{**QUIET, "recovered_s": [0.5, 2.25]}, {**QUIET, "name": "mesh", "state": "wanted", "probe": {"ok": False}, "seeing": False}], {"x": "y"}, metrics)
    text = metrics.text().decode()
    for line in (
        'edgekeeper_watch_up{watch="web"} 1', 'edgekeeper_watch_up{watch="mesh"} 0', 'edgekeeper_watch_blind{watch="mesh"} 1',
        'edgekeeper_watch_wanted{watch="mesh"} 1', 'edgekeeper_watch_recovered_seconds{watch="web"} 2.25', "edgekeeper_watch_alarms 1",
    ):  # fmt: skip
        assert line in text, line
    measure([{**QUIET, "probe": None}], {}, metrics)
    text = metrics.text().decode()
    assert 'watch="mesh"' not in text
    assert 'edgekeeper_watch_up{watch="web"}' not in text

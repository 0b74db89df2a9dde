"""What ``edgekeeper check`` says of a watch before it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from edgekeeper.config.root import Root
from edgekeeper.model.verdict import EngineVerdict
from edgekeeper.watch.check import verdict

GOOD: dict[str, Any] = {"name": "web", "file": "/var/log/proxy.log", "fingerprints": ["it is stuck"], "probe": "tcp://192.0.2.1:1", "cure": {"systemd": "a"}}


def check(**said: Any) -> EngineVerdict:
    watch = {name: value for name, value in {**GOOD, **said}.items() if value is not None}
    return asyncio.run(verdict(Root.model_validate({"watch": [watch]}), "edge-a"))


def test_what_is_well_is_told_nothing_of() -> None:
    found = check()
    assert (found.refusal, found.notes, found.doubts) == (None, (), ())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"probe": None}, "web has no probe, so nothing can confirm a line and nothing will be cured"),
        ({"confirm": "none"}, "web: confirm: none lets whoever can write into its log"),
        ({"shadow": True}, "web only looks on"),
        ({"probe": "tcp://127.0.0.1:443"}, "web: tcp://127.0.0.1:443 is an address of this machine: it is reached through lo"),
    ],
)
def test_what_would_hurt_or_help_nobody_is_noted(said: dict[str, Any], why: str) -> None:
    found = check(**said)
    assert found.refusal is None
    assert any(why in note for note in found.notes), found


def test_what_cannot_be_used_is_refused_and_what_is_not_here_is_a_doubt() -> None:
    assert "watch web: probe.targets: " in (check(probe="tcp://192.0.2.1").refusal or "")
    assert "watch web: fingerprints: " in (check(fingerprints=[{"regex": "(abc"}]).refusal or "")
    found = check(file=None, docker="proxy", docker_socket="/nonexistent/docker.sock", cure="docker")
    assert found.refusal is None
    assert "/nonexistent/docker.sock is not on this machine; Docker is not judged here" in found.doubts[0]
    (doubt,) = check(budget={"store": "/nonexistent/budgets.json"}).doubts
    assert "a cure that cannot be counted in /nonexistent/budgets.json is not done" in doubt


def test_two_watches_that_cure_the_same_are_told_to_become_one() -> None:
    def notes(*watches: dict[str, Any]) -> tuple[str, ...]:
        return asyncio.run(verdict(Root.model_validate({"watch": watches}), "edge-a")).notes

    log = {"name": "log", "docker": "proxy", "fingerprints": ["it is stuck"], "probe": "tcp://192.0.2.1:1"}
    url = {"name": "url", "probe": "tcp://192.0.2.1:1", "cure": {"docker": "proxy", "stop_timeout": "1s"}}
    assert notes(log, url) == (
        "watch url cures the same as watch log, and each counts for itself; make it one watch with both signs, or give both the same group",
    )
    assert notes(log, {**url, "cure": {"docker": "other"}}) == ()
    group = {"name": "mesh", "members": ["edge-a", "edge-b"]}
    assert notes({**log, "group": group}, {**url, "group": group}) == ()

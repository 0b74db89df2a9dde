from __future__ import annotations

import json
from typing import Any

import pytest

from edgekeeper.errors import MissingError, UsageError
from edgekeeper.model.container import Which, matches, read

SAID: dict[str, Any] = {
    "Id": "3e6069bc860e" + "0" * 52,
    "Created": "2026-11-29T20:53:06.784668789Z",
    "Name": "/mesh",
    "State": {"Status": "running", "Pid": 18783, "StartedAt": "2026-11-29T20:53:59.268562626Z"},
    "Config": {"Image": "proxy:1", "Tty": False, "Env": ["A=b"], "Labels": {"app": "mesh"}},
    "HostConfig": {"LogConfig": {"Type": "json-file", "Config": {}}},
}


def test_what_is_needed_of_a_container() -> None:
    found = read(SAID)
    assert (found.name, found.image, found.status, found.pid, found.stop_timeout) == ("mesh", "proxy:1", "running", 18783, 10)
    assert (found.env, found.labels) == (("A=b",), (("app", "mesh"),))
    assert read({**SAID, "Config": {"StopTimeout": 0, "Labels": None, "Env": None}}).stop_timeout == 0


@pytest.mark.parametrize("said", [None, [], {}, {"Id": "x"}, {**SAID, "State": None}, {**SAID, "State": {"Status": "running", "Pid": "many"}}])
def test_what_is_no_container_is_refused(said: Any) -> None:
    with pytest.raises(MissingError, match="cannot be understood"):
        read(said)


@pytest.mark.parametrize("name", ["../etc", "a/b", "a b", ".", "-x", "a?b", "a\n", "é", "x" * 300])
def test_a_name_that_docker_would_not_take_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        Which(name=name)


def test_exactly_one_way_to_name_it() -> None:
    for said in ({}, {"name": "a", "image": "b"}, {"name": "a", "label": (("k", "v"),)}):
        with pytest.raises(UsageError):
            Which(**said)


def test_labels() -> None:
    which = Which(label=(("app", "mesh"), ("tier", "")))
    assert json.loads(which.filters()) == {"label": ["app=mesh", "tier"]}
    assert matches(which, {"Labels": {"app": "mesh", "tier": "edge"}})
    assert not matches(which, {"Labels": {"app": "mesh"}})
    assert not matches(which, {"Labels": {"app": "other", "tier": ""}})
    assert not matches(which, {"Labels": None})


@pytest.mark.parametrize(
    ("said", "image", "is_it"),
    [
        ("proxy", "proxy:1.2", True),
        ("proxy", "proxy", True),
        ("proxy:1", "proxy:1.2", False),
        ("proxy:1", "proxy:1", True),
        ("proxy", "other/proxy:1", False),
        ("docker.io/library/proxy", "proxy:1", True),
        ("registry.example:5000/mesh/proxy", "registry.example:5000/mesh/proxy:3", True),
        ("registry.example:5000/mesh/proxy", "mesh/proxy:3", False),
        ("proxy", "proxy:1@sha256:" + "0" * 64, True),
        ("pro", "proxy:1", False),
    ],
)
def test_images(said: str, image: str, is_it: bool) -> None:
    assert Which(image=said).made_from(image) is is_it

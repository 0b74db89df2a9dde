"""The expose section, judged before anything runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from edgekeeper.config.root import Root
from edgekeeper.expose.check import verdict
from edgekeeper.model.verdict import EngineVerdict


def judged(tmp_path, *, netbird: dict[str, Any] | None = None, **more: Any) -> EngineVerdict:
    (tmp_path / "token").write_text("nbp_secret_token\n")
    (tmp_path / "token").chmod(0o600)
    said = {
        "owner": "home",
        "netbird": {"url": "https://netbird.example", "token_file": str(tmp_path / "token"), **(netbird or {})},
        "targets": {"default": "192.0.2.1"},
        "service_cidr": "10.96.0.0/12",
        **more,
    }
    return asyncio.run(verdict(Root.model_validate({"expose": said}), "edge-a"))


def test_a_plain_one_is_fine_but_for_what_only_the_cluster_knows(tmp_path):
    found = judged(tmp_path)
    assert (found.refusal, found.notes) == (None, ())
    (doubt,) = found.doubts
    assert "`edgekeeper expose plan` asks it and the mesh" in doubt


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"netbird": {"url": "http://netbird.example"}}, "is not encrypted"),
        ({"netbird": {"policy": True}}, "policy: true opens the targets to every peer"),
        ({"lease": None}, "without a lease"),
        ({"service_cidr": None, "targets": {"default": {"service": "traefik/traefik"}}}, "service_cidr is not said"),
        ({"brake": {"grace": "20s", "disabled": "30s"}}, "less than a minute after it vanished"),
    ],
)
def test_what_may_hurt_is_noted(tmp_path, change, word):
    (note,) = judged(tmp_path, **change).notes
    assert word in note


@pytest.mark.parametrize(
    "fine",
    [
        {"netbird": {"url": "http://127.0.0.1:8080"}},
        {"netbird": {"url": "http://[::1]:8080"}},
        {"netbird": {"url": "http://localhost"}},
        {"service_cidr": None},
        {"brake": {"grace": "20s", "disabled": "40s"}},
        {"targets": {"default": {"service": "traefik/traefik"}}},
    ],
)
def test_what_does_not_is_not(tmp_path, fine):
    assert judged(tmp_path, **fine).notes == ()


def test_a_file_needs_no_lease_and_asks_no_cluster(tmp_path):
    (tmp_path / "hosts.yaml").write_text("hosts: [git.example]\n")
    sources = {"ingress": False, "file": str(tmp_path / "hosts.yaml")}
    found = judged(tmp_path, lease=None, sources=sources)
    assert (found.refusal, found.notes, found.doubts) == (None, (), ())
    (tmp_path / "hosts.yaml").write_text("hosts: [git.example\n")
    broken = judged(tmp_path, lease=None, sources=sources)
    assert broken.refusal is not None
    assert "hosts.yaml" in broken.refusal
    (tmp_path / "hosts.yaml").unlink()
    absent = judged(tmp_path, lease=None, sources=sources)
    assert absent.refusal is None
    assert "is not on this machine" in absent.doubts[0]


def test_a_token_that_cannot_be_read_is_a_doubt_and_is_not_shown(tmp_path):
    assert "none" in judged(tmp_path, netbird={"token_file": str(tmp_path / "none")}).doubts[0]
    assert "nbp_secret" not in repr(judged(tmp_path))
    found = judged(tmp_path, netbird={"token_file": None, "token_env": "EDGEKEEPER_NO_SUCH_TOKEN"})
    assert len(found.doubts) == 1

"""Names of pods and of routes tell the workload."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.owners import feeder, feeds, owner_of


@pytest.mark.parametrize(
    ("pod", "owner", "kind", "same"),
    [
        ("git/gitea-0", "git/gitea", "numbered", "git/gitea-0"),
        ("home/ha-pg-1", "home/ha-pg", "numbered", "home/ha-pg-1"),
        ("/ha-pg-1", "ha-pg", "numbered", "ha-pg-1"),
        ("wordpress-mariadb-0", "wordpress-mariadb", "numbered", "wordpress-mariadb-0"),
        ("web/wordpress-7d4b9c5f6d-x2x8z", "web/wordpress", "replicas", "web/wordpress"),
        ("web/wordpress-7d4b9c5f6d-l9wqk", "web/wordpress", "replicas", "web/wordpress"),
        ("kube-system/node-agent-4w8tz", "kube-system/node-agent", "generated", "kube-system/node-agent"),
        ("jobs/backup-29412345-vv7kq", "jobs/backup", "job", "jobs/backup"),
        ("mail/protonmail-bridge", "mail/protonmail-bridge", "bare", "mail/protonmail-bridge"),
        ("a/home-assistant", "a/home-assistant", "bare", "a/home-assistant"),  # vowels: nobody generated that
    ],
)
def test_the_suffix_of_a_pod_tells_its_workload(pod: str, owner: str, kind: str, same: str) -> None:
    found = owner_of(pod)
    assert (found.text, found.kind, found.same) == (owner, kind, same)


WORKLOADS = ["git/gitea", "git/git", "web/wordpress", "web/wordpress-mariadb", "home/ha-pg", "auth/authentik-server", "mon/grafana"]


@pytest.mark.parametrize(
    ("router", "fed"),
    [
        ("gitea@docker", ("git/gitea",)),
        ("git-gitea-git-example@kubernetes", ("git/gitea",)),
        ("websecure-git-gitea-git-example@kubernetes", ("git/gitea",)),
        ("mon-grafana-0123456789abcdef@kubernetescrd", ("mon/grafana",)),
        ("wordpress", ("web/wordpress", "web/wordpress-mariadb")),
        ("edge -> gitea@file", ("git/gitea",)),
        ("giteaclone@file", ()),
        ("home-assistant", ("home/ha-pg",)),  # as the config says
        ("", ()),
    ],
)
def test_a_route_is_fed_by_what_its_name_says(router: str, fed: tuple[str, ...]) -> None:
    assert feeder(router, WORKLOADS, {"home-assistant": "home/ha-pg"}) == fed


def test_all_routes_at_once() -> None:
    assert feeds(["grafana", "x"], WORKLOADS, {}) == {"grafana": ("mon/grafana",), "x": ()}


@settings(max_examples=12, deadline=None)
@given(st.text(max_size=40), st.lists(st.text(max_size=20), max_size=4))
def test_no_name_is_too_strange(name: str, others: list[str]) -> None:
    owner_of(name)
    feeder(name, others, {})

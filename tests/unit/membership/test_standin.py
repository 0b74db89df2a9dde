from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from edgekeeper.config.members import LbMembersFrom
from edgekeeper.membership.standin import addressed, members
from edgekeeper.model.backend import Member


def told(said: dict[str, Any], default_port: int = 6443) -> tuple[tuple[Member, ...], list[str]]:
    doubts: list[str] = []
    found = asyncio.run(members(LbMembersFrom.model_validate(said), "lb.services[0].members", doubts, default_port))
    return found, doubts


def test_what_is_written_down_is_known(tmp_path: Path) -> None:
    assert told({"static": ["cp1=192.0.2.1", "cp2=cp2.example:7443"]}) == ((Member("cp1", "192.0.2.1", 6443), Member("cp2", "cp2.example", 7443)), [])
    (tmp_path / "members.yaml").write_text("members: [{name: cp1, host: 192.0.2.1, weight: 7, drain: true}]")
    assert told({"file": str(tmp_path / "members.yaml")}) == ((Member("cp1", "192.0.2.1", 6443, (), 7, drain=True),), [])


def test_what_only_the_machine_knows_has_a_stand_in_and_a_doubt(tmp_path: Path) -> None:
    for said, word in (
        ({"file": str(tmp_path / "none")}, "is not on this machine"),
        ({"dns": {"name": "x.example"}}, "are not asked for by a check"),
        ({"endpointslice": "a/b"}, "the cluster is not asked by a check"),
        ({"nodes": {}}, "the cluster is not asked by a check"),
    ):
        found, doubts = told(said)
        assert found == (Member("stand-in", "stand-in", 6443),)
        assert len(doubts) == 1
        assert word in doubts[0]
        assert doubts[0].startswith("lb.services[0].members.")


def test_host_names_become_addresses_that_differ() -> None:
    found = addressed((Member("a", "a.example", 1), Member("b", "192.0.2.1", 2), Member("c", "c.example", 3)))
    assert [m.host for m in found] == ["2001:db8::1", "192.0.2.1", "2001:db8::3"]
    assert [m.name for m in found] == ["a", "b", "c"]

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edgekeeper.config.dns import MembersFrom
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.members import LbMembersFrom
from edgekeeper.errors import MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership.cluster import ClusterSource
from edgekeeper.membership.dns import DnsSource
from edgekeeper.membership.local import FileSource, StaticSource
from edgekeeper.membership.sources import source_of


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"static": ["192.0.2.1"]}, StaticSource),
        ({"file": "/etc/members.yaml"}, FileSource),
        ({"dns": {"name": "_dns._udp.example"}}, DnsSource),
        ({"endpointslice": "dns-system/resolver"}, ClusterSource),
    ],
)
def test_each_source_of_the_config_has_its_reader(said: dict[str, object], kind: type) -> None:
    assert isinstance(source_of(MembersFrom.model_validate(said), SystemClock()), kind)


def test_a_cluster_that_cannot_be_reached_is_told_when_it_is_read_and_not_before(tmp_path: Path) -> None:
    for members in (MembersFrom.model_validate({"endpointslice": "a/b"}), LbMembersFrom.model_validate({"nodes": {}})):
        source = source_of(members, SystemClock(), cluster=Kubernetes.model_validate({"kubeconfig": str(tmp_path / "none")}))
        with pytest.raises(MissingError, match="none"):
            asyncio.run(source.read())


def test_config_and_file_name_the_same_members_in_the_same_words(tmp_path: Path) -> None:
    file = tmp_path / "members.yaml"
    file.write_text("members: [{name: cp1, host: 192.0.2.31, weight: 7}]\n")
    ways = ({"static": [{"name": "cp1", "host": "192.0.2.31", "weight": 7}]}, {"file": str(file)})
    read = [asyncio.run(source_of(LbMembersFrom.model_validate(way), SystemClock(), 6443).read()).members for way in ways]
    assert read[0] == read[1]
    assert (read[0][0].port, read[0][0].weight) == (6443, 7)

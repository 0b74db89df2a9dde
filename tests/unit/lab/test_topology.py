"""The lab's network as values."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.lab.topology import MEMBERS, NODES, cable_lines, edge_plan, full_name, lan_plan, owner

DOCUMENTATION = [ipaddress.ip_network(n) for n in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]


@given(st.integers(1, 2**22), st.integers(0, 2**40), st.from_regex(r"[0-9]{1,5}-(edge|client|members)", fullmatch=True))
def test_whose_a_namespace_is_reads_back(pid: int, started: int, name: str) -> None:
    assert owner(full_name(pid, started, name)) == (pid, started)


@pytest.mark.parametrize("name", ["edge", "ekd", "ekd-1-2", "ekd-x-2-edge", "cni-1-2-edge", "xekd-1-2-edge", "ekd-1-2-edge "])
def test_other_namespaces_are_nobodys(name: str) -> None:
    assert owner(name) is None


def test_every_cable_is_born_inside_namespaces() -> None:
    plan = edge_plan(3)
    real = {name: f"real-{name}" for name in plan.namespaces}
    lines = cable_lines(plan, real)
    links = [line for steps in lines.values() for line in steps if line.startswith("link add")]
    assert links == [
        "link add clients type veth peer name edge netns real-client",
        "link add members type veth peer name edge netns real-members",
    ]
    assert set(lines) == {"edge", "client", "members"}
    assert all(steps[0] == "link set lo up" for steps in lines.values())


@pytest.mark.parametrize("count", [1, 3, len(MEMBERS)])
def test_addresses_are_documentation_addresses(count: int) -> None:
    plan = edge_plan(count)
    addresses = [ipaddress.ip_interface(a).ip for cable in plan.cables for end in cable for a in end.addresses]
    assert len(addresses) == count + 3
    assert len(set(addresses)) == len(addresses)
    assert all(any(a in net for net in DOCUMENTATION) for a in addresses)


@pytest.mark.parametrize(("nodes", "members"), [(2, 0), (3, 12)])
def test_a_segment_is_one_bridge(nodes: int, members: int) -> None:
    plan = lan_plan(nodes, members)
    lines = cable_lines(plan, {name: f"real-{name}" for name in plan.namespaces})
    ports = [line for line in lines["switch"] if line.endswith("master br0")]
    assert len(ports) == len(plan.namespaces) - 1 == nodes + 1 + (members > 0)
    assert lines["switch"].index("link set br0 up") < lines["switch"].index(ports[0])
    assert f"address add 192.0.2.{10 + nodes}/24 dev eth0" in lines[NODES[nodes - 1]]
    assert f"address add 2001:db8::{10 + nodes}/64 dev eth0 nodad" in lines[NODES[nodes - 1]]
    given = [ipaddress.ip_interface(a).ip for cable in plan.cables for end in cable for a in end.addresses]
    assert len(set(given)) == len(given)


@pytest.mark.parametrize(("nodes", "members"), [(1, 0), (4, 0), (2, 13)])
def test_a_segment_of_too_many_or_too_few(nodes: int, members: int) -> None:
    with pytest.raises(ValueError, match="the lab has 2 to 3 nodes"):
        lan_plan(nodes, members)


@pytest.mark.parametrize("count", [0, len(MEMBERS) + 1])
def test_too_many_or_none(count: int) -> None:
    with pytest.raises(ValueError, match="addresses for 1 to"):
        edge_plan(count)

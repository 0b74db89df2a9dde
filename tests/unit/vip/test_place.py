"""Where a node stands among those that share the VIPs."""

from __future__ import annotations

import pytest
from tests.fakes.keepalived import root_of, section, vips

from edgekeeper.config.ops import Peer
from edgekeeper.errors import RefusedError
from edgekeeper.vip.place import of_nodes, of_peers, read_peers

SIX = {"address": "2001:db8::53/64"}
NODES = {
    "b": Peer.model_validate({"address": "192.0.2.12", "address6": "2001:db8::12"}),
    "a": Peer.model_validate({"address": "192.0.2.11", "address6": "2001:db8::11"}),
    "c": Peer.model_validate({"address": "192.0.2.13", "address6": "2001:db8::13"}),
}


def test_the_order_in_nodes_counts_and_not_their_names() -> None:
    places = [of_nodes(section({}, SIX), name, NODES) for name in NODES]
    assert [(p.index, p.count) for p in places] == [(0, 3), (1, 3), (2, 3)]
    assert places[1].sources == {4: "192.0.2.11", 6: "2001:db8::11"}
    assert places[1].peers == {4: ("192.0.2.12", "192.0.2.13"), 6: ("2001:db8::12", "2001:db8::13")}


def test_only_the_families_that_the_vips_have() -> None:
    place = of_nodes(section(SIX), "a", NODES)
    assert (set(place.sources), set(place.peers)) == ({6}, {6})


def test_a_source_that_is_said_wins() -> None:
    said = section({}, SIX, source="198.51.100.1", source6="2001:db8:1::1")
    assert of_nodes(said, "a", NODES).sources == {4: "198.51.100.1", 6: "2001:db8:1::1"}


def test_who_is_no_node_has_no_place() -> None:
    with pytest.raises(RefusedError, match=r"this node \(x\) is not among nodes: b, a, c"):
        of_nodes(section(), "x", NODES)
    with pytest.raises(RefusedError, match="there are none"):
        of_nodes(section(), "x", {})


def test_by_a_file_the_numeric_order_counts_and_the_own_address_is_left_out() -> None:
    addresses = read_peers("192.0.2.100\n192.0.2.9\n192.0.2.11\n192.0.2.101\n")
    place = of_peers(section(), "a", NODES, addresses)
    peers = ("192.0.2.100", "192.0.2.9", "192.0.2.101")
    assert (place.index, place.count, place.sources, place.peers) == (1, 4, {4: "192.0.2.11"}, {4: peers})
    without = of_peers(section(), "a", NODES, peers)
    assert without == place


def test_all_nodes_agree_about_their_places_by_the_same_file() -> None:
    addresses = read_peers("192.0.2.12\n192.0.2.13\n192.0.2.11\n2001:db8::11\n2001:db8::13\n2001:db8::12\n")
    places = {name: of_peers(section({}, SIX), name, NODES, addresses) for name in NODES}
    assert {name: place.index for name, place in places.items()} == {"a": 0, "b": 1, "c": 2}
    assert places["b"].peers == {4: ("192.0.2.13", "192.0.2.11"), 6: ("2001:db8::11", "2001:db8::13")}


def test_an_own_address_must_be_known() -> None:
    with pytest.raises(RefusedError, match=r"the own IPv4 address is not known; say vip\.source, or name this node \(x\)"):
        of_peers(section(), "x", NODES, ("192.0.2.1",))
    with pytest.raises(RefusedError, match=r"the own IPv6 address is not known; say vip\.source6"):
        of_peers(section(SIX), "x", {}, ("2001:db8::1",))
    assert of_peers(section(source="192.0.2.1"), "x", {}, ("192.0.2.2",)).index == 0


def test_more_nodes_than_priorities_are_refused() -> None:
    many = tuple(f"192.0.2.{n}" for n in range(100, 120))
    with pytest.raises(RefusedError, match="21 nodes share the VIPs; at most 20 can"):
        of_peers(section(), "a", NODES, many)
    assert of_peers(section(), "a", NODES, many[1:]).count == 20
    with pytest.raises(RefusedError, match="with base 20 and step 2 the last of 20 nodes would have priority -18"):
        of_peers(section(base=20, step=2), "a", NODES, many[1:])


def test_a_file_of_peers() -> None:
    assert read_peers("# nodes\n192.0.2.11  # edge-a\n\n  2001:DB8:0::12\r\n192.0.2.11\n") == ("192.0.2.11", "2001:db8::12")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("192.0.2.1\nedge-b.example\n", "line 2 of the peers file is no address of a node: 'edge-b.example'; the peers before stay"),
        ("192.0.2.1 192.0.2.2\n", "line 1"),
        ("192.0.2.1/24\n", "line 1"),
        ("fe80::1%x } evil {\n", "line 1"),
        ("fe80::1%eth0\n", "line 1"),
        ("0.0.0.0\n", "line 1"),
        ("224.0.0.18\n", "line 1"),
        ("\x1b[2J\n", "line 1 of the peers file is no address of a node: '?[2J'"),
        ("", "names no address; the peers before stay"),
        ("# nobody\n", "names no address"),
    ],
)
def test_a_file_with_a_mistake_is_refused_by_its_line(text: str, why: str) -> None:
    with pytest.raises(RefusedError) as found:
        read_peers(text)
    assert why in str(found.value)
    assert str(found.value).isprintable()


def test_whatever_of_nodes_gives_both_sides_know_each_other() -> None:
    root = root_of(vips({}, SIX))
    assert root.vip is not None
    a, b = (of_nodes(root.vip, name, root.nodes) for name in root.nodes)
    for version in (4, 6):
        assert (a.peers[version], b.peers[version]) == ((b.sources[version],), (a.sources[version],))

"""A config at its place among the nodes: priorities, sources, peers, the track script's words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.keepalived import FEATURES, NODES, PROGRAM, of, root_of, section, topology, vips

from edgekeeper.engines.keepalived.topology import Place, build, priority
from edgekeeper.errors import RefusedError


def test_even_positions_rest_on_the_first_node_and_odd_ones_on_the_last() -> None:
    for count in (2, 3, 20):
        places = [Place(index, count, {}, {}) for index in range(count)]
        for position in range(4):
            found = [priority(254, 2, place, position) for place in places]
            assert found == sorted(found, reverse=position % 2 == 0)
            assert len(set(found)) == count
            assert (max(found), min(found)) == (254, 254 - 2 * (count - 1))


def test_each_family_has_its_own_source_and_peers() -> None:
    four, six = topology({}, {"address": "2001:db8::53/64"}, node="edge-b").instances
    assert (four.source, four.peers, four.ip, four.prefix) == ("192.0.2.12", ("192.0.2.11",), "192.0.2.50", 24)
    assert (six.source, six.peers, six.ip, six.prefix) == ("2001:db8::12", ("2001:db8::11",), "2001:db8::53", 64)


def test_both_sides_of_a_pair_list_each_other_and_nobody_itself() -> None:
    nodes = {f"n{i}": {"address": f"192.0.2.{i + 1}"} for i in range(4)}
    root = root_of({**vips(), "nodes": nodes, "node": "n0"})
    found = {name: of(root, name, FEATURES["2.3.4"]).instances[0] for name in nodes}
    source = {name: instance.source for name, instance in found.items()}
    for name, instance in found.items():
        assert set(instance.peers) == {address for other, address in source.items() if other != name}
    assert len({instance.priority for instance in found.values()}) == 4
    assert {instance.vrid for instance in found.values()} == {50}


@pytest.mark.parametrize(
    ("place", "said", "why"),
    [
        (Place(0, 2, {}, {4: ("192.0.2.12",)}), {}, r"VIP v0 needs an IPv4 address of this node \(edge-a\)"),
        (Place(0, 2, {4: "192.0.2.11"}, {}), {}, "VIP v0 has no peer with an IPv4 address"),
        (Place(0, 2, {4: "192.0.2.11"}, {4: ("192.0.2.11",)}), {}, "VIP v0 has no peer with an IPv4 address"),
        (Place(0, 2, {4: "192.0.2.11"}, {4: ("192.0.2.12",)}), {"address": "2001:db8::53/64"}, "needs an IPv6 address"),
    ],
)
def test_a_vip_that_could_never_move_is_refused(place: Place, said: dict[str, Any], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        build(section(said), "edge-a", place, "/run/edgekeeper/vip", PROGRAM, "root", hmac=False)


def test_the_track_script_is_told_whom_to_ask() -> None:
    api = {"dnsdist_api": "http://127.0.0.1:8083", "dnsdist_api_key_file": "/k", "require_backends": 2}
    dns, tcp, http, none = topology(
        {"probe": {"dns": "Health.Example", "type": "TXT", **api}}, {"probe": {"tcp": "127.0.0.1:6443"}}, {"probe": {"http": "http://127.0.0.1/x?a=b"}}, {}
    ).instances
    tail = ("--peers", "/run/edgekeeper/vip/peers.json")
    words = ("--dns", "127.0.0.1:53", "--qname", "health.example.", "--qtype", "TXT")
    counted = ("--dnsdist-api", "http://127.0.0.1:8083", "--dnsdist-api-key-file", "/k", "--require-backends", "2")
    assert dns.probe == (*PROGRAM, "vip", "probe", "--vip", "v0", *words, *counted, *tail)
    assert tcp.probe == (*PROGRAM, "vip", "probe", "--vip", "v1", "--tcp", "127.0.0.1:6443", *tail)
    assert http.probe == (*PROGRAM, "vip", "probe", "--vip", "v2", "--http", "http://127.0.0.1/x?a=b", *tail)
    assert none.probe is None


def test_adverts_are_hundredths_of_a_second() -> None:
    assert [topology(advert=written).instances[0].advert_s for written in ("1s", "100ms", "50ms", "40.95s", "129ms")] == [1.0, 0.1, 0.05, 40.95, 0.13]


def test_a_vip_may_live_on_an_interface_of_its_own() -> None:
    assert [i.interface for i in topology({}, {"interface": "eth1"}).instances] == ["eth0", "eth1"]


def test_the_nodes_of_the_tests_are_those_of_the_docs() -> None:
    assert list(NODES) == ["edge-a", "edge-b"]

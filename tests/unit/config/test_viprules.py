"""What must hold between VIPs and nodes, by the sentence that a person reads."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.keepalived import NODES, vips

from edgekeeper.config.root import Root, broken_rules
from edgekeeper.config.viprules import unspeakable


def told(*said: dict[str, Any], nodes: dict[str, Any] | None = None, **more: Any) -> list[str]:
    """Every rule that a small config breaks, as ``where: what``."""
    tree = vips(*said, **more)
    if nodes is not None:
        tree["nodes"] = nodes
        tree.pop("node")
    return [f"{'.'.join(map(str, rule.where))}: {rule.what}" for rule in broken_rules(Root.model_validate(tree))]


def only(found: list[str]) -> str:
    assert len(found) == 1, found
    return found[0]


def test_a_good_config_breaks_none() -> None:
    assert told({}, {"address": "2001:db8::53/64"}, {"probe": {"tcp": "127.0.0.1:80"}}) == []


def test_what_two_vips_may_not_share() -> None:
    assert only(told({}, {"name": "v0"})) == "vip.vips.1: the name v0 is taken by another VIP"
    assert only(told({}, {}, {"vrid": 50})) == "vip.vips.2: the VRID 50 is taken by another VIP"
    assert only(told({}, {"address": "192.0.2.50/32"})) == "vip.vips.1: the address 192.0.2.50 is taken by another VIP"
    assert only(told({"address": "2001:db8::1/64"}, {"address": "2001:DB8:0::1/128"})) == "vip.vips.1: the address 2001:db8::1 is taken by another VIP"


@pytest.mark.parametrize(
    ("probe", "asked"),
    [
        ({"dns": "a.", "server": "192.0.2.50:53"}, "192.0.2.50"),
        ({"tcp": "192.0.2.50:6443"}, "192.0.2.50"),
        ({"tcp": "[2001:db8::51]:6443"}, "2001:db8::51"),
        ({"tcp": "[2001:DB8:0:0::51]:6443"}, "2001:db8::51"),
        ({"tcp": "[2001:db8::51%eth0]:6443"}, "2001:db8::51"),
        ({"tcp": "[::ffff:192.0.2.50]:6443"}, "192.0.2.50"),
        ({"http": "http://192.0.2.50/"}, "192.0.2.50"),
        ({"http": "https://192.0.2.50:8443"}, "192.0.2.50"),
        ({"http": "http://[2001:db8::51]/"}, "2001:db8::51"),
        ({"http": "http://[2001:db8::51]:80/x"}, "2001:db8::51"),
        ({"dns": "a.", "dnsdist_api": "http://192.0.2.50:8083", "dnsdist_api_key_file": "/k"}, "192.0.2.50"),
        ({"dns": "a.", "dnsdist_api": "http://[2001:db8::51]", "dnsdist_api_key_file": "/k"}, "2001:db8::51"),
    ],
)
def test_a_probe_through_any_vip_is_refused(probe: dict[str, Any], asked: str) -> None:
    found = only(told({}, {"address": "2001:db8::51/64"}, {"probe": probe}))
    name = "v1" if ":" in asked else "v0"
    assert found.startswith(f"vip.vips.2.probe: the probe asks {asked}, which is the VIP {name}: ")
    assert found.endswith("ask the local service (127.0.0.1), VRP018")


@pytest.mark.parametrize(
    "probe", [{"tcp": "192.0.2.250:80"}, {"http": "http://node.example/"}, {"http": "http://127.0.0.1:80/192.0.2.50"}, {"dns": "192.0.2.50."}]
)
def test_a_probe_that_only_mentions_a_vip_is_none_through_it(probe: dict[str, Any]) -> None:
    assert told({"probe": probe}) == []


def test_a_configuration_that_moves_a_vip_too_late_is_refused_with_the_sum() -> None:
    assert only(told(script={"interval": 2})) == (
        "vip.script: a dead service would move its VIP only after 7.01 s (2 s x 3 looks + 1 s timeout + 0.012 s skew); the budget is 5 s"
    )
    assert told(script={"interval": 2}, budget="7100ms") == []
    assert "(1 s x 3 looks + 1 s timeout + 1.1 s skew); the budget is 5 s" in only(told(base=20, step=19, advert="1100ms"))
    assert told(script={"interval": 1, "fall": 3}, budget="4100ms") == [], "ours: 4.0 s"
    assert only(told(script={"interval": 10, "fall": 3})).startswith("vip.script: a dead service would move its VIP only after 31 s")


def test_priorities_reach_for_all_nodes() -> None:
    many = {f"n{i}": {"address": f"192.0.2.{i + 100}"} for i in range(20)}
    assert told(nodes=many) == []
    assert told(nodes=many, base=20) == []
    assert "with base 19 and step 1 the last of 20 nodes would have priority 0; it must be at least 1" in told(nodes=many, base=19)[0]
    more = {**many, "n20": {"address": "192.0.2.200"}}
    assert only(told(nodes=more)) == "vip.vips: 21 nodes share the VIPs; at most 20 can"


@pytest.mark.parametrize(("nodes", "found"), [({}, "is empty"), ({"edge-a": {"address": "192.0.2.11"}}, "names one node only")])
def test_somebody_must_be_able_to_take_it(nodes: dict[str, Any], found: str) -> None:
    assert only(told(nodes=nodes)).startswith(f"vip.peers: nodes: {found}, so nobody could take a VIP over")
    assert told(nodes=nodes, peers={"file": "/peers"}) == []


def test_each_node_has_an_address_of_the_family_of_each_vip() -> None:
    four = {"a": {"address": "192.0.2.11"}, "b": {"address": "192.0.2.12"}}
    six = {"a": {"address": "2001:db8::11"}, "b": {"address": "2001:db8::12"}}
    assert [line.partition(",")[0] for line in told({"address": "2001:db8::53/64"}, nodes=four)] == [
        "vip.vips.0: node a has no address6 (or an IPv6 address) in nodes:",
        "vip.vips.0: node b has no address6 (or an IPv6 address) in nodes:",
    ]
    assert told({"address": "2001:db8::53/64"}, nodes=six) == []
    assert len(told({}, nodes=six)) == 2
    assert only(told({}, nodes={**four, "b": {"address": "node.example"}})) == (
        "vip.vips.0: node b has no address, as an IPv4 address in nodes:, so it cannot share the VIP v0"
    )


def test_a_nodes_address_is_its_own_and_no_vip() -> None:
    assert only(told({"address": "192.0.2.11/24"})) == "vip.vips.0: 192.0.2.11/24 is a node's own address; a VIP belongs to no node"
    assert only(told({"address": "2001:db8::12/64"})) == "vip.vips.0: 2001:db8::12/64 is a node's own address; a VIP belongs to no node"
    assert only(told(nodes={**NODES, "edge-c": {"address": "192.0.2.11"}})) == "vip.vips: two nodes have the address 192.0.2.11 in nodes:"
    assert only(told(source="192.0.2.50")) == "vip.source: 192.0.2.50 is the VIP v0; adverts come from the node's own address"


def test_a_source_is_of_its_family() -> None:
    assert only(told(source="2001:db8::1")) == "vip.source: 2001:db8::1 is no IPv4 address; source is where IPv4 adverts come from"
    assert only(told(source6="192.0.2.1")) == "vip.source6: 192.0.2.1 is no IPv6 address; source6 is where IPv6 adverts come from"
    assert told(source="192.0.2.1", source6="2001:db8::1") == []


@pytest.mark.parametrize(
    ("address", "why"),
    [("127.0.0.1", "is loopback"), ("::1", "is loopback"), ("224.0.0.18", "is multicast"), ("ff02::12", "is multicast"), ("0.0.0.0", "no address of a node"),
     ("fe80::1%eth0", "has an interface in it")],
)  # fmt: skip
def test_where_no_vrrp_is_spoken(address: str, why: str) -> None:
    assert why in str(unspeakable(address))
    found = [line for line in told(nodes={**NODES, "edge-c": {"address": address}}) if "VRRP cannot be spoken there" in line]
    assert why in only(found)
    assert unspeakable("192.0.2.1") is unspeakable("2001:db8::1") is unspeakable("fe80::1") is None


def test_a_vip_lives_somewhere() -> None:
    tree = vips({}, {"interface": "eth1"})
    del tree["vip"]["interface"]
    found = [rule.what for rule in broken_rules(Root.model_validate(tree))]
    assert found == ["VIP v0 has no interface; say vip.interface, or its own"]


@pytest.mark.parametrize("run_dir", ["/run/edge keeper", "run", "/run/$HOME", '/run/"', "/run/\u00e4", "/run/{}"])
def test_where_the_run_dir_stands_in_keepaliveds_file_it_is_plain(run_dir: str) -> None:
    tree = {**vips(), "run_dir": run_dir}
    (rule,) = broken_rules(Root.model_validate(tree))
    assert rule.where == ("run_dir",)
    assert "stands in keepalived's configuration" in rule.what
    tree["vip"] |= {"provider": "metallb"}
    assert broken_rules(Root.model_validate(tree)) == ()


def test_who_else_moves_the_vips_needs_no_nodes_but_the_same_names() -> None:
    assert told(nodes={}, provider="kube-vip") == []
    assert told({}, {"vrid": 50}, nodes={}, provider="kube-vip") == ["vip.vips.1: the VRID 50 is taken by another VIP"]

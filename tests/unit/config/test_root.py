from __future__ import annotations

from typing import Any

import pytest

from edgekeeper.config.ops import Ops
from edgekeeper.config.root import Root, broken_rules, is_loopback

DNS: dict[str, Any] = {"listen": ["127.0.0.1:53"], "members": {"static": ["ns-a=192.0.2.1"]}, "proxy_protocol": "off"}


def broken(root: dict[str, Any] | None = None, **dns: Any) -> list[tuple[str, str]]:
    """The place and the sentence of each rule that is broken."""
    tree = {**(root or {}), "dns": {**DNS, **dns}}
    return [(".".join(map(str, rule.where)), rule.what) for rule in broken_rules(Root.model_validate(tree))]


@pytest.mark.parametrize(
    ("listen", "loopback"),
    [("127.0.0.1:53", True), ("127.8.8.8:53", True), ("[::1]:53", True), ("0.0.0.0:53", False), ("[::]:53", False), ("192.0.2.1:53", False)],
)
def test_what_is_reachable_from_here_only(listen: str, loopback: bool) -> None:
    assert is_loopback(listen) is loopback


def test_the_smallest_config_breaks_no_rule() -> None:
    assert broken() == []


OPEN = {"listen": ["0.0.0.0:53"], "acl": ["0.0.0.0/0"]}


@pytest.mark.parametrize("acl", ["0.0.0.0/0", "::/0"])
def test_an_open_resolver_must_be_said(acl: str) -> None:
    ((where, what),) = broken(listen=["192.0.2.9:53"], acl=["127.0.0.0/8", acl])
    assert where == "dns.acl"
    assert "open_resolver: true" in what


@pytest.mark.parametrize("more", [{"open_resolver": True}, {"listen": ["127.0.0.1:53"]}, {"acl": ["192.0.2.0/24"]}])
def test_what_makes_it_no_open_resolver(more: dict[str, Any]) -> None:
    assert broken(**{**OPEN, **more}) == []


def test_authoritative_servers_are_open_to_all() -> None:
    assert broken(**OPEN, purpose="authoritative", zones={"static": ["a.example"]}) == []


def test_members_that_are_not_on_loopback_need_a_word_about_the_proxy_protocol() -> None:
    ((where, what),) = broken(proxy_protocol=None)
    assert where == "dns.proxy_protocol"
    assert "ns-a is not on loopback" in what
    assert broken(proxy_protocol=None, members={"static": ["127.0.0.1:5353", "[::1]:5353"]}) == []
    assert "may not be on loopback" in broken(proxy_protocol=None, members={"file": "/x"})[0][1]
    assert broken(proxy_protocol=None, members={"static": ["a.example"]})
    assert broken(proxy_protocol="plain") == []


def test_members_of_a_cluster_want_the_secret_unless_off_is_said() -> None:
    members = {"endpointslice": "dns-system/resolver"}
    for said in (None, "plain"):
        ((where, what),) = broken(proxy_protocol=said, members=members)
        assert where == "dns.proxy_protocol"
        assert "say {secret_file: ...}, or off" in what
    assert broken(proxy_protocol="off", members=members) == []
    assert broken(proxy_protocol={"secret_file": "/etc/edgekeeper/proxy.secret"}, members=members) == []


@pytest.mark.parametrize(
    ("members", "what"),
    [(["ns-a=192.0.2.1", "ns-a=192.0.2.2"], "the name ns-a is taken"), (["ns-a=192.0.2.1", "ns-b=192.0.2.1"], "the address 192.0.2.1:5353 is taken")],
)
def test_no_two_members_share_a_name_or_an_address(members: list[str], what: str) -> None:
    ((where, found),) = broken(members={"static": members})
    assert where == "dns.members.static.1"
    assert what in found


TLS = {"dir": "/x", "dot": ["127.0.0.1:853"]}


@pytest.mark.parametrize(
    "more",
    [
        {"listen": ["127.0.0.1:53", "127.0.0.1:53"]},
        {"tls": {**TLS, "doh": ["127.0.0.1:853"]}},
        {"tls": {**TLS, "dot": ["127.0.0.1:53"]}},
        {"tls": {**TLS, "doq": ["127.0.0.1:443"], "doh3": ["127.0.0.1:443"]}},
        {"tls": {**TLS, "doq": ["127.0.0.1:53"]}},
    ],
)
def test_nothing_is_listened_on_twice(more: dict[str, Any]) -> None:
    assert [what.split(" ", 1)[1] for _, what in broken(**more)] == ["is listened on twice"]


def test_stream_and_datagram_listeners_share_a_port() -> None:
    assert broken(tls={**TLS, "doq": ["127.0.0.1:853"], "doh": ["127.0.0.1:443"], "doh3": ["127.0.0.1:443"]}) == []


def test_authoritative_members_need_a_question() -> None:
    assert broken(purpose="authoritative")[0][0] == "dns.purpose"
    assert "zones.static names none" in broken(purpose="authoritative", zones={"poll": {}})[0][1]
    assert broken(purpose="authoritative", health={"name": "health.example"}) == []


def test_identity_is_required_only_where_the_question_can_tell_it() -> None:
    assert broken(identity="require")[0][0] == "dns.identity"
    assert broken(identity="require", health={"name": "health.example", "type": "A"})
    assert broken(identity="require", health={"name": "health.example", "type": "TXT"}) == []
    assert broken(identity="require", health={"name": "health.example"}) == []


def test_zones_need_somebody_who_serves_them() -> None:
    only = {"static": [{"name": "ns-a", "host": "192.0.2.1", "pools": ["resolver"]}]}
    assert broken(members=only, zones={"static": ["a.example"]})[0][0] == "dns.zones"
    assert broken(members=only) == []


PUBLIC = "192.0.2.9:8084"
PAIR = {"certificate": "/c", "key": "/k"}


@pytest.mark.parametrize(
    ("ops", "where"),
    [
        ({"listen": PUBLIC}, ["ops.listen"]),
        ({"listen": PUBLIC, "token_file": "/t"}, []),
        ({"listen": PUBLIC, **PAIR}, ["ops.listen"]),
        ({"listen": PUBLIC, **PAIR, "client_ca": "/ca"}, []),
        ({"listen": "127.0.0.1:8084"}, []),
        ({"certificate": "/c"}, ["ops.certificate"]),
        ({"key": "/k"}, ["ops.certificate"]),
        ({"client_ca": "/ca"}, ["ops.client_ca"]),
    ],
)
def test_the_ops_listener_is_guarded_off_loopback(ops: dict[str, str], where: list[str]) -> None:
    assert [place for place, _ in broken({"ops": ops})] == where


def test_the_node_is_one_of_the_nodes() -> None:
    nodes = {"edge-a": {"address": "192.0.2.1"}}
    assert broken({"node": "edge-b", "nodes": nodes})[0] == ("node", "edge-b is not among nodes: edge-a")
    assert broken({"node": "edge-a", "nodes": nodes}) == []
    assert broken({"node": "edge-b"}) == []


def test_a_node_whose_listener_is_https_is_asked_so() -> None:
    ops = {"listen": PUBLIC, **PAIR, "client_ca": "/ca"}
    nodes = {"edge-a": {"address": "192.0.2.9", "ops": f"http://{PUBLIC}"}, "edge-b": {"address": "192.0.2.8", "ops": "http://192.0.2.8:8084"}}
    assert [place for place, _ in broken({"node": "edge-a", "nodes": nodes, "ops": ops})] == ["nodes.edge-a.ops"]
    assert broken({"node": "edge-a", "nodes": nodes, "ops": {"listen": "127.0.0.1:8084"}}) == []
    nodes["edge-a"]["ops"] = f"https://{PUBLIC}"
    assert broken({"node": "edge-a", "nodes": nodes, "ops": ops}) == []


def test_whose_listener_is_believed() -> None:
    made = [Ops.model_validate({"certificate": "/c", "key": "/k", **more}) for more in ({}, {"client_ca": "/ca"}, {"client_ca": "/ca", "peer_ca": "/peers"})]
    assert [ops.believed_ca for ops in made] == [None, "/ca", "/peers"]

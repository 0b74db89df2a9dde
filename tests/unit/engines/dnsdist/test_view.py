"""What a running engine says about itself, whole, in parts, and in pieces."""

from __future__ import annotations

import json
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.topology import build
from edgekeeper.engines.dnsdist.view import EngineView, Server, differences, missing_listeners, parse
from edgekeeper.model.backend import Member

NEW = Features((2, 1, 3), yaml=True, protocols=("do53", "dot"), ebpf=False)
DNS = Root.model_validate({"dns": {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}, "tls": {"dir": "/t", "dot": ["127.0.0.1:853"]}}}).dns
TOPOLOGY = build(DNS, (Member("ns-a", "127.0.0.1", 5353), Member("ns-b", "127.0.0.1", 5354)), ("example.",), NEW)


def answer(**parts):
    """What an engine with this topology says, parts replaced."""
    servers = [
        {"id": number, "name": item.name, "address": item.address, "pools": list(item.pools), "state": "up", "outstanding": 1, "queries": 2.0}
        for number, item in enumerate(TOPOLOGY.backends)
    ]
    frontends = [{"address": "127.0.0.1:53", "type": "UDP", "udp": True, "tcp": False}, {"address": "127.0.0.1:53", "type": "TCP", "udp": False, "tcp": True}]
    frontends += [{"address": "127.0.0.1:853", "type": "TCP (DNS over TLS)", "udp": False, "tcp": True}]
    rules = [{"uuid": rule.id, "name": rule.name, "rule": "All", "action": "x"} for rule in TOPOLOGY.rules]
    tree = {"acl": "127.0.0.0/8, ::1", "servers": servers, "frontends": frontends, "dohFrontends": [], "rules": rules, "pools": [{"name": "b"}, {"name": ""}]}
    return json.dumps({**tree, **parts})


TABLE = "#   UUID   Name\n" + "\n".join(f"{number}   {item.id} {item.name}   127.0.0.1 up" for number, item in enumerate(TOPOLOGY.backends)) + "\nAll  0.0\n"


def test_an_engine_that_is_what_was_wanted_differs_in_nothing():
    held = parse(answer(), TABLE)
    assert held is not None
    assert held.servers[0] == Server(TOPOLOGY.backends[0].id, "ns-a", "127.0.0.1:5353", ("authoritative", "resolver", "retry", "retry-stream"), "up", 1, 2)
    assert held.pools == ("", "b")
    assert differences(TOPOLOGY, held) == ()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"servers": []}, "the engine does not hold ns-a"),
        ({"servers": [{"name": "ns-x"}]}, "the engine still holds ns-x"),
        ({"servers": [{"name": "ns-a"}, {"name": "ns-a"}]}, "the engine holds a member twice"),
        ({"servers": [{"name": "ns-a", "address": "127.0.0.9:1"}]}, "ns-a has the address 127.0.0.9:1, not 127.0.0.1:5353"),
        ({"servers": [{"name": "ns-a", "pools": ["x"]}]}, "ns-a is in the pools x, not authoritative, resolver, retry, retry-stream"),
        ({"rules": []}, "the rules are none, not alive, restartable, refuse-transfers, authoritative, resolver"),
        ({"acl": "0.0.0.0/0"}, "the ACL is 0.0.0.0/0, not 127.0.0.0/8, ::1/128"),
        ({"frontends": []}, "127.0.0.1:53 is not listened on over UDP (do53)"),
        ({"frontends": []}, "127.0.0.1:53 is not listened on over TCP (do53)"),
        ({"frontends": []}, "127.0.0.1:853 is not listened on over TCP (dot)"),
    ],
)
def test_each_difference_is_a_sentence(parts, said):
    held = parse(answer(**parts), TABLE)
    assert held is not None
    assert said in differences(TOPOLOGY, held)


def test_another_id_is_a_difference_and_an_unknown_one_is_not():
    other = parse(answer(), TABLE.replace(TOPOLOGY.backends[0].id, "0" * 8 + "-0000-0000-0000-" + "0" * 12))
    assert other is not None
    assert differences(TOPOLOGY, other) == ("ns-a has another id than was rendered",)
    unknown = parse(answer(), "")
    assert unknown is not None
    assert differences(TOPOLOGY, unknown) == ()


def test_an_address_is_the_same_however_it_is_written():
    host = str(ip_address("::ffff:c000:201"))  # as the config reads it; Python writes it with dots from 3.13 on
    mapped = build(DNS, (Member("ns-a", host, 53),), (), NEW)
    held = parse(answer(servers=[{"name": "ns-a", "address": "[::ffff:192.0.2.1]:53", "pools": ["authoritative", "resolver", "retry", "retry-stream"]}]))
    assert held is not None
    assert held.servers[0].address == mapped.backends[0].address == f"[{host}]:53"
    assert parse('{"servers": [{"address": "odd"}, {"address": "127.0.0.1:53"}]}') == EngineView(
        servers=(Server("", "", "odd", (), "", 0, 0), Server("", "", "127.0.0.1:53", (), "", 0, 0))
    )


def test_rules_without_names_are_known_by_their_ids():
    """1.7.3 gives none; the order counts."""
    bare = [{"uuid": rule.id, "rule": "All"} for rule in TOPOLOGY.rules]
    held, turned = parse(answer(rules=bare), TABLE), parse(answer(rules=[*bare[1:], {"uuid": "x", "rule": "Odd"}]), TABLE)
    assert held is not None
    assert turned is not None
    assert differences(TOPOLOGY, held) == ()
    assert differences(TOPOLOGY, turned) == (
        "the rules are restartable, refuse-transfers, authoritative, resolver, Odd, not alive, restartable, refuse-transfers, authoritative, resolver",
    )


def test_a_forced_state_counts():
    assert Server("", "", "", (), "UP", 0, 0).up
    assert not Server("", "", "", (), "DOWN", 0, 0).up


def test_quic_listeners_have_no_tcp():
    dns = Root.model_validate({"dns": {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}, "tls": {"dir": "/t", "doq": ["127.0.0.1:853"]}}}).dns
    quic = build(dns, (), (), Features((2, 1, 3), yaml=True, protocols=("do53", "doq"), ebpf=False))
    assert "127.0.0.1:853 is not listened on over UDP (doq)" in missing_listeners(quic, EngineView())
    assert not any("853 is not listened on over TCP" in text for text in missing_listeners(quic, EngineView()))


@given(st.integers(0, 3000))
def test_an_answer_cut_anywhere_is_none_or_whole(end):
    text = answer()
    assert parse(text[:end], TABLE) in (None, parse(text, TABLE))


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["servers", "frontends", "dohFrontends", "rules", "pools", "acl", "name", "address", "udp", "queries", "state"]), inner, max_size=5
        ),
    ),
)


@given(json_values, st.text())
def test_no_json_and_no_table_breaks_it(tree, table):
    held = parse(json.dumps(tree), table)
    if held is not None:
        differences(TOPOLOGY, held)


@given(st.text())
def test_no_text_breaks_it(text):
    parse(text, text)

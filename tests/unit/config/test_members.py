from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.config import dns
from edgekeeper.config.dns import MemberEntry
from edgekeeper.config.members import LbMemberEntry, LbMembersFrom, parse_members
from edgekeeper.errors import ConfigError


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_members(text, "members.yaml", MemberEntry)
    return str(caught.value).splitlines()


def test_entries_are_short_or_long() -> None:
    entries = parse_members(
        "members:\n- ns-a=192.0.2.21\n- {name: ns-b, host: '2001:db8::2', port: 53, pools: [resolver]}\n- '[2001:db8::3]:54'\n", "m", MemberEntry
    )
    assert [(e.name, e.host, e.port, e.pools) for e in entries] == [
        ("ns-a", "192.0.2.21", 5353, ()),
        ("ns-b", "2001:db8::2", 53, ("resolver",)),
        ("", "2001:db8::3", 54, ()),
    ]


def test_each_role_has_its_own_keys_of_a_member() -> None:
    text = "members: [cp1=192.0.2.31, {name: cp2, host: 192.0.2.32, port: 7443, weight: 10, drain: true}]\n"
    first, second = (entry.member(6443) for entry in parse_members(text, "m", LbMemberEntry, 6443))
    assert (first.address, first.weight, first.drain) == ("192.0.2.31:6443", 100, False)
    assert (second.address, second.weight, second.drain) == ("192.0.2.32:7443", 10, True)
    assert mistakes(text)[-1] == "members.yaml:1:81: members.1.drain: unknown key; known here: name, host, port, pools"


def test_a_service_of_the_cluster_is_short_or_long() -> None:
    short = dns.MembersFrom.model_validate({"endpointslice": "dns-system/resolver"}).endpointslice
    long = dns.MembersFrom.model_validate({"endpointslice": {"service": "dns-system/resolver", "port": "domain", "fallback_port": 53}}).endpointslice
    assert short is not None
    assert (short.namespace, short.name, short.port, short.fallback_port) == ("dns-system", "resolver", None, None)
    assert long is not None
    assert (long.service, long.port, long.fallback_port) == ("dns-system/resolver", "domain", 53)


@pytest.mark.parametrize(
    "said",
    [
        {"endpointslice": "resolver"},
        {"endpointslice": "a/b/c"},
        {"endpointslice": "a/b,c=d"},
        {"endpointslice": {"service": "a/b", "port": "Dns"}},
        {"endpointslice": {}},
        {"nodes": {"label": "a=b,c"}},
        {"nodes": {"label": "a", "address": "both"}},
        {"nodes": {}, "endpointslice": "a/b"},
        {},
    ],
)
def test_what_names_no_members_of_a_cluster(said: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        LbMembersFrom.model_validate(said)


def test_only_a_load_balancer_has_nodes_behind_it() -> None:
    with pytest.raises(ValueError):
        dns.MembersFrom.model_validate({"nodes": {}})
    found = LbMembersFrom.model_validate({"nodes": {}}).nodes
    assert found is not None
    assert (found.label, found.port, found.address) == ("node-role.kubernetes.io/control-plane", None, "internal")


def test_a_port_that_nobody_says_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"m:1:11: members\.0: 192\.0\.2\.31 has no port, and the service has none of its own"):
        parse_members("members: [db=192.0.2.31, 192.0.2.32:5432]\n", "m", LbMemberEntry)


def test_a_list_in_the_config_is_made_of_the_entries_that_the_file_has() -> None:
    for kind in (dns.MembersFrom, LbMembersFrom):
        found = kind.model_validate({"static": ["a=192.0.2.1"]})
        assert found.static is not None
        assert type(found.static[0]) is kind.entry


def test_no_members_is_said_on_purpose() -> None:
    assert parse_members("members: []\n", "m", MemberEntry) == ()


@pytest.mark.parametrize("text", ["", "# gone\n", "members:\n"])
def test_a_file_that_was_cut_short_is_a_mistake_and_never_no_members(text: str) -> None:
    assert len(mistakes(text)) == 1


def test_all_mistakes_at_once_with_their_places() -> None:
    assert mistakes("members:\n  - ns-a=192.0.2.21\n  - ns-a=192.0.2.22:x\n  - {hots: b}\nmember: []\n") == [
        "members.yaml:3:5: members.1: 'x' is not a port (1 to 65535)",
        "members.yaml:4:5: members.2.host: missing; address or host name; host names are resolved and watched",
        "members.yaml:4:6: members.2.hots: unknown key; did you mean host?",
        "members.yaml:5:1: member: unknown key; did you mean members?",
    ]


def test_a_bare_list_is_told_what_is_missing() -> None:
    assert mistakes("- ns-a=192.0.2.21\n") == ["members.yaml:1:1: write members: and the list below it"]


def test_two_members_cannot_share_a_name_or_an_address() -> None:
    assert mistakes("members: [a=192.0.2.1, a=192.0.2.2, b=192.0.2.1]\n") == [
        "members.yaml:1:24: members.1: the name a is taken by another member; remove one",
        "members.yaml:1:37: members.2: the address 192.0.2.1:5353 is taken by another member; remove one",
    ]


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60) | st.text(max_size=40).map(lambda text: f"members: [{text}]"))
def test_no_text_makes_anything_but_entries_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_members(text, "m", MemberEntry)

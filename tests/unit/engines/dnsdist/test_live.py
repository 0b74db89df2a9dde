"""What changes without a restart, and what is said to the console for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.live import change, commands, staying
from edgekeeper.engines.dnsdist.topology import Certificate, build
from edgekeeper.model.backend import Member
from edgekeeper.ports import Cost

NEW = Features((2, 1, 3), yaml=True, protocols=("do53", "dot"), ebpf=True)
OLD = Features((1, 9, 16), yaml=False, protocols=("do53", "dot"), ebpf=True)
A, B, C = (Member(f"ns-{name}", f"192.0.2.{number}", 53) for name, number in (("a", 1), ("b", 2), ("c", 3)))
PAIR = Certificate("/c", "/k", "1")
BASE = {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}, "proxy_protocol": "off", "tls": {"dir": "/t", "dot": ["127.0.0.1:853"]}}


def made(*members, zones=(), features=NEW, forward=None, certificate=PAIR, enforce=True, forgiving=False, **said):
    dns = Root.model_validate({"dns": {**BASE, **said}}).dns
    given_members = members or (A, B)
    return build(dns, given_members, zones, features, forward=forward, certificate=certificate, enforce_identity=enforce, forgiving=forgiving)


OLDER = made()


@pytest.mark.parametrize(
    ("new", "reason", "why"),
    [
        (made(A, B, C), "membership", "members: 1 added, 0 removed, 0 changed"),
        (made(A), "membership", "members: 0 added, 1 removed, 0 changed"),
        (made(A, replace(B, host="192.0.2.9")), "membership", "members: 0 added, 0 removed, 1 changed"),
        (made(forgiving=True), "membership", "members: 0 added, 0 removed, 2 changed"),
        (made(zones=("example.",)), "zones", "routing rules changed"),
        (made(transfer_sources=["192.0.2.9/32"]), "zones", "routing rules changed"),
        (made(forward={"lan.": (C,)}), "membership", "members: 1 added, 0 removed, 0 changed; routing rules changed"),
        (made(certificate=replace(PAIR, digest="2")), "certificates", "a certificate changed"),
        (made(acl=["192.0.2.0/24"]), "other", "the ACL changed"),
    ],
)
def test_these_are_made_live(new, reason, why):
    found = change(OLDER, new)
    assert (found.cost, found.reason, found.why) == (Cost.LIVE, reason, why)
    assert commands(OLDER, new, NEW)[0].startswith("ek_made = ek_made or {}"), "the helpers come first: the engine may be of an older edgekeeper"


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (made(listen=["127.0.0.1:54"]), "listeners"),
        (made(engine={"threads": 2}), "listeners"),
        (made(certificate=replace(PAIR, chain="/other")), "listeners"),
        (made(dynblocks={"query_rate": 1}), "other"),
        (made(ebpf={}), "other"),
        (made(retry="off"), "other"),
        (made(retry="fast"), "other"),
        (made(balancing_factor=2), "other"),
        (made(policy="leastOutstanding"), "other"),
        (made(authoritative_cache=True), "other"),
    ],
)
def test_these_need_a_restart(new, reason):
    found = change(OLDER, new)
    assert (found.cost, found.reason) == (Cost.RESTART, reason)
    assert change(new, OLDER).cost is Cost.RESTART


def test_nothing_is_nothing_and_notes_are_nothing():
    assert change(OLDER, made()).cost is Cost.NOTHING
    assert change(OLDER, replace(OLDER, notes=("said otherwise",))).cost is Cost.NOTHING
    assert commands(OLDER, made(), NEW) == ()


def test_an_identity_check_is_taken_at_the_start_only_but_members_still_leave_live():
    """2.1.3: setHealthCheckResponseValidator cannot be used at runtime."""
    said = {"identity": "require", "health": {"name": "health.example.", "type": "TXT"}}
    required = made(**said)
    joined = change(required, made(A, B, C, **said))
    assert (joined.cost, joined.reason, joined.why) == (Cost.RESTART, "membership", "dnsdist takes the identity check of ns-c at its start only")
    assert change(required, made(A, **said)).cost is Cost.LIVE
    assert change(required, made(A, B, Member("", "192.0.2.9", 53), **said)).cost is Cost.LIVE
    relaxed = made(enforce=False, **said)
    assert (change(required, relaxed).cost, change(required, relaxed).why) == (Cost.LIVE, "identity is not enforced now")
    assert commands(required, relaxed, NEW)[1:] == ("ek_enforce_identity = false",)
    assert commands(relaxed, required, NEW)[1:] == ("ek_enforce_identity = true",)
    assert change(required, made(health=said["health"])).cost is Cost.LIVE, "dropping the check needs none"
    assert change(made(features=OLD, **said), made(A, B, C, features=OLD, **said)).cost is Cost.LIVE


def test_the_new_member_comes_before_the_old_one_goes():
    said = commands(OLDER, made(A, replace(B, host="192.0.2.9"), C), NEW)
    assert [text.partition("(")[0] for text in said[1:]] == ["ek_put", "ek_put", "ek_hope"]
    assert said[1].startswith('ek_put("ns-b", false, "'), "another address earns its status anew"
    away = commands(OLDER, made(B, C, zones=("example.",)), NEW)
    assert [text.partition(",")[0] for text in away[1:3]] == ['ek_put("ns-c"', 'ek_remove("ns-a")']
    assert [text.partition("(")[0] for text in away[3:]] == ["ek_hope", "setRules"], "somebody is up before the rules send there"
    assert commands(OLDER, made(forgiving=True), NEW)[1].startswith('ek_put("ns-a", true, "'), "the same address keeps its status"


def test_who_stays_is_told_for_each_pool_that_a_change_is_about():
    assert staying(OLDER, made(B, C)) == '{{"ns-b", "ns-c"}}', "four pools of the same members are one list"
    apart = made(replace(A, pools=("resolver",)), replace(B, pools=("authoritative",)))
    assert staying(apart, made(replace(C, pools=("resolver",)), replace(B, pools=("authoritative",)))) == '{{"ns-c"}}', "B says nothing about the resolver"
    assert staying(OLDER, made(A, replace(B, pools=("authoritative",)))) == '{{"ns-a", "ns-b"}, {"ns-a"}}', "who leaves a pool is missed there"
    assert staying(made(forward={"lan.": (C,)}), OLDER) == "{}", "nobody stays in a pool that goes"
    assert staying(OLDER, OLDER) == "{}"


def test_every_rule_is_replaced_in_one_statement():
    (rules,) = commands(OLDER, made(zones=("example.",)), NEW)[1:]
    assert rules.startswith('setRules({newRuleAction(AndRule({QNameRule("alive.edgekeeper.invalid."), QTypeRule(DNSQType.TXT)}), SpoofRawAction(')
    assert "newRuleAction(AllRule(), LuaFFIPerThreadAction(" in rules
    assert rules.count("newRuleAction(") == 5


def test_an_engine_from_before_the_self_answer_is_given_it_live():
    old = made()
    found = change(replace(old, rules=old.rules[1:]), old)
    assert found.cost is Cost.LIVE
    assert old.rules[0].kind == "alive"


def test_other_statements():
    assert commands(OLDER, made(enforce=False), NEW) == (), "nobody's identity is required"
    assert commands(OLDER, made(acl=["192.0.2.0/24"]), NEW)[1:] == ('setACL({"127.0.0.0/8", "::1/128", "192.0.2.0/24"})',)
    assert commands(OLDER, made(certificate=replace(PAIR, digest="2")), NEW)[1:] == ("reloadAllCertificates()",)
    first = commands(OLDER, made(forward={"lan.": (C,)}), NEW)[1]
    assert first == 'setPoolServerPolicy(leastOutstanding, "forward-lan.")'


members = st.lists(
    st.builds(Member, st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["192.0.2.1", "192.0.2.2"]), st.just(53)),
    min_size=1,
    max_size=4,
    unique_by=lambda m: m.label,
)
topologies = st.builds(
    lambda who, zones, acl, retry, enforce: made(*who, zones=tuple(zones), acl=acl, retry=retry, enforce=enforce),
    members, st.sets(st.sampled_from(["a.", "b."])), st.lists(st.sampled_from(["192.0.2.0/24", "198.51.100.0/24"]), unique=True), st.sampled_from(["normal", "off"]), st.booleans(),
)  # fmt: skip


@given(topologies, topologies)
def test_a_live_change_says_something_and_no_change_says_nothing(old, new):
    found = change(old, new)
    assert found.why
    assert found.reason in ("membership", "zones", "certificates", "listeners", "other")
    if found.cost is Cost.LIVE:
        assert len(commands(old, new, NEW)) > 1
    if found.cost is Cost.NOTHING:
        assert commands(old, new, NEW) == ()
        assert replace(old, notes=()) == replace(new, notes=())

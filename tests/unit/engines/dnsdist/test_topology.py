"""Config, members and zones become one value: what is in it, what is refused, what is only noted."""

from __future__ import annotations

import random

import pytest

from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.names import identify
from edgekeeper.engines.dnsdist.topology import Cache, Certificate, EbpfMaps, Guard, Pool, build, question
from edgekeeper.errors import RefusedError, UsageError
from edgekeeper.model.backend import Member

NEW = Features((2, 1, 3), yaml=True, protocols=("do53", "dot", "doh"), ebpf=True)
OLD = Features((1, 9, 16), yaml=False, protocols=("do53", "dot", "doh"), ebpf=False)
OLDEST = Features((1, 7, 3), yaml=False, protocols=("do53", "dot", "doh"), ebpf=True)
A, B = Member("ns-a", "192.0.2.21", 5353), Member("ns-b", "2001:db8::22", 5353)
TEXT = {"health": {"name": "health.example.", "type": "TXT"}}


def dns(**said):
    return Root.model_validate({"dns": {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}, "proxy_protocol": "off", **said}}).dns


def test_the_same_members_in_any_order_are_the_same_topology():
    members = [A, B, Member("", "192.0.2.9", 53), Member("", "192.0.2.10", 53)]
    first = build(dns(), tuple(members), ("b.example.", "a.example."), NEW)
    for seed in range(5):
        random.Random(seed).shuffle(members)
        assert build(dns(), (*members, members[0]), ("a.example.", "b.example.", "a.example."), NEW) == first


def test_an_id_is_the_names_and_outlives_an_address():
    one = build(dns(), (A,), (), NEW).backends[0]
    moved = build(dns(), (Member("ns-a", "192.0.2.99", 53),), (), OLDEST).backends[0]
    assert one.id == moved.id == identify("ns-a")
    assert one.address != moved.address


def test_a_member_without_a_name_is_its_address():
    found = build(dns(), (Member("", "2001:db8::22", 53),), (), NEW).backends[0]
    assert (found.name, found.address, found.id) == ("[2001:db8::22]:53", "[2001:db8::22]:53", identify("[2001:db8::22]:53"))


def test_every_member_is_in_both_pools_and_the_retry_pool_follows_the_resolver():
    members = (A, Member("ns-r", "192.0.2.1", 53, ("resolver",)), Member("ns-x", "192.0.2.2", 53, ("authoritative",)))
    assert [item.pools for item in build(dns(), members, (), NEW).backends] == [
        ("authoritative", "resolver", "retry", "retry-stream"), ("resolver", "retry", "retry-stream"), ("authoritative",),
    ]  # fmt: skip
    assert [item.pools for item in build(dns(retry="off"), members, (), NEW).backends] == [("authoritative", "resolver"), ("resolver",), ("authoritative",)]
    assert [pool.name for pool in build(dns(), members, (), OLD).pools] == ["resolver", "authoritative"]


def test_pools_and_caches():
    pools = build(dns(authoritative_cache=True, stale_ttl="1h"), (A,), (), NEW).pools
    assert pools == (
        Pool("resolver", "chashed", Cache(200_000, stale=True)),
        Pool("authoritative", "leastOutstanding", Cache(20_000, 30, stale=True)),
        Pool("retry", "leastOutstanding"),
        Pool("retry-stream", "roundrobin"),
    )
    bare = build(dns(cache_entries=0, policy="leastOutstanding"), (A,), (), NEW).pools
    assert [(pool.policy, pool.cache) for pool in bare] == [("leastOutstanding", None)] * 3 + [("roundrobin", None)]


@pytest.mark.parametrize(
    ("retry", "features", "on", "timeout"), [("normal", NEW, True, 2), ("fast", NEW, True, 0), ("off", NEW, False, 2), ("fast", OLD, False, 2)]
)
def test_the_udp_timeout_follows_the_retry(retry, features, on, timeout):
    tuning = build(dns(retry=retry), (A,), (), features).tuning
    assert (tuning.retry, tuning.udp_timeout_s) == (on, timeout)


@pytest.mark.parametrize(
    ("said", "zones", "asked"),
    [
        ({}, (), ("a.root-servers.net.", "A")),
        ({"health": {"type": "AAAA"}}, (), ("a.root-servers.net.", "AAAA")),
        ({"health": {"name": "health.example."}}, (), ("health.example.", "TXT")),
        ({"health": {"name": "health.example.", "type": "A"}, "purpose": "authoritative"}, (), ("health.example.", "A")),
        ({"purpose": "authoritative", "zones": {"static": ["z.example.", "a.example."]}}, ("a.example.",), ("z.example.", "SOA")),
        ({"purpose": "authoritative"}, ("a.example.", "b.example."), ("a.example.", "SOA")),
    ],
)
def test_the_question_takes_the_clients_path(said, zones, asked):
    assert question(dns(**said), zones) == asked
    health = build(dns(**said), (A,), zones, NEW).backends[0].health
    assert (health.name, health.type) == asked


def test_authoritative_members_without_a_zone_cannot_be_asked():
    with pytest.raises(UsageError, match=r"none is known; list one in zones\.static, or say health\.name"):
        build(dns(purpose="authoritative"), (A,), (), NEW)
    assert build(dns(purpose="authoritative"), (), (), NEW).backends == ()


def test_health_in_the_engines_units():
    health = build(dns(health={"interval": "1500ms", "timeout": "250ms", "fall": 3, "rise": 1, "mode": "lazy"}), (A,), (), NEW).backends[0].health
    assert (health.interval_s, health.timeout_ms, health.fall, health.rise, health.lazy, health.must_resolve) == (2, 250, 3, 1, True, True)
    assert not build(dns(health={"must_resolve": False}), (A,), (), NEW).backends[0].health.must_resolve


def test_members_that_fail_the_question_are_asked_whether_they_live():
    said = {"identity": "require", **TEXT}
    topology = build(dns(**said), (A,), (), NEW, forward={"lan.": (B,)}, forgiving=True)
    own, forwarded = topology.backends
    assert (own.health.name, own.health.type, own.health.chaos, own.health.must_resolve) == ("id.server.", "TXT", True, False)
    assert (forwarded.health.name, forwarded.health.chaos, forwarded.health.must_resolve) == ("lan.", False, True)
    assert topology.forgiving
    assert not build(dns(**said), (A,), (), NEW).forgiving
    assert not topology.enforce_identity, "whatever they call themselves, they stay"


def test_only_named_members_must_answer_with_their_name_and_only_where_asked():
    members = (A, Member("", "192.0.2.9", 53))
    assert [item.identity for item in build(dns(identity="require", **TEXT), members, (), NEW).backends] == ["", "ns-a"]
    assert [item.identity for item in build(dns(identity="observe", **TEXT), members, (), NEW).backends] == ["", ""]
    assert [item.identity for item in build(dns(identity="require", **TEXT), members, (), OLD).backends] == ["", ""]


def test_what_an_old_engine_cannot_do_is_noted_and_not_refused():
    topology = build(dns(identity="require", health={**TEXT["health"], "mode": "lazy"}), (A,), (), OLDEST)
    assert [note.split(";")[1].strip() for note in topology.notes] == [
        "retry is off until 2.0",
        "identity is not enforced, a mismatch is only an alarm until 2.1",
        "it checks all the time until 1.8",
    ]
    assert not topology.backends[0].health.lazy
    assert build(dns(), (A,), (), NEW).notes == ()


def test_forwarded_zones_have_members_of_their_own():
    topology = build(dns(proxy_protocol="plain", identity="require", **TEXT), (A,), (), NEW, forward={"lan.": (A, Member("", "192.0.2.9", 53))})
    own = [item for item in topology.backends if item.pools == ("forward-lan.",)]
    assert [(item.name, item.address, item.proxy, item.identity) for item in own] == [
        ("192.0.2.9:53/lan.", "192.0.2.9:53", False, ""), ("ns-a/lan.", "192.0.2.21:5353", False, ""),
    ]  # fmt: skip
    assert {(item.health.name, item.health.type) for item in own} == {("lan.", "SOA")}
    assert topology.backends[0].proxy
    assert len({item.id for item in topology.backends}) == 3
    assert topology.pools[-1] == Pool("forward-lan.", "leastOutstanding")


def test_two_members_of_one_name_are_refused():
    with pytest.raises(RefusedError, match=r"two members are called ns-a \(192\.0\.2\.21:5353 and 192\.0\.2\.22:5353\)"):
        build(dns(), (A, Member("ns-a", "192.0.2.22", 5353)), (), NEW)


@pytest.mark.parametrize(("host", "why"), [("ns.example", "was not resolved"), ("0.0.0.0", "names no machine"), ("::", "names no machine")])
def test_a_member_needs_an_address(host, why):
    with pytest.raises(UsageError, match=why):
        build(dns(), (Member("ns-a", host, 53),), (), NEW)


def test_listeners_share_the_certificate_and_loopback_may_always_ask():
    said = {"tls": {"dir": "/t", "dot": ["127.0.0.1:853"], "doh": ["[::1]:443"]}, "acl": ["192.0.2.0/24", "::1/128"], "engine": {"threads": 3}}
    pair = Certificate("/c", "/k", "d")
    topology = build(dns(**said), (A,), (), NEW, certificate=pair)
    assert [(item.protocol, item.address, item.threads, item.certificate) for item in topology.listeners] == [
        ("do53", "127.0.0.1:53", 3, None), ("dot", "127.0.0.1:853", 1, pair), ("doh", "[::1]:443", 1, pair),
    ]  # fmt: skip
    assert topology.acl == ("127.0.0.0/8", "::1/128", "192.0.2.0/24")
    assert build(dns(**said), (A,), (), NEW).listeners[1].certificate == Certificate("/t/tls.crt", "/t/tls.key")


@pytest.mark.parametrize(("protocol", "name"), [("doq", "DNS over QUIC"), ("doh3", "DNS over HTTP/3")])
def test_a_protocol_that_the_build_lacks_is_refused(protocol, name):
    with pytest.raises(UsageError, match=rf"127\.0\.0\.1:853: dnsdist 2\.1\.3 was built without {name}; remove tls\.{protocol}"):
        build(dns(tls={"dir": "/t", protocol: ["127.0.0.1:853"]}), (A,), (), NEW)


def test_guards():
    topology = build(dns(dynblocks={"query_rate": 5, "window": "1500ms"}, ebpf={"ipv4": 7}), (A,), (), NEW)
    assert topology.guard == Guard(5, 0, 2, 60)
    assert topology.ebpf == EbpfMaps(7, 1024, 1024)
    assert build(dns(dynblocks={}), (A,), (), NEW).guard is None
    with pytest.raises(UsageError, match=r"1\.9\.16 was built without eBPF; remove dns\.ebpf"):
        build(dns(ebpf={}), (A,), (), OLD)


def test_many_members_share_the_room_for_queries_under_way():
    def told(count):
        return build(dns(), tuple(Member(f"n{i}", "192.0.2.1", 1000 + i) for i in range(count)), (), NEW).tuning.outstanding

    assert [told(count) for count in (1, 32, 33, 256, 257)] == [16_384, 16_384, 4096, 4096, 1024]

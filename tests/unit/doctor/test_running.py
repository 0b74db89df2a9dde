"""The checks that look at a running HAProxy, on pictures made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edgekeeper.doctor.examine import examine
from edgekeeper.doctor.facts import HaproxyFacts, HaproxyRuntime, Inventory, NodeFact, Unknown
from edgekeeper.engines.haproxy.cfg import Source, readings
from edgekeeper.engines.haproxy.sess import Session
from edgekeeper.engines.haproxy.stats import Info, ProxyStat, ServerStat, Stats
from edgekeeper.model.finding import Finding

CONFIG = "backend api\n server cp1 192.0.2.31:6443 check\n server cp2 192.0.2.32:6443 check\n"


def session(source: str, server: str = "cp1", age: float = 14.0) -> Session:
    return Session("0x1", source, source.rpartition(":")[0], "api", "api", server, age)


def judged(*servers: ServerStat, sessions: Any = None, **said: Any) -> list[Finding]:
    info = Info(version="3.0.11", pid=100, uptime_s=50, curr_conns=said.pop("conns", 1), max_conn=said.pop("limit", 100), start_time=said.pop("started", None))
    stats = Stats(servers, said.pop("frontends", ()))
    runtime = HaproxyRuntime("/run/x", info, stats, {} if sessions is None else sessions)
    given = HaproxyFacts(readings=readings([Source("h.cfg", CONFIG)]), runtime=runtime, now=1000.0, **said)
    return list(examine(given, only=["HAP002", "HAP009", "HAP010", "HAP011", "HAP012", "HAP013", "HAP015", "NOD001"]).findings)


def ids(findings: list[Finding]) -> list[str]:
    return [f.id for f in findings]


def test_pinned_clients_are_named_oldest_first_with_those_of_old_workers() -> None:
    sessions = {100: (session("192.0.2.9:1111"),), 90: (session("192.0.2.8:2222", age=4000.0), session("192.0.2.7:3333", "cp2"))}
    found = judged(ServerStat("api", "cp1", "DOWN", scur=1), ServerStat("api", "cp2", "UP", scur=1), sessions=sessions)
    assert ids(found) == ["HAP002"]
    assert found[0].what == "2 sessions pinned to a server that is DOWN"
    assert "192.0.2.8:2222 for 1h6m40s, 192.0.2.9:1111 for 14s; 1 of them in workers left over" in found[0].evidence
    assert "192.0.2.7" not in found[0].evidence
    assert found[0].place is not None
    assert found[0].place.line == 2


def test_a_session_of_an_old_worker_alone_is_pinned_too() -> None:
    found = judged(ServerStat("api", "cp1", "DOWN", scur=0), sessions={90: (session("192.0.2.8:2222"),)})
    assert ids(found) == ["HAP002"]


def test_a_server_that_the_reload_moved_is_another_machine_for_the_sessions_of_before() -> None:
    """`lb sessions` does not call them pinned either."""
    there = replace(session("192.0.2.8:2222"), address="192.0.2.99:6443")
    assert judged(ServerStat("api", "cp1", "DOWN", address="192.0.2.31:6443"), sessions={90: (there,)}) == []
    assert ids(judged(ServerStat("api", "cp1", "DOWN", address="192.0.2.99:6443"), sessions={90: (there,)})) == ["HAP002"]


def test_without_the_right_to_list_sessions_the_count_still_tells() -> None:
    found = judged(ServerStat("api", "cp1", "DOWN", scur=3), sessions=Unknown("level user"))
    assert ids(found) == ["HAP002"]
    assert "the clients cannot be named: level user" in found[0].evidence


def test_maintenance_with_sessions_is_told_twice_and_an_empty_one_never() -> None:
    assert ids(judged(ServerStat("api", "cp1", "MAINT", scur=1))) == ["HAP002", "HAP015"]
    assert judged(ServerStat("api", "cp1", "MAINT", scur=0, lastchg=90000)) == []


def test_a_server_that_only_dns_does_not_name_may_serve_its_sessions_well() -> None:
    """`lb sessions` does not call them pinned either, and refuses to end them."""
    assert judged(ServerStat("api", "cp1", "MAINT (resolution)", scur=3)) == []


def test_down_for_an_hour() -> None:
    assert judged(ServerStat("api", "cp1", "DOWN", lastchg=3600)) == []
    found = judged(ServerStat("api", "cp1", "DOWN", lastchg=7200, check="L7TOUT"))
    assert ids(found) == ["HAP011"]
    assert found[0].what == "DOWN for 2h"


def test_a_file_newer_than_the_process() -> None:
    assert ids(judged(mtimes={"h.cfg": 990.0}, started=900)) == ["HAP012"]
    assert judged(mtimes={"h.cfg": 900.5}, started=900) == []
    assert ids(judged(mtimes={"h.cfg": 990.0})) == ["HAP012"], "the start is now - uptime"
    assert judged(mtimes={"h.cfg": 940.0}) == []


def test_near_a_limit() -> None:
    assert ids(judged(conns=81)) == ["HAP013"]
    assert judged(conns=80) == []
    assert ids(judged(ServerStat("api", "cp1", "UP", scur=9, slim=10))) == ["HAP013"]
    assert ids(judged(frontends=(ProxyStat("f", "OPEN", scur=9, slim=10),))) == ["HAP013"]
    assert judged(ServerStat("api", "cp1", "UP", scur=9, slim=0)) == []


def test_the_server_list_beside_the_cluster() -> None:
    real = frozenset({"192.0.2.31", "192.0.2.33"})
    found = judged(inventory=Inventory(api_servers=real))
    assert ids(found) == ["HAP009"]
    assert found[0].evidence == "missing: 192.0.2.33; left over: 192.0.2.32"
    assert judged(inventory=Inventory(api_servers=frozenset({"192.0.2.31", "192.0.2.32"}))) == []


def test_one_host_without_a_virtual_ip() -> None:
    assert ids(judged(inventory=Inventory(balancers=("lb1",)))) == ["HAP010"]
    assert judged(inventory=Inventory(balancers=("lb1",), has_vip=True)) == []
    assert judged(inventory=Inventory(balancers=("lb1", "lb2"))) == []


def node(name: str, age_s: float | None, *, ready: bool | None = True, address: str = "192.0.2.99") -> NodeFact:
    return NodeFact(name, frozenset({address}), ready, age_s)


def test_a_nodes_lease_is_old_before_the_node_is_lost() -> None:
    def of(*nodes: NodeFact) -> list[tuple[str, str]]:
        return [(found.object, found.severity) for found in judged(inventory=Inventory(nodes=nodes))]

    assert of(node("node-a", 19.0), node("node-b", None), node("node-c", 300.0, ready=False), node("node-d", 300.0, ready=None)) == []
    assert of(node("node-a", 21.0)) == [("node node-a", "HIGH")]
    assert of(node("node-a", 31.0)) == [("node node-a", "CRIT")]


def test_a_node_whose_sessions_are_pinned_is_named_with_what_frees_it_and_several_nodes_are_no_fault_of_a_node() -> None:
    down = ServerStat("api", "cp1", "DOWN", scur=0)
    pinned, other = node("node-a", 31.0, address="192.0.2.9"), node("node-b", 21.0)
    found = [f for f in judged(down, sessions={90: (session("192.0.2.9:1111"),)}, inventory=Inventory(nodes=(pinned, other))) if f.id == "NOD001"]
    assert found[0].evidence == (
        "it is NotReady in about 9 s; sessions from it on servers that are DOWN: 1; 1 more at the same time: look at the API servers and etcd first"
    )
    assert found[0].fix == "edgekeeper lb sessions --free all --yes"
    assert "sessions" not in found[1].evidence


def test_what_the_cluster_does_not_say_is_not_judged() -> None:
    given = HaproxyFacts(readings=readings([Source("h.cfg", CONFIG)]), inventory=Inventory(nodes=(), api_servers=Unknown("the API is away")))
    assert [said for said in examine(given, only=["HAP009", "NOD001"]).not_judged if said[0]] == [
        (("HAP009",), "they compare with a cluster: the API is away; --kubeconfig FILE gives one")
    ]

from __future__ import annotations

from edgekeeper.engines.haproxy.pinned import GONE, Judge, order, rows, same_place, tallies, tallies_by_count, twins
from edgekeeper.engines.haproxy.sess import Session
from edgekeeper.engines.haproxy.stats import ServerStat, Stats, Worker

NOW, OLD = Worker(10, True), Worker(9, False)


def stats(*servers: tuple[str, str, str]) -> Stats:
    return Stats(tuple(ServerStat(backend, name, status, check="L7TOUT", check_desc="timeout", scur=4, lastchg=3) for backend, name, status in servers))


def session(server: str, age: float | None = 1.0, source: str = "192.0.2.7:40000", backend: str = "api", address: str = "") -> Session:
    return Session("0x1", source, source.rpartition(":")[0], "in", backend, server, age, address=address)


def test_the_current_worker_judges_the_sessions_of_all() -> None:
    judge = Judge(stats(("api", "cp1", "DOWN"), ("api", "cp2", "UP")))
    found = list(rows(judge, {10: [session("cp2")], 9: [session("cp1"), session("cp2")]}, (NOW, OLD), {"192.0.2.7": "node-b"}))
    assert [(row.worker, row.old, row.pinned, row.status) for row in found] == [
        (10, False, False, "UP"),
        (9, True, True, "DOWN"),
        (9, True, False, "UP"),
    ]
    assert {row.client for row in found} == {"node-b"}
    assert found[1].why == "api/cp1 is DOWN (timeout) and no check ends this session"


def test_what_the_current_worker_does_not_know_is_not_pinned() -> None:
    judge = Judge(stats(("api", "cp1", "DOWN")))
    gone, moved, same = (judge.judge(s) for s in (session("cp9"), session("cp1", address="192.0.2.9:6443"), session("cp1")))
    assert (gone[0], gone[1]) == (False, GONE)
    assert same[0]
    assert moved[0], "an address that is not told is no other address"
    told = Judge(Stats((ServerStat("api", "cp1", "DOWN", address="192.0.2.31:6443"),)))
    assert not told.judge(session("cp1", address="192.0.2.9:6443"))[0]
    assert told.judge(session("cp1", address="192.0.2.31:6443"))[0]


def test_a_server_that_dns_does_not_name_pins_nobody() -> None:
    judge = Judge(stats(("api", "cp1", "MAINT (resolution)"), ("api", "cp2", "MAINT")))
    assert (judge.pins("api", "cp1"), judge.pins("api", "cp2"), judge.pins("api", "cp3")) == (False, True, False)
    pinned, status, why = judge.judge(session("cp1"))
    assert (pinned, status) == (False, "MAINT (resolution)")
    assert "DNS" in why


def test_places_are_compared_as_far_as_they_are_told() -> None:
    assert same_place("2001:db8::1:80", "[2001:db8::1]:80")
    assert same_place("192.0.2.1:80", "192.0.2.1:+1000")
    assert same_place("", "192.0.2.1:80")
    assert not same_place("192.0.2.1:80", "192.0.2.1:81")
    assert not same_place("192.0.2.1:80", "192.0.2.2:80")


def test_the_pinned_and_the_oldest_come_first() -> None:
    judge = Judge(stats(("api", "cp1", "DOWN"), ("api", "cp2", "UP")))
    found = rows(judge, {10: [session("cp2", 900), session("cp1", 5), session("cp1", None), session("cp1", 60), session("cp2", 3)]}, (NOW,))
    assert [(row.session.server, row.session.age_s) for row in sorted(found, key=order)] == [("cp1", 60), ("cp1", 5), ("cp1", None), ("cp2", 900), ("cp2", 3)]


def test_one_line_a_server_those_with_victims_first() -> None:
    there = stats(("api", "cp1", "UP"), ("api", "cp2", "DOWN"), ("api", "cp3", "MAINT"), ("api", "cp4", "UP"))
    judge = Judge(there)
    found = tallies(judge, there, rows(judge, {10: [session("cp1"), session("cp2")], 9: [session("cp2"), session("cp9")]}, (NOW, OLD)))
    assert [(t.name, t.status, t.sessions, t.pinned, t.in_old) for t in found] == [
        ("api/cp2", "DOWN", 2, 2, 1),
        ("api/cp1", "UP", 1, 0, 0),
        ("api/cp3", "MAINT", 0, 0, 0),
        ("api/cp9", GONE, 1, 0, 1),
    ]
    first = tallies_by_count(judge, there)[0]
    assert (first.name, first.sessions, first.pinned, first.in_old) == ("api/cp2", 4, 4, None)


def test_twins_are_judged_by_their_service_while_it_has_a_server_left() -> None:
    def service(cp1: str, cp2: str, *kin: str) -> Stats:
        return stats(*((name, server, status) for name in ("k8s", *kin) for server, status in (("cp1", cp1), ("cp2", cp2))))

    kin = ("k8s-patient", "k8s-open")
    assert twins(service("DOWN", "UP", *kin)) == {"k8s-patient": "k8s", "k8s-open": "k8s"}
    assert twins(service("DOWN", "DOWN", *kin)) == {}
    assert twins(service("DOWN", "UP", "k8s-open")) == {}
    judge = Judge(service("DOWN", "UP", *kin), {"k8s-open": "k8s"})
    assert judge.judge(session("cp1", backend="k8s-open"))[0]
    assert not judge.judge(session("cp2", backend="k8s-open"))[0]

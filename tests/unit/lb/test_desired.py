"""What follows from what was seen of the members, and what a person is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.haproxy import lb, topology

from edgekeeper.engines.haproxy.stats import ServerStat, Stats
from edgekeeper.engines.haproxy.topology import CHECK_TIMEOUT_S, Topology
from edgekeeper.lb.desired import FORGOTTEN_S, MANY_WORKERS, MOST_S, advice, alarms, detection, files, manner, patience, readiness, served, stale

ASKED = {"health": {"path": "/healthz"}}


def stats(*rows: tuple[str, str, str], lastchg: int = 5) -> Stats:
    """``(backend, server, status)``."""
    return Stats(servers=tuple(ServerStat(backend, server, status, lastchg=lastchg) for backend, server, status in rows))


@pytest.mark.parametrize(
    ("answers", "timeout", "said"),
    [
        ([], CHECK_TIMEOUT_S, "no member answered yet"),
        ([0.003] * 60, CHECK_TIMEOUT_S, "the 99th percentile of 60 answers is 3 ms; checks may take 500 ms"),
        ([0.003] * 59 + [0.26], 1.3, "the 99th percentile of 60 answers is 260 ms; checks may take 1300 ms"),
        ([0.003] * 199 + [0.26], CHECK_TIMEOUT_S, "3 ms"),
        ([9.0], MOST_S, "9000 ms"),
    ],
)
def test_how_long_a_check_may_take_follows_from_the_slow_answers(answers: list[float], timeout: float, said: str) -> None:
    found = patience(answers)
    assert found.timeout_s == timeout
    assert said in found.why


@given(st.lists(st.floats(0.0001, 20), max_size=50))
def test_a_check_may_take_no_less_than_half_a_second_and_no_more_than_what_a_lease_bears(answers: list[float]) -> None:
    assert CHECK_TIMEOUT_S <= patience(answers).timeout_s <= MOST_S


def test_the_sum_of_the_rendered_defaults() -> None:
    (kube,) = topology({"kind": "kube-apiserver"}).services
    assert detection(kube) == (1.5, 2.5)
    assert detection(topology({"health": {"type": "none"}}).services[0]) is None


def test_advice_tells_the_sum_and_which_checks_see_nothing() -> None:
    services = topology({"kind": "kube-apiserver", "name": "api"}, {"name": "raw"}, {"health": {"type": "none"}, "name": "blind"}).services
    said = " | ".join(advice(services))
    assert "api: a hung member is DOWN and its clients are cut after 1.5 to 2.5 s; idle timeouts do not help them earlier" in said
    assert "raw: a tcp check only connects; a member that accepts and never answers stays UP for ever" in said
    assert "blind: nothing asks its members" in said


def test_the_backends_of_a_service_are_judged_by_its_first() -> None:
    one = topology({"kind": "kube-apiserver", "name": "api"}, {"name": "web"})
    assert dict(manner(one, 3.0, cuts_itself=False).twins) == {"api-patient": "api", "api-open": "api"}
    assert (manner(one, 3.0, cuts_itself=False).settle_s, manner(one, 3.0, cuts_itself=False).cuts_itself) == (3.0, False)


def test_ready_is_when_every_service_has_somebody_or_lets_people_through() -> None:
    one = topology({"name": "web", **ASKED}, {"name": "api", **ASKED, "fail_open": True})
    both = readiness(stats(("web", "a", "UP"), ("web", "b", "DOWN"), ("api", "a", "UP 1/3")), one)
    assert (both.ok, both.why) == (True, "web: 1 of 2 up; api: 1 of 1 up")
    opened = readiness(stats(("web", "a", "UP"), ("api", "a", "DOWN"), ("api", "b", "DOWN 1/2")), one)
    assert (opened.ok, opened.why) == (True, "web: 1 of 1 up; api: all 2 are DOWN, new connections go to them unchecked")
    dead = readiness(stats(("web", "a", "DRAIN"), ("web", "b", "MAINT"), ("api", "a", "UP")), one)
    assert (dead.ok, dead.why) == (False, "web: none of 2 is up; api: 1 of 1 up")
    assert not readiness(stats(), None).ok


def raised(wanted: Topology | None, found: Stats | None, workers: int = 0) -> dict[str, str]:
    return {name: why for name, why in alarms(found, workers, wanted).items() if why is not None}


def test_what_needs_a_person() -> None:
    one = topology({"name": "api", **ASKED, "fail_open": True})
    well = stats(("api", "a", "UP"), ("api", "b", "DOWN"), ("api-open", "a", "no check"))
    assert raised(one, well) == {}
    assert raised(one, None) == raised(None, well) == {}
    all_down = raised(one, stats(("api", "a", "DOWN"), ("api", "b", "DOWN"), ("api-open", "a", "no check")))
    assert "every server of api is DOWN at once" in all_down["all down"]
    old = raised(one, stats(("api", "a", "DOWN"), ("api", "b", "UP"), lastchg=2 * FORGOTTEN_S))
    assert old == {"forgotten": "api/a has been DOWN for 2 h; repair it or take it out of the members"}
    assert raised(one, stats(("api", "a", "MAINT"), ("api", "b", "UP"), lastchg=2 * FORGOTTEN_S)) == {}, "a person did that"
    assert raised(one, well, MANY_WORKERS) == {}
    assert "6 workers" in raised(one, well, MANY_WORKERS + 1)["old workers"]


def test_alarms_of_a_service_that_is_gone_do_not_stay() -> None:
    now = ["web membership", "web-2 membership", "watcher the members of web", "watcher the host names of web", "config", "web"]
    assert stale(now, {"web"}) == ("web membership", "watcher the members of web", "watcher the host names of web")
    assert stale(now, ()) == ()


def test_the_files_that_haproxy_reads_beside_its_own() -> None:
    tls = {"kind": "http", "certificate": "/tls/web.pem", "server_tls": {"ca_file": "/tls/ca.crt"}}
    assert files(lb(tls, {**tls, "certificate": "/tls/other.pem"}, {})) == ("/tls/web.pem", "/tls/other.pem", "/tls/ca.crt")
    assert files(lb({}, {"kind": "kube-apiserver", "server_tls": {}})) == ()


def test_a_service_without_members_waits_alone_and_one_that_is_served_is_not_lost() -> None:
    assert served({"api": 3, "web": 0}, ()).names == ("api",)
    assert served({"api": 3, "web": 0}, ()).left_out == ("web",)
    assert served({"api": 3, "web": 0}, ("api",)).refusal is None
    assert served({"api": 3, "web": 0}, ("api", "web")).refusal == "web"
    assert served({"api": 0, "web": 0}, ()).refusal == "api"
    assert served({"api": 3, "web": 1}, ("api", "web")) == served({"api": 1, "web": 1}, ())

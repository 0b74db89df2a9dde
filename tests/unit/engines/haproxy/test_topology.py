from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.haproxy import MEMBERS, lb, topology

from edgekeeper.engines.haproxy.topology import CHECK_TIMEOUT_S, Server, build, may_be_absent, server_name
from edgekeeper.model.backend import Member


def test_a_kube_apiserver_is_asked_over_tls_passed_through_and_fails_open() -> None:
    (service,) = topology({"kind": "kube-apiserver"}).services
    check = service.check
    assert (check.kind, check.path, check.tls, check.status, check.host) == ("http", "/readyz", True, "200", "web0")
    assert (check.interval_s, check.fast_s, check.timeout_s, check.fall, check.rise) == (1.0, 0.5, CHECK_TIMEOUT_S, 2, 3)
    assert (service.mode, service.server_tls, service.tunnel_s) == ("tcp", False, None)
    assert service.client_s == service.server_s == 4 * 3600, "a watch idles for long"
    assert service.backends == ("web0", "web0-patient", "web0-open")


def test_a_plain_service_connects_only_and_an_http_one_asks_its_root() -> None:
    tcp, http, asked = topology({}, {"kind": "http"}, {"health": {"path": "/healthz"}}).services
    assert (tcp.check.kind, tcp.check.tls, tcp.mode, tcp.backends) == ("tcp", False, "tcp", ("web0",))
    assert (http.check.kind, http.check.path, http.check.status, http.mode) == ("http", "/", "200-399", "http")
    assert (http.client_s, http.tunnel_s, http.forwarded_for) == (60.0, 3600.0, True)
    assert (asked.check.kind, asked.check.path, asked.mode) == ("http", "/healthz", "tcp")


def test_what_is_not_asked_never_fails_open() -> None:
    (service,) = topology({"health": {"type": "none"}, "fail_open": True}).services
    assert not service.fail_open


def test_how_long_a_check_may_take_is_measured_unless_it_is_said() -> None:
    section = lb({"kind": "kube-apiserver"}, {"health": {"path": "/", "timeout": "2s"}})
    made = build(section, {"web0": MEMBERS, "web1": MEMBERS}, {"web0": 1.3, "web1": 1.3})
    assert [service.check.timeout_s for service in made.services] == [1.3, 2.0]
    slow = build(section, {"web0": MEMBERS, "web1": MEMBERS}, {"web0": 4.0}).services[0]
    assert slow.patience_s == 8.0, "patient checks are more patient than the others"


def test_who_is_drained_weighs_nothing_and_the_order_of_members_does_not_matter() -> None:
    members = (Member("b", "192.0.2.2", 80, (), 7), Member("a", "192.0.2.1", 80, (), 7, drain=True))
    servers = topology(members=members).services[0].servers
    assert servers == (Server("a", "192.0.2.1:80", 0), Server("b", "192.0.2.2:80", 7))
    assert topology(members=tuple(reversed(members))) == topology(members=members)


@pytest.mark.parametrize(
    ("listen", "absent"),
    [
        ("192.0.2.60:1", True),
        ("[2001:db8::1]:1", True),
        ("127.0.0.1:1", False),
        ("127.9.9.9:1", False),
        ("[::1]:1", False),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
    ],
)
def test_only_an_address_of_one_machine_can_be_absent(listen: str, absent: bool) -> None:
    assert may_be_absent(listen) is absent


@given(st.builds(Member, st.text(max_size=20), st.one_of(st.ip_addresses().map(str), st.text(max_size=20)), st.integers(1, 65535)))
def test_the_name_of_a_server_is_one_that_haproxy_takes(member: Member) -> None:
    name = server_name(member)
    assert name
    assert all(char.isascii() and (char.isalnum() or char in "_.-") for char in name)

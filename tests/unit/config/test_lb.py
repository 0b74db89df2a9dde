"""The section ``lb``: what it takes, and every mistake in it at its place with the way out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.haproxy import lb

from edgekeeper.config.lb import TWINS
from edgekeeper.config.load import parse
from edgekeeper.errors import ConfigError

# Every field with a mistake; the expected places are read off this text by a person.
WRONG = """\
lb:
  services:
    - name: "bad name"
      listen: 127.0.0.1
      kind: ftp
      members: {static: [cp1=192.0.2.31:6443:1, {name: cp2}]}
    - name: web
      listen: [127.0.0.1:80, "example:80"]
      members: {static: [web-a=192.0.2.21:80], file: /x}
      health: {path: healthz, status: [2xx], fall: 0, timeout: fast, tpye: http}
      timeouts: {conect: 1s}
      max_connections: "5"
      certificate: "a\\nb"
    - name: k8s
      listen: []
      kind: kube-apiserver
      members: {static: [cp1=192.0.2.31], endpointslice: default/kubernetes}
  stats: 8404
  settle: 90s
  engine: {user: "Root!", threads: 99, max_connections: 5}
  hard_stop_after: 0s
"""

EXPECTED = """\
edge.yaml:3:13: lb.services.0.name: 'bad name' is not a node name (letters, digits, '.', '-', '_'; at most 63)
edge.yaml:4:15: lb.services.0.listen: '127.0.0.1' has no port; write 127.0.0.1:PORT, or [2001:db8::1]:PORT for IPv6
edge.yaml:5:13: lb.services.0.kind: 'ftp' is not one of kube-apiserver, tcp, http
edge.yaml:6:26: lb.services.0.members.static.0: '192.0.2.31:6443:1' is neither an address nor a host name
edge.yaml:6:49: lb.services.0.members.static.1.host: missing; address or host name; host names are resolved and watched
edge.yaml:8:30: lb.services.1.listen.1: 'example' is not an address; a listener needs one, 0.0.0.0 or [::] for all
edge.yaml:9:16: lb.services.1.members: give exactly one of static, file, dns, endpointslice, nodes (static and file given)
edge.yaml:10:22: lb.services.1.health.path: 'healthz' does not have the form of a URL's path, like /healthz
edge.yaml:10:40: lb.services.1.health.status.0: '2xx' does not have the form of a status, like 200 or 200-399
edge.yaml:10:52: lb.services.1.health.fall: 0 is too small; at least 1
edge.yaml:10:64: lb.services.1.health.timeout: 'fast' is not a duration; write it with a unit: 250ms, 90s, 5m, 1h30m
edge.yaml:10:70: lb.services.1.health.tpye: unknown key; did you mean type?
edge.yaml:11:18: lb.services.1.timeouts.conect: unknown key; did you mean connect?
edge.yaml:12:24: lb.services.1.max_connections: '5' is not a whole number; write it without quotes
edge.yaml:13:20: lb.services.1.certificate: 'a\\nb' does not have the form of a file's path
edge.yaml:15:15: lb.services.2.listen: the list is empty; give at least one
edge.yaml:17:16: lb.services.2.members: give exactly one of static, file, dns, endpointslice, nodes (static and endpointslice given)
edge.yaml:18:10: lb.stats: 8404 is not an address with a port
edge.yaml:19:11: lb.settle: '90s' is too large; at most 1m
edge.yaml:20:18: lb.engine.user: 'Root!' does not have the form of an account's name
edge.yaml:20:36: lb.engine.threads: 99 is too large; at most 64
edge.yaml:20:57: lb.engine.max_connections: 5 is too small; at least 100
edge.yaml:21:20: lb.hard_stop_after: '0s' is too small; at least 1s
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as found:
        parse(text, "edge.yaml")
    return str(found.value).splitlines()


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    assert mistakes(WRONG) == EXPECTED.splitlines()


def service(**said: Any) -> dict[str, Any]:
    return {"name": "web", "listen": "127.0.0.1:80", "members": {"static": ["web-a=192.0.2.21:80", "web-b=192.0.2.22:80"]}, **said}


def told(*services: dict[str, Any], **said: Any) -> str:
    """The one mistake of a config that is written as JSON, which is YAML too."""
    found = mistakes(json.dumps({"lb": {"services": services or (service(),), **said}}))
    assert len(found) == 1, found
    return found[0].partition(": ")[2]


TLS = {"name": "x.example"}


@pytest.mark.parametrize(
    ("said", "where", "what"),
    [
        (service(kind="kube-apiserver", certificate="/x"), "lb.services.0", "kube-apiserver passes TLS through"),
        (service(timeouts={"tunnel": "1h"}), "lb.services.0", "timeouts.tunnel is for kind: http"),
        *((service(name=f"web{twin}"), "lb.services.0", "must not end in") for twin in TWINS),
        (service(health={"type": "tcp", "path": "/x"}), "lb.services.0", "health.path is asked over http"),
        (service(health={"type": "none", "path": "/x"}), "lb.services.0", "health.path is asked over http"),
        (service(server_tls=TLS), "lb.services.0.server_tls.name", "only when ca_file says whom to believe"),
        (service(members={"static": ["a=192.0.2.1:80", "b=192.0.2.2"]}), "lb.services.0.members.static.1", "192.0.2.2 has no port"),
        (service(members={"static": ["a=192.0.2.1:80", "a=192.0.2.2:80"]}), "lb.services.0.members.static.1", "the name a is taken by another member"),
        (service(members={"static": ["a=192.0.2.1:80", "b=192.0.2.1:80"]}), "lb.services.0.members.static.1", "the address 192.0.2.1:80 is taken by another"),
        (service(members={"static": [{"host": "192.0.2.1", "port": 80, "drain": True}]}), "lb.services.0.members.static", "every member is drained"),
        (service(members={"static": ["127.0.0.1:80"]}), "lb.services.0.members.static.0", "is the service's own listener"),
        (service(members={"static": []}), "lb.services.0.members", "static is empty"),
        (service(members={"endpointslice": "kubernetes"}), "lb.services.0.members.endpointslice", "form of a Service's name with its namespace"),
        (service(members={"nodes": {}}), "lb.services.0.members.nodes", "say port"),
    ],
)
def test_what_one_service_may_not_be(said: dict[str, Any], where: str, what: str) -> None:
    found = told(said)
    assert found.startswith(f"{where}: ")
    assert what in found


def test_what_services_may_not_be_together() -> None:
    other = service(listen="127.0.0.1:81")
    assert "lb.services.1: the name web is taken by another service" in told(service(), other)
    assert "lb.services.1.listen: 127.0.0.1:80 is listened on twice" in told(service(), service(name="other"))
    assert "lb.services.0.listen: 127.0.0.1:80 is listened on twice" in told(service(listen=["127.0.0.1:80", "127.0.0.1:80"]))
    assert "lb.stats: 127.0.0.1:80 is listened on twice" in told(stats="127.0.0.1:80")
    assert "lb.stats: 0.0.0.0:8404 is not loopback" in told(stats="0.0.0.0:8404")


def test_the_default_port_is_that_of_a_kube_apiserver_and_nobody_elses() -> None:
    kube, plain = lb({"kind": "kube-apiserver", "members": {"static": ["cp1=192.0.2.31"]}}, {}).services
    assert (kube.default_port, plain.default_port) == (6443, 0)
    assert kube.members.static is not None
    assert [entry.member(kube.default_port).address for entry in kube.members.static] == ["192.0.2.31:6443"]


def test_one_listener_needs_no_list_and_auto_is_the_default_timeout() -> None:
    (one,) = lb({"listen": "127.0.0.1:80", "health": {"timeout": "auto"}}).services
    assert one.listen == ("127.0.0.1:80",)
    assert one.health.timeout is None


@given(st.text(min_size=1, max_size=12))
def test_no_path_of_a_check_carries_a_space_or_a_line_end(text: str) -> None:
    try:
        (one,) = parse(json.dumps({"lb": {"services": [service(health={"path": f"/{text}"})]}}), "edge.yaml").root.lb.services  # type: ignore[union-attr]
    except ConfigError:
        return
    assert one.health.path == f"/{text}"
    assert all("!" <= char <= "~" for char in text)

"""The expose and kubernetes sections: mistakes told where they are, and rules that cross keys."""

from __future__ import annotations

import pytest

from edgekeeper.config.load import parse
from edgekeeper.errors import ConfigError

GOOD = """\
kubernetes: {kubeconfig: /etc/kc, context: home, servers: ["https://192.0.2.31:6443", "https://[2001:db8::1]:6443"]}
expose:
  owner: home
  netbird: {url: "https://netbird.example", token_file: /etc/token}
  targets: {traefik: {service: traefik/traefik}, default: 192.0.2.80}
  service_cidr: 10.96.0.0/12
"""

WRONG = """\
kubernetes: {context: home, servers: ["192.0.2.31"], silence: 1s}
expose:
  owner: Home
  cluster: a/b
  netbird: {url: "ftp://x", token_file: /a, token_env: B, router_metric: 0}
  label: "a b"
  prefix: ingress.kubernetes.io
  sources: {ingress: false}
  targets: {traefik: {service: traefik}, nginx: {ip: web.example}, other: {ip: 192.0.2.1, family: ipv6}, empty: {}}
  service_cidr: 10.96.0.1/12
  policy: all
  brake: {share: 0, absent_lists: 0}
  prove: {echo_path: "a b"}
"""

EXPECTED = """\
e.yaml:1:39: kubernetes.servers.0: '192.0.2.31' does not have the form http://... or https://...
e.yaml:1:63: kubernetes.silence: '1s' is too small; at least 5s
e.yaml:3:10: expose.owner: 'Home' does not have the form of a name of small letters, digits and dashes, at most 32
e.yaml:4:12: expose.cluster: 'a/b' does not have the form of a name of small letters, digits and dashes, at most 32
e.yaml:5:18: expose.netbird.url: 'ftp://x' does not have the form http://... or https://...
e.yaml:5:74: expose.netbird.router_metric: 0 is too small; at least 1
e.yaml:6:10: expose.label: 'a b' does not have the form of a label, like edgekeeper.io/public=true
e.yaml:7:11: expose.prefix: ingress.kubernetes.io belongs to Kubernetes; choose a prefix of your own
e.yaml:8:12: expose.sources: no source is left; say file, or leave one of ingress, httproute, tlsroute on
e.yaml:9:32: expose.targets.traefik.service: 'traefik' does not have the form of a Service's name with its namespace, like dns-system/resolver
e.yaml:9:49: expose.targets.nginx: ip: web.example is a name; the proxy is given addresses
e.yaml:9:75: expose.targets.other: family is for service
e.yaml:9:113: expose.targets.empty: give exactly one of service, ip
e.yaml:10:17: expose.service_cidr: '10.96.0.1/12' is not a network: 10.96.0.1/12 has host bits set
e.yaml:11:11: expose.policy: 'all' is not one of sync, upsert-only, create-only
e.yaml:12:18: expose.brake.share: 0 is too small; at least 1
e.yaml:12:35: expose.brake.absent_lists: 0 is too small; at least 1
e.yaml:13:22: expose.prove.echo_path: 'a b' does not have the form of a URL's path, like /healthz"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "e.yaml")
    return str(caught.value).splitlines()


def test_a_good_section_is_taken() -> None:
    root = parse(GOOD, "e.yaml").root
    assert root.expose is not None
    assert root.expose.targets["default"].ip == "192.0.2.80"
    assert root.expose.targets["traefik"].service == "traefik/traefik"
    assert root.kubernetes.servers == ("https://192.0.2.31:6443", "https://[2001:db8::1]:6443")


def test_every_mistake_is_told_at_once() -> None:
    assert mistakes(WRONG) == EXPECTED.splitlines()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('servers: ["https', 'servers: ["https', None),
        ("kubeconfig: /etc/kc, ", "", "kubernetes: context needs a kubeconfig"),
        (", token_file: /etc/token", "", "exactly one of token_file, token_env, token_vault (none given)"),
        ("token_file: /etc/token", "token_file: /a, token_env: B", "(token_file and token_env given)"),
        ("  service_cidr", "  sources: {ingress: false, file: /h}\n  service_cidr", "the only source is a file; give the address: ip"),
        ("  service_cidr", "  sources: {classes: [nginx]}\n  service_cidr", None),
        (", default: 192.0.2.80", "", None),
    ],
)
def test_rules_between_keys(old: str, new: str, told: str | None) -> None:
    text = GOOD.replace(old, new)
    if told is None:
        parse(text, "e.yaml")
    else:
        assert any(told in line for line in mistakes(text))


def test_a_class_that_is_asked_for_and_leads_nowhere_is_a_mistake() -> None:
    text = GOOD.replace(", default: 192.0.2.80", "").replace("  service_cidr", "  sources: {classes: [nginx]}\n  service_cidr")
    assert any("class nginx has no target" in line for line in mistakes(text))


def test_a_lease_without_a_cluster_is_said_in_vain() -> None:
    text = GOOD.replace("traefik: {service: traefik/traefik}, ", "").replace(
        "  service_cidr", "  sources: {ingress: false, file: /h}\n  lease: a\n  service_cidr"
    )
    assert any("say lease: null" in line for line in mistakes(text))

"""The section ``vip``: what it takes, and every mistake in it at its place with the way out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fakes.keepalived import EVIL, NODES, section, vips

from edgekeeper.config.load import parse
from edgekeeper.config.root import Root, broken_rules
from edgekeeper.errors import ConfigError

# Every field with a mistake; the expected places are read off this text by a person.
WRONG = """\
node: edge-a
nodes: {edge-a: {address: 192.0.2.11}, edge-b: {address: 192.0.2.12}}
vip:
  provider: ucarp
  interface: "eth0 }"
  advert: 41s
  preempt: 1001s
  base: 255
  step: 0
  peers: {file: "/etc/$HOME"}
  source: edge-a.example
  hmac_key_file: "/etc/{vrid}/{vrid}"
  script: {interval: 0, fall: two}
  prober: {every: 10ms}
  handover: 10
  engine: {binary: "a\\nb", script_user: "Root!", stop_timeout: 0s}
  vips:
    - name: "dns }"
      address: 192.0.2.53/24 dev lo
      vrid: 256
      probe: {dns: 'a" b', server: localhost, type: MX}
    - {name: web, address: 192.0.2.0/24, vrid: 1, probe: {http: "http://127.0.0.1/~x"}}
    - {name: six, address: 2001:db8::53/0, vrid: 2, interface: x/y, probe: {tcp: "127.0.0.1:80", http: "http://127.0.0.1/"}}
    - {name: api, address: 127.0.0.9/8, vrid: 3, probe: {dns: a., require_backends: 1}}
    - {name: no, address: 224.0.0.18/32, vrid: 4}
"""

EXPECTED = """\
edge.yaml:4:13: vip.provider: 'ucarp' is not one of keepalived, kube-vip, metallb
edge.yaml:5:14: vip.interface: 'eth0 }' does not have the form of an interface's name, like eth0
edge.yaml:6:11: vip.advert: '41s' is too large; at most 40.95s
edge.yaml:7:12: vip.preempt: '1001s' is too large; at most 16m40s
edge.yaml:8:9: vip.base: 255 is too large; at most 254
edge.yaml:9:9: vip.step: 0 is too small; at least 1
edge.yaml:10:17: vip.peers.file: '/etc/$HOME' does not have the form of an absolute path of letters, digits and . _ + - only
edge.yaml:11:11: vip.source: 'edge-a.example' is not an address; VRRP talks to addresses, not to names
edge.yaml:12:18: vip.hmac_key_file: '/etc/{vrid}/{vrid}' does not have the form of an absolute path of letters, digits and . _ + - only
edge.yaml:13:22: vip.script.interval: 0 is too small; at least 1
edge.yaml:13:31: vip.script.fall: 'two' is not a whole number
edge.yaml:14:19: vip.prober.every: '10ms' is too small; at least 50ms
edge.yaml:15:13: vip.handover: 10 has no unit; write 10s or 10ms
edge.yaml:16:20: vip.engine.binary: 'a\\nb' does not have the form of a file's path
edge.yaml:16:41: vip.engine.script_user: 'Root!' does not have the form of an account's name
edge.yaml:16:64: vip.engine.stop_timeout: '0s' is too small; it must be more than 0s
edge.yaml:18:13: vip.vips.0.name: 'dns }' is not a node name (letters, digits, '.', '-', '_'; at most 63)
edge.yaml:19:16: vip.vips.0.address: '192.0.2.53/24 dev lo' is not an address like 192.0.2.53/24
edge.yaml:20:13: vip.vips.0.vrid: 256 is too large; at most 255
edge.yaml:21:20: vip.vips.0.probe.dns: 'a" b' is not a domain name
edge.yaml:21:36: vip.vips.0.probe.server: 'localhost' has no port; write localhost:PORT, or [2001:db8::1]:PORT for IPv6
edge.yaml:21:53: vip.vips.0.probe.type: 'MX' is not one of A, AAAA, TXT, SOA, NS
edge.yaml:22:28: vip.vips.1.address: 192.0.2.0/24 cannot be a VIP: it is the network itself; write an address with its interface's prefix length
edge.yaml:22:65: vip.vips.1.probe.http: 'http://127.0.0.1/~x' does not have the form http://... or https://...
edge.yaml:23:28: vip.vips.2.address: 2001:db8::53/0 cannot be a VIP: it would be a way to everywhere; write an address with its interface's prefix length
edge.yaml:23:64: vip.vips.2.interface: 'x/y' does not have the form of an interface's name, like eth0
edge.yaml:23:76: vip.vips.2.probe: give exactly one of dns, tcp, http (tcp and http given); or probe: none
edge.yaml:24:28: vip.vips.3.address: 127.0.0.9 cannot be a VIP: it is loopback
edge.yaml:24:57: vip.vips.3.probe: require_backends counts what dnsdist_api says; give it, and its key file
edge.yaml:25:7: vip.vips.4.probe: missing; how its service is asked on this node; `none` when there is nothing to ask, then it stays while the node lives
edge.yaml:25:27: vip.vips.4.address: 224.0.0.18 cannot be a VIP: it is multicast
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as found:
        parse(text, "edge.yaml")
    return str(found.value).splitlines()


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    assert mistakes(WRONG) == EXPECTED.splitlines()


def told(tree: dict[str, Any]) -> list[str]:
    """The mistakes of a config that is written as JSON, which is YAML too, without their places in the text."""
    return [line.partition(": ")[2] for line in mistakes(json.dumps(tree))]


def with_(tree: dict[str, Any], *path: str | int, value: Any) -> dict[str, Any]:
    """A copy with something else at a path."""
    out: dict[str, Any] = json.loads(json.dumps(tree))
    here: Any = out
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return out


API = {"dns": "a.", "server": "127.0.0.1:53", "dnsdist_api": "http://127.0.0.1:8083/x", "dnsdist_api_key_file": "/k"}
FULL = {**vips({"probe": API, "interface": "eth0"}, {"probe": {"tcp": "127.0.0.1:80"}}, {"probe": {"http": "http://127.0.0.1/x"}},
               peers={"file": "/peers"}, source="192.0.2.11", source6="2001:db8::11", hmac_key_file="/k-{vrid}", engine={"script_user": "nobody"}),
        "run_dir": "/run/edgekeeper"}  # fmt: skip
PLACES: list[tuple[str | int, ...]] = [
    ("node",), ("run_dir",), ("nodes", "edge-a", "address"), ("nodes", "edge-a", "address6"), ("vip", "interface"), ("vip", "peers", "file"),
    ("vip", "source"), ("vip", "source6"), ("vip", "hmac_key_file"), ("vip", "engine", "script_user"), ("vip", "vips", 0, "name"),
    ("vip", "vips", 0, "address"), ("vip", "vips", 0, "interface"), ("vip", "vips", 0, "probe", "dns"), ("vip", "vips", 0, "probe", "server"),
    ("vip", "vips", 0, "probe", "dnsdist_api"), ("vip", "vips", 0, "probe", "dnsdist_api_key_file"), ("vip", "vips", 1, "probe", "tcp"),
    ("vip", "vips", 2, "probe", "http"),
]  # fmt: skip
"""Every text that gets into keepalived.conf."""


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_nothing_that_keepalived_would_read_as_something_else_gets_in(path: tuple[str | int, ...]) -> None:
    here: Any = FULL
    for step in path:
        here = here[step]
    assert broken_rules(Root.model_validate(FULL)) == ()
    for evil in EVIL:
        for value in (f"{here}{evil}", f"{evil}{here}"):
            tree = with_(FULL, *path, value=value)
            try:
                where = [rule.where for rule in broken_rules(Root.model_validate(tree))]
            except ValidationError as err:
                where = [each["loc"] for each in err.errors()]
            assert path in where, value


def test_a_name_of_a_node_with_a_brace_is_refused_by_its_key() -> None:
    tree = with_(FULL, "nodes", value={**NODES, "edge }": {"address": "192.0.2.13"}})
    assert told(tree) == ["nodes.edge }: 'edge }' is not a node name (letters, digits, '.', '-', '_'; at most 63)"]


def test_what_is_not_said_is_what_the_docs_say() -> None:
    found = section()
    assert (found.provider, found.advert, found.preempt, found.base, found.step, found.legacy) == ("keepalived", 1.0, False, 254, 1, False)
    assert (found.script.interval, found.script.fall, found.script.rise) == (1, 3, 2)
    assert found.vips[0].probe is None


@pytest.mark.parametrize(
    ("written", "kept"),
    [("192.0.2.53", "192.0.2.53/32"), ("192.0.2.53/24", "192.0.2.53/24"), ("2001:DB8:0:0::53/64", "2001:db8::53/64"), ("192.0.2.1/31", "192.0.2.1/31")],
)
def test_an_address_is_kept_in_one_form(written: str, kept: str) -> None:
    assert section({"address": written}).vips[0].address == kept


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("240.0.0.1/32", "is reserved"), ("255.255.255.255/32", "is reserved"), ("::ffff:192.0.2.1/128", "is reserved"), ("192.0.2.0/24", "is the network itself"),
        ("192.0.2.255/24", "is its broadcast"), ("0.0.0.0/32", "is no address"), ("ff02::12/128", "is multicast"), ("::1/128", "is loopback"),
        ("fe80::1%eth0/64", "is not an address"), ("192.0.2.1/33", "is not an address"),
    ],
)  # fmt: skip
def test_what_no_vip_can_be(address: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        section({"address": address})


@pytest.mark.parametrize(
    "url", ["http://[/", "http://[::1/", "http://-/", "http://127.0.0.1:0/", "http://127.0.0.1:99999/", "http://1.2.3/", "ftp://127.0.0.1/", "http:///"]
)
def test_what_no_local_url_can_be(url: str) -> None:
    with pytest.raises(ValidationError):
        section({"probe": {"http": url}})


@pytest.mark.parametrize(("written", "kept"), [(True, True), (False, False), ("300s", 300.0), ("1m40s", 100.0), ("0s", 0.0)])
def test_preempt_is_yes_no_or_a_delay(written: bool | str, kept: bool | float) -> None:
    found = section(preempt=written).preempt
    assert found == kept
    assert type(found) is type(kept)


def test_a_probe_says_whom_it_asks() -> None:
    asked = [section({"probe": probe}).vips[0].probe for probe in (API, {"tcp": "[::1]:80"}, {"http": "https://[::1]:8443/x"}, {"http": "http://localhost/"})]
    assert [probe.asked if probe else None for probe in asked] == ["127.0.0.1:53", "[::1]:80", "[::1]:8443", "localhost"]

"""The section ``watch``: what it takes, and every mistake in it at its place with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from edgekeeper.config.describe import schema, unset
from edgekeeper.config.load import parse
from edgekeeper.config.root import Root, broken_rules
from edgekeeper.config.watch import Watch
from edgekeeper.errors import ConfigError

# Every field with a mistake; the expected places are read off this text by a person.
WRONG = """\
node: edge-a
nodes: {edge-a: {address: 192.0.2.11, ops: "http://192.0.2.11:8087"}, edge-b: {address: 192.0.2.12}}
watch:
  - name: "mesh proxy"
    preset: netbird
    docker: {name: proxy, label: a=b}
    docker_socket: ""
    fingerprints: [ab, {text: couldnt, regex: x}, {text: fatal thing, level: fata}, {}]
    untrusted_after: [""]
    burst: {lines: 1, distinct: 2, within: 0s}
    blind_after: 0s
    probe: "tls:/192.0.2.11"
    confirm: maybe
    cure: [{kubernetes: {pod: x}}, {docker: a, systemd: b}, {systemd: b, stop_timeout: 1s}, {command: []}, {http: "ftp://a"}, reboot, {docker: a, timeout: 5s}, {systemd: b, inside: c}]
    proof: {every: 1ms, within: 100ms}
    budget: {burst: 0, every: 10ms, per_hour: 0, cooldown: -1s}
    guard:
      health: {url: "http://127.0.0.1/healthz", need: []}
      maintenance: [{from: "24:00", to: "4:00"}, {days: [sunday], from: "02:00"}]
      zone: "Europe Berlin"
    group: {name: mesh, members: [edge-a], wait: 0s}
    shadow: yes
  - {name: b, file: /var/log/x, journald: x.service, fingerprints: [abc], cure: {systemd: x}}
  - {name: c, cure: {systemd: x}}
  - {name: d, file: /var/log/x, cure: {systemd: x}}
  - {name: e, fingerprints: [abc], probe: "tcp://192.0.2.1:1", cure: {systemd: x}}
  - {name: f, file: /var/log/x, fingerprints: [abc]}
  - {name: g, probe: {targets: ["tcp://192.0.2.1:1"], command: [true], form: peer, every: 1}, cure: docker}
  - {name: h, probe: {}, cure: {systemd: x}, cooldown: 60s}
  - {name: i, docker: proxy, fingerprints: abc}
  - {name: j, docker: {}, fingerprints: [abc], group: mesh}
"""

EXPECTED = """\
edge.yaml:4:11: watch.0.name: 'mesh proxy' does not have the form of a name: letters, digits, '.', '-', '_', and a letter or digit first
edge.yaml:5:13: watch.0.preset: 'netbird' is not one of netbird-proxy
edge.yaml:6:13: watch.0.docker: give exactly one of name, label, image (name and label given)
edge.yaml:7:20: watch.0.docker_socket: '' does not have the form of a file's path
edge.yaml:8:20: watch.0.fingerprints.0: 'ab' is too short; at least 3 characters
edge.yaml:8:47: watch.0.fingerprints.1.regex: 'x' is too short; at least 3 characters
edge.yaml:8:78: watch.0.fingerprints.2.level: 'fata' is not one of trace, debug, info, notice, warning, error, fatal
edge.yaml:8:85: watch.0.fingerprints.3: give exactly one of text, regex (none given)
edge.yaml:9:23: watch.0.untrusted_after.0: '' is too short; at least 1 character
edge.yaml:10:44: watch.0.burst.within: '0s' is too small; it must be more than 0s
edge.yaml:11:18: watch.0.blind_after: '0s' is too small; it must be more than 0s
edge.yaml:12:12: watch.0.probe: 'tls:/192.0.2.11' does not have the form of a URL: tls://HOST:PORT?sni=NAME, https://HOST/PATH, tcp://HOST:PORT, dns://SERVER/NAME?type=A or (probe only) icmp://HOST
edge.yaml:13:14: watch.0.confirm: 'maybe' is not one of probe, none
edge.yaml:14:31: watch.0.cure.0.kubernetes.pod: 'x' does not have the form of a pod's name with its namespace, like edge/proxy-0
edge.yaml:14:36: watch.0.cure.1: give exactly one of docker, systemd, command, http, netbird_clients, kubernetes (docker and systemd given)
edge.yaml:14:61: watch.0.cure.2: stop_timeout is for docker, kubernetes
edge.yaml:14:103: watch.0.cure.3.command: the list is empty; give at least one
edge.yaml:14:115: watch.0.cure.4.http: 'ftp://a' does not have the form http://... or https://...
edge.yaml:14:127: watch.0.cure.5: 'reboot' is not docker, or a mapping with docker, systemd, command, http, netbird_clients or kubernetes
edge.yaml:14:135: watch.0.cure.6: timeout is for systemd, command, http, netbird_clients, kubernetes
edge.yaml:14:161: watch.0.cure.7: inside is for http, netbird_clients
edge.yaml:15:20: watch.0.proof.every: '1ms' is too small; at least 50ms
edge.yaml:15:33: watch.0.proof.within: '100ms' is too small; at least 500ms
edge.yaml:16:21: watch.0.budget.burst: 0 is too small; at least 1
edge.yaml:16:31: watch.0.budget.every: '10ms' is too small; at least 1s
edge.yaml:16:47: watch.0.budget.per_hour: 0 is too small; at least 1
edge.yaml:16:60: watch.0.budget.cooldown: '-1s' is not a duration; write it with a unit: 250ms, 90s, 5m, 1h30m
edge.yaml:18:55: watch.0.guard.health.need: the list is empty; give at least one
edge.yaml:19:28: watch.0.guard.maintenance.0.from: '24:00' does not have the form of a time of day, like 02:00
edge.yaml:19:41: watch.0.guard.maintenance.0.to: '4:00' does not have the form of a time of day, like 02:00
edge.yaml:19:50: watch.0.guard.maintenance.1.to: missing; its end; before `from` is on the next day
edge.yaml:19:58: watch.0.guard.maintenance.1.days.0: 'sunday' is not one of mon, tue, wed, thu, fri, sat, sun
edge.yaml:20:13: watch.0.guard.zone: 'Europe Berlin' does not have the form of a time zone's name, like Europe/Berlin
edge.yaml:21:34: watch.0.group.members: a group of one node names no members; of several, name them all, this node too
edge.yaml:21:50: watch.0.group.wait: '0s' is too small; at least 1s
edge.yaml:22:13: watch.0.shadow: 'yes' is not true or false; write true
edge.yaml:23:5: watch.1: give at most one of docker, file, journald, command (file and journald given)
edge.yaml:24:5: watch.2: neither a log to follow (docker, file, journald, command) nor a probe: nothing would ever be seen
edge.yaml:25:5: watch.3: file is followed, but no fingerprints say what to look for
edge.yaml:26:5: watch.4: fingerprints without a log to follow; say docker, file, journald or command
edge.yaml:27:5: watch.5: the cure is missing: no container is followed that could be restarted; say cure: [{docker: NAME}], {systemd: UNIT}, {command: [...]} or {http: URL}
edge.yaml:28:65: watch.6.probe.command.0: true is not text; put it in quotes
edge.yaml:28:72: watch.6.probe.form: unknown key; did you mean from?
edge.yaml:28:91: watch.6.probe.every: 1 has no unit; write 1s or 1ms
edge.yaml:29:22: watch.7.probe: give exactly one of targets, command
edge.yaml:29:46: watch.7.cooldown: unknown key; known here: name, preset, docker, docker_socket, file, journald, command, fingerprints, untrusted_after, burst, recovered, blind_after, probe, confirm, cure, proof, budget, guard, group, shadow
edge.yaml:30:44: watch.8.fingerprints: 'abc' is not a list; put it in brackets: [...]
edge.yaml:31:23: watch.9.docker: give exactly one of name, label, image (none given)
edge.yaml:31:55: watch.9.group: 'mesh' is not a mapping with name, members, wait, lease
"""

# What must hold between watches, groups and nodes.
BROKEN = """\
node: edge-a
nodes: {edge-a: {address: 192.0.2.11, ops: "http://192.0.2.11:8087"}, edge-b: {address: 192.0.2.12}}
watch:
  - {name: a, docker: x, fingerprints: [abc], probe: {targets: ["tcp://192.0.2.1:1"], from: peer}}
  - {name: a, docker: x, fingerprints: [abc], group: {name: mesh, members: [edge-a, edge-b, edge-c]}}
  - {name: b, docker: x, fingerprints: [abc], budget: {burst: 1}, group: {name: mesh, members: [edge-b, edge-c]}}
  - {name: c, docker: x, fingerprints: [abc], probe: {targets: ["tcp://192.0.2.1:1"], from: edge-d}, group: {name: two, members: {edge-a: , edge-b: "tcp://192.0.2.12:443"}}}
  - {name: d, docker: x, fingerprints: [abc], probe: {targets: ["tcp://192.0.2.1:1"], from: edge-a}, group: {name: two, members: {edge-a: "tcp://192.0.2.11:443", edge-b: "tcp://192.0.2.12:443"}}}
  - {name: e, docker: x, fingerprints: [abc], probe: {targets: ["tcp://192.0.2.1:1"], from: peer}, group: {name: alone}}
"""

BROKEN_EXPECTED = """\
edge.yaml:4:93: watch.0.probe.from: from: peer needs a group whose members probe each other; say group, or from: node
edge.yaml:5:12: watch.1.name: the name a is taken by another watch
edge.yaml:5:67: watch.1.group.members.edge-b: edge-b has no ops address in nodes:, so it cannot be heard
edge.yaml:5:67: watch.1.group.members.edge-c: edge-c is not among nodes:, so it cannot be heard; add it there with its ops address
edge.yaml:6:55: watch.2.budget: the budget of group mesh is shared, but the watch a says another one
edge.yaml:6:87: watch.2.group.members.edge-b: edge-b has no ops address in nodes:, so it cannot be heard
edge.yaml:6:87: watch.2.group.members.edge-c: edge-c is not among nodes:, so it cannot be heard; add it there with its ops address
edge.yaml:6:96: watch.2.group.members: this node, edge-a, is not among them: edge-b, edge-c
edge.yaml:7:93: watch.3.probe.from: edge-d is not among the members: edge-a, edge-b
edge.yaml:7:131: watch.3.group.members.edge-a: edge-a has no URL, so that the others could probe it; say edge-a: tls://ADDRESS:443?sni=NAME
edge.yaml:7:149: watch.3.group.members.edge-b: edge-b has no ops address in nodes:, so it cannot be heard
edge.yaml:8:171: watch.4.group.members.edge-b: edge-b has no ops address in nodes:, so it cannot be heard
edge.yaml:9:100: watch.5.group.members: from: peer needs members that probe each other; name them
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as found:
        parse(text, "edge.yaml")
    return str(found.value).splitlines()


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    assert mistakes(WRONG) == EXPECTED.splitlines()


def test_all_broken_rules_are_told_at_once_with_their_places() -> None:
    assert mistakes(BROKEN) == BROKEN_EXPECTED.splitlines()


def test_one_line_is_enough() -> None:
    root = parse("watch:\n  - {name: mesh-proxy, preset: netbird-proxy, docker: netbird-proxy}\n", "edge.yaml").root
    assert root.watch is not None
    assert (root.watch[0].docker is not None and root.watch[0].docker.name, root.watch[0].confirm, root.watch[0].shadow) == ("netbird-proxy", "probe", False)
    assert broken_rules(root) == ()


def watch(**said: Any) -> Watch:
    return Watch.model_validate({"name": "web", "docker": "proxy", "fingerprints": ["it is stuck"], **said})


def test_what_may_be_written_shortly_means_the_same() -> None:
    assert watch(docker="proxy") == watch(docker={"name": "proxy"})
    assert watch(probe="tcp://192.0.2.1:1") == watch(probe={"targets": ["tcp://192.0.2.1:1"]})
    assert watch(fingerprints=["abc"]) == watch(fingerprints=[{"text": "abc"}])
    assert watch(cure="docker") == watch(cure=["docker"])
    assert watch(cure={"systemd": "a.service"}) == watch(cure=[{"systemd": "a.service"}])
    names, urls = ({"name": "mesh", "members": members} for members in (["edge-b", "edge-a"], {"edge-b": None, "edge-a": []}))
    assert watch(group=names) == watch(group=urls)
    found = watch(group={"name": "mesh", "members": {"edge-b": "tcp://192.0.2.1:1", "edge-a": ["tcp://192.0.2.2:1"]}}).group
    assert found is not None
    assert list(found.members.items()) == [("edge-b", ("tcp://192.0.2.1:1",)), ("edge-a", ("tcp://192.0.2.2:1",))], "their order is who goes first"
    assert found.wait == 15.0
    alone = watch(group={"name": "mesh"}).group
    assert alone is not None
    assert alone.members == {}, "watches of one node that share a budget"


def test_who_asks_is_written_from() -> None:
    found = watch(probe={"targets": ["tcp://192.0.2.1:1"], "from": "peer"}, guard={"maintenance": [{"from": "23:00", "to": "01:00"}]})
    assert found.probe is not None
    assert found.guard is not None
    assert (found.probe.from_, found.guard.maintenance[0].start) == ("peer", "23:00")
    probe = schema()["$defs"]["WatchProbe"]["anyOf"][1]
    assert "from" in probe["properties"]
    assert not {"from_", "start"} & {name for one in schema()["$defs"].values() for name in one.get("properties", ())}
    assert schema()["$defs"]["Maintenance"]["required"] == ["from", "to"]
    told = {key.path: value for key, value in unset(Root(watch=(watch(probe="tcp://192.0.2.1:1"),)))}
    assert told["watch.0.probe.from"] == "node"
    assert told["watch.0.probe.rounds"] == "3"
    assert told["watch.0.budget.every"] == "1m"


def test_the_schema_takes_what_may_be_written_shortly() -> None:
    definitions = schema()["$defs"]
    for name in ("Container", "Fingerprint", "WatchProbe", "CureStep"):
        assert [one["type"] for one in definitions[name]["anyOf"]] == ["string", "object"]
    assert {"$ref": "#/$defs/CureStep"} in definitions["Watch"]["properties"]["cure"]["anyOf"]
    assert [one["type"] for one in definitions["Group"]["properties"]["members"]["anyOf"]] == ["array", "object"]

"""The whole file as one frozen type, and the rules that cross sections."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from re import fullmatch
from typing import Any

from pydantic import Field, ValidationError

from edgekeeper.config.dns import Dns
from edgekeeper.config.expose import Expose
from edgekeeper.config.exposerules import expose_rules
from edgekeeper.config.kinds import Items, Node, Path, Section, is_address, split_host_port
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.lb import Lb, Service
from edgekeeper.config.ops import Ops, Peer
from edgekeeper.config.probe import Probe
from edgekeeper.config.report import ReportOf
from edgekeeper.config.vip import PLAIN_PATH, Vips
from edgekeeper.config.viprules import vip_rules
from edgekeeper.config.watch import Watch
from edgekeeper.config.watchrules import watch_rules

RESERVED = ("roll", "notify")
"""Sections of the design that this version cannot carry out: saying so beats ignoring them."""


class Root(Section):
    """edgekeeper.yaml: one file a node, or one for all nodes."""

    node: Node | None = Field(None, description="This node's name; the host name when not said.")
    nodes: dict[Node, Peer] = Field(default_factory=dict, description="All nodes, where there are several.")
    run_dir: Path = Field("/run/edgekeeper", description="Sockets, pid and log files; may be lost at a reboot.")
    state_dir: Path = Field("/var/lib/edgekeeper", description="Generations, journal, last full memberships, budgets; must survive a reboot.")
    ops: Ops = Field(default_factory=Ops, description="Health, status and metrics.")  # type: ignore[arg-type]
    kubernetes: Kubernetes = Field(default_factory=Kubernetes, description="How the API of the cluster is reached, for what asks it.")  # type: ignore[arg-type]
    dns: Dns | None = Field(None, description="dnsdist under supervision.")
    vip: Vips | None = Field(None, description="keepalived under supervision.")
    lb: Lb | None = Field(None, description="HAProxy under supervision.")
    watch: Items[Watch] | None = Field(None, description="Watchdogs: what is watched for wedges, and what cures it.", min_length=1)
    expose: Expose | None = Field(None, description="Hosts of the cluster, published through the mesh's reverse proxy.")
    probe: Probe | None = Field(None, description="The outage meter: what is asked all day, and how often.")
    report: ReportOf = Field(default_factory=ReportOf, description="Who the clients are, and what the logs do not say of themselves.")  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a config broke: where in the file (path of keys) and what to do about it."""

    where: tuple[str | int, ...]
    what: str


def is_loopback(listen: str) -> bool:
    """Whether ``host:port`` is reachable from this machine only."""
    host, _ = split_host_port(listen)
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def broken_rules(root: Root) -> tuple[Rule, ...]:
    """Every rule between sections that this config breaks."""
    out = _ops_rules(root)
    if root.node and root.nodes and root.node not in root.nodes:
        out.append(Rule(("node",), f"{root.node} is not among nodes: {', '.join(root.nodes)}"))
    if root.dns:
        out.extend(Rule(("dns", *rule.where), rule.what) for rule in _dns_rules(root.dns))
    if root.vip:
        out.extend(Rule(("vip", *where), what) for where, what in vip_rules(root.vip, root.nodes))
        if root.vip.provider == "keepalived" and not fullmatch(PLAIN_PATH, root.run_dir):
            out.append(Rule(("run_dir",), f"{root.run_dir!r} stands in keepalived's configuration; use an absolute path of letters, digits and . _ + - only"))
    if root.lb:
        out.extend(Rule(("lb", *rule.where), rule.what) for rule in _lb_rules(root.lb))
    if root.watch:
        out.extend(Rule(("watch", *where), what) for where, what in watch_rules(root.watch, root.node, root.nodes))
    if root.expose:
        out.extend(Rule(("expose", *where), what) for where, what in expose_rules(root.expose))
    return tuple(out)


def _ops_rules(root: Root) -> list[Rule]:
    out: list[Rule] = []
    ops = root.ops
    if ops.listen and not is_loopback(ops.listen) and not ops.token_file and not ops.client_ca:
        out.append(Rule(("ops", "listen"), f"{ops.listen} is not loopback; give token_file, or certificate, key and client_ca"))
    if (ops.certificate is None) != (ops.key is None):
        out.append(Rule(("ops", "certificate"), "certificate and key go together"))
    if ops.client_ca and not ops.certificate:
        out.append(Rule(("ops", "client_ca"), "client certificates need certificate and key of the listener too"))
    named = root.nodes[root.node].ops if root.node in root.nodes else None
    if ops.certificate and named and not named.startswith("https:"):
        out.append(Rule(("nodes", str(root.node), "ops"), f"{named} is not https, but ops.certificate makes the listener so; nobody could ask it"))
    return out


def _dns_rules(dns: Dns) -> list[Rule]:
    out: list[Rule] = []
    everybody = [net for net in dns.acl if ipaddress.ip_network(net).prefixlen == 0]
    public = [listen for listen in dns.listen if not is_loopback(listen)]
    if everybody and public and not dns.open_resolver and dns.purpose == "resolver":
        out.append(Rule(("acl",), f"{everybody[0]} with the listener {public[0]} is an open resolver; narrow the acl, or say open_resolver: true"))
    members = dns.members.static or ()
    away = [m for m in members if not (is_address(m.host) and ipaddress.ip_address(m.host).is_loopback)]
    if dns.members.endpointslice is not None and dns.proxy_protocol in (None, "plain"):
        why = "every pod of a cluster can reach its members, and could name them any client in a PROXY header without a secret"
        out.append(Rule(("proxy_protocol",), f"{why}; say {{secret_file: ...}}, or off when they expect no header"))
    elif dns.proxy_protocol is None and (away or dns.members.static is None):
        who = f"member {away[0].name or away[0].host} is not on loopback" if away else "members may not be on loopback"
        out.append(Rule(("proxy_protocol",), f"{who}; say off, plain or {{secret_file: ...}}, because a member that expects the other answers nothing"))
    for name, where in _twice([m.name for m in members if m.name]):
        out.append(Rule(("members", "static", where), f"the name {name} is taken by another member"))
    for address, where in _twice([f"{m.host}:{m.port}" for m in members]):
        out.append(Rule(("members", "static", where), f"the address {address} is taken by another member"))
    out += _health_rules(dns)
    streams, datagrams = [*dns.listen, *dns.tls.dot, *dns.tls.doh], [*dns.listen, *dns.tls.doq, *dns.tls.doh3]
    for address in dict.fromkeys(address for address, _ in (*_twice(streams), *_twice(datagrams))):
        out.append(Rule(("listen",), f"{address} is listened on twice"))
    return out


def _lb_rules(lb: Lb) -> list[Rule]:
    out: list[Rule] = []
    if lb.stats is not None and not is_loopback(lb.stats):
        out.append(Rule(("stats",), f"{lb.stats} is not loopback; the page shows every server to whoever asks, so name 127.0.0.1 or [::1]"))
    for name, where in _twice([service.name for service in lb.services]):
        out.append(Rule(("services", where), f"the name {name} is taken by another service"))
    listens = [(listen, i) for i, service in enumerate(lb.services) for listen in service.listen]
    for listen, place in _twice([listen for listen, _ in listens] + ([lb.stats] if lb.stats else [])):
        key: tuple[str | int, ...] = ("services", listens[place][1], "listen") if place < len(listens) else ("stats",)
        out.append(Rule(key, f"{listen} is listened on twice"))
    for i, service in enumerate(lb.services):
        out += [Rule(("services", i, *rule.where), rule.what) for rule in _service_rules(service)]
    return out


def _service_rules(service: Service) -> list[Rule]:
    out: list[Rule] = []
    members = service.members.static or ()
    ports = [m.port or service.default_port for m in members]
    if service.members.nodes is not None and not (service.members.nodes.port or service.default_port):
        out.append(Rule(("members", "nodes"), "nodes have no port of their own; say port: (only kube-apiserver has one by default, 6443)"))
    if 0 in ports:
        out.append(Rule(("members", "static", ports.index(0)), f"{members[ports.index(0)].host} has no port; only kube-apiserver has one by default (6443)"))
    for name, where in _twice([m.name for m in members if m.name]):
        out.append(Rule(("members", "static", where), f"the name {name} is taken by another member"))
    for address, where in _twice([f"{m.host}:{port}" for m, port in zip(members, ports, strict=True)]):
        out.append(Rule(("members", "static", where), f"the address {address} is taken by another member"))
    if members and all(m.drain for m in members):
        out.append(Rule(("members", "static"), "every member is drained; nobody would be served"))
    away = [f"{m.host}:{port}" for m, port in zip(members, ports, strict=True)]
    own = next((listen for listen in service.listen if listen in away), None)
    if own is not None:
        out.append(Rule(("members", "static", away.index(own)), f"{own} is the service's own listener; HAProxy would connect to itself"))
    if service.server_tls is not None and service.server_tls.name and not service.server_tls.ca_file:
        out.append(Rule(("server_tls", "name"), "a name is compared only when ca_file says whom to believe"))
    return out


def rules_beside_mistakes(tree: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules of those services that are written well, where another part of ``lb`` is not: all mistakes are told at once."""
    lb = tree.get("lb")
    services = lb.get("services") if isinstance(lb, Mapping) else None
    out: list[Rule] = []
    for i, item in enumerate(services if isinstance(services, list) else []):
        try:
            service = Service.model_validate(item)
        except ValidationError:
            continue
        out += [Rule(("lb", "services", i, *rule.where), rule.what) for rule in _service_rules(service)]
    return tuple(out)


def _health_rules(dns: Dns) -> list[Rule]:
    out: list[Rule] = []
    listed = dns.zones.static or dns.zones.poll or dns.zones.catalog
    if dns.purpose == "authoritative" and dns.health.name is None and not dns.zones.static:
        found = "zones.static names none" if listed else "no zones are listed"
        out.append(Rule(("purpose",), f"authoritative members are asked for the SOA of a zone, but {found}; list one, or say health.name"))
    if dns.identity == "require" and (dns.health.name is None or dns.health.type not in (None, "TXT")):
        out.append(Rule(("identity",), "require reads the node's name from the health answer: say health: {name: health.example., type: TXT}"))
    if (dns.zones.static or dns.zones.poll or dns.zones.catalog) and dns.members.static is not None:
        serving = [m for m in dns.members.static if not m.pools or "authoritative" in m.pools]
        if not serving:
            out.append(Rule(("zones",), "zones go to the pool authoritative, but no member serves in it"))
    return out


def _twice(values: list[str]) -> list[tuple[str, int]]:
    return [(value, i) for i, value in enumerate(values) if value in values[:i]]

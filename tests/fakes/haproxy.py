"""Topologies of HAProxy for tests: from the golden cases, from small configs, and any that the config accepts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

from edgekeeper.config.lb import Lb
from edgekeeper.config.root import Root, broken_rules
from edgekeeper.engines.haproxy.features import Features
from edgekeeper.engines.haproxy.seat import make
from edgekeeper.engines.haproxy.topology import Topology, build
from edgekeeper.model.backend import Member

RENDERED = Path(__file__).resolve().parents[1] / "golden" / "haproxy" / "rendered"
CASES = sorted(path.stem for path in RENDERED.glob("*.yaml"))
FEATURES = Features((3, 2, 26), transparent=True, tls=True)
SEAT = make("/run/edgekeeper/lb", "5ea7ed")


@dataclass(frozen=True)
class Case:
    """A golden case: the topology, and what HAProxy shall be told of it."""

    topology: Topology
    text: str


def load_case(name: str) -> Case:
    """A golden case by its name; its text is empty while it has none."""
    tree = YAML(typ="safe").load((RENDERED / f"{name}.yaml").read_text(encoding="utf-8"))
    members = {service: tuple(_member(entry) for entry in entries) for service, entries in tree["members"].items()}
    written = RENDERED / f"{name}.cfg"
    return Case(build(lb_of(tree["lb"]), members, tree.get("timeouts", {})), written.read_text(encoding="utf-8") if written.exists() else "")


def _member(entry: dict[str, Any]) -> Member:
    return Member(entry.get("name", ""), entry["host"], entry.get("port", 6443), (), entry.get("weight", 100), entry.get("drain", False))


def lb_of(section: dict[str, Any]) -> Lb:
    """A section ``lb``; one that breaks a rule is a mistake of the test."""
    root = Root.model_validate({"lb": section})
    assert not broken_rules(root)
    assert root.lb is not None
    return root.lb


def lb(*services: dict[str, Any], **said: Any) -> Lb:
    """A small section: each service gets what it does not say."""
    full = [
        {"name": f"web{number}", "listen": f"127.0.0.1:{18000 + number}", "kind": "tcp", "members": {"static": [f"web-a=192.0.2.{number + 1}:80"]}, **service}
        for number, service in enumerate(services or ({},))
    ]
    return lb_of({"services": full, **said})


MEMBERS = (Member("web-a", "192.0.2.1", 80), Member("web-b", "192.0.2.2", 80), Member("web-c", "192.0.2.3", 80))


def topology(*services: dict[str, Any], members: tuple[Member, ...] = MEMBERS, **said: Any) -> Topology:
    """What HAProxy shall be for a small config; all its services have these members."""
    made = lb(*services, **said)
    return build(made, {service.name: members for service in made.services}, {})


NODES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?", fullmatch=True)
PATHS = st.text(st.characters(min_codepoint=0x20, exclude_characters="\n\r\0", exclude_categories=("Cs",)), min_size=1, max_size=20).map(
    lambda text: f"/{text}"
)
URLS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=30).map(lambda text: f"/{text}")
HOSTS = st.one_of(st.ip_addresses().map(str), st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]([a-z0-9-]{0,8}[a-z0-9])?){0,2}", fullmatch=True))
SPANS = st.integers(100, 30_000).map(lambda ms: f"{ms}ms")
ADDRESSES = st.ip_addresses().filter(lambda address: not (address.is_unspecified or address.is_multicast)).map(str)

members_of = st.lists(
    st.builds(Member, st.one_of(st.just(""), NODES), ADDRESSES, st.integers(1, 65535), st.just(()), st.integers(1, 256), st.booleans()),
    min_size=1,
    max_size=5,
    unique_by=lambda member: member.name or member.address,
)


def service_of(*, files: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """Any service that the config accepts, without name, listeners and members; ``files``: also with paths of files, that need not exist."""
    paths = PATHS if files else st.none()
    tls = st.one_of(st.none(), st.just({}), st.builds(lambda path, name: {"ca_file": path, "name": name}, PATHS, HOSTS) if files else st.just({}))
    health = st.fixed_dictionaries(
        {"interval": SPANS, "fast_interval": SPANS, "timeout": SPANS, "fall": st.integers(1, 20), "rise": st.integers(1, 20), "host": HOSTS},
        optional={"status": st.just(["200", "301-399"]), "tls": st.booleans()},
    )
    return st.one_of(
        st.fixed_dictionaries(
            {"kind": st.just("kube-apiserver"), "health": health, "server_tls": tls, "fail_open": st.booleans(), "patience": SPANS.filter(_patient)}
        ),
        st.fixed_dictionaries(
            {
                "kind": st.just("http"),
                "health": st.builds(lambda one, path: {**one, "path": path}, health, URLS),
                "server_tls": tls,
                "certificate": paths,
                "proxy_protocol": st.sampled_from(["off", "v1", "v2"]),
                "balance": st.sampled_from(["leastconn", "roundrobin", "random", "source"]),
                "forwarded_for": st.booleans(),
                "timeouts": st.just({"tunnel": "36h", "client": "90s"}),
            }
        ),
        st.fixed_dictionaries(
            {"kind": st.just("tcp"), "health": st.builds(lambda one, kind: {**one, "type": kind}, health, st.sampled_from(["tcp", "none", "http"]))},
            optional={"certificate": paths, "max_connections": st.integers(1, 1_000_000), "fail_open": st.booleans()},
        ),
    )


def _patient(text: str) -> bool:
    return int(text.removesuffix("ms")) >= 500


def configs(*, files: bool = True) -> st.SearchStrategy[tuple[list[dict[str, Any]], list[list[Member]]]]:
    """Services with their members; names differ, listeners are to be chosen by the test."""
    named = st.lists(NODES.filter(lambda name: not name.endswith(("-in", "-patient", "-open"))), min_size=1, max_size=3, unique_by=str.lower)

    def filled(names: list[str]) -> st.SearchStrategy[tuple[list[dict[str, Any]], list[list[Member]]]]:
        services = st.tuples(*(service_of(files=files).map(lambda said, name=name: {"name": name, **said}) for name in names)).map(list)
        return st.tuples(services, st.tuples(*(members_of for _ in names)).map(list))

    return named.flatmap(filled)


def made(services: list[dict[str, Any]], members: list[list[Member]], ports: list[int], **said: Any) -> Topology:
    """The topology of a generated config, each service listening on a port of 127.0.0.1."""
    full = [{**service, "listen": f"127.0.0.1:{port}", "members": {"static": ["x=192.0.2.1:80"]}} for service, port in zip(services, ports, strict=False)]
    section = lb_of({"services": full, **said})
    return build(section, {service.name: tuple(found) for service, found in zip(section.services, members, strict=True)}, {})

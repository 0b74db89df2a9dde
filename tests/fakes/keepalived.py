"""Topologies of keepalived for tests: from the golden cases, from small configs, and any that the config accepts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

from edgekeeper.config.root import Root, broken_rules
from edgekeeper.config.vip import Vips
from edgekeeper.engines.keepalived.features import Features
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Topology, build
from edgekeeper.vip.place import of_nodes

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "keepalived"
CASES = sorted(path.name for path in GOLDEN.iterdir())
FEATURES = {
    "2.2.7": Features((2, 2, 7)),
    "2.3.4": Features((2, 3, 4)),
    "2.4.3": Features((2, 4, 3), lvs=False, bfd=False),
}
"""Debian's builds have everything; this 2.4.3 is one of VRRP alone."""
SEAT = Seat("/run/edgekeeper/vip")
PROGRAM = ("/usr/bin/true",)
"""It exists everywhere, and is no link in a folder that is a link: keepalived's check looks."""


@dataclass(frozen=True)
class Case:
    """A golden case: the node that it is written for, its topology, and what keepalived shall be told; empty while it is told nothing yet."""

    node: str
    topology: Topology
    features: Features
    text: str


def load_case(name: str) -> Case:
    """A golden case by its name."""
    tree = YAML(typ="safe").load((GOLDEN / name / "config.yaml").read_text(encoding="utf-8"))
    features = FEATURES[tree.pop("keepalived", "2.3.4")]
    root = root_of(tree)
    assert root.node is not None
    written = GOLDEN / name / f"{root.node}.conf"
    text = written.read_text(encoding="utf-8") if written.exists() else ""
    return Case(root.node, of(root, root.node, features, program=("/usr/bin/edgekeeper",), user="keepalived_script"), features, text)


def root_of(tree: dict[str, Any]) -> Root:
    """A config; one that breaks a rule is a mistake of the test."""
    root = Root.model_validate(tree)
    assert broken_rules(root) == ()
    return root


def of(root: Root, node: str, features: Features, *, folder: str = SEAT.folder, program: tuple[str, ...] = PROGRAM, user: str = "root") -> Topology:
    """What one of its nodes runs."""
    assert root.vip is not None
    return build(root.vip, node, of_nodes(root.vip, node, root.nodes), folder, program, user, hmac=features.hmac)


def vips(*said: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A small config of two nodes; each VIP gets what it does not say."""
    full = [{"name": f"v{n}", "address": f"192.0.2.{50 + n}/24", "vrid": 50 + n, "probe": "none", **each} for n, each in enumerate(said or ({},))]
    return {"node": "edge-a", "nodes": NODES, "vip": {"interface": "eth0", "vips": full, **more}}


NODES = {"edge-a": {"address": "192.0.2.11", "address6": "2001:db8::11"}, "edge-b": {"address": "192.0.2.12", "address6": "2001:db8::12"}}


def topology(*said: dict[str, Any], node: str = "edge-a", features: Features = FEATURES["2.3.4"], **more: Any) -> Topology:
    """What a node of a small config runs."""
    return of(root_of(vips(*said, **more)), node, features)


def section(*said: dict[str, Any], **more: Any) -> Vips:
    """The section of a small config."""
    found = root_of(vips(*said, **more)).vip
    assert found is not None
    return found


EVIL = (" x", "\nx", "\rx", "\tx", '"', "'", "{", "}", "$A", "$(x)", "@a", "!x", "#x", "~x", "\\x", ";x", "|x", "`x`", "\0", "(x)", "*", "x } evil {")
"""What keepalived would expand, cut, group or take for the end of something, to be put behind any text."""

# whatever the config accepts --------------------------------------------------------------

INTERFACES = ("eth0", "br-lan.53", "_9.-a", "enp0s31f6.4094-")
"""Names as odd as the config accepts; the longest has 15 characters."""

names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", fullmatch=True)
plain = st.from_regex(r"[A-Za-z0-9_-]{1,20}(\.[A-Za-z0-9_-]{1,20}){0,3}\.?", fullmatch=True)
paths = st.from_regex(r"/[A-Za-z0-9_.+/-]{0,40}", fullmatch=True)
hosts = st.sampled_from(["127.0.0.1", "[::1]", "192.0.2.250", "[2001:db8:ffff::1]"])
listens = st.tuples(hosts, st.integers(1, 65535)).map(lambda it: f"{it[0]}:{it[1]}")
urls = st.builds(
    lambda scheme, host, path: f"{scheme}://{host}{path}",
    st.sampled_from(["http", "https"]),
    st.one_of(listens, hosts, st.just("localhost:8083")),
    st.from_regex(r"(/[A-Za-z0-9_./=&?-]{0,20})?", fullmatch=True),
)


def _dns(name: str, server: str, kind: str, api: tuple[str, str, int] | None) -> dict[str, Any]:
    more = {"dnsdist_api": api[0], "dnsdist_api_key_file": api[1], "require_backends": api[2]} if api is not None else {}
    return {"dns": name, "server": server, "type": kind, **more}


probes = st.one_of(
    st.just("none"),
    st.builds(lambda server: {"tcp": server}, listens),
    st.builds(lambda url: {"http": url}, urls),
    st.builds(_dns, plain, listens, st.sampled_from(["A", "AAAA", "TXT", "SOA", "NS"]), st.none() | st.tuples(urls, paths, st.integers(0, 1000))),
)
hundredths = st.integers(5, 4095).map(lambda n: f"{n * 10}ms")
preempts = st.one_of(st.booleans(), st.integers(0, 1000).map(lambda n: f"{n}s"), st.integers(1, 99_999).map(lambda n: f"{n * 10}ms"))


def _ends(text: str) -> tuple[Any, ...]:
    network = ipaddress.ip_interface(text).network
    return network.network_address, network.broadcast_address


@st.composite
def configs(draw: st.DrawFn, *, most_nodes: int = 20, most_vips: int = 40) -> dict[str, Any]:
    """A whole config with nodes and VIPs, and the node that it is for."""
    nodes = draw(st.lists(names, min_size=2, max_size=most_nodes, unique=True))
    count = draw(st.integers(1, most_vips))
    called = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    vrids = draw(st.lists(st.integers(1, 255), min_size=count, max_size=count, unique=True))
    ids = draw(st.lists(st.integers(1, (1 << 64) - 1), min_size=count, max_size=count, unique=True))
    step = draw(st.integers(1, max(1, min(50, 253 // max(1, len(nodes) - 1)))))
    base = draw(st.integers(1 + step * (len(nodes) - 1), 254))
    every = []
    for n, name in enumerate(called):
        six = draw(st.booleans())
        ip = ipaddress.ip_address((0x20010DB8_0000_0053 << 64) + ids[n]) if six else ipaddress.ip_address(0xC6336401 + n)
        lengths = [n for n in range(1, 33) if n > 30 or ip not in _ends(f"{ip}/{n}")]
        length = draw(st.integers(1, 128) if six else st.sampled_from(lengths))
        one: dict[str, Any] = {"name": name, "address": f"{ip}/{length}", "vrid": vrids[n], "probe": draw(probes)}
        if draw(st.booleans()):
            one["interface"] = draw(st.sampled_from(INTERFACES))
        every.append(one)
    vip: dict[str, Any] = {
        "interface": draw(st.sampled_from(INTERFACES)),
        "vips": every,
        "advert": draw(hundredths),
        "preempt": draw(preempts),
        "base": base,
        "step": step,
        "legacy": draw(st.booleans()),
        "budget": "1h",
        "script": {"interval": draw(st.integers(1, 60)), "fall": draw(st.integers(1, 20)), "rise": draw(st.integers(1, 20))},
    }
    return {
        "node": draw(st.sampled_from(nodes)),
        "nodes": {name: {"address": f"203.0.113.{n + 1}", "address6": f"2001:db8::{n + 1:x}"} for n, name in enumerate(nodes)},
        "vip": vip,
    }

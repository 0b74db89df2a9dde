"""The lab's network as values: namespaces, the cables between them, and the ``ip`` lines that make them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "ekd"
CLIENT = "198.51.100.2"
"""Where the client asks from."""
FRONT = "198.51.100.1"
"""The edge as clients see it."""
BACK = "192.0.2.1"
"""The edge as members see it."""
MEMBERS = tuple(f"192.0.2.{20 + n}" for n in range(1, 13))
"""Addresses of up to twelve members."""
NODES = ("edge-a", "edge-b", "edge-c")
"""Edge nodes that share VIPs; each is the name of its namespace too."""
NODE_ADDRESSES = tuple(f"192.0.2.{10 + n}" for n in range(1, 4))
NODE_ADDRESSES6 = tuple(f"2001:db8::{10 + n}" for n in range(1, 4))
LAN_CLIENT = "192.0.2.100"
"""Where the client asks from when it stands in the same segment as the edge nodes."""
_OWNED = re.compile(PREFIX + r"-(\d+)-(\d+)-([a-z0-9-]+)")


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable: the namespace it is in, the interface's name there, its addresses with prefix length."""

    namespace: str
    interface: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Namespaces by their short names, and the cables between them; in the one named ``switch`` all ends are ports of one bridge."""

    namespaces: tuple[str, ...]
    cables: tuple[tuple[End, End], ...]
    switch: str = ""


def edge_plan(members: int = 3) -> Plan:
    """A client, the edge, and members behind it: two cables, no route past the edge."""
    if not 1 <= members <= len(MEMBERS):
        msg = f"{members} members; the lab has addresses for 1 to {len(MEMBERS)}"
        raise ValueError(msg)
    return Plan(
        namespaces=("edge", "client", "members"),
        cables=(
            (End("edge", "clients", (f"{FRONT}/24",)), End("client", "edge", (f"{CLIENT}/24",))),
            (End("edge", "members", (f"{BACK}/24",)), End("members", "edge", tuple(f"{a}/24" for a in MEMBERS[:members]))),
        ),
    )


def lan_plan(nodes: int = 2, members: int = 0) -> Plan:
    """Edge nodes and a client in one Ethernet segment, IPv4 and IPv6; ``members`` stand in it too, all in one namespace."""
    if not 2 <= nodes <= len(NODES) or not 0 <= members <= len(MEMBERS):
        msg = f"{nodes} nodes and {members} members; the lab has 2 to {len(NODES)} nodes and up to {len(MEMBERS)} members"
        raise ValueError(msg)
    hosts: dict[str, tuple[str, ...]] = {
        name: (f"{v4}/24", f"{v6}/64") for name, v4, v6 in list(zip(NODES, NODE_ADDRESSES, NODE_ADDRESSES6, strict=True))[:nodes]
    }
    hosts["client"] = (f"{LAN_CLIENT}/24", "2001:db8::100/64")
    if members:
        hosts["members"] = tuple(f"{a}/24" for a in MEMBERS[:members])
    cables = tuple((End(name, "eth0", addresses), End("switch", name, ())) for name, addresses in hosts.items())
    return Plan(("switch", *hosts), cables, switch="switch")


def full_name(pid: int, started: int, name: str) -> str:
    """The namespace's name on the machine: whose it is can be read from it."""
    return f"{PREFIX}-{pid}-{started}-{name}"


def owner(namespace: str) -> tuple[int, int] | None:
    """Pid and start time of the runner that made a namespace; None when the lab did not make it."""
    match = _OWNED.fullmatch(namespace)
    return (int(match[1]), int(match[2])) if match else None


def cable_lines(plan: Plan, real: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Lines for ``ip -batch``, by the short name of the namespace that they are run in.

    Both ends of a cable are born inside namespaces: not even for a moment does the host have one.
    """
    lines: dict[str, list[str]] = {name: ["link set lo up"] for name in plan.namespaces}
    if plan.switch:
        # Without snooping: a bridge that has no querier forgets who listens to neighbour solicitations.
        lines[plan.switch] += ["link add name br0 type bridge mcast_snooping 0", "link set br0 up"]
    for a, b in plan.cables:
        lines[a.namespace].append(f"link add {a.interface} type veth peer name {b.interface} netns {real[b.namespace]}")
    for end in (end for cable in plan.cables for end in cable):
        lines[end.namespace] += [f"address add {address} dev {end.interface}{' nodad' if ':' in address else ''}" for address in end.addresses]
        if end.namespace == plan.switch:
            lines[end.namespace].append(f"link set {end.interface} master br0")
        lines[end.namespace].append(f"link set {end.interface} up")
    return {name: tuple(steps) for name, steps in lines.items()}

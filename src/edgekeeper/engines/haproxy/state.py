"""HAProxy's own view of its servers: what a new worker is told of it, and whether it is what was wanted. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from edgekeeper.config.kinds import is_address, split_host_port
from edgekeeper.engines.haproxy import stats
from edgekeeper.engines.haproxy.topology import Topology

EMPTY = "1\n# be_id be_name srv_id srv_name srv_addr\n"
"""A state file that says nothing."""


def wanted(topology: Topology) -> dict[tuple[str, str], tuple[str, int, int]]:
    """``(backend, server)`` to address, port and weight, for every server there shall be."""
    out = {}
    for service in topology.services:
        for backend in service.backends:
            for server in service.servers:
                host, port = split_host_port(server.address)
                out[backend, server.name] = (_one_way(host), port, server.weight)
    return out


def _one_way(host: str) -> str:
    """An address written one way: ``::ffff:c000:201`` is ``::ffff:192.0.2.1`` to HAProxy, and to later versions of Python."""
    return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(host)))) if ":" in host and "%" not in host and is_address(host) else host


def _held(row: stats.ServerState) -> tuple[str, int, int]:
    return _one_way(row.address), row.port, row.weight


def difference(topology: Topology, listed: Sequence[stats.ServerState]) -> str | None:
    """The first difference between what is wanted and what HAProxy lists, as a sentence; None when they agree."""
    shall = wanted(topology)
    held = {(row.backend, row.server): _held(row) for row in listed}
    for place, (host, port, weight) in shall.items():
        name = "/".join(place)
        if place not in held:
            return f"server {name} is not there"
        if held[place] != (host, port, weight):
            return f"server {name} is {held[place][0]}:{held[place][1]} with weight {held[place][2]}, not {host}:{port} with weight {weight}"
    backends = {backend for backend, _ in shall}
    extra = next((place for place in held if place not in shall and place[0] in backends), None)
    return f"server {'/'.join(extra)} is still there" if extra is not None else None


def kept(topology: Topology, listed: Sequence[stats.ServerState]) -> str:
    """The state file for the next worker: the servers that stay what they are. What changed starts afresh, or the old address would come back."""
    shall = wanted(topology)
    same = [row for row in listed if shall.get((row.backend, row.server)) == _held(row)]
    return stats.format_servers_state(same) if same else EMPTY

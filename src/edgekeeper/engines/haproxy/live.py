"""What changes in a running HAProxy, and the runtime commands that change it. Pure.

Addresses, weights, and (where no rule names the servers) whole servers change over the socket; anything
else is a reload. A server that a rule names cannot be removed at run time ("other configuration elements
pointing to it", 2.6 to 3.2), so services with ``fail_open`` are reloaded when their set changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgekeeper.engines.haproxy.quote import command_word
from edgekeeper.engines.haproxy.render import server_options
from edgekeeper.engines.haproxy.topology import Frontage, Server, Topology
from edgekeeper.ports import Change, Cost


@dataclass(frozen=True, slots=True)
class Departure:
    """A server that leaves a backend: nothing new for it, what it has may finish for a moment, then it goes."""

    backend: str
    server: str


def change(old: Topology, new: Topology) -> Change:
    """What getting from ``old`` to ``new`` costs the clients."""
    if old == new:
        return Change(Cost.NOTHING, "other", "nothing that HAProxy is told has changed")
    if _without_servers(old) != _without_servers(new):
        names = [s.name for s in new.services if s.name not in {o.name for o in old.services}]
        return Change(Cost.RELOAD, "listeners", f"service {names[0]} is new" if names else "services or settings changed")
    for before, after in zip(old.services, new.services, strict=True):
        if before.fail_open and {s.name for s in before.servers} != {s.name for s in after.servers}:
            return Change(Cost.RELOAD, "membership", f"the members of {after.name} are others")
        if before.fail_open and [s.name for s in before.servers if s.weight] != [s.name for s in after.servers if s.weight]:
            return Change(Cost.RELOAD, "membership", f"other members of {after.name} take new connections")
    return Change(Cost.LIVE, "membership", "members changed")


def _without_servers(topology: Topology) -> Topology:
    return replace(topology, services=tuple(replace(service, servers=()) for service in topology.services))


def commands(old: Topology, new: Topology) -> tuple[tuple[str, ...], tuple[Departure, ...]]:
    """The runtime commands in their order, and the servers that leave (after everything else is there)."""
    said: list[str] = []
    gone: list[Departure] = []
    for before, after in zip(old.services, new.services, strict=True):
        was, will = {s.name: s for s in before.servers}, {s.name: s for s in after.servers}
        for backend in after.backends:
            for server in after.servers:
                said += _brought(after, backend, was.get(server.name), server)
            gone += [Departure(backend, name) for name in was if name not in will]
    return tuple(said), tuple(gone)


def _brought(service: Frontage, backend: str, before: Server | None, server: Server) -> list[str]:
    place = f"{command_word(backend)}/{command_word(server.name)}"
    if before is None:
        added = f"add server {place} {command_word(server.address)} weight {server.weight} {server_options(service, backend)}".rstrip()
        # Adding what a change that was interrupted has added already answers "Already exists": the rest is said all the same.
        return [added, *_address(place, server), f"set server {place} weight {server.weight}", *_enabled(service, backend, place)]
    out = []
    if before.address != server.address:
        # Sessions to the old address are ended: nothing checks that address any more.
        out += [*_address(place, server), f"shutdown sessions server {place}"]
    if before.weight != server.weight:
        out.append(f"set server {place} weight {server.weight}")
    return out


def _enabled(service: Frontage, backend: str, place: str) -> list[str]:
    checked = service.check.kind != "none" and backend != f"{service.name}-open"
    return [*([f"enable health {place}"] if checked else []), f"enable server {place}"]


def _address(place: str, server: Server) -> list[str]:
    host, _, port = server.address.rpartition(":")
    return [f"set server {place} addr {command_word(host.strip('[]'))} port {int(port)}"]

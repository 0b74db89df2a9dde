"""What a running dnsdist says about itself: the API's JSON and two console tables, read tolerantly. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass
from typing import Any

from edgekeeper.engines.dnsdist.functions import LEAVING
from edgekeeper.engines.dnsdist.topology import Topology

_SERVER_ROW = re.compile(r"^(\d+)\s+([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\s", re.MULTILINE)
_STREAM = ("dot", "doh")
_DATAGRAM = ("doq", "doh3")


@dataclass(frozen=True, slots=True)
class Server:
    """A member as the engine holds it; ``state`` is up, down, or UP and DOWN where it was forced. ``id`` may be unknown ("")."""

    id: str
    name: str
    address: str
    pools: tuple[str, ...]
    state: str
    outstanding: int
    queries: int

    @property
    def up(self) -> bool:
        """Whether it is given queries."""
        return self.state.lower() == "up"


@dataclass(frozen=True, slots=True)
class Frontend:
    """A socket that the engine listens on; ``kind`` is what the engine calls it (UDP, TCP, ...)."""

    address: str
    kind: str
    udp: bool
    tcp: bool


@dataclass(frozen=True, slots=True)
class HeldRule:
    """A rule in force."""

    id: str
    name: str
    rule: str
    action: str


@dataclass(frozen=True, slots=True)
class EngineView:
    """One full look at the engine."""

    servers: tuple[Server, ...] = ()
    frontends: tuple[Frontend, ...] = ()
    rules: tuple[HeldRule, ...] = ()
    pools: tuple[str, ...] = ()
    acl: tuple[str, ...] = ()


def parse(api: str, table: str = "") -> EngineView | None:
    """The view from ``/api/v1/servers/localhost`` and, for the ids, ``showServers({showUUIDs=true})``.

    A member that leaves (it gets no queries and has not answered all that it was asked) is no longer shown.
    None when the JSON is none (truncated, say); fields that are missing or of another kind read as
    empty or zero, entries that are no objects are skipped.
    """
    try:
        tree = json.loads(api)
    except ValueError:
        return None
    if not isinstance(tree, dict):
        return None
    ids = {int(number): identity for number, identity in _SERVER_ROW.findall(table)}
    return EngineView(
        servers=tuple(_server(item, ids.get(number, "")) for number, item in enumerate(_objects(tree, "servers")) if _number(item, "order") != LEAVING),
        frontends=tuple(_frontend(item) for key in ("frontends", "dohFrontends") for item in _objects(tree, key)),
        rules=tuple(HeldRule(_text(item, "uuid"), _text(item, "name"), _text(item, "rule"), _text(item, "action")) for item in _objects(tree, "rules")),
        pools=tuple(sorted(_text(item, "name") for item in _objects(tree, "pools"))),
        acl=tuple(part.strip() for part in _text(tree, "acl").split(",") if part.strip()),
    )


def differences(wanted: Topology, held: EngineView) -> tuple[str, ...]:
    """Sentences about where the engine is not what was wanted; empty when it is."""
    out = []
    have = {server.name: server for server in held.servers}
    if len(have) != len(held.servers):
        out.append("the engine holds a member twice")
    want = {backend.name: backend for backend in wanted.backends}
    out += [f"the engine does not hold {name}" for name in want if name not in have]
    out += [f"the engine still holds {name}" for name in have if name not in want]
    for name, backend in want.items():
        server = have.get(name)
        if server is None:
            continue
        if server.address != backend.address:
            out.append(f"{name} has the address {server.address}, not {backend.address}")
        if set(server.pools) != set(backend.pools):
            out.append(f"{name} is in the pools {', '.join(server.pools)}, not {', '.join(backend.pools)}")
        if server.id and server.id != backend.id:
            out.append(f"{name} has another id than was rendered")
    names = {rule.id: rule.name for rule in wanted.rules}
    if [rule.id for rule in held.rules] != list(names):  # 1.7.3 gives no names
        said = ", ".join(rule.name or names.get(rule.id, rule.rule) for rule in held.rules)
        out.append(f"the rules are {said or 'none'}, not {', '.join(names.values())}")
    if held.acl and _networks(held.acl) != _networks(wanted.acl):
        out.append(f"the ACL is {', '.join(held.acl)}, not {', '.join(wanted.acl)}")
    out += missing_listeners(wanted, held)
    return tuple(out)


def missing_listeners(wanted: Topology, held: EngineView) -> list[str]:
    """Listeners that the engine silently left out (an unknown protocol passes its check)."""
    udp = {frontend.address for frontend in held.frontends if frontend.udp}
    tcp = {frontend.address for frontend in held.frontends if frontend.tcp}
    out = []
    for listener in wanted.listeners:
        if listener.protocol not in _STREAM and listener.address not in udp:
            out.append(f"{listener.address} is not listened on over UDP ({listener.protocol})")
        if listener.protocol not in _DATAGRAM and listener.address not in tcp:
            out.append(f"{listener.address} is not listened on over TCP ({listener.protocol})")
    return out


def _place(text: str) -> str:
    """``host:port`` as we write it: dnsdist shows ``[::ffff:192.0.2.1]:53`` for our ``[::ffff:c000:201]:53``."""
    host, _, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return text
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _networks(texts: tuple[str, ...]) -> set[str]:
    return {_network(text) for text in texts}


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        return text


def _server(item: dict[str, Any], identity: str) -> Server:
    pools = item.get("pools")
    names = tuple(sorted(name for name in pools if isinstance(name, str))) if isinstance(pools, list) else ()
    return Server(
        id=identity,
        name=_text(item, "name"),
        address=_place(_text(item, "address")),
        pools=names,
        state=_text(item, "state"),
        outstanding=_number(item, "outstanding"),
        queries=_number(item, "queries"),
    )


def _frontend(item: dict[str, Any]) -> Frontend:
    return Frontend(_place(_text(item, "address")), _text(item, "type"), udp=item.get("udp") is True, tcp=item.get("tcp") is True)


def _objects(tree: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = tree.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _number(item: dict[str, Any], key: str) -> int:
    value = item.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63 else 0

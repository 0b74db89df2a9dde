"""What a backend is for, as far as its configuration tells: in front of kube-apiservers, of long-lived sessions, or neither. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from edgekeeper.engines.haproxy.cfg_values import Config, Ports, Proxy, Server

API_PORT = 6443
LONG_LIVED = {
    389: "LDAP",
    636: "LDAP",
    1433: "SQL Server",
    1521: "Oracle",
    1883: "MQTT",
    2379: "etcd",
    3306: "MySQL",
    3307: "MySQL",
    4222: "NATS",
    5432: "PostgreSQL",
    5433: "PostgreSQL",
    5671: "AMQP",
    5672: "AMQP",
    6379: "Redis",
    6380: "Redis",
    6432: "PostgreSQL",
    8883: "MQTT",
    9042: "Cassandra",
    9092: "Kafka",
    27017: "MongoDB",
}
"""Ports whose clients keep their connections (pools, subscriptions): a session outlives its server's health by hours."""

_SPOKEN = {"mysql-check": "MySQL", "pgsql-check": "PostgreSQL", "redis-check": "Redis", "ldap-check": "LDAP"}
_ROLE = re.compile(r"/(primary|master|leader|read-write|read-only|replica|standby|synchronous|asynchronous|patroni)\b", re.IGNORECASE)
_API_NAME = re.compile(r"kube-?api|k8s-?api|api-?server|kubernetes-?(api|master|control)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kind:
    """``control_plane``: kube-apiservers stand behind it; ``long_lived``: what its sessions are, when they last for hours; ``why``."""

    control_plane: bool = False
    long_lived: str = ""
    why: str = ""

    @property
    def matters(self) -> bool:
        """Whether its clients keep their connections."""
        return self.control_plane or bool(self.long_lived)


def kind_of(config: Config, backend: Proxy, api_backends: Iterable[str] = ()) -> Kind:
    """What the backend is for, with the fact that told it."""
    if backend.name in frozenset(api_backends):
        return Kind(control_plane=True, why="named with --api-backend")
    ports = [ports_of(config, backend, server) for server in backend.servers]
    if any(_is_only(port, API_PORT) for port in ports):
        return Kind(control_plane=True, why=f"its servers listen on port {API_PORT}")
    if backend.servers and any(_listens_only_on(front, API_PORT) for front in config.feeding(backend)):
        return Kind(control_plane=True, why=f"its clients come to port {API_PORT}")
    if backend.servers and all(port is None for port in ports) and _API_NAME.search(backend.name):
        return Kind(control_plane=True, why="its name says so, and the ports of its servers are variables")
    if config.mode(backend) == "http":
        return Kind()
    if backend.probe.kind in _SPOKEN:
        return Kind(long_lived=_SPOKEN[backend.probe.kind], why=f"its check speaks {_SPOKEN[backend.probe.kind]}")
    if _asks_for_a_role(backend):
        return Kind(long_lived="database", why="its check asks which server has the leading role")
    for port in ports:
        if port is not None and port[0] == port[1] and port[0] in LONG_LIVED:
            return Kind(long_lived=LONG_LIVED[port[0]], why=f"its servers listen on port {port[0]}")
    return Kind()


def hints(config: Config, api_backends: Iterable[str] = ()) -> tuple[str, ...]:
    """Backends that may be kube-apiservers by their name, and that nothing else tells."""
    told = (p for p in config.backends() if p.servers and _API_NAME.search(p.name) and not kind_of(config, p, api_backends).control_plane)
    return tuple(dict.fromkeys(p.name for p in told))


def ports_of(config: Config, backend: Proxy, server: Server) -> Ports | None:
    """The ports that a server is spoken to on: its own, or those that its clients came to; None when neither is said in numbers."""
    if server.address.ports is not None:
        return server.address.ports
    if server.address.is_unresolved or server.address.family != "ip" or ":" in server.address.text.replace("::", ""):
        shift = server.address.shift
        if shift is None:
            return None
    else:
        shift = 0
    came = [a.ports for front in config.feeding(backend) for bind in front.binds for a in bind.addresses]
    known = [ports for ports in came if ports is not None]
    if not known or len(known) < len(came):
        return None
    return min(first for first, _ in known) + shift, max(last for _, last in known) + shift


def _is_only(ports: Ports | None, port: int) -> bool:
    return ports == (port, port)


def _listens_only_on(front: Proxy, port: int) -> bool:
    """Whether all addresses that a section listens on have this one port (one that serves others too may route by name)."""
    found = [a.ports for bind in front.binds for a in bind.addresses if a.family == "ip"]
    return bool(found) and all(_is_only(ports, port) for ports in found)


def _asks_for_a_role(backend: Proxy) -> bool:
    if backend.probe.kind == "http":
        return bool(_ROLE.match(backend.probe.uri))
    return any(step.action == "expect" and "master" in " ".join(step.words) for step in backend.probe.steps)

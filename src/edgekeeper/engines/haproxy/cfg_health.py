"""What a health check of HAProxy can see, and when: read from the configuration in force. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgekeeper.engines.haproxy import detection
from edgekeeper.engines.haproxy.cfg_values import Config, Proxy, Server

_ASKS = {
    "smtpchk": "SMTP",
    "ldap-check": "LDAP",
    "mysql-check": "MySQL",
    "pgsql-check": "PostgreSQL",
    "redis-check": "Redis PING",
    "spop-check": "SPOP",
}


def sees_silence(proxy: Proxy) -> bool | None:
    """Whether a server that accepts (TCP, TLS) and never answers fails the check of this section; None when a program decides."""
    kind = proxy.probe.kind
    if kind == "external-check":
        return None
    if kind in {"tcp", "ssl-hello-chk"}:  # the listener alone answers these
        return False
    if kind == "tcp-check":
        return any(step.action == "expect" for step in proxy.probe.steps)
    return True


def spoken(proxy: Proxy, server: Server) -> str:
    """The check in a few words: ``GET /readyz over TLS``, ``TCP connection``."""
    if not server.check:
        return "agent only" if server.flag("agent-check") else "of " + (server.text("track") or "?") if server.text("track") else "none"
    probe = proxy.probe
    tls = " over TLS" if speaks_tls(proxy, server) else ""
    if probe.kind == "http":
        return f"{probe.method or 'OPTIONS'} {probe.uri or '/'}{tls}"
    if probe.kind == "tcp":
        return "TLS handshake" if tls else "TCP connection"
    if probe.kind == "ssl-hello-chk":
        return "TLS hello"
    if probe.kind == "tcp-check":
        return f"tcp-check with {'an' if sees_silence(proxy) else 'no'} expected answer{tls}"
    return _ASKS.get(probe.kind, probe.kind) + tls


def speaks_tls(proxy: Proxy, server: Server) -> bool:
    """Whether the check opens TLS: by the server's line, or by ``http-check connect ssl``."""
    connects = proxy.probe.connects
    if connects:
        return any("ssl" in step.words or ("default" in step.words and server.check_ssl) for step in connects)
    return server.check_ssl


def is_elsewhere(proxy: Proxy, server: Server) -> bool:
    """Whether the check asks another port or address than clients do: another process may answer there."""
    if server.text("port") is not None and (server.address.ports is None or server.text("port") != str(server.address.ports[0])):
        return True
    return server.text("addr") is not None or any("port" in step.words or "addr" in step.words for step in proxy.probe.connects)


@dataclass(frozen=True, slots=True)
class Detection:
    """How long the servers of a backend can be hung before they are DOWN.

    ``sees`` False: for ever, as long as they accept; the figures are then those of a machine that is gone, or infinite where
    nothing is checked. ``sees`` None: a program, an agent or another server's check decides.
    """

    backend: Proxy
    server: Server
    least_s: float
    most_s: float
    sees: bool | None
    sentence: str


def detection_of(config: Config, proxy: Proxy) -> Detection | None:
    """The slowest of the backend's checked servers; None when it has no servers in use."""
    used = [server for server in proxy.servers if not server.is_disabled]
    checked = [server for server in used if server.check]
    if not checked:
        watched = next((server for server in used if server.is_watched), None)
        sees = None if watched else False
        why = "a last resort, unchecked on purpose" if config.is_last_resort(proxy) else "no check of its own"
        return Detection(proxy, watched or used[0], math.inf, math.inf, sees, why) if used else None
    sees = sees_silence(proxy)
    wait, spread = proxy.timeout_s("check"), config.settings.spread_checks
    connect = proxy.timeout_s("connect") if sees is not False else None
    figures = []
    for server in checked:
        timeout = wait
        if sees is False and wait is not None:  # then connecting is given min(timeout connect, inter), else inter (measured: 2.6, 3.0, 3.2)
            timeout = min(proxy.timeout_s("connect") or server.inter_s, server.inter_s)
        said = (server.inter_s, server.fastinter_s, timeout, server.fall)
        least, most = detection.worst(*said, spread=spread, connect_s=connect)
        figures.append((most, least, server, said))
    most, least, server, said = max(figures, key=lambda row: row[:2])
    return Detection(proxy, server, least, most, sees, detection.sentence(*said, spread=spread, connect_s=connect))

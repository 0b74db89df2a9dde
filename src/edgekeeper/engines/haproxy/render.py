"""A topology as ``haproxy.cfg``, for HAProxy 2.6 and later. Pure.

A service with ``fail_open`` has three backends of the same servers:

* ``NAME``, where everybody goes as long as all servers are well: fast checks, and a server that is DOWN
  has its sessions ended by HAProxy itself (``on-marked-down shutdown-sessions``);
* ``NAME-patient``, where new connections go while a server of ``NAME`` is DOWN: only to servers that are
  UP in ``NAME``, and under checks that are patient, so that servers that are merely slow, one after the
  other, do not cut a client again and again;
* ``NAME-open``, where they go when both judge every server DOWN: no checks, because a wrong verdict about
  all servers is worse than a slow one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from edgekeeper.engines.haproxy.features import Features
from edgekeeper.engines.haproxy.quote import seconds, word
from edgekeeper.engines.haproxy.seat import Seat
from edgekeeper.engines.haproxy.topology import Check, Frontage, Topology

FILE = "haproxy.cfg"
_SAID = "edgekeeper-"


def text(topology: Topology, seat: Seat, features: Features) -> str:
    """The whole file; the same topology and seat give the same bytes."""
    lines = [*_global(topology, seat), "", *_defaults(), ""]
    for service in topology.services:
        lines += [*_frontend(service, features), ""]
        for backend in service.backends:
            lines += [*_backend(service, backend), ""]
    if topology.stats is not None:
        lines += _stats(topology.stats)
    body = "\n".join(lines).rstrip("\n") + "\n"
    return body.replace("{description}", _SAID + hashlib.sha256(body.encode()).hexdigest()[:16], 1)


def description(file: str) -> str:
    """What a process that runs this file says of itself in ``show info``: a digest of all that is in it."""
    for line in file.splitlines():
        words = line.split()
        if words[:1] == ["description"]:
            return words[1]
    return ""


def _global(topology: Topology, seat: Seat) -> Iterator[str]:
    yield "# Written by edgekeeper; it is written again at the next change."
    yield "global"
    yield "    description {description}"
    yield "    log stdout len 4096 format raw daemon"
    yield f"    stats socket {word(seat.admin)} level admin mode 600"
    yield "    stats timeout 1m"
    yield f"    server-state-file {word(seat.state)}"
    yield f"    hard-stop-after {seconds(topology.hard_stop_s)}"
    # Without a number of its own HAProxy takes as many connections as its descriptors allow, up to half of this.
    yield f"    maxconn {topology.max_connections}" if topology.max_connections is not None else "    fd-hard-limit 65536"
    if topology.threads:
        yield f"    nbthread {topology.threads}"
    if topology.user:
        yield f"    user {word(topology.user)}"
    if topology.group:
        yield f"    group {word(topology.group)}"


def _defaults() -> Iterator[str]:
    yield "defaults"
    yield "    log global"
    yield "    option dontlog-normal"
    yield "    option dontlognull"
    yield "    option log-health-checks"
    yield "    option redispatch"
    yield "    retries 3"
    yield "    timeout queue 10s"
    yield "    load-server-state-from-file global"


def _frontend(service: Frontage, features: Features) -> Iterator[str]:
    yield f"frontend {service.name}-in"
    yield f"    mode {service.mode}"
    for bind in service.binds:
        # Without this word [::] takes IPv4 too, and quarrels with whoever has that port there.
        more = " v6only" if bind.address.startswith("[::]:") else ""
        more += " transparent" if bind.transparent and features.transparent else ""
        if service.certificate is not None:
            more += f" ssl crt {word(service.certificate)}" + (" alpn h2,http/1.1" if service.mode == "http" else "")
        yield f"    bind {word(bind.address)}{more}"
    yield f"    option {'httplog' if service.mode == 'http' else 'tcplog'}"
    yield "    option clitcpka"
    yield f"    maxconn {service.max_connections}"
    yield f"    timeout client {seconds(service.client_s)}"
    if service.mode == "http":
        yield "    timeout http-request 10s"
        if service.forwarded_for:
            yield "    option forwardfor"
    if service.fail_open:
        # Those that take nothing on purpose do not count: nbsrv leaves them out too.
        wanted = sum(1 for server in service.servers if server.weight)
        yield f"    use_backend {service.name}-open if {{ nbsrv({service.name}) eq 0 }} {{ nbsrv({service.name}-patient) eq 0 }}"
        # A server that comes back is seen by the one backend a moment before the other: where the patient one has nobody yet, nobody is sent there.
        yield f"    use_backend {service.name}-patient if {{ nbsrv({service.name}) lt {wanted} }} {{ nbsrv({service.name}-patient) gt 0 }}"
    yield f"    default_backend {service.name}"


def _backend(service: Frontage, backend: str) -> Iterator[str]:
    yield f"backend {backend}"
    yield f"    mode {service.mode}"
    yield f"    balance {service.balance}" + ("\n    hash-type consistent" if service.balance == "source" else "")
    yield "    option srvtcpka"
    yield f"    timeout connect {seconds(service.connect_s)}"
    yield f"    timeout server {seconds(service.server_s)}"
    if service.tunnel_s is not None:
        yield f"    timeout tunnel {seconds(service.tunnel_s)}"
    if backend != f"{service.name}-open":
        yield from _check(service.check, service.patience_s if backend == f"{service.name}-patient" else service.check.timeout_s)
    if backend == f"{service.name}-patient":
        yield from _chosen(service)
    options = server_options(service, backend)
    for server in service.servers:
        yield f"    server {server.name} {word(server.address)} weight {server.weight} {options}".rstrip()


def _check(check: Check, timeout_s: float) -> Iterator[str]:
    if check.kind == "none":
        return
    yield f"    timeout check {seconds(timeout_s)}"
    if check.kind == "http":
        yield "    option httpchk"
        host = check.host.replace("%", "%%")  # a header's value is a format there
        yield f"    http-check send meth GET uri {word(check.path)} ver HTTP/1.1 hdr Host {word(host)} hdr User-Agent edgekeeper-check hdr Connection close"
        yield f"    http-check expect status {check.status}"


def _chosen(service: Frontage) -> Iterator[str]:
    """New connections go to a server that is UP in the strict backend, each as likely as the others; where none is, the balancing decides."""
    servers = [server for server in service.servers if server.weight]
    up = [f"use-server {s.name} if {{ srv_is_up({service.name}/{s.name}) }} {{ srv_uweight({service.name}/{s.name}) gt 0 }}" for s in servers]
    for left, rule in zip(range(len(servers), 1, -1), up[:-1], strict=True):
        yield f"    {rule} {{ rand({left}) eq 0 }}"
    yield from (f"    {rule}" for rule in reversed(up))


def server_options(service: Frontage, backend: str) -> str:
    """What stands behind a server's address and weight; also how one is added to the running process."""
    words = []
    check = service.check
    if service.server_tls:
        words.append("ssl")
    if check.kind != "none" and backend != f"{service.name}-open":
        words.append(f"check inter {seconds(check.interval_s)} fastinter {seconds(check.fast_s)} fall {check.fall} rise {check.rise}")
        words.append("on-marked-down shutdown-sessions")
        if check.tls and not service.server_tls:
            words.append("check-ssl")
    if service.server_tls or (check.kind != "none" and check.tls and backend != f"{service.name}-open"):
        words.append(f"verify required ca-file {word(service.verify_ca)}" if service.verify_ca else "verify none")
        if service.verify_ca and service.verify_name:
            words.append(f"verifyhost {word(service.verify_name)}")
    if service.proxy_protocol != "off":
        words.append("send-proxy-v2 check-send-proxy" if service.proxy_protocol == "v2" else "send-proxy check-send-proxy")
    return " ".join(words)


def _stats(listen: str) -> Iterator[str]:
    yield "frontend edgekeeper-stats"
    yield "    mode http"
    yield f"    bind {word(listen)}"
    yield "    timeout client 10s"
    yield "    stats enable"
    yield "    stats uri /"
    yield "    stats refresh 5s"

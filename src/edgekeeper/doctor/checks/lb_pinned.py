"""Clients that stay on a dead server: HAP001 by the configuration; HAP002, HAP011 and HAP015 by what runs now. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from edgekeeper.doctor.check import NO_LINTER, Check, Needs, Page
from edgekeeper.doctor.checks.lb_words import add_to_default_server, names, subject
from edgekeeper.doctor.facts import HaproxyFacts, HaproxyRuntime, Unknown
from edgekeeper.doctor.kind import Kind, kind_of
from edgekeeper.engines.haproxy.cfg_values import Config, Proxy, Server
from edgekeeper.engines.haproxy.pinned import same_place
from edgekeeper.engines.haproxy.sess import Session
from edgekeeper.engines.haproxy.stats import ServerStat
from edgekeeper.model.finding import Finding, Place, Severity
from edgekeeper.model.time import format_duration

HOUR_S = 3600
_MOST_CLIENTS = 10
_STEP_DOWN = {Severity.HIGH: Severity.WARN, Severity.WARN: Severity.INFO}

HAP001_PAGE = Page(
    what="""
A backend in `mode tcp` whose servers can be marked DOWN (a `check`, an agent, `track`), without `on-marked-down shutdown-sessions` in force:
on the server's own line, or by a `default-server` before it in the section or in its `defaults`. In front of kube-apiservers every mode counts.

HIGH in front of kube-apiservers and of services whose sessions last (databases, queues, directories: told by their port or by a check that
speaks their protocol or asks for a role). WARN for any other TCP backend. One step lower where the backend has a single server:
a client that is cut has nowhere else to go, and comes back sooner all the same.
""",
    why="""
When HAProxy marks a server DOWN it sends no new connection there, and leaves the established ones where they are. A client that keeps its
connection (HTTP/2, a database pool) stays on the dead server for as long as that one accepts bytes, while every new connection, and so every
probe, is served well elsewhere.

Seen in the field: etcd died on one control-plane node, its kube-apiserver went on accepting TCP and TLS and answered nothing. A healthy node's
kubelet was pinned to it; its lease ran out and the node was NotReady for five days. Measured with HAProxy 2.6 and 3.2, a client with one
HTTP/2 connection, a server that acknowledges PINGs and answers no request: 9 of 9 later requests timed out and the client never reconnected,
with the server DOWN all the while. With the directive: one request lost.

**Idle timeouts are no mitigation.** `timeout client` and `timeout server` count idle time, and a client that keeps sending is not idle: an
HTTP/2 PING every 30 s keeps the session alive for ever. Where a client is silent, they cut healthy watches as well. Neither `retries` nor
`option redispatch` touches a session that is established.
""",
    fix="""
Add to the backend, before its servers:

```haproxy
    default-server on-marked-down shutdown-sessions
```

The directive does not reach sessions that were opened before the last reload: they live in an old worker process, which runs no health checks.
`edgekeeper lb guard` ends those too, and works without a change of the configuration. `hard-stop-after` bounds them.
""",
    others=NO_LINTER,
)

HAP002_PAGE = Page(
    what="""
A server that is DOWN or in maintenance and has sessions now (`show stat`: `scur` above 0), with each client's address from `show sess`.
""",
    why="""
Each of these clients is the next victim: it talks to something that does not answer. If it is a kubelet, its node goes NotReady 40 s after its
last renewal of the lease. HAProxy's own log says it in passing: `Server B/S is DOWN ... 2 sessions active`. The counter in
`show servers conn` says 0 for such sessions in TCP mode (2.6 and 3.2); do not use it.
""",
    fix="""
End them now; the clients reconnect to a live server within milliseconds (the socket needs `level admin`):

```sh
edgekeeper lb sessions --pinned
edgekeeper lb sessions --free all --yes
```

or by hand: `shutdown sessions server BACKEND/SERVER`. Then see HAP001, so that it does not happen again.
""",
    others="None looks at live sessions.",
)

HAP011_PAGE = Page(
    what="A server that has been DOWN for more than an hour (`show stat`: `status` DOWN and `lastchg` above 3600).",
    why="""
A dead server that nobody noticed: the capacity and the quorum that you think you have are gone, and the next failure is the second one. In
front of kube-apiservers it is often the sign of a dead etcd member.
""",
    fix="Mend the server, or take it out of the configuration. An alert on a server that is DOWN for an hour keeps this from being found by chance.",
    others="None looks at live servers.",
)

HAP015_PAGE = Page(
    what="A server in maintenance (`set server B/S state maint`, or `disabled`) that still has sessions: a special case of HAP002.",
    why="""
`set server ... state maint` ends no session (measured with 2.6 and 3.2), unless `on-marked-down shutdown-sessions` is in force. Whoever takes a
server out this way and then stops it cuts its clients in the middle of what they do.
""",
    fix="""
To take a server out gently: `set server B/S state drain`, wait for its sessions to end, then `state maint`. To cut what is left:
`shutdown sessions server B/S` or `edgekeeper lb sessions --free B/S --yes`.
""",
    others="None looks at live sessions.",
)


def pinned_by_config(facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP001."""
    for backend in config.backends():
        kind = kind_of(config, backend, facts.api_backends)
        bare = [s for s in backend.servers if s.is_watched and not s.cuts_sessions and not s.is_disabled]
        if not bare or not (kind.matters or config.mode(backend) == "tcp"):
            continue
        severity = Severity.HIGH if kind.matters else Severity.WARN
        if sum(s.count for s in backend.servers) == 1:
            severity = _STEP_DOWN[severity]
        yield Finding(
            id="HAP001",
            severity=severity,
            object=subject(backend),
            what="clients stay pinned to a server that is DOWN: on-marked-down shutdown-sessions is not in force",
            evidence=_lacking(backend, bare),
            why=_why(backend, kind),
            fix=add_to_default_server(backend, bare[0], "on-marked-down shutdown-sessions"),
            refs=("HAProxy configuration manual, server option on-marked-down",),
            place=bare[0].place,
        )


def _lacking(backend: Proxy, bare: list[Server]) -> str:
    kept = len(backend.servers) - len(bare)
    said = f"checked, without the option: {names(server.name for server in bare)}"
    return said + (f" ({kept} other{'s' if kept > 1 else ''} of this backend not)" if kept else "")


def _why(backend: Proxy, kind: Kind) -> str:
    told = {
        True: "kube-apiservers: a kubelet pinned to a hung one stops renewing its lease, and its node goes NotReady while every probe says that all is well",
        False: f"{kind.long_lived}: pooled connections stay on the dead server while new ones are served elsewhere"
        if kind.long_lived
        else "an established TCP session stays on the dead server for as long as the client keeps sending",
    }[kind.control_plane]
    because = f" ({kind.why})" if kind.why else ""
    limits = [f"timeout {name} {option.value}" for name in ("tunnel", "server", "client") if (option := backend.timeouts.get(name))]
    idle = f"; {limits[0]} does not help: it counts idle time, and a client that keeps sending (an HTTP/2 PING) is never idle" if limits else ""
    return f"{told}{because}{idle}"


def pinned_now(facts: HaproxyFacts, _config: Config) -> Iterator[Finding]:
    """HAP002."""
    for runtime, row in _rows(facts):
        count = _count(runtime, row)
        if not row.down or row.unresolved or not count:  # what DNS does not name may serve its sessions well
            continue
        yield Finding(
            id="HAP002",
            severity=Severity.CRIT,
            object=f"server {row.backend}/{row.server}",
            what=f"{count} session{'s' if count > 1 else ''} pinned to a server that is {row.status}",
            evidence=_clients(runtime, row),
            why="each of these clients talks to a server that takes no new connection, and does not know it; a kubelet among them stops renewing its lease",
            fix=f"now, on {runtime.socket}: shutdown sessions server {row.backend}/{row.server}; "
            f"or, old workers too:\n    edgekeeper lb sessions --free {row.backend}/{row.server} --yes",
            refs=("HAProxy management guide, shutdown sessions server",),
            place=_place(facts, row),
        )


def down_for_long(facts: HaproxyFacts, _config: Config) -> Iterator[Finding]:
    """HAP011."""
    for _runtime, row in _rows(facts):
        if row.down and not row.maint and (row.lastchg or 0) > HOUR_S:
            yield Finding(
                id="HAP011",
                severity=Severity.WARN,
                object=f"server {row.backend}/{row.server}",
                what=f"DOWN for {format_duration(float(row.lastchg or 0))}",
                evidence=f"status {row.status}, last check {row.check or 'unknown'}{f' ({row.check_desc})' if row.check_desc else ''}",
                why="a server that nobody misses is a server that the next failure will be missing",
                fix="mend it, or take its line out of the configuration",
                place=_place(facts, row),
            )


def soft_maintenance(facts: HaproxyFacts, _config: Config) -> Iterator[Finding]:
    """HAP015."""
    for runtime, row in _rows(facts):
        count = _count(runtime, row)
        if row.maint and not row.unresolved and count:
            yield Finding(
                id="HAP015",
                severity=Severity.INFO,
                object=f"server {row.backend}/{row.server}",
                what=f"in maintenance with {count} session{'s' if count > 1 else ''}",
                evidence=f"status {row.status}, scur {row.scur}",
                why="maintenance takes new clients away and leaves the old ones: they are cut when the server is stopped",
                fix=f"on {runtime.socket}: shutdown sessions server {row.backend}/{row.server}; next time: state drain first, then maint",
                place=_place(facts, row),
            )


def _rows(facts: HaproxyFacts) -> Iterator[tuple[HaproxyRuntime, ServerStat]]:
    if isinstance(facts.runtime, HaproxyRuntime):
        for row in facts.runtime.stats.servers:
            yield facts.runtime, row


def _sessions(runtime: HaproxyRuntime, row: ServerStat) -> list[tuple[int, Session]]:
    """The sessions on a server in every worker that could be asked, oldest first, each with its worker."""
    if isinstance(runtime.sessions, Unknown):
        return []
    on_it = [(pid, s) for pid, many in runtime.sessions.items() for s in many if s.backend == row.backend and s.server == row.server]
    # A server of that name at another address, in a worker of before a reload, is another machine, and nobody judges it.
    found = [(pid, s) for pid, s in on_it if pid == runtime.info.pid or same_place(s.address, row.address)]
    return sorted(found, key=lambda pair: -(pair[1].age_s or 0.0))


def _count(runtime: HaproxyRuntime, row: ServerStat) -> int:
    """What the current worker counts, and what old workers hold."""
    old = sum(pid != runtime.info.pid for pid, _ in _sessions(runtime, row))
    return row.scur + old


def _clients(runtime: HaproxyRuntime, row: ServerStat) -> str:
    if isinstance(runtime.sessions, Unknown):
        return f"scur {row.scur}; the clients cannot be named: {runtime.sessions.reason}"
    found = _sessions(runtime, row)
    told = [s.source + (f" for {format_duration(float(round(s.age_s)))}" if s.age_s is not None else "") for _, s in found[:_MOST_CLIENTS]]
    more = f", and {len(found) - len(told)} more" if len(found) > len(told) else ""
    old = sum(pid != runtime.info.pid for pid, _ in found)
    left = f"; {old} of them in workers left over from reloads" if old else ""
    return f"scur {row.scur}; clients, oldest first: {', '.join(told) or 'none seen any more'}{more}{left}"


def _place(facts: HaproxyFacts, row: ServerStat) -> Place | None:
    """The server's line, where the files that were given have it."""
    for config in facts.readings:
        server = config.server(row.backend, row.server)
        if server is not None:
            return server.place
    return None


CHECKS = (
    Check("HAP001", Severity.HIGH, "Clients stay pinned to a server that is DOWN", Needs.CONFIG, HAP001_PAGE, pinned_by_config),
    Check("HAP002", Severity.CRIT, "Sessions are pinned to a server that is DOWN, now", Needs.RUNTIME, HAP002_PAGE, pinned_now),
    Check("HAP011", Severity.WARN, "A server has been DOWN for more than an hour", Needs.RUNTIME, HAP011_PAGE, down_for_long),
    Check("HAP015", Severity.INFO, "A server in maintenance still has sessions", Needs.RUNTIME, HAP015_PAGE, soft_maintenance),
)

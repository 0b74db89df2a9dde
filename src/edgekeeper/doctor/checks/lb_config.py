"""What else a haproxy.cfg can do to its clients and its operators: HAP006, HAP007, HAP008, HAP014. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from edgekeeper.doctor.check import NO_LINTER, Check, Needs, Page
from edgekeeper.doctor.checks.lb_words import add_line, subject
from edgekeeper.doctor.facts import HaproxyFacts
from edgekeeper.doctor.kind import kind_of
from edgekeeper.engines.haproxy.cfg_values import Address, Bind, Config, Option, Proxy, Socket
from edgekeeper.model.finding import Finding, Place, Severity
from edgekeeper.model.time import format_duration

SHORTEST_IDLE_S = 45.0
"""A kubelet's HTTP/2 PING comes every 30 s and is given 15 s."""

_RANK = {"user": 0, "operator": 1, "admin": 2}
_TRUE = frozenset({"TRUE", "always_true"})
_FALSE = frozenset({"FALSE", "always_false"})

HAP006_PAGE = Page(
    what="""
In front of kube-apiservers: `timeout client` of a section that feeds the backend, or its `timeout server`, below 45 s. In `mode tcp` a
`timeout tunnel` overrides both (measured), so only that one counts where it is set.
""",
    why="""
A watch with nothing to say is silent for minutes; the HTTP/2 PING of a Go client comes every 30 s and waits 15 s. A shorter idle timeout cuts
healthy watches, `kubectl exec` and `kubectl logs -f`: `unexpected EOF` in the clients, and a relist of everything each time. Short timeouts
are often set in the hope that they free pinned clients. They do not: see HAP001.
""",
    fix="`timeout client 1h` and `timeout server 1h` in front of kube-apiservers, and `on-marked-down shutdown-sessions` for dead servers.",
    others=NO_LINTER,
)

HAP007_PAGE = Page(
    what="No `stats socket` in `global`, or one of level `user` only. Not judged for files without a `global` section.",
    why="""
Without it nobody can see who is pinned to a dead server (HAP002), nor free them: `show sess` needs level operator, `shutdown sessions server`
needs level admin (measured).
""",
    fix="""
```haproxy
global
    stats socket /run/haproxy/admin.sock mode 600 level admin
```
""",
    others=NO_LINTER,
)

HAP008_PAGE = Page(
    what="""
HIGH: a statistics page that may write (`stats admin if TRUE`) without `stats auth`, or a `stats socket` of level admin on a TCP port, on an
address that other machines reach. WARN: the same page read-only, a TCP socket of a lower level, or an admin socket that every local user may
open. A page or listener with rules of its own (`http-request deny`, `auth`, `tcp-request ... reject`, `verify required`) is left alone; so is one on loopback.
""",
    why="""
Whoever reaches a writable page or socket can take every server out of service with one request. A read-only page tells names, addresses and
versions of what stands behind.
""",
    fix="""
Bind the page to `127.0.0.1`, or add `stats auth NAME:PASSWORD` and TLS; write `stats admin if LOCALHOST`. Keep the socket a UNIX socket with
`mode 600`.
""",
    others="`haproxy -c` accepts it. Some hardening guides name it for statistics pages in general.",
)

HAP014_PAGE = Page(
    what="`balance source` on a backend of kube-apiservers.",
    why="""
All clients behind one address (a NAT, another load balancer, a node's pods) go to one server, and stay there together. After a restart of
one server its clients do not come back to it until the hash says so.
""",
    fix="`balance leastconn` spreads long-lived connections; `roundrobin` is fine too.",
    others=NO_LINTER,
)


def idle(facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP006."""
    for backend in config.backends():
        if not backend.servers or not kind_of(config, backend, facts.api_backends).control_plane:
            continue
        short = _short(config, backend)
        if not short:
            continue
        name, option, _ = short[0]
        told = ", ".join(f"timeout {n} {o.value} ({o.place.text()})" for n, o, _ in short)
        yield Finding(
            id="HAP006",
            severity=Severity.WARN,
            object=subject(backend),
            what=f"idle timeouts below {format_duration(SHORTEST_IDLE_S)} cut watches, exec and logs",
            evidence=told,
            why="a silent watch is healthy; its client sends a PING every 30 s at best. These timeouts do not free pinned clients either (HAP001)",
            fix="\n".join(f"{o.place.text()}: write, at least for {subject(owner)}:\n    timeout {n} 1h" for n, o, owner in short),
            refs=(f"HAProxy configuration manual, timeout {name}",),
            place=option.place,
        )


def _short(config: Config, backend: Proxy) -> list[tuple[str, Option, Proxy]]:
    """The idle timeouts in force that are too short, each with the section that it is in force for."""
    if config.mode(backend) != "http" and backend.timeouts.get("tunnel"):
        asked = [("tunnel", backend)]
    else:
        asked = [("client", front) for front in config.feeding(backend)] + [("server", backend)]
    found: list[tuple[str, Option, Proxy]] = []
    for name, proxy in asked:
        seconds = proxy.timeout_s(name)
        if seconds is not None and 0 < seconds < SHORTEST_IDLE_S and all(o.place != proxy.timeouts[name].place for _, o, _ in found):
            found.append((name, proxy.timeouts[name], proxy))
    return found


def no_socket(_facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP007."""
    place = config.settings.place
    if place is None:
        return
    sockets = config.settings.sockets
    if any(_RANK.get(socket.level, 1) >= 1 for socket in sockets):
        return
    place = sockets[0].place if sockets else place
    line = "stats socket /run/haproxy/admin.sock mode 600 level admin"
    yield Finding(
        id="HAP007",
        severity=Severity.INFO,
        object="global",
        what="nobody can see pinned sessions: the stats socket is of level user" if sockets else "nobody can see pinned sessions: there is no stats socket",
        evidence=f"level {sockets[0].level}" if sockets else "no stats socket in global",
        why="show sess needs level operator, freeing a pinned client needs level admin",
        fix=f"{place.text()}: {'write' if sockets else 'below this line, add'}:\n    {line}",
        place=place,
    )


def open_page(_facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP008."""
    for socket in config.settings.sockets:
        yield from _open_socket(socket)
    told: set[tuple[Place, bool]] = set()
    for proxy in config.proxies:
        if proxy.stats is None or proxy.disabled or config.mode(proxy) == "tcp" or proxy.stats.auth:
            continue
        fronts = [proxy] if proxy.kind == "frontend" else list(config.feeding(proxy))
        open_binds = [bind for front in fronts if not front.guarded for bind in front.binds if not _asks_for_certificate(bind)]
        outside = [a for bind in open_binds for a in bind.addresses if a.is_remote is not False]
        if not outside or proxy.guarded:
            continue
        writes = _is_always(proxy.stats.admin)
        sure = any(address.is_remote for address in outside)
        place = (proxy.stats.admin_place if writes else None) or proxy.stats.place
        if (place, writes) in told:  # from one line in defaults: once is enough
            continue
        told.add((place, writes))
        yield Finding(
            id="HAP008",
            severity=Severity.HIGH if writes and sure else Severity.WARN if writes or sure else Severity.INFO,
            object=subject(proxy),
            what="the statistics page takes orders from anybody" if writes else "the statistics page is open to other machines",
            evidence=f"{_reached(outside)}, no stats auth{', stats admin ' + ' '.join(proxy.stats.admin or ()) if writes else ''}",
            why="whoever reaches it can take every server out of service" if writes else "it tells names, addresses and states of what stands behind",
            fix=f"{place.text()}: bind it to 127.0.0.1, or{' write' if writes else ''}:\n    "
            + ("stats admin if LOCALHOST\n    " if writes else "")
            + "stats auth NAME:PASSWORD",
            place=place,
        )


def _asks_for_certificate(bind: Bind) -> bool:
    """Whether only clients with a certificate are let in (``verify required``)."""
    return "required" in bind.options and bind.options[bind.options.index("required") - 1] == "verify"


def _open_socket(socket: Socket) -> Iterator[Finding]:
    remote = socket.address.is_remote
    if remote is None and socket.address.ports is None:  # a variable may be a path
        return
    if remote is not False and not socket.guarded:
        admin = socket.level == "admin"
        yield Finding(
            id="HAP008",
            severity=Severity.HIGH if admin and remote else Severity.WARN,
            object=f"stats socket {socket.address.text}",
            what=f"the runtime socket of level {socket.level} is open to other machines",
            evidence=f"stats socket {socket.address.text} level {socket.level}: the protocol has no password",
            why="whoever reaches it can take every server out of service" if admin else "whoever reaches it sees every session and its addresses",
            fix=f"{socket.place.text()}: write\n    stats socket /run/haproxy/admin.sock mode 600 level admin",
            place=socket.place,
        )
    elif socket.level == "admin" and socket.address.family == "unix" and socket.mode[-1:] in {"2", "3", "6", "7"}:
        yield Finding(
            id="HAP008",
            severity=Severity.WARN,
            object=f"stats socket {socket.address.text}",
            what="every local user may take servers out of service",
            evidence=f"mode {socket.mode} level admin",
            why="a socket of level admin is the whole load balancer",
            fix=f"{socket.place.text()}: write mode 600, or mode 660 with a group of its own",
            place=socket.place,
        )


def _is_always(condition: tuple[str, ...] | None) -> bool:
    """Whether a condition holds for everybody; one by named ACLs is taken as a rule that somebody thought of."""
    words = [word for word in condition or () if word not in {"{", "}"}]
    if len(words) != 2:
        return False
    return (words[0] == "if" and words[1] in _TRUE) or (words[0] == "unless" and words[1] in _FALSE)


def _reached(addresses: list[Address]) -> str:
    return "reached at " + ", ".join(dict.fromkeys(a.text for a in addresses))


def by_source(facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP014."""
    for backend in config.backends():
        if backend.balance and backend.balance.value == "source" and backend.servers and kind_of(config, backend, facts.api_backends).control_plane:
            yield Finding(
                id="HAP014",
                severity=Severity.INFO,
                object=subject(backend),
                what="clients behind one address are pinned to one kube-apiserver together",
                evidence="balance source",
                why="a NAT or a proxy in front makes all of them one address; one server gets everything",
                fix=f"{backend.balance.place.text()}: write\n    balance leastconn"
                if backend.balance.place.line > backend.place.line
                else add_line(backend, "balance leastconn"),
                place=backend.balance.place,
            )


CHECKS = (
    Check("HAP006", Severity.WARN, "Idle timeouts cut watches, exec and logs", Needs.CONFIG, HAP006_PAGE, idle),
    Check("HAP007", Severity.INFO, "Nobody can see pinned sessions: no stats socket", Needs.CONFIG, HAP007_PAGE, no_socket),
    Check("HAP008", Severity.HIGH, "The statistics page or the runtime socket is open", Needs.CONFIG, HAP008_PAGE, open_page),
    Check("HAP014", Severity.INFO, "balance source in front of kube-apiservers", Needs.CONFIG, HAP014_PAGE, by_source),
)

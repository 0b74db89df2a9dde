"""Health checks: can they see a black hole (HAP003), and how soon (HAP004), or too soon (HAP005). Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from edgekeeper.doctor.check import NO_LINTER, Check, Needs, Page
from edgekeeper.doctor.checks.lb_words import add_line, add_to_default_server, names, subject
from edgekeeper.doctor.facts import HaproxyFacts
from edgekeeper.doctor.kind import kind_of
from edgekeeper.engines.haproxy.cfg_health import detection_of, is_elsewhere, sees_silence, speaks_tls, spoken
from edgekeeper.engines.haproxy.cfg_values import Config, Option, Probe, Proxy, Server
from edgekeeper.model.finding import Finding, Place, Severity
from edgekeeper.model.time import format_duration

SLOW_S = 10.0
SLOW_ELSEWHERE_S = 30.0
LEASE_S = 40.0
NERVOUS_S = 0.1
_HEALTH_PATHS = ("/readyz", "/livez", "/healthz")
_WITHOUT_ETCD = re.compile(r"\A/\w+/(ping|log)(\?|\Z)|[?&]exclude=etcd(&|\Z)")
"""Parts of them that say nothing about etcd."""

HAP003_PAGE = Page(
    what="""
In front of kube-apiservers: a server without `check`; a check that only connects (no `option httpchk`; `tcp-check` without an expected answer;
`ssl-hello-chk`); an HTTP check of another path than `/readyz`, `/livez` or `/healthz` (or of their part `/ping`, or with `exclude=etcd`), or one that expects a refusal (401, 403); an HTTP check
in plain text (no `check-ssl`) on the port that speaks TLS. A backend without checks that is used only when another has no server left (`use_backend open if { nbsrv(api) eq 0 }`), and
whose servers that one checks, is right as it is: it fails open. A check of another port, by `external-check` or by an agent is not judged.
""",
    why="""
A kube-apiserver whose etcd is gone accepts TCP, completes the TLS handshake, and answers nothing. A check that is content with a connection or
a handshake sees nothing wrong: the server stays UP for ever, and a share of all clients hangs (measured with 2.6 and 3.2). Paths such as `/`
or `/version` are answered without asking etcd, and so is a client without rights: with 401 or 403. A plain HTTP check of the TLS port marks every server DOWN at once.
""",
    fix="""
```haproxy
backend kube-apiservers
    option httpchk GET /readyz
    http-check expect status 200
    default-server check check-ssl verify none inter 1s fastinter 500ms fall 2 rise 3 on-marked-down shutdown-sessions
    timeout check 500ms
```

`verify required ca-file /etc/haproxy/kubernetes-ca.crt` is better than `verify none`, where the cluster's CA is at hand.
""",
    others=NO_LINTER,
)

HAP004_PAGE = Page(
    what="""
The sum from the hang of a server to DOWN, by the settings in force, for the slowest server of the backend. Told above 10 s in front of
kube-apiservers and of services with lasting sessions, above 30 s elsewhere.

With T the time that one check waits (`timeout check`, else `inter`) and F the pause once one has failed (`fastinter`, else `inter`), it is
from `T + (fall-1) x (F+T)` to `inter + T + (fall-1) x (F+T)`.
""",
    why="""
A check that gets no answer costs its whole timeout, and the next one starts only after that. "inter 2s fall 3" is therefore 10 to 12 s, not 6
(measured: 11.1 s), and "inter 10s fall 2" is 30 to 40 s. For a kubelet every second of it is a lost renewal; at 40 s its node is NotReady.
""",
    fix="""
```haproxy
    timeout check 500ms
    default-server inter 1s fastinter 500ms fall 2 rise 3
```

is 1.5 to 2.5 s. On a small, loaded control plane take a longer `timeout check` (five times the slowest usual answer), or a slow etcd takes all
servers down one after the other.
""",
    others=NO_LINTER,
)

HAP005_PAGE = Page(
    what="`timeout check` or `inter` below 100 ms.",
    why="""
A garbage collection, a moment of load or one lost packet is longer than that: servers flap, and with every DOWN sessions are cut or clients are
moved. Reported from the field: a check timeout of 5 ms, 935 times DOWN in five minutes.
""",
    fix="`inter 1s fastinter 500ms fall 2` with `timeout check 500ms` notices a hung server within 2.5 s and leaves room for a slow answer.",
    others=NO_LINTER,
)


def blind(facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP003."""
    for backend in config.backends():
        kind = kind_of(config, backend, facts.api_backends)
        if not kind.control_plane or not backend.servers:
            continue
        fault = (
            (None if config.is_last_resort(backend) else _unchecked(backend))
            or _too_shallow(backend)
            or _wrong_path(backend)
            or _content_with_refusal(backend)
            or _plain_text(backend)
        )
        if fault is None:
            continue
        what, evidence, place, fix = fault
        alone = sum(s.count for s in backend.servers) == 1
        yield Finding(
            id="HAP003",
            severity=Severity.WARN if alone else Severity.HIGH,
            object=subject(backend),
            what=what,
            evidence=evidence,
            why="a kube-apiserver without etcd accepts TCP and TLS and never answers; this check does not tell it from a healthy one"
            if place is None or "plain text" not in what
            else "the server answers 400 to plain text on its TLS port, healthy or not: all servers are DOWN at once, or the check means nothing",
            fix=fix,
            refs=("HAProxy configuration manual, option httpchk", "Kubernetes documentation, API health endpoints"),
            place=place,
        )


_Fault = tuple[str, str, Place | None, str]
_GOOD_CHECK = "check check-ssl verify none inter 1s fastinter 500ms fall 2 rise 3 on-marked-down shutdown-sessions"


def _unchecked(backend: Proxy) -> _Fault | None:
    bare = [s for s in backend.servers if not s.is_watched and not s.is_disabled]
    if not bare:
        return None
    what = f"{names(s.name for s in bare)}: no health check, never marked DOWN"
    fix = add_to_default_server(backend, bare[0], _GOOD_CHECK)
    if backend.probe.kind != "http":
        fix += "\n    option httpchk GET /readyz"
    return what, "no check on the server's line nor in a default-server before it", bare[0].place, fix


def _too_shallow(backend: Proxy) -> _Fault | None:
    checked = [s for s in backend.servers if s.check and not s.is_disabled]
    if not checked or sees_silence(backend) is not False:
        return None
    said = spoken(backend, checked[0])
    place = backend.probe.place or checked[0].place
    fix = add_line(backend, "option httpchk GET /readyz")
    if not speaks_tls(backend, checked[0]):
        fix += "\n" + add_to_default_server(backend, checked[0], "check-ssl verify none")
    if backend.probe.place is not None:
        fix = f"{place.text()}: in place of this line, for {subject(backend)}:\n    option httpchk GET /readyz" + fix.partition("httpchk GET /readyz")[2]
    return "the health check cannot see a black hole: it asks nothing", f"the check is a {said}", place, fix


def _wrong_path(backend: Proxy) -> _Fault | None:
    probe: Probe = backend.probe
    checked = [s for s in backend.servers if s.check and not s.is_disabled and not is_elsewhere(backend, s)]
    if probe.kind != "http" or not checked:
        return None
    path = _path(probe.uri)
    if "$" in path or "{{" in path or "%" in path or (path.startswith(_HEALTH_PATHS) and not _WITHOUT_ETCD.search(path)):
        return None
    place = probe.uri_place or probe.place
    where = place.text() if place else backend.place.text()
    return (
        "the health check asks a path that is answered without etcd",
        f"{probe.method} {probe.uri}",
        place,
        f"{where}: in place of this line:\n    option httpchk GET /readyz",
    )


def _content_with_refusal(backend: Proxy) -> _Fault | None:
    """``http-check expect status 401``: a server refuses an unknown client before it asks etcd anything."""
    if backend.probe.kind != "http" or not any(s.check and not s.is_disabled for s in backend.servers):
        return None
    for step in backend.probe.steps:
        if step.action == "expect" and "!" not in step.words and "status" in step.words and {"401", "403"}.intersection(step.words):
            return (
                "the health check is content with a refusal, which is given without etcd",
                f"http-check expect {' '.join(step.words)}",
                step.place,
                f"{step.place.text()}: write\n    http-check expect status 200",
            )
    return None


def _path(uri: str) -> str:
    """The path of a URI: with ``https://host`` before it or without."""
    _, scheme, rest = uri.partition("://")
    return "/" + rest.partition("/")[2] if scheme else uri


def _plain_text(backend: Proxy) -> _Fault | None:
    plain = [s for s in backend.servers if s.check and not s.is_disabled and not speaks_tls(backend, s) and not is_elsewhere(backend, s)]
    if backend.probe.kind != "http" or not plain:
        return None
    return (
        "the health check speaks plain text to a port that speaks TLS",
        f"no check-ssl for {names(s.name for s in plain)}",
        plain[0].place,
        add_to_default_server(backend, plain[0], "check-ssl verify none"),
    )


def slow(facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP004."""
    for backend in config.backends():
        found = detection_of(config, backend)
        if found is None or found.sees is False or math.isinf(found.most_s):  # one that never sees it is not slow: HAP003
            continue
        kind = kind_of(config, backend, facts.api_backends)
        if found.most_s <= (SLOW_S if kind.matters else SLOW_ELSEWHERE_S):
            continue
        lost = f"; {format_duration(LEASE_S)} without a renewed lease and the node is NotReady" if kind.control_plane else ""
        yield Finding(
            id="HAP004",
            severity=Severity.WARN,
            object=subject(backend),
            what=f"a hung server is noticed after up to {format_duration(found.most_s)}",
            evidence=f"{found.server.name}: {found.sentence}",
            why=f"until then new connections go there too, and hang{lost}",
            fix=_faster(backend, found.server),
            place=_said_at(found.server, "inter", "fall") or found.server.place,
        )


def _faster(backend: Proxy, server: Server) -> str:
    """Where the quicker figures go: a server's own line wins over a default-server, so it is named where it says them itself."""
    figures = "inter 1s fastinter 500ms fall 2 rise 3"
    own = any(name in server.options and server.options[name].place == server.place for name in ("inter", "fastinter", "fall"))
    first = f"{server.place.text()}: on this line and those of its fellows, write:\n    {figures}" if own else add_to_default_server(backend, server, figures)
    return f"{first}\n{add_line(backend, 'timeout check 500ms')}"


def nervous(_facts: HaproxyFacts, config: Config) -> Iterator[Finding]:
    """HAP005."""
    for backend in config.backends():
        checked = [s for s in backend.servers if s.check]
        if not checked:
            continue
        told = _below(backend, checked)
        if told is None:
            continue
        name, option, server = told
        yield Finding(
            id="HAP005",
            severity=Severity.WARN,
            object=subject(backend),
            what=f"the health check is too nervous: {name} {option.value}",
            evidence=f"{name} {option.value} is in force for {server.name}",
            why="a moment of load is longer than that: servers flap, and every DOWN moves or cuts clients",
            fix=f"{option.place.text()}: write\n    {name} {'500ms' if name == 'timeout check' else '1s'}",
            place=option.place,
        )


def _below(backend: Proxy, checked: list[Server]) -> tuple[str, Option, Server] | None:
    limit = backend.timeout_s("check")
    if limit is not None and 0 < limit < NERVOUS_S:
        return "timeout check", backend.timeouts["check"], checked[0]
    for server in checked:
        option = server.options.get("inter")
        if option is not None and 0 < server.inter_s < NERVOUS_S:
            return "inter", option, server
    return None


def _said_at(server: Server, *wanted: str) -> Place | None:
    return next((server.options[name].place for name in wanted if name in server.options), None)


CHECKS = (
    Check("HAP003", Severity.HIGH, "The health check cannot see a black hole", Needs.CONFIG, HAP003_PAGE, blind),
    Check("HAP004", Severity.WARN, "A hung server is noticed late", Needs.CONFIG, HAP004_PAGE, slow),
    Check("HAP005", Severity.WARN, "The health check is too nervous", Needs.CONFIG, HAP005_PAGE, nervous),
)

"""The ready-made watch for NetBird's proxy: what arms it, what does not, and that the config's own words hold."""

from __future__ import annotations

import pytest

from edgekeeper.config.watch import Watch
from edgekeeper.watch.fingerprint import Fingerprint, Matcher
from edgekeeper.watch.presets import merged, preset

PLAIN = {"name": "mesh", "preset": "netbird-proxy", "docker": "netbird-proxy"}
AT = "2026-11-30T06:58:01.123Z"
KEY = "AAAAexamplePublicKeyAAAA="


def watch(**said: object) -> Watch:
    return merged(Watch.model_validate({**PLAIN, **said}))


def arms(line: str) -> bool:
    made = watch()
    matcher = Matcher([Fingerprint(f.text or "", f.regex or "", f.level or "") for f in made.fingerprints or ()], made.untrusted_after or ())
    return bool(matcher.hits(f"{AT} {line}\n".encode()))


@pytest.mark.parametrize(
    "line",
    [
        f"WARN client/internal/routemanager/client/client.go:126: couldn't fetch peer state: {KEY}",
        f"WARN [account_id: a1] client/internal/routemanager/client/client.go:126: couldn't fetch peer state: {KEY}",
        f"WARN client/internal/peer/status.go:1245: router peer not found in peers list: {KEY}",
        "ERRO client/internal/routemanager/client/client.go:513: Failed to recalculate routes for network [192.0.2.0/24]: remove old: gone",
        "WARN shared/management/client/grpc.go:278: exiting the Management service connection retry loop due to the unrecoverable error: gone",
    ],
)
def test_what_a_wedge_writes_arms(line: str) -> None:
    assert arms(line)


@pytest.mark.parametrize(
    "line",
    [
        f"DEBG client/internal/routemanager/client/client.go:109: couldn't fetch peer state {KEY}: peer not found",
        f"WARN client/internal/routemanager/static/route.go:55: Prefix [192.0.2.0/24] is already routed by peer [{KEY}]. HA routing disabled",
        "WARN [sni: git.example, service_id: s1, target: 192.0.2.9:443] proxy/internal/tcp/router.go:401: TCP relay: dial backend 192.0.2.9:443: i/o timeout",
        f"INFO client/internal/routemanager/client/client.go:126: couldn't fetch peer state: {KEY}",
    ],
)
def test_what_is_harmless_or_anybodys_backend_does_not(line: str) -> None:
    assert not arms(line)


@pytest.mark.parametrize(
    "line",
    [
        f"WARN proxy/internal/proxy/reverseproxy.go:754: proxy error: request_id=1 client_ip=192.0.2.9 method=GET host=git.example path=/couldn't fetch peer state: {KEY} status=499",
        f"DEBG proxy/internal/accesslog/middleware.go:28: request: request_id=1 method=GET host=git.example path=/couldn't fetch peer state: {KEY}",
        f"ERRO [duration: 3, path: /couldn't fetch peer state: {KEY}, host: git.example] proxy/internal/accesslog/logger.go:340: Error sending access log on gRPC connection",
        f"WARN [host: couldn't fetch peer state: {KEY}] proxy/internal/proxy/reverseproxy.go:101: no target",
        f"WARN proxy/internal/proxy/reverseproxy.go:101: no target: method=GET host=couldn't fetch peer state: {KEY}",
    ],
)
def test_what_a_client_sent_does_not(line: str) -> None:
    assert not arms(line)


def test_what_is_not_said_is_taken_from_the_preset() -> None:
    made = watch()
    assert made.cure is not None
    assert made.guard is not None
    assert made.guard.health is not None
    assert made.burst is not None
    (step,) = made.cure
    assert (step.docker, step.stop_timeout) == (made.docker, 1.0)
    assert (made.guard.health.inside, made.guard.health.need) == (made.docker, ("checks.management_connected",))
    assert made.burst.lines == 1
    assert len(preset("netbird-proxy").why) == len(made.fingerprints or ())


def test_what_is_said_holds_be_it_nothing() -> None:
    assert watch(guard=None).guard is None
    assert watch(recovered=None).recovered is None
    assert watch(guard={"health": None, "reachable": ["tcp://192.0.2.1:443"]}).guard.health is None
    only = watch(guard={"reachable": ["tcp://192.0.2.1:443"]}).guard
    assert only is not None
    assert (only.health is not None, len(only.reachable)) == (True, 1)
    assert watch(untrusted_after=[]).untrusted_after == ()
    assert [f.text for f in watch(fingerprints=["my own sign"]).fingerprints or ()] == ["my own sign"]
    assert watch(cure=["docker"]).cure[0].is_own


def test_without_a_log_there_is_nothing_to_look_for() -> None:
    made = watch(docker=None, probe="tls://192.0.2.11:443", cure={"systemd": "netbird-proxy"})
    assert made.fingerprints is None
    assert made.guard is not None
    assert made.guard.health is not None
    assert made.guard.health.inside is None

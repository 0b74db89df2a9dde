"""When NetBird's proxy hides its warnings, where its health document is, and what its version means."""

from __future__ import annotations

import pytest

from edgekeeper.watch.netbird import blind, health_url, version_note


@pytest.mark.parametrize("value", ["error", "ERROR", " fatal ", "panic"])
def test_a_level_above_warn_makes_the_watch_blind(value: str) -> None:
    assert "hides the lines" in str(blind(["PATH=/bin", f"NB_PROXY_CLIENT_LOG_LEVEL={value}"]))


@pytest.mark.parametrize("env", [[], ["NB_PROXY_CLIENT_LOG_LEVEL="], ["NB_PROXY_CLIENT_LOG_LEVEL=warn"], ["NB_PROXY_CLIENT_LOG_LEVEL=debug"], ["nonsense"]])
def test_any_other_shows_warnings(env: list[str]) -> None:
    assert blind(env) is None


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("", "http://127.0.0.1:8080/healthz"),
        ("localhost:9090", "http://127.0.0.1:9090/healthz"),
        (":9090", "http://127.0.0.1:9090/healthz"),
        ("0.0.0.0:80", "http://127.0.0.1:80/healthz"),
        ("[::]:80", "http://127.0.0.1:80/healthz"),
        ("192.0.2.5:80", "http://192.0.2.5:80/healthz"),
        ("[2001:db8::5]:80", "http://[2001:db8::5]:80/healthz"),
        ("8080", None),
        ("a b:80", None),
        ("host:99999", None),
    ],
)
def test_the_health_document_is_where_the_environment_says(said: str, url: str | None) -> None:
    assert health_url([f"NB_PROXY_HEALTH_ADDRESS={said}"]) == url


@pytest.mark.parametrize(
    ("image", "labels", "says"),
    [
        ("netbirdio/reverse-proxy:0.74.4", {}, "0.74.4 does not heal"),
        ("netbirdio/reverse-proxy:v0.75.1", {}, "0.75.1 heals most"),
        ("registry.example:5000/reverse-proxy:latest", {}, "unknown"),
        ("registry.example:5000/reverse-proxy", {}, "unknown"),
        ("netbirdio/reverse-proxy:0.74.4@sha256:" + "0" * 64, {}, "0.74.4 does not"),
        ("netbirdio/reverse-proxy:latest", {"org.opencontainers.image.version": "0.77.1"}, "0.77.1 heals most"),
        ("netbirdio/reverse-proxy:0.10.0", {"org.opencontainers.image.version": "main"}, "0.10.0 does not"),
    ],
)
def test_the_version_says_what_to_expect(image: str, labels: dict[str, str], says: str) -> None:
    assert says in version_note(image, labels)

"""What is known of NetBird's proxy beyond its log lines: when those cannot be seen, and what to expect of which version. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_LEVEL_KEY = "NB_PROXY_CLIENT_LOG_LEVEL"
_HIDES_WARNINGS = ("error", "fatal", "panic")
"""In logrus' words, whatever their case. An empty or unknown one means WARN."""
_HEALS = (0, 75, 1)
_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+].*)?")
_VERSION_LABEL = "org.opencontainers.image.version"
LEAK = (
    "Each restart registers the proxy as a new peer, and its old row stays: seen with 0.74.5 to 0.76.0, where clients then waited 2 s for names behind "
    "it. A small budget is a kindness; remove rows of dead proxies by hand."
)
"""Why restarts of this service are counted, for ``check`` and the docs."""


def blind(env: Iterable[str]) -> str | None:
    """Why the log of a proxy with this environment (``NAME=value`` each) cannot show the lines that arm, or None."""
    value = _values(env).get(_LEVEL_KEY, "").strip()
    if value.lower() not in _HIDES_WARNINGS:
        return None
    return f"{_LEVEL_KEY}={value.lower()} hides the lines that would arm this watch; set it to warn, until then only the probe tells of a wedge"


def health_url(env: Iterable[str]) -> str | None:
    """Where the health document of a proxy with this environment is, seen from inside its container; None when its address cannot be read."""
    address = _values(env).get("NB_PROXY_HEALTH_ADDRESS", "").strip() or "localhost:8080"
    host, colon, port = address.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536) or not re.fullmatch(r"[A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\]", host):
        return None
    return f"http://{'127.0.0.1' if host in ('', '0.0.0.0', '[::]', 'localhost') else host}:{port}/healthz"  # noqa: S104 - told apart, not listened on


def elsewhere(env: Iterable[str], url: str) -> str:
    """A sentence when the health document of a proxy with this environment is not where it is asked for; else nothing."""
    found = health_url(env)
    return f"its health document is at {found}, and {url} is asked; say guard: {{health: {{url: {found}}}}}" if found not in (None, url) else ""


def version_note(image: str, labels: Mapping[str, str]) -> str:
    """What to expect of a proxy of this image, as a sentence for the status."""
    version = _version(labels.get(_VERSION_LABEL, "")) or _version(image.rpartition("@")[0].rpartition(":")[2] if "@" in image else image.rpartition(":")[2])
    if version is None:
        return "the proxy's version is unknown; since 0.75.1 it heals most wedges itself, so expect more arms than cures"
    told = ".".join(str(part) for part in version)
    if version < _HEALS:
        return f"proxy {told} does not heal a wedge of its routes itself; since 0.75.1 it mostly does"
    return f"proxy {told} heals most wedges itself (since 0.75.1): expect more arms than cures"


def _version(text: str) -> tuple[int, int, int] | None:
    found = _VERSION.fullmatch(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found is not None else None


def _values(env: Iterable[str]) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in env)

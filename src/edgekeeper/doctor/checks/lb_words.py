"""Words that the checks of HAProxy share: what a finding is about, which line to add and where. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from edgekeeper.engines.haproxy.cfg_values import Proxy, Server

_MOST = 6


def subject(proxy: Proxy) -> str:
    """``backend k8s-api``."""
    return f"{proxy.kind} {proxy.name}".strip()


def names(many: Iterable[str]) -> str:
    """Up to six names, and how many more there are."""
    said = list(many)
    more = f" and {len(said) - _MOST} more" if len(said) > _MOST else ""
    return ", ".join(said[:_MOST]) + more


def add_to_default_server(backend: Proxy, server: Server, what: str) -> str:
    """Where the words go so that they are in force for ``server`` and those after it: the section's ``default-server``, or a new one."""
    there = backend.default_server
    if there is not None and there.file == server.place.file and there.line < server.place.line:
        return f"{there.text()}: add to this default-server:\n    {what}"
    return f"{server.place.text()}: before this line, in {subject(backend)}, add:\n    default-server {what}"


def add_line(backend: Proxy, what: str) -> str:
    """A line of the section itself, anywhere in it."""
    return f"{backend.place.text()}: below this line, in {subject(backend)}, add:\n    {what}"

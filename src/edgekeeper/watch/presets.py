"""Ready-made watches: what is known of a service, in the words of the config. What the config says itself always holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgekeeper.config.watch import BurstOf, Container, CureStep, Fingerprint, Health, Watch, WatchGuard


@dataclass(frozen=True, slots=True)
class Preset:
    """What a ready-made watch says, under the names of the config's section; ``why`` has the reason for each fingerprint that arms."""

    fingerprints: tuple[Fingerprint, ...]
    why: tuple[str, ...]
    untrusted_after: tuple[str, ...]
    burst: BurstOf
    recovered: tuple[Fingerprint, ...]
    cure: tuple[CureStep, ...]
    guard: WatchGuard


_NETBIRD_SIGNS = (
    (
        {"text": "couldn't fetch peer state: ", "level": "warning"},
        "A route names a peer that is gone: seen in bursts at every wedge. The debug line without the colon is harmless and does not match.",
    ),
    (
        {"text": "router peer not found in peers list: ", "level": "warning"},
        "It comes with the line above, from the other side of the same table.",
    ),
    (
        {"text": "Failed to recalculate routes for network [", "level": "error"},
        "The watcher of a route gave up in the middle of a change: the most direct sign that routes are wedged.",
    ),
    (
        {"text": "exiting the Management service connection retry loop due to the unrecoverable error", "level": "warning"},
        "The embedded client gave up for good (its peer was removed); the proxy stays green and serves nothing until it is restarted.",
    ),
)
"""From the source of NetBird's client and proxy, v0.77.1, and the field's logs. What does not arm, though it is a warning: ``HA routing disabled``
(harmless by itself), ``TCP relay: dial backend`` (any backend that is down says so) and ``proxy error`` (a client can cause and word it)."""

_NETBIRD_UNTRUSTED = ("proxy error: ", "path=", "path: ", "host=", "host: ")
"""Behind these the proxy writes what clients sent: decoded paths and host names, as fields in front of the message too."""

_NETBIRD_WELL = ("New chosen route is ", "Initial mapping sync complete")
"""The first is at level INFO of the embedded client, which hides it unless it is told otherwise."""


def preset(name: str, container: Container | None = None) -> Preset:
    """The ready-made watch of this name; ``container`` is the one whose log is followed (None: the service runs on the node itself)."""
    if name != "netbird-proxy":
        msg = f"there is no preset {name!r}; there is netbird-proxy"
        raise ValueError(msg)
    return Preset(
        fingerprints=tuple(Fingerprint.model_validate(sign) for sign, _ in _NETBIRD_SIGNS),
        why=tuple(why for _, why in _NETBIRD_SIGNS),
        untrusted_after=_NETBIRD_UNTRUSTED,
        burst=BurstOf(lines=1, distinct=1, within=10.0),
        recovered=tuple(Fingerprint.model_validate(text) for text in _NETBIRD_WELL),
        cure=(CureStep.model_validate({"docker": container, "stop_timeout": 1.0}),) if container is not None else (),
        guard=WatchGuard.model_validate(
            {"health": Health.model_validate({"url": "http://127.0.0.1:8080/healthz", "inside": container, "need": ("checks.management_connected",)})}
        ),
    )


def merged(watch: Watch) -> Watch:
    """The watch with what it does not say taken from its preset. What it says, be it nothing (``null``, ``[]``), is left as it is."""
    if watch.preset is None:
        return watch
    found = preset(watch.preset, watch.docker)
    names: tuple[str, ...] = ("fingerprints", "untrusted_after", "burst", "recovered", "cure")
    if watch.docker is None and watch.file is None and watch.journald is None and watch.command is None:
        names = ("cure",)  # no log is followed: nothing to look for in it
    new: dict[str, Any] = {name: getattr(found, name) for name in names if name not in watch.model_fields_set and getattr(found, name)}
    new["guard"] = _guard(watch, found)
    return watch.model_copy(update=new)


def _guard(watch: Watch, found: Preset) -> WatchGuard | None:
    if watch.guard is None:
        return None if "guard" in watch.model_fields_set else found.guard
    said: Mapping[str, Any] = {"health": found.guard.health} if "health" not in watch.guard.model_fields_set else {}
    return watch.guard.model_copy(update=said)

"""Component verdicts to one status document (schema 1), and to readiness. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgekeeper.model.verdict import Verdict

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RoleStatus:
    """What one role says: its verdict, whether traffic may be sent here, and its details."""

    verdict: Verdict
    ready: Verdict
    details: Mapping[str, Any]


def document(node: str, version: str, ts: str, roles: Mapping[str, RoleStatus]) -> dict[str, Any]:
    """The status document that ``/status`` serves."""
    return {
        "schema": SCHEMA,
        "node": node,
        "ts": ts,
        "version": version,
        "roles": {name: {"verdict": str(r.verdict.health), "why": r.verdict.why, "ready": r.ready.ok, **r.details} for name, r in roles.items()},
    }


def readiness(roles: Mapping[str, RoleStatus]) -> tuple[bool, str]:
    """Ready when every role is; the sentence names each role's reason."""
    if not roles:
        return False, "no role has reported yet"
    return all(r.ready.ok for r in roles.values()), "; ".join(f"{name}: {r.ready.why}" for name, r in roles.items())

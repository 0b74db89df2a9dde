"""Component verdicts to one status document (schema 1), and to readiness; and what another node's document says, read with suspicion. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgekeeper.model.text import printable
from edgekeeper.model.verdict import Verdict

SCHEMA = 1

_LONGEST_WHY = 300


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


def answered(node: str, status: int, text: str) -> tuple[object, str]:
    """The document in a node's answer to ``/status``, and why there is none ("" when there is one). Never raises."""
    if status != 200:
        hint = "; check ops.token_file and the certificates" if status in (401, 403) else ""
        return None, f"{node} answered with HTTP status {status}{hint}"
    try:
        return json.loads(text), ""
    except (ValueError, RecursionError):
        return None, f"the answer of {node} is not JSON"


def items(found: object, node: str, role: str, kind: str, *, most: int, longest_name: int) -> tuple[dict[str, Mapping[str, Any]], str]:
    """What a node's document lists under a role, by its names, and why that is not known ("" when it is).

    ``kind`` is its key in the document, such as ``vips``. At most ``most`` of them, none with a name that is longer than
    ``longest_name`` or not printable. What they hold is for the caller to doubt.
    """
    if not isinstance(found, Mapping) or found.get("schema") != SCHEMA:
        return {}, f"the answer of {node} is not a status of schema {SCHEMA}; update the older of the two"
    speaker = found.get("node")
    if speaker != node:
        return {}, f"{printable(str(speaker), longest_name)} answers in the place of {node}; correct the ops address in nodes:"
    roles = found.get("roles")
    part = roles.get(role) if isinstance(roles, Mapping) else None
    if not isinstance(part, Mapping):
        return {}, f"{node} answers, but runs no {role} role"
    listed = part.get(kind)
    if not isinstance(listed, list):
        return {}, f"the {role} role of {node} says nothing of its {kind}: {printable(str(part.get('why', '')), _LONGEST_WHY)}"
    named = ((item.get("name"), item) for item in listed[:most] if isinstance(item, Mapping))
    return {name: item for name, item in named if isinstance(name, str) and is_name(name, longest_name)}, ""


def is_name(value: str, longest: int) -> bool:
    """Whether a name that a node tells may be shown and kept."""
    return 0 < len(value) <= longest and value.isprintable()

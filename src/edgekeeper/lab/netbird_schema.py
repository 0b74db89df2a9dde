"""The schema of NetBird's management API, as much of it as edgekeeper uses: each answer of the lab's fake passes it, and so may a real one's. Pure.

Written from the API's OpenAPI document of 2026-08 (management v0.77.1). A shape is a type, a tuple of allowed texts, or one of the classes
below. What the document does not say and the server does (null where a list is empty) is allowed here by ``Maybe``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Shape: TypeAlias = Any
"""A type, a tuple of allowed texts, or an Object, List, Table, Maybe or Text."""


@dataclass(frozen=True, slots=True)
class Object:
    """An object: the fields that must be there and those that may be; others are left alone, as later versions have them."""

    must: Mapping[str, Shape]
    may: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class List:
    """A list of one shape."""

    of: Shape


@dataclass(frozen=True, slots=True)
class Table:
    """An object whose keys are free."""

    of: Shape


@dataclass(frozen=True, slots=True)
class Maybe:
    """The shape, or null: what the server writes for a list that it never made."""

    of: Shape


@dataclass(frozen=True, slots=True)
class Text:
    """A text of one form."""

    form: re.Pattern[str]
    called: str


STAMP = Text(re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "a time")
NAMES = List(str)

AUTH = Object(
    {},
    {
        "password_auth": Object({"enabled": bool, "password": str}),
        "pin_auth": Object({"enabled": bool, "pin": str}),
        "bearer_auth": Object({"enabled": bool}, {"distribution_groups": Maybe(NAMES)}),
        "link_auth": Object({"enabled": bool}),
        "header_auths": List(Object({"enabled": bool, "header": str, "value": str})),
    },
)
RESTRICTIONS = Object(
    {},
    {
        "allowed_cidrs": NAMES,
        "blocked_cidrs": NAMES,
        "allowed_countries": NAMES,
        "blocked_countries": NAMES,
        "crowdsec_mode": ("off", "enforce", "observe"),
    },
)
OPTIONS = Object(
    {},
    {
        "skip_tls_verify": bool,
        "request_timeout": str,
        "path_rewrite": ("preserve",),
        "custom_headers": Table(str),
        "proxy_protocol": bool,
        "session_idle_timeout": str,
        "direct_upstream": bool,
    },
)
TARGET = Object(
    {
        "target_id": str,
        "target_type": ("peer", "host", "domain", "subnet", "cluster"),
        "protocol": ("http", "https", "tcp", "udp"),
        "port": int,
        "enabled": bool,
    },
    {"path": str, "host": str, "options": OPTIONS},
)
_WRITTEN: Mapping[str, Shape] = {
    "mode": ("http", "tcp", "udp", "tls"),
    "listen_port": int,
    "pass_host_header": bool,
    "rewrite_redirects": bool,
    "access_restrictions": RESTRICTIONS,
    "private": bool,
    "access_groups": NAMES,
}
SERVICE_REQUEST = Object({"name": str, "domain": str, "enabled": bool}, {**_WRITTEN, "targets": List(TARGET), "auth": AUTH})
SERVICE = Object(
    {
        "id": str,
        "name": str,
        "domain": str,
        "enabled": bool,
        "targets": List(TARGET),
        "auth": AUTH,
        "meta": Object(
            {
                "created_at": STAMP,
                "status": ("pending", "active", "tunnel_not_created", "certificate_pending", "certificate_failed", "error"),
            },
            {"certificate_issued_at": STAMP},
        ),
    },
    {**_WRITTEN, "proxy_cluster": str, "port_auto_assigned": bool, "terminated": bool},
)
CLUSTER = Object(
    {"id": str, "address": str, "type": ("account", "shared"), "online": bool, "connected_proxies": int},
    {"supports_custom_ports": bool, "require_subdomain": bool, "supports_crowdsec": bool, "private": bool},
)
DOMAIN = Object(
    {"id": str, "domain": str, "validated": bool, "type": ("free", "custom")},
    {"target_cluster": str, "supports_custom_ports": bool, "require_subdomain": bool, "supports_crowdsec": bool, "supports_private": bool},
)
GROUP_IN_SHORT = Object({"id": str, "name": str, "peers_count": int, "resources_count": int}, {"issued": ("api", "integration", "jwt")})
_NAMED = Object({"id": str, "name": str})
_TYPED = Object({"id": str, "type": ("host", "subnet", "domain", "peer")})
GROUP = Object({**GROUP_IN_SHORT.must, "peers": Maybe(List(_NAMED)), "resources": Maybe(List(_TYPED))}, GROUP_IN_SHORT.may)
NETWORK = Object(
    {"id": str, "name": str, "routers": Maybe(NAMES), "routing_peers_count": int, "resources": Maybe(NAMES), "policies": Maybe(NAMES)},
    {"description": str},
)
RESOURCE_REQUEST = Object({"name": str, "address": str, "enabled": bool, "groups": Maybe(NAMES)}, {"description": str})
RESOURCE = Object(
    {"id": str, "name": str, "type": ("host", "subnet", "domain"), "address": str, "enabled": bool, "groups": Maybe(List(GROUP_IN_SHORT))},
    {"description": str},
)
ROUTER_REQUEST = Object({"metric": int, "masquerade": bool, "enabled": bool}, {"peer": str, "peer_groups": Maybe(NAMES)})
ROUTER = Object({"id": str, **ROUTER_REQUEST.must}, ROUTER_REQUEST.may)
_RULE: Mapping[str, Shape] = {
    "name": str,
    "enabled": bool,
    "action": ("accept", "drop"),
    "bidirectional": bool,
    "protocol": ("all", "tcp", "udp", "icmp", "netbird-ssh"),
}
_RULE_MAY: Mapping[str, Shape] = {"id": str, "description": str, "ports": Maybe(NAMES), "sourceResource": _TYPED, "destinationResource": _TYPED}
POLICY_REQUEST = Object(
    {"name": str, "enabled": bool, "rules": List(Object(_RULE, {**_RULE_MAY, "sources": Maybe(NAMES), "destinations": Maybe(NAMES)}))},
    {"description": str, "source_posture_checks": Maybe(NAMES)},
)
POLICY = Object(
    {
        "name": str,
        "enabled": bool,
        "source_posture_checks": Maybe(NAMES),
        "rules": List(Object(_RULE, {**_RULE_MAY, "sources": Maybe(List(GROUP_IN_SHORT)), "destinations": Maybe(List(GROUP_IN_SHORT))})),
    },
    {"id": str, "description": str},
)
PEER = Object(
    {
        "id": str,
        "name": str,
        "created_at": STAMP,
        "ip": str,
        "connected": bool,
        "last_seen": STAMP,
        "groups": Maybe(List(GROUP_IN_SHORT)),
        "version": str,
        "ephemeral": bool,
    },
    {"os": str},
)
VERSION = Object({"management_current_version": str}, {"management_available_version": str, "management_update_available": bool})
NOTHING = Object({})

LISTS: Mapping[str, Shape] = {
    "services": List(SERVICE),
    "clusters": List(CLUSTER),
    "domains": List(DOMAIN),
    "groups": List(GROUP),
    "networks": List(NETWORK),
    "resources": Maybe(List(RESOURCE)),
    "routers": List(ROUTER),
    "policies": List(POLICY),
    "peers": List(PEER),
}
"""What a list of each kind looks like; a single one is what the list is of."""
REQUESTS: Mapping[str, Shape] = {
    "services": SERVICE_REQUEST,
    "resources": RESOURCE_REQUEST,
    "routers": ROUTER_REQUEST,
    "policies": POLICY_REQUEST,
    "networks": Object({"name": str}, {"description": str}),
    "domains": Object({"domain": str, "target_cluster": str}),
    "groups": Object({"name": str}, {"peers": NAMES, "resources": List(_TYPED)}),
}
"""What is sent to make or to replace one."""


def one(kind: str) -> Shape:
    """The shape of a single object of a kind."""
    shape = LISTS[kind]
    return (shape.of if isinstance(shape, Maybe) else shape).of


def problems(shape: Shape, value: Any, where: str = "") -> Sequence[str]:
    """What is wrong with a value, one sentence for each place; empty when it has the shape."""
    here = where or "it"
    match shape:
        case Maybe():
            return [] if value is None else problems(shape.of, value, where)
        case Object():
            return _in_object(shape, value, where)
        case List():
            if not isinstance(value, list):
                return [f"{here} is {_named(value)}, not a list"]
            return [found for index, item in enumerate(value) for found in problems(shape.of, item, f"{where}[{index}]")]
        case Table():
            if not isinstance(value, dict):
                return [f"{here} is {_named(value)}, not an object"]
            return [found for key, item in value.items() for found in problems(shape.of, item, f"{where}.{key}")]
        case Text():
            good = isinstance(value, str) and shape.form.fullmatch(value) is not None
            return [] if good else [f"{here} is not {shape.called}"]
        case tuple():
            return [] if value in shape else [f"{here} is {value!r}, not one of {', '.join(shape)}"]
        case _:
            good = isinstance(value, shape) and not (shape is int and isinstance(value, bool))
            return [] if good else [f"{here} is {_named(value)}, not {shape.__name__}"]


def _in_object(shape: Object, value: Any, where: str) -> Sequence[str]:
    if not isinstance(value, dict):
        return [f"{where or 'it'} is {_named(value)}, not an object"]
    found = [f"{where or 'it'} has no {key}" for key in shape.must if key not in value]
    for key, item in value.items():
        inner = shape.must.get(key, shape.may.get(key))
        if inner is not None:
            found += problems(inner, item, f"{where}.{key}".lstrip("."))
    return found


def _named(value: Any) -> str:
    return "null" if value is None else type(value).__name__

"""What NetBird's management API says and is told: answers read strictly, errors told apart. Pure.

A body that is torn or empty is an error and never an empty list: nothing may be deleted for it. What this version does not know
survives in ``raw``. How the server answers was read in its source (v0.77.1), in August 2026.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.expose.kinds import Service
from edgekeeper.expose.names import canonical_host
from edgekeeper.model.text import printable

T = TypeVar("T")

Kind = Literal[
    "throttled",
    "no_cluster",
    "unknown_domain",
    "taken",
    "in_use",
    "not_allowed",
    "unauthenticated",
    "invalid",
    "absent",
    "broken",
    "unreachable",
]
"""What kind of error an answer is. ``broken``: 500, a body that cannot be read, or a status that nobody knows. ``unreachable``: there was no answer."""

_ADVICE: Final[Mapping[Kind, str]] = {
    "throttled": "all calls pause, then go on",
    "no_cluster": "no proxy is online; it is tried again with each pass",
    "unknown_domain": "register the domain in the mesh; until then only this host is left out",
    "taken": "the domain belongs to another service, or to another account of the server",
    "in_use": "it is left as it is",
    "not_allowed": "writing needs the token of an admin; a read-only one is enough for a plan",
    "unauthenticated": "put a valid token in its place; it is read again with each pass",
    "invalid": "it is left as it is",
    "absent": "the next pass looks again",
    "broken": "nothing is concluded from it, the next pass looks again",
    "unreachable": "what is published stays, the next pass tries again",
}


class ApiError(StepFailedError):
    """NetBird's answer to one call is an error, or there was none.

    ``status`` is 0 without an answer. ``again_s``: seconds until calls go on, for ``throttled``. ``unsure``: a write that may have been
    applied all the same; the next look tells.
    """

    def __init__(self, kind: Kind, what: str, status: int, message: str, *, again_s: float | None = None, unsure: bool = False) -> None:
        self.kind: Kind = kind
        self.status = status
        self.message = printable(message, 300)
        self.again_s = again_s
        self.unsure = unsure
        said = f"NetBird answered {status} {self.message}".rstrip() if status else self.message
        super().__init__(f"{what}: {said}; {_ADVICE[kind]}")

    @property
    def dead_target(self) -> bool:
        """Whether it says that the resource behind a target is gone, or is of another type than before."""
        return self.status == 422 and ("resource target" in self.message or "but resource is of type" in self.message)


class NoAccessError(ApiError, MissingError):
    """NetBird cannot be reached, or does not let this token in."""

    exit_code = MissingError.exit_code


class UnreadableError(ValueError):
    """An answer that is not what the API promises."""


def problem(what: str, status: int, text: str, *, again_s: float | None = None, write: bool = False) -> ApiError:
    """The error for an answer with another status than 2xx; ``what`` is what was tried ("services cannot be listed")."""
    message = _message(text)
    kind = classify(status, message)
    if 300 <= status < 400:
        message = "and sends us elsewhere, which is not followed, so that the token goes to nobody else (is expose.netbird.url its address?)"
    made = NoAccessError if kind in {"unauthenticated", "not_allowed"} else ApiError
    return made(kind, what, status, message, again_s=again_s, unsure=write and status >= 500)


def broken(what: str, status: int, why: str, *, write: bool = False) -> ApiError:
    """The error for an answer that says 2xx and cannot be read."""
    return ApiError("broken", what, status, f"but {why}", unsure=write)


def unreachable(what: str, why: str, *, write: bool = False) -> ApiError:
    """The error when there was no answer, or not all of it."""
    hint = " (its CA is named in expose.netbird.ca_file)" if "CERTIFICATE_VERIFY_FAILED" in why else ""
    return NoAccessError("unreachable", what, 0, why + hint, unsure=write)


def classify(status: int, message: str) -> Kind:
    """The kind of an error by its status, then by a part of its message: the server wraps messages."""
    match status:
        case 429:
            return "throttled"
        case 412 if "no proxy clusters available" in message:
            return "no_cluster"
        case 412 if "does not match any available proxy cluster" in message:
            return "unknown_domain"
        case 412 if "in use by proxy" in message:
            return "in_use"
        case 409:
            return "taken"
        case 401:
            return "unauthenticated"
        case 403:
            return "not_allowed"
        case 404:
            return "absent"
        case 400 | 412 | 422:
            return "invalid"
        case _:
            return "broken"


def _message(text: str) -> str:
    """The server's own words; those of whatever else answered (a page of HTML) are no use."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return str(said.get("message", "")).lower() if isinstance(said, dict) else ""


def read(text: str) -> Any:
    """The JSON of a body. UnreadableError when there is none, or only a part."""
    if not text.strip():
        msg = "the body is empty"
        raise UnreadableError(msg)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        page = " (a page of HTML: does something in front of it ask for a login?)" if text.lstrip()[:1] == "<" else ""
        msg = f"the body of {len(text)} characters is torn or not JSON{page}"
        raise UnreadableError(msg) from None


def items(text: str, one: Callable[[Any], T], *, null: bool = False) -> tuple[T, ...]:
    """Every item of a list, or UnreadableError; ``null`` counts as none where the API writes it for an empty list."""
    said = read(text)
    if said is None and null:
        return ()
    if not isinstance(said, list):
        msg = f"the body is {_kind(said)} in place of a list"
        raise UnreadableError(msg)
    return tuple(one(item) for item in said)


def item(text: str, one: Callable[[Any], T]) -> T:
    """The one object of an answer, or UnreadableError."""
    return one(read(text))


def body(value: Mapping[str, Any]) -> bytes:
    """A request's body."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


@dataclass(frozen=True, slots=True)
class Network:
    """A network: names are not unique. ``resources`` and ``routers`` are ids; ``peers`` counts its routing peers (None: not told)."""

    id: str
    name: str
    description: str = ""
    resources: tuple[str, ...] = ()
    routers: tuple[str, ...] = ()
    peers: int | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a network; its ``type`` (host, subnet, domain) is derived by the server from the address. ``groups`` are ids."""

    id: str
    name: str
    address: str
    type: str
    enabled: bool = True
    description: str = ""
    groups: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Router:
    """Who routes to a network: one peer, or the peers of groups (ids)."""

    id: str
    peer: str = ""
    groups: tuple[str, ...] = ()
    metric: int = 9999
    masquerade: bool = True
    enabled: bool = True
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Group:
    """A group of peers."""

    id: str
    name: str
    peers: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, and the ids of the resources that its rules lead to."""

    id: str
    name: str
    enabled: bool = True
    resources: tuple[str, ...] = ()


def service(said: Any) -> Service:
    """A service; its host as the proxy compares names, "" for one that has none: a strange one of somebody else's stops nobody."""
    it = _object(said, "a service")
    domain, name = it.get("domain"), it.get("name")
    if not isinstance(domain, str) and not isinstance(name, str):
        msg = "there is an object without domain and name in place of a service"
        raise UnreadableError(msg)
    host = canonical_host(domain) if isinstance(domain, str) else ""
    return Service(_text(it, "id"), host, name if isinstance(name, str) else "", it)


def network(said: Any) -> Network:
    """A network."""
    it = _object(said, "a network")
    peers = it.get("routing_peers_count")
    return Network(
        _text(it, "id"),
        _text(it, "name", ""),
        _text(it, "description", ""),
        _ids(it, "resources"),
        _ids(it, "routers"),
        peers if isinstance(peers, int) else None,
    )


def resource(said: Any) -> Resource:
    """A resource of a network."""
    it = _object(said, "a resource")
    return Resource(
        _text(it, "id"),
        _text(it, "name", ""),
        _text(it, "address"),
        _text(it, "type"),
        _flag(it, "enabled"),
        _text(it, "description", ""),
        _ids(it, "groups"),
        it,
    )


def router(said: Any) -> Router:
    """A router of a network."""
    it = _object(said, "a router")
    metric = it.get("metric", 9999)
    return Router(
        _text(it, "id"),
        _text(it, "peer", ""),
        _ids(it, "peer_groups"),
        metric if isinstance(metric, int) else 9999,
        _flag(it, "masquerade", default=False),
        _flag(it, "enabled"),
        it,
    )


def group(said: Any) -> Group:
    """A group."""
    it = _object(said, "a group")
    peers = it.get("peers_count", 0)
    return Group(_text(it, "id"), _text(it, "name"), peers if isinstance(peers, int) else 0)


def policy(said: Any) -> Policy:
    """A policy."""
    it = _object(said, "a policy")
    rules = it.get("rules")
    leads = [rule.get("destinationResource") for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    ids = tuple(str(to["id"]) for to in leads if isinstance(to, dict) and to.get("id"))
    return Policy(_text(it, "id"), _text(it, "name", ""), _flag(it, "enabled"), ids)


def done(said: Any) -> None:
    """The answer to a deletion: an object without meaning."""
    _object(said, "the end of a deletion")


def _object(said: Any, what: str) -> dict[str, Any]:
    if isinstance(said, dict):
        return said
    msg = f"there is {_kind(said)} in place of {what}"
    raise UnreadableError(msg)


def _text(it: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = it.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, str) and (value or default is not None):
        return value
    msg = f"{key} is {_kind(value)} in place of a text"
    raise UnreadableError(msg)


def _flag(it: Mapping[str, Any], key: str, *, default: bool = True) -> bool:
    value = it.get(key)
    return value if isinstance(value, bool) else default


def _ids(it: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Ids of a list that may be null or absent; some answers hold whole objects in their place."""
    value = it.get(key)
    found = value if isinstance(value, list) else []
    return tuple(str(one["id"]) if isinstance(one, dict) and "id" in one else str(one) for one in found)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}
    return names.get(type(value), "a number") if value != "" else "an empty text"

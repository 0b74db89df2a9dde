"""What is asked of a cluster's API and what its answers mean: paths, bodies, lists, events of a watch, refusals. Pure: bytes in, values out."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

import msgspec

from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube.errors import Absent, Blocked, Conflict, Expired, Forbidden, Invalid, Unreachable
from edgekeeper.kube.objects import Object
from edgekeeper.model.text import printable

T = TypeVar("T", bound=Object)
V = TypeVar("V")

PATCHES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_TEXT = 400
_YEAR_0 = re.compile(rb'(?<!\\)"0000(-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z")')
"""A time in the year 0, which the API takes and sends (measured, 1.20: a Lease's renewTime, an Event's lastTimestamp) and Python does not have."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A full list, and the version of the cluster that it shows: what a watch goes on from."""

    items: Sequence[T]
    version: str


class _Meta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 -- the API's name
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, Generic[V]):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    items: list[V] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: Any = None


def named(kind: type[Object]) -> str:
    """The kind as the API and its rights name it: ``ingresses.networking.k8s.io``, ``pods``, ``pods/eviction``."""
    info = _info(kind)
    group = (info.parent or info.resource).group
    plural: str = info.plural
    return plural + (f".{group}" if group else "") + (f"/{info.action}" if info.action else "")


def api_version(kind: type[Object]) -> str:
    """Group and version of a kind, as an object that points to another one writes it: ``networking.k8s.io/v1``."""
    text: str = _info(kind).resource.api_version
    return text


def path(kind: type[Object], namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """The path of an object, or of all of a kind (in every namespace when none is given); ValueError for what cannot be asked."""
    info = _info(kind)
    base = info.parent or info.resource
    parts = ["apis", base.group, base.version] if base.group else ["api", base.version]
    if namespaced(kind):
        if namespace:
            parts += ["namespaces", namespace]
        elif name:
            msg = f"{base.kind} {name} is asked for without its namespace"
            raise ValueError(msg)
    parts.append(info.plural)
    parts += [part for part in (name, info.action, subresource) if part]
    if any(not part or "/" in part or part in (".", "..") or not part.isprintable() for part in parts):
        msg = f"{parts!r} cannot be a path of the API"
        raise ValueError(msg)
    return "/" + "/".join(quote(part, safe="") for part in parts)


def namespaced(kind: type[Object]) -> bool:
    """Whether objects of this kind are in namespaces."""
    return any(base.__name__ in ("NamespacedResource", "NamespacedSubResource") for base in kind.__mro__)


def acts(kind: type[Object]) -> bool:
    """Whether making one is an act on the object of its name (an eviction), and the answer is no such object."""
    return _info(kind).action is not None


def allowed(raw: bytes, server: str) -> bool:
    """What a SelfSubjectAccessReview came to."""
    return bool(_field(raw, server, "status", "allowed"))


def version(raw: bytes, server: str) -> str:
    """What ``/version`` says."""
    return printable(str(_field(raw, server, "gitVersion") or "unknown"), 100)


def _field(raw: bytes, server: str, *names: str) -> Any:
    try:
        value = msgspec.json.decode(raw)
    except msgspec.MsgspecError as err:
        raise _unreadable(server, "an answer", err) from err
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def body(obj: Object) -> bytes:
    """An object as the API takes it, with its kind and version."""
    info = _info(type(obj))
    plain = dict(obj) if isinstance(obj, dict) else msgspec.to_builtins(obj)
    return encoded({"apiVersion": info.resource.api_version, "kind": info.resource.kind} | {name: value for name, value in plain.items() if value is not None})


def change(kind: type[Object], part: object, how: str) -> bytes:
    """The body of a patch; what is applied says what it is."""
    if how == "apply" and isinstance(part, Mapping):
        of = _info(kind).resource
        return encoded({"apiVersion": of.api_version, "kind": of.kind, **part})
    return encoded(part)


def encoded(value: object) -> bytes:
    """Any value (objects among it, too) as JSON."""
    return msgspec.json.encode(value)


def one(kind: type[T], raw: bytes, server: str) -> T:
    """The object in an answer; Unreachable when it cannot be read."""
    try:
        return _made(kind, msgspec.json.decode(raw)) if _free(kind) else cast("T", _read(functools.partial(msgspec.json.decode, type=kind), raw))
    except msgspec.MsgspecError as err:
        raise _unreadable(server, named(kind), err) from err


def page(kind: type[T], raw: bytes, server: str) -> tuple[list[T], str, str]:
    """One part of a list: its items, the version, and the word to go on with ("" at the end); Unreachable when it cannot be read."""
    try:
        read = _read(_pages(kind).decode, raw)
    except msgspec.MsgspecError as err:
        raise _unreadable(server, named(kind), err) from err
    items = read.items or []
    return [_made(kind, item) for item in items] if _free(kind) else items, read.metadata.resourceVersion, read.metadata.continue_


def _read(decode: Callable[[bytes], Any], raw: bytes) -> Any:
    """What is in an answer; a time in the year 0 is one in the year 4 (leap, too), so that one object does not make a whole list unreadable."""
    try:
        return decode(raw)
    except msgspec.ValidationError:
        possible = _YEAR_0.sub(rb'"0004\1', raw)
        if possible == raw:
            raise
        return decode(possible)


@functools.cache
def _pages(kind: type[Object]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Page[Any if _free(kind) else kind])  # type: ignore[misc]


def event(kind: type[T], line: bytes, server: str) -> tuple[str, T]:
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and the object. An ERROR is raised as what it says."""
    try:
        read = _EVENTS.decode(line)
        if read.type == "ERROR":
            told = msgspec.json.decode(read.object, type=_Status)
            raise refusal(told.code or 500, bytes(read.object), server=server, doing=f"watch {named(kind)}")
    except msgspec.MsgspecError as err:
        raise _unreadable(server, named(kind), err) from err
    return read.type, one(kind, bytes(read.object), server)


_EVENTS = msgspec.json.Decoder(_Event)


def refusal(status: int, raw: bytes, *, server: str, doing: str, again: str = "") -> EdgekeeperError:
    """The error for an answer that is none of the good ones; ``doing`` is verb and resource, ``again`` the Retry-After header."""
    told = _status(raw)
    why = printable(told.message or raw[:_TEXT].decode("utf-8", "replace").strip() or f"status {status}", _TEXT)
    begin = f"{server} refuses to {doing} ({status}): {why}"
    match status:
        case 401:
            return Forbidden(
                f"{server} does not know who asks (401, {doing}): {why}; nothing is done. Look at the kubeconfig's user or the service account's token"
            )
        case 403:
            return Forbidden(f"{begin}; nothing is done" + ("" if _full(why) else ": apply deploy/kubernetes/rbac/ROLE.yaml of this role"))
        case 404:
            return Absent(f"{server} has nothing to {doing} (404): {why}")
        case 409:
            return Conflict(f"{begin}; nothing was written: read it again first")
        case 410:
            return Expired(f"{server} cannot go on to {doing} (410): {why}; the full list is read again")
        case 429:
            return Blocked(f"{begin}{_causes(told)}; it is tried again later", _seconds(again, told))
        case _ if status >= 500 or status < 400:
            return Unreachable(f"{server} gave no answer to {doing} ({status}): {why}")
        case _:
            return Invalid(f"{begin}; nothing was written")


def _full(why: str) -> bool:
    """Whether it is no right that is missing: the namespace takes nothing new."""
    return "unable to create new content in namespace" in why or "exceeded quota" in why


def _status(raw: bytes) -> _Status:
    try:
        return msgspec.json.decode(raw, type=_Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Status()


def _causes(told: _Status) -> str:
    """What is behind a refusal in its own words: which PodDisruptionBudget, and what it lacks."""
    causes = told.details.get("causes") if isinstance(told.details, dict) else None
    said = [str(cause.get("message") or "") for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
    return "".join(f" {printable(text, _TEXT)}" for text in said[:3] if text)


def _seconds(header: str, told: _Status) -> float | None:
    if header.isascii() and header.isdigit() and len(header) < 6:
        return float(header)
    said = told.details.get("retryAfterSeconds") if isinstance(told.details, dict) else None
    return float(said) if isinstance(said, int) and said > 0 else None


def _unreadable(server: str, what: str, err: Exception) -> Unreachable:
    return Unreachable(f"{server} sent {what} that cannot be read: {printable(str(err), _TEXT)}; they are not used")


def _made(kind: type[T], plain: Any) -> T:
    return cast("Callable[[Any], T]", kind)(plain)


def _free(kind: Any) -> bool:
    """Whether its objects are plain dicts (a CRD's), whose fields nobody has told us."""
    return issubclass(kind, dict)


def _info(kind: type[Object]) -> Any:
    return kind._api_info  # type: ignore[attr-defined]  # noqa: SLF001 -- where the library's kinds say how they are asked for

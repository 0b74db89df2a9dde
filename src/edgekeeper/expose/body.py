"""What a service is written as: the fields that edgekeeper owns, laid over whatever else the service has. Pure.

PUT replaces everything that it does not name (an allow-list that somebody set by hand would be gone, and the service open to the
world), so the whole object goes back, unknown fields included. What is the same in meaning is not written again: each PUT of a
service cuts its clients' connections.
"""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from edgekeeper.expose.kinds import Anchor, Options, Place, Service
from edgekeeper.expose.names import canonical_host
from edgekeeper.model.time import parse_duration

ONLY_ANSWERED: Final = ("id", "meta", "proxy_cluster", "port_auto_assigned", "terminated")
"""Fields of an answer that a request does not have."""

_PASSTHROUGH = frozenset({"proxy_protocol", "request_timeout", "session_idle_timeout"})
"""Options of a target that a TLS service may have; the API refuses the others."""

_RESTRICTIONS = ("allowed_cidrs", "blocked_cidrs", "allowed_countries", "blocked_countries")


def strange(raw: Mapping[str, Any]) -> str | None:
    """What of a service has a form that is not understood, so that nothing can be laid over it; None when all has."""
    targets = raw.get("targets") or []
    if not isinstance(targets, list) or not all(isinstance(one, Mapping) for one in targets):
        return "targets is no list of objects"
    if not all(isinstance(one.get("options") or {}, Mapping) for one in targets):
        return "a target's options are no object"
    limits = raw.get("access_restrictions") or {}
    if not isinstance(limits, Mapping) or not all(isinstance(limits.get(key) or [], list) for key in _RESTRICTIONS):
        return "access_restrictions is no object of lists"
    return None


def fresh(host: str, name: str, options: Options, place: Place, anchor: Anchor, *, listen_port: int, proxy_protocol: bool) -> dict[str, Any]:
    """A service that is not there yet."""
    blank: dict[str, Any] = {"auth": {}, "pass_host_header": False, "rewrite_redirects": False}
    return laid_over(blank, host, name, options, place, anchor, listen_port=listen_port, proxy_protocol=proxy_protocol, enabled=True)


def laid_over(
    raw: Mapping[str, Any],
    host: str,
    name: str,
    options: Options,
    place: Place,
    anchor: Anchor,
    *,
    listen_port: int,
    proxy_protocol: bool,
    enabled: bool | None = None,
) -> dict[str, Any]:
    """The whole object with edgekeeper's own fields set. ``enabled`` None leaves it as it is: a person may have switched it off.

    What an object says nothing about (times, restrictions) stays as it is, whoever set it.
    """
    out = {key: copy.deepcopy(value) for key, value in raw.items() if key not in ONLY_ANSWERED}
    out.update(name=name, mode="tls", listen_port=options.listen_port or listen_port)
    if canonical_host(str(raw.get("domain", ""))) != host:
        out["domain"] = host
    if enabled is not None:
        out["enabled"] = enabled
    out["targets"] = [_target(_first(out.get("targets")), options, place, anchor, proxy_protocol=proxy_protocol)]
    wanted = {key: list(getattr(options, key)) for key in _RESTRICTIONS if getattr(options, key) is not None}
    if wanted:
        out["access_restrictions"] = {**(out.get("access_restrictions") or {}), **wanted}
    return out


def _first(targets: Any) -> dict[str, Any]:
    found = targets[0] if isinstance(targets, list) and targets and isinstance(targets[0], dict) else {}
    return dict(found)


def _target(target: dict[str, Any], options: Options, place: Place, anchor: Anchor, *, proxy_protocol: bool) -> dict[str, Any]:
    target.update(target_id=anchor.target_id, target_type=anchor.target_type, protocol="tcp", port=place.port, enabled=True)
    if anchor.target_type == "subnet":
        target["host"] = place.address
    else:
        target.pop("host", None)
    more = dict(target.get("options") or {})
    more["proxy_protocol"] = proxy_protocol if options.proxy_protocol is None else options.proxy_protocol
    if options.request_timeout is not None:
        more["request_timeout"] = options.request_timeout
    if options.idle_timeout is not None:
        more["session_idle_timeout"] = options.idle_timeout
    target["options"] = more
    return target


def in_tls(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A service that was in another mode, without what passthrough does not have: authentication, paths, headers. Restrictions stay."""
    out = {key: copy.deepcopy(value) for key, value in wanted.items() if key not in {"auth", "private", "access_groups"}}
    out["auth"] = {}
    target = _first(out.get("targets"))
    target.pop("path", None)
    target["options"] = {key: value for key, value in (target.get("options") or {}).items() if key in _PASSTHROUGH}
    out["targets"] = [target]
    return out


def disabled(service: Service, name: str, lead: Anchor | None = None) -> dict[str, Any]:
    """The whole object, switched off, with another name; nothing else of it changes but, with ``lead``, a target that is not there any more."""
    out = {**{key: copy.deepcopy(value) for key, value in service.raw.items() if key not in ONLY_ANSWERED}, "name": name, "enabled": False}
    if lead is not None:
        out["targets"] = [{**_first(out.get("targets")), "target_id": lead.target_id, "target_type": lead.target_type}]
    return out


def differences(raw: Mapping[str, Any], body: Mapping[str, Any]) -> list[str]:
    """Where a body means something else than the service that is there, each as ``field: old to new``; empty when nothing has to be written."""
    out: list[str] = []
    for key in sorted(body.keys() - {"targets"}):
        if not _same(key, raw.get(key), body[key]):
            out += _told(key, raw.get(key), body[key])
    old, new = _first(raw.get("targets")), _first(body.get("targets"))
    # The server fills in the host of a target that is no subnet by itself, whatever it was sent.
    ignored = set() if new.get("target_type") == "subnet" else {"host"}
    for key in sorted(new.keys() - ignored):
        if not _same(key, old.get(key), new.get(key)):
            out += _told(f"target {key}", old.get(key), new.get(key))
    if len(raw.get("targets") or []) > 1:
        out.append("targets: several to one")
    return out


def _told(key: str, old: Any, new: Any) -> list[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [line for inner in sorted(new) if not _same(inner, old.get(inner), new[inner]) for line in _told(f"{key}.{inner}", old.get(inner), new[inner])]
    return [f"{key}: {_short(old)} to {_short(new)}"]


def _short(value: Any) -> str:
    text = "nothing" if value is None or value == "" else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _same(key: str, old: Any, new: Any) -> bool:
    """Whether two values of a field mean the same: parsed, not as texts."""
    if isinstance(new, Mapping):
        past = old if isinstance(old, Mapping) else {}
        return all(_same(inner, past.get(inner), value) for inner, value in new.items())
    if key in _RESTRICTIONS:
        return {_network(value) for value in old or ()} == {_network(value) for value in new or ()}
    if key == "host":
        return _address(old) == _address(new)
    if key in {"request_timeout", "session_idle_timeout"}:
        return _seconds(old) == _seconds(new)
    if key in {"proxy_protocol", "enabled", "pass_host_header", "rewrite_redirects"}:
        return bool(old) == bool(new)
    return bool(old == new) or (not old and not new and not isinstance(new, (bool, int)))


def _network(value: Any) -> str:
    try:
        return str(ipaddress.ip_network(str(value), strict=False))
    except ValueError:
        return str(value).upper()


def _address(value: Any) -> str:
    try:
        return str(ipaddress.ip_address(str(value).strip("[]")))
    except ValueError:
        return str(value or "")


def _seconds(value: Any) -> float | str:
    """A time as Go writes it ("1m30s"), in seconds; none is 0, one that cannot be read itself."""
    try:
        return parse_duration(str(value)) if value else 0.0
    except ValueError:
        return str(value)


def rebased(old: Mapping[str, Any], new: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """The same change on a newer state of the object: what ``new`` has otherwise than ``old`` is laid over ``fresh``.

    The API has no versions to compare, so an object is read again right before it is written.
    """
    out = {key: copy.deepcopy(value) for key, value in fresh.items() if key not in ONLY_ANSWERED}
    for key, value in new.items():
        before = old.get(key)
        if key == "targets":
            out[key] = [rebased(_first(before), _first(value), _first(fresh.get(key)))]
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            out[key] = rebased(before, value, fresh.get(key) or {})
        elif key not in old or value != before:
            out[key] = copy.deepcopy(value)
    for key in old.keys() - new.keys() - set(ONLY_ANSWERED):
        out.pop(key, None)
    return out

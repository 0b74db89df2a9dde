"""What a service must be like by itself, as the server checks a request before it looks at anything else, in its order. Pure.

Read in the server's source (v0.77.1).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from edgekeeper.lab.netbird_world import L4, AnswerError, Raw, World, strings, typed

_DURATION = re.compile(r"[-+]?(0|(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+)")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")
_NANO = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
_OPTIONS: Mapping[str, type] = {
    "skip_tls_verify": bool,
    "request_timeout": str,
    "path_rewrite": str,
    "custom_headers": dict,
    "proxy_protocol": bool,
    "session_idle_timeout": str,
    "direct_upstream": bool,
}


def demand(fulfilled: bool, message: str) -> None:  # noqa: FBT001 - as assert has it
    """422 with this message, unless it is."""
    if not fulfilled:
        raise AnswerError(422, message)


def seconds(text: str) -> float:
    """A duration as Go reads it."""
    return _nanoseconds(text) / 1e9


def _nanoseconds(text: str) -> int:
    total = sum(round(float(number) * _NANO[unit]) for number, unit in _PART.findall(text))
    return -total if text.startswith("-") else total


def canonical(text: str) -> str:
    """A duration as Go writes it, and so as it is answered: ``90s`` is ``1m30s``, ``5m`` is ``5m0s``, ``1500ms`` is ``1.5s``."""
    nano = _nanoseconds(text)
    sign, nano = ("-" if nano < 0 else ""), abs(nano)
    if nano < _NANO["s"]:
        unit = next((unit for unit in ("ms", "µs") if nano >= _NANO[unit]), "ns")
        return f"{sign}{_decimal(nano, _NANO[unit])}{unit}" if nano else "0s"
    hours, rest = divmod(nano, _NANO["h"])
    minutes, rest = divmod(rest, _NANO["m"])
    return f"{sign}{f'{hours}h' if hours else ''}{f'{minutes}m' if hours or minutes else ''}{_decimal(rest, _NANO['s'])}s"


def _decimal(count: int, unit: int) -> str:
    whole, rest = divmod(count, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}}".rstrip("0") if rest else str(whole)


def checked(world: World, body: Mapping[str, Any]) -> Raw:
    """The service that a request asks for, without what only the server knows; AnswerError says what is wrong with it."""
    made = _read(world, body)
    name, mode, private, groups = made["name"], made["mode"], made["private"], made.get("access_groups", [])
    demand(bool(name), "service name is required")
    demand(len(name.encode()) <= 255, "service name exceeds maximum length of 255 characters")
    demand(bool(made["targets"]), "at least one target is required")
    _restrictions(made.get("access_restrictions", {}))
    demand(not private or mode == "http", f'private services only support HTTP mode, got "{mode}"')
    demand(not private or bool(groups), "private services require at least one access group")
    demand(mode in ("http", *L4), f'unsupported mode "{mode}"')
    if mode == "http":
        demand(bool(made["domain"]), "service domain is required")
        demand(not made["listen_port"], "listen_port is not supported for HTTP services")
        for index, target in enumerate(made["targets"]):
            _http_target(index, target)
    else:
        _l4(made)
        _l4_target(made["targets"][0])
    return made


def _read(world: World, body: Mapping[str, Any]) -> Raw:
    """What the request says, with what it leaves out at its zero; numbers are cut to 16 bits, as the server does: 65979 is 443."""
    made: Raw = {
        "name": typed(body, "name", str, ""),
        "domain": typed(body, "domain", str, ""),
        "mode": typed(body, "mode", str, "") or "http",
        "listen_port": typed(body, "listen_port", int, 0) & 0xFFFF,
        "port_auto_assigned": False,
        "targets": [_target(index, target) for index, target in enumerate(typed(body, "targets", list, []))],
        "enabled": typed(body, "enabled", bool, False),
        "terminated": False,
        "pass_host_header": typed(body, "pass_host_header", bool, False),
        "rewrite_redirects": typed(body, "rewrite_redirects", bool, False),
        "auth": _auth(body),
        "private": typed(body, "private", bool, False),
    }
    limits = typed(body, "access_restrictions", dict, {})
    kept: Raw = {key: found for key in ("allowed_cidrs", "blocked_cidrs") if (found := strings(limits, key))}
    kept |= {key: [text.upper() for text in found] for key in ("allowed_countries", "blocked_countries") if (found := strings(limits, key))}
    if crowdsec := typed(limits, "crowdsec_mode", str, ""):
        demand(crowdsec in ("off", "enforce", "observe"), f'invalid crowdsec_mode "{crowdsec}"')
        kept["crowdsec_mode"] = crowdsec
    if world.newer:
        kept |= {key: limits[key] for key in ("allow_match", "appsec_mode") if key in limits}
        made |= {key: body[key] for key in ("future",) if key in body}
    if kept:
        made["access_restrictions"] = kept
    if groups := strings(body, "access_groups"):
        made["access_groups"] = groups
    return made


def _target(index: int, body: Any) -> Raw:
    if not isinstance(body, dict):
        raise AnswerError(400, "couldn't parse JSON request")
    made: Raw = {
        "target_id": typed(body, "target_id", str, ""),
        "target_type": typed(body, "target_type", str, ""),
        "protocol": typed(body, "protocol", str, ""),
        "port": typed(body, "port", int, 0) & 0xFFFF,
        "enabled": typed(body, "enabled", bool, False),
        "host": typed(body, "host", str, ""),
    }
    if body.get("path") is not None:
        made["path"] = typed(body, "path", str, "")
    given = typed(body, "options", dict, {})
    options = {key: value for key, kind in _OPTIONS.items() if (value := typed(given, key, kind, None))}
    for key in ("request_timeout", "session_idle_timeout"):
        if key in options:
            demand(_DURATION.fullmatch(options[key]) is not None, f'target {index}: parse {key} "{options[key]}": time: invalid duration "{options[key]}"')
            options[key] = canonical(options[key])
            if options[key] == "0s":
                del options[key]
    made["options"] = options
    return made


def _http_target(index: int, target: Raw) -> None:
    kind = target["target_type"]
    demand(kind in ("peer", "host", "domain", "subnet", "cluster"), f'target {index} has invalid target_type "{kind}"')
    demand(kind != "subnet" or bool(target["host"]), f'target {index} has empty host but target_type is "subnet"')
    demand(bool(target["target_id"]), f"target {index} has empty target_id")
    demand(not target["options"].get("proxy_protocol"), f"target {index}: proxy_protocol is not supported for HTTP services")


def _l4(made: Raw) -> None:
    mode, auth = made["mode"], made["auth"]
    logins = [*auth.get("header_auths", ()), *(part for key, part in auth.items() if key != "header_auths")]
    called = "TLS" if mode == "tls" else "TCP/UDP"
    demand(bool(made["domain"]), f"domain is required for {called} services (used for {'SNI matching' if mode == 'tls' else 'cluster derivation'})")
    demand(not any(part["enabled"] for part in logins), f"auth is not supported for {called} services")
    demand(mode != "tls" or bool(made["listen_port"]), "listen_port is required for TLS services")
    demand(len(made["targets"]) == 1, f"{called} services must have exactly one target")
    demand(mode != "udp" or not made["targets"][0]["options"].get("proxy_protocol"), "proxy_protocol is not supported for UDP services")


def _l4_target(target: Raw) -> None:
    options, kind = target["options"], target["target_type"]
    target["enabled"] = True
    demand(bool(target["target_id"]), "target_id is required for L4 services")
    demand(bool(target["port"]), "target port is required for L4 services")
    demand(kind in ("peer", "host", "domain", "subnet", "cluster"), f'invalid target_type "{kind}" for L4 service')
    demand(kind != "subnet" or bool(target["host"]), "target host is required for subnet targets")
    demand(target.get("path", "") in ("", "/"), "path is not supported for L4 services")
    for key in ("session_idle_timeout", "request_timeout"):
        demand(not options.get(key, "").startswith("-"), f"{key} must be positive for L4 services")
    for key in ("skip_tls_verify", "path_rewrite", "custom_headers"):
        demand(not options.get(key), f"{key} is not supported for L4 services")


def _auth(body: Mapping[str, Any]) -> Raw:
    """What an answer has of it: never the secrets."""
    given: Raw = typed(body, "auth", dict, {})
    made: Raw = {}
    for key, secret in (("password_auth", "password"), ("pin_auth", "pin"), ("bearer_auth", "")):
        part = typed(given, key, dict, None)
        if part is not None:
            made[key] = {"enabled": typed(part, "enabled", bool, False)} | ({secret: ""} if secret else {})
    if "bearer_auth" in made:
        made["bearer_auth"]["distribution_groups"] = strings(given["bearer_auth"], "distribution_groups") or None
    if headers := typed(given, "header_auths", list, []):
        made["header_auths"] = [{"enabled": typed(h, "enabled", bool, False), "header": typed(h, "header", str, ""), "value": ""} for h in headers]
    return made


def _restrictions(limits: Raw) -> None:
    for key, most in (("allowed_cidrs", 200), ("blocked_cidrs", 200), ("allowed_countries", 50), ("blocked_countries", 50)):
        demand(len(limits.get(key, ())) <= most, f"{key}: exceeds maximum of {most} entries")
    for key in ("allowed_cidrs", "blocked_cidrs"):
        for index, text in enumerate(limits.get(key, ())):
            _cidr(f"{key}[{index}]", text)
    for key in ("allowed_countries", "blocked_countries"):
        for index, text in enumerate(limits.get(key, ())):
            demand(len(text.encode()) == 2, f'{key}[{index}]: "{text}" must be a 2-letter ISO 3166-1 alpha-2 code')


def _cidr(where: str, text: str) -> None:
    address, slash, bits = text.partition("/")
    try:
        network = ipaddress.ip_network(text, strict=False) if slash and bits.isdecimal() else None
    except ValueError:
        network = None
    if network is None:
        raise AnswerError(422, f'{where}: netip.ParsePrefix("{text}"): no prefix')
    demand(ipaddress.ip_address(address) == network.network_address, f'{where}: "{text}" has host bits set, use {network} instead')

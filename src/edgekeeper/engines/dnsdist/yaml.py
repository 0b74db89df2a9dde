"""A topology as ``dnsdist.yml`` for dnsdist 2.x, and the ``dnsdist.lua`` beside it. Pure and byte-stable.

dnsdist loads the sibling by itself and lets it hold functions only; ``enableLuaConfiguration()``
would lift that and is never written.
"""

from __future__ import annotations

from typing import Any

from edgekeeper.engines.dnsdist import functions
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.quote import lua_string, yaml_text
from edgekeeper.engines.dnsdist.routing import Rule
from edgekeeper.engines.dnsdist.seat import Seat, scrypt
from edgekeeper.engines.dnsdist.topology import HASH_PERTURBATION, IN_FLIGHT, LOOPBACK, OUTSTANDING, WEIGHT, Backend, Cache, Guard, Listener, Pool, Topology
from edgekeeper.model.selfname import SELF_NAME, SELF_TYPE

_HEADER = "Written by edgekeeper; changes here are lost at the next render."
_PROTOCOL = {"do53": "Do53", "dot": "DoT", "doh": "DoH", "doq": "DoQ", "doh3": "DoH3"}
_BACKEND_TCP_TIMEOUT_S = 1


def render(topology: Topology, seat: Seat, features: Features) -> str:
    """The whole of ``dnsdist.yml``."""
    return f"# {_HEADER}\n" + yaml_text(_tree(topology, seat, features))


def render_functions(topology: Topology) -> str:
    """The whole of ``dnsdist.lua``."""
    return "\n".join([f"-- {_HEADER}", *functions.lines(topology)]) + "\n"


def _tree(topology: Topology, seat: Seat, features: Features) -> dict[str, Any]:
    tuning = topology.tuning
    private = {"listen_address": f"127.0.0.1:{seat.private_port}", "protocol": "Do53"}
    balancing: dict[str, Any] = {"servfail_on_no_server": True, "hash_perturbation": HASH_PERTURBATION}
    if tuning.balancing_factor:
        balancing["consistent_hashing_balancing_factor"] = tuning.balancing_factor
    tree: dict[str, Any] = {
        "acl": list(topology.acl),
        "binds": [*(_bind(listener) for listener in topology.listeners), private],
        "security_polling": {"suffix": ""},
        "console": {"listen_address": f"127.0.0.1:{seat.console_port}", "key": seat.console_key, "acl": list(LOOPBACK), "log_connections": False},
        "webserver": {
            "listen_addresses": [f"127.0.0.1:{seat.api_port}"],
            "password": scrypt(seat.password, seat.password_salt),
            "api_key": scrypt(seat.api_key, seat.api_salt),
            "acl": list(LOOPBACK),
            "hash_plaintext_credentials": True,
            "api_read_write": False,
        },
        "load_balancing_policies": balancing,
        "tuning": {"udp": {"timeout": tuning.udp_timeout_s}},
    }
    if tuning.outstanding != OUTSTANDING:
        tree["tuning"]["udp"]["max_outstanding_per_backend"] = tuning.outstanding
    if tuning.stale_ttl_s:
        tree["cache_settings"] = {"stale_entries_ttl": tuning.stale_ttl_s}
    if topology.ebpf is not None:
        maps = topology.ebpf
        tree["general"] = {"capabilities_to_retain": ["CAP_SYS_ADMIN"]}
        tree["ebpf"] = {"ipv4": {"max_entries": maps.ipv4}, "ipv6": {"max_entries": maps.ipv6}, "qnames": {"max_entries": maps.qnames}}
    if topology.guard is not None:
        tree["dynamic_rules"] = [_guard(topology.guard, kernel=topology.ebpf is not None)]
    caches = [_cache(pool.name, pool.cache) for pool in topology.pools if pool.cache is not None]
    if caches:
        tree["packet_caches"] = caches
    tree["pools"] = [_pool(pool) for pool in topology.pools]
    if topology.backends:
        tree["backends"] = [_backend(backend, features) for backend in topology.backends]
    tree["query_rules"] = [_rule(rule) for rule in topology.rules]
    if tuning.retry:
        act = {"type": "Lua", "function_name": functions.RETRY}
        tree["timeout_response_rules"] = [{"name": "retry-once", "selector": {"type": "All"}, "action": act}]
    return tree


def _bind(listener: Listener) -> dict[str, Any]:
    out: dict[str, Any] = {"listen_address": listener.address, "protocol": _PROTOCOL[listener.protocol], "reuseport": True, "threads": listener.threads}
    if listener.certificate is not None:
        pair = {"certificate": listener.certificate.chain, "key": listener.certificate.key}
        out["tls"] = {"certificates": [pair], "minimum_version": "tls1.2"}
    if listener.protocol in ("do53", "dot"):
        out["tcp"] = {"max_in_flight_queries": IN_FLIGHT}
    if listener.protocol == "doh":
        out["doh"] = {"paths": ["/dns-query"]}
    return out


def _pool(pool: Pool) -> dict[str, Any]:
    out = {"name": pool.name, "policy": pool.policy}
    if pool.cache is not None:
        out["packet_cache"] = f"{pool.name}-cache"
    return out


def _cache(pool: str, cache: Cache) -> dict[str, Any]:
    return {"name": f"{pool}-cache", "size": cache.entries, "max_ttl": cache.max_ttl, "keep_stale_data": cache.stale}


def _backend(backend: Backend, features: Features) -> dict[str, Any]:
    health = backend.health
    checks: dict[str, Any] = {
        "mode": "lazy" if health.lazy else "auto",
        "qname": health.name,
        "qclass": "CHAOS" if health.chaos else "IN",
        "qtype": health.type,
        "interval": health.interval_s,
        "timeout": health.timeout_ms,
        "max_failures": health.fall,
        "rise": health.rise,
        "must_resolve": health.must_resolve,
    }
    if backend.identity and features.validator:
        checks["validation_lua"] = f"return function(response) return {functions.IDENTITY}({lua_string(backend.identity)}, response) end"
    timeouts = {"retries": 1, "connect_timeout": _BACKEND_TCP_TIMEOUT_S, "send_timeout": _BACKEND_TCP_TIMEOUT_S, "receive_timeout": _BACKEND_TCP_TIMEOUT_S}
    return {
        "address": backend.address,
        "protocol": "Do53",
        "name": backend.name,
        "id": backend.id,
        "pools": list(backend.pools),
        "weight": WEIGHT,
        "sockets": backend.sockets,
        "use_proxy_protocol": backend.proxy,
        "tcp": timeouts,
        "health_checks": checks,
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {"name": rule.name, "uuid": rule.id, "selector": _selector(rule), "action": _action(rule)}


def _selector(rule: Rule) -> dict[str, Any]:
    if rule.kind == "alive":
        return {"type": "And", "selectors": [{"type": "QName", "qname": SELF_NAME}, {"type": "QType", "qtype": SELF_TYPE}]}
    if rule.kind == "refuse":
        parts: list[dict[str, Any]] = [{"type": "Opcode", "code": "Notify"}, {"type": "Opcode", "code": "Update"}]
        parts += [{"type": "QType", "qtype": "AXFR"}, {"type": "QType", "qtype": "IXFR"}]
        kinds = {"type": "Or", "selectors": parts}
        if not rule.sources:
            return kinds
        listed = {"type": "NetmaskGroup", "netmasks": list(rule.sources)}
        return {"type": "And", "selectors": [kinds, {"type": "Not", "selector": listed}]}
    if rule.kind == "suffix":
        names = {"type": "QNameSuffix", "suffixes": list(rule.suffixes)}
        if not rule.but:
            return names
        return {"type": "And", "selectors": [names, {"type": "Not", "selector": {"type": "QNameSuffix", "suffixes": list(rule.but)}}]}
    return {"type": "All"}


def _action(rule: Rule) -> dict[str, Any]:
    if rule.kind == "alive":
        return {"type": "SpoofRaw", "answers": [functions.SELF_DATA]}
    if rule.kind == "refuse":
        return {"type": "RCode", "rcode": "Refused"}
    if rule.kind == "secret":
        return {"type": "SetProxyProtocolValues", "values": [{"key": functions.SECRET_TLV, "value": rule.text}]}
    if rule.kind == "restartable":
        return {"type": "LuaFFIPerThread", "code": functions.RESTARTABLE_CODE}
    return {"type": "Pool", "pool_name": rule.pool}


def _guard(guard: Guard, *, kernel: bool) -> dict[str, Any]:
    act = "Drop" if kernel else "Refused"
    common = {"seconds": guard.window_s, "action_duration": guard.block_s, "action": act}
    rules: list[dict[str, Any]] = []
    if guard.query_rate:
        rules.append({"type": "query-rate", "rate": guard.query_rate, **common, "comment": "edgekeeper: too many queries"})
    if guard.nxdomain_rate:
        rules.append({"type": "rcode-rate", "rcode": "NXDomain", "rate": guard.nxdomain_rate, **common, "comment": "edgekeeper: too many NXDOMAIN"})
    return {"name": "edgekeeper", "mask_ipv4": 32, "mask_ipv6": 64, "exclude_ranges": list(LOOPBACK), "rules": rules}

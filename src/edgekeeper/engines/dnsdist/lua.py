"""A topology as ``dnsdist.conf`` for dnsdist 1.x, and on request for 2.x. Pure and byte-stable.

The statements that a live change sends over the console are made here too, so that a changed
engine and a freshly started one cannot differ in what they were told.
"""

from __future__ import annotations

from edgekeeper.engines.dnsdist import functions
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.quote import lua_string, lua_value
from edgekeeper.engines.dnsdist.routing import Rule
from edgekeeper.engines.dnsdist.seat import Seat, scrypt
from edgekeeper.engines.dnsdist.topology import (
    HASH_PERTURBATION,
    IN_FLIGHT,
    LOOPBACK,
    OUTSTANDING,
    WEIGHT,
    Backend,
    Cache,
    EbpfMaps,
    Guard,
    Listener,
    Pool,
    Topology,
)
from edgekeeper.model.selfname import SELF_NAME, SELF_TYPE

_BACKEND_TCP_TIMEOUT_S = 1
_CHAOS = 3


def render(topology: Topology, seat: Seat, features: Features) -> str:
    """The whole file."""
    out = ["-- Written by edgekeeper; changes here are lost at the next render."]
    out += [f"setSecurityPollSuffix({lua_string('')})", f"setACL({lua_value(list(topology.acl))})"]
    out += [line for listener in topology.listeners for line in _listener(listener)]
    out += [f"addLocal({lua_string(f'127.0.0.1:{seat.private_port}')})"]
    out += _doors(seat)
    out += _tuning(topology)
    if topology.ebpf is not None:
        out += _ebpf(topology.ebpf, features)
    out += [line for pool in topology.pools for line in _pool(pool)]
    out += functions.lines(topology)
    out += [server(backend, features) for backend in topology.backends]
    out += [f"addAction({selector(rule)}, {action(rule)}, {_options(rule)})" for rule in topology.rules]
    if topology.tuning.retry:
        out.append(f"addTimeoutResponseAction(AllRule(), LuaResponseAction({functions.RETRY}))")
    if topology.guard is not None:
        out += _guard(topology.guard, kernel=topology.ebpf is not None)
    return "\n".join(out) + "\n"


def server(backend: Backend, features: Features) -> str:
    """The statement that adds a member."""
    health = backend.health
    table = {
        "address": backend.address,
        "name": backend.name,
        "id": backend.id,
        "pool": list(backend.pools),
        "weight": WEIGHT,
        "sockets": backend.sockets,
        "useProxyProtocol": backend.proxy,
        "checkName": health.name,
        "checkType": health.type,
        "checkInterval": health.interval_s,
        "checkTimeout": health.timeout_ms,
        "maxCheckFailures": health.fall,
        "rise": health.rise,
        "mustResolve": health.must_resolve,
        "tcpConnectTimeout": _BACKEND_TCP_TIMEOUT_S,
        "tcpSendTimeout": _BACKEND_TCP_TIMEOUT_S,
        "tcpRecvTimeout": _BACKEND_TCP_TIMEOUT_S,
    }
    if features.retry:
        table["retries"] = 1
    if health.chaos:
        table["checkClass"] = _CHAOS
    if health.lazy and features.lazy:
        table["healthCheckMode"] = "lazy"
    text = f"newServer({lua_value(table)})"
    if backend.identity and features.validator:
        text += f":setHealthCheckResponseValidator(function(response) return {functions.IDENTITY}({lua_string(backend.identity)}, response) end)"
    return text


def rules(topology: Topology) -> str:
    """The statement that replaces all query rules at once."""
    made = ", ".join(f"newRuleAction({selector(rule)}, {action(rule)}, {_options(rule)})" for rule in topology.rules)
    return f"setRules({{{made}}})"


def selector(rule: Rule) -> str:
    """Which queries a rule is about."""
    if rule.kind == "alive":
        return f"AndRule({{QNameRule({lua_string(SELF_NAME)}), QTypeRule(DNSQType.{SELF_TYPE})}})"
    if rule.kind == "refuse":
        kinds = "OrRule({OpcodeRule(DNSOpcode.Notify), OpcodeRule(DNSOpcode.Update), QTypeRule(DNSQType.AXFR), QTypeRule(DNSQType.IXFR)})"
        if not rule.sources:
            return kinds
        return f"AndRule({{{kinds}, NotRule(NetmaskGroupRule({_netmasks(rule.sources)}))}})"
    if rule.kind == "suffix":
        names = _suffixes(rule.suffixes)
        return f"AndRule({{{names}, NotRule({_suffixes(rule.but)})}})" if rule.but else names
    return "AllRule()"


def action(rule: Rule) -> str:
    """What happens to them."""
    if rule.kind == "alive":
        return f"SpoofRawAction({lua_string(functions.SELF_DATA)})"
    if rule.kind == "refuse":
        return "RCodeAction(DNSRCode.REFUSED)"
    if rule.kind == "secret":
        return f"SetProxyProtocolValuesAction({{[{functions.SECRET_TLV}]={lua_string(rule.text)}}})"
    if rule.kind == "restartable":
        return f"LuaFFIPerThreadAction({lua_string(functions.RESTARTABLE_CODE)})"
    return f"PoolAction({lua_string(rule.pool)})"


def _options(rule: Rule) -> str:
    return lua_value({"name": rule.name, "uuid": rule.id})


def _suffixes(names: tuple[str, ...]) -> str:
    return f"SuffixMatchNodeRule(ek_suffixes({lua_value(list(names))}))"


def _netmasks(networks: tuple[str, ...]) -> str:
    return f"ek_netmasks({lua_value(list(networks))})"


def _listener(listener: Listener) -> list[str]:
    address = lua_string(listener.address)
    if listener.protocol == "do53":
        return [f"addLocal({address}, {{reusePort=true, maxInFlight={IN_FLIGHT}}})"] * listener.threads
    certificate = listener.certificate
    files = f"{lua_string(certificate.chain)}, {lua_string(certificate.key)}" if certificate else '"", ""'
    if listener.protocol == "dot":
        return [f'addTLSLocal({address}, {files}, {{reusePort=true, maxInFlight={IN_FLIGHT}, minTLSVersion="tls1.2"}})']
    if listener.protocol == "doh":
        return [f'addDOHLocal({address}, {files}, {{"/dns-query"}}, {{reusePort=true, minTLSVersion="tls1.2"}})']
    name = {"doq": "addDOQLocal", "doh3": "addDOH3Local"}[listener.protocol]
    return [f"{name}({address}, {files}, {{reusePort=true}})"]


def _doors(seat: Seat) -> list[str]:
    web = {
        "password": scrypt(seat.password, seat.password_salt),
        "apiKey": scrypt(seat.api_key, seat.api_salt),
        "acl": ", ".join(LOOPBACK),
        "hashPlaintextCredentials": True,
    }
    return [
        f"setKey({lua_string(seat.console_key)})",
        f"setConsoleACL({lua_value(list(LOOPBACK))})",
        "setConsoleConnectionsLogging(false)",
        f"controlSocket({lua_string(f'127.0.0.1:{seat.console_port}')})",
        f"webserver({lua_string(f'127.0.0.1:{seat.api_port}')})",
        f"setWebserverConfig({lua_value(web)})",
        "setAPIWritable(false)",
    ]


def _tuning(topology: Topology) -> list[str]:
    tuning = topology.tuning
    out = ["setServFailWhenNoServer(true)", f"setWHashedPertubation({HASH_PERTURBATION})", f"setUDPTimeout({tuning.udp_timeout_s})"]
    if tuning.outstanding != OUTSTANDING:
        out.append(f"setMaxUDPOutstanding({tuning.outstanding})")
    if tuning.balancing_factor:
        out.append(f"setConsistentHashingBalancingFactor({tuning.balancing_factor!r})")
    if tuning.stale_ttl_s:
        out.append(f"setStaleCacheEntriesTTL({tuning.stale_ttl_s})")
    return out


def _ebpf(maps: EbpfMaps, features: Features) -> list[str]:
    if features.bpf_table:
        made = f"newBPFFilter({{ipv4MaxItems={maps.ipv4}, ipv6MaxItems={maps.ipv6}, qnamesMaxItems={maps.qnames}}})"
    else:
        made = f"newBPFFilter({maps.ipv4}, {maps.ipv6}, {maps.qnames})"
    return ['addCapabilitiesToRetain("CAP_SYS_ADMIN")', f"setDefaultBPFFilter({made})"]


def _pool(pool: Pool) -> list[str]:
    name = lua_string(pool.name)
    out = [f"setPoolServerPolicy({pool.policy}, {name})"]
    if pool.cache is not None:
        out.append(f"getPool({name}):setCache({_cache(pool.cache)})")
    return out


def _cache(cache: Cache) -> str:
    return f"newPacketCache({cache.entries}, {lua_value({'maxTTL': cache.max_ttl, 'keepStaleData': cache.stale})})"


def _guard(guard: Guard, *, kernel: bool) -> list[str]:
    act = "DNSAction.Drop" if kernel else "DNSAction.Refused"
    out = ["ek_guard = dynBlockRulesGroup()", "ek_guard:setMasks(32, 64, 0)", f"ek_guard:excludeRange({lua_value(list(LOOPBACK))})"]
    if guard.query_rate:
        out.append(f'ek_guard:setQueryRate({guard.query_rate}, {guard.window_s}, "edgekeeper: too many queries", {guard.block_s}, {act})')
    if guard.nxdomain_rate:
        rate = f"DNSRCode.NXDOMAIN, {guard.nxdomain_rate}, {guard.window_s}"
        out.append(f'ek_guard:setRCodeRate({rate}, "edgekeeper: too many NXDOMAIN", {guard.block_s}, {act})')
    return out

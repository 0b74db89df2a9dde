"""The rest of the fake's account: networks with their resources and routers, policies, groups, and the domains of its proxies. Pure.

As with services: read in the server's source (v0.77.1), traps included, and not tried on a live server. What a group or a domain may be
called, and the messages about it, are assumed: nothing of ours relies on them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from edgekeeper.lab import netbird_services as services
from edgekeeper.lab.netbird_world import Account, AnswerError, Raw, World, strings, typed

Body: TypeAlias = Mapping[str, Any]
_NAME = re.compile(r"(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)+[A-Za-z]{2,63}")


def address_and_type(text: str) -> tuple[str, str]:
    """An address as the server keeps it (canonical, but with its host bits), and what it takes it for; ValueError when it is none.

    A prefix of 32 or 128 is a host's, whatever the family: an IPv6 /32 is one too.
    """
    if _NAME.fullmatch(text):
        return text, "domain"
    if not text.partition("/")[2].isdecimal() and "/" in text:
        msg = f"{text} is no prefix"
        raise ValueError(msg)
    interface = ipaddress.ip_interface(text)
    return interface.with_prefixlen, "host" if interface.network.prefixlen in (32, 128) else "subnet"


def network(account: Account, identity: str) -> Raw:
    """A network as the API answers it."""
    inside = [key for key, holder in account.network_of.items() if holder == identity]
    routers = [account.routers[key] for key in inside if key in account.routers]
    peers = {router["peer"] for router in routers if router.get("peer")}
    peers |= {peer for router in routers for group in router.get("peer_groups") or () for peer in _peers_of(account, group)}
    resources = [key for key in inside if key in account.resources]
    used = [
        key
        for key, policy in account.policies.items()
        if any((rule.get("destinationResource") or {}).get("id") in resources for rule in policy["rules"])
        or any(
            group in (account.resources[resource]["groups"] or ()) for resource in resources for rule in policy["rules"] for group in rule["destinations"] or ()
        )
    ]
    return {
        **account.networks[identity],
        "routers": [router["id"] for router in routers] or None,
        "routing_peers_count": len(peers),
        "resources": resources or None,
        "policies": used or None,
    }


def make_network(world: World, account: Account, _holder: str, body: Body) -> Raw:
    """Names are not unique."""
    return _write_network(account, world.new_id("net"), body)


def replace_network(_world: World, account: Account, old: Raw, body: Body) -> Raw:
    """PUT."""
    return _write_network(account, old["id"], body)


def _write_network(account: Account, identity: str, body: Body) -> Raw:
    account.networks[identity] = {"id": identity, "name": typed(body, "name", str, ""), "description": typed(body, "description", str, "")}
    return network(account, identity)


def remove_network(world: World, account: Account, identity: str) -> None:
    """Everything in it goes too; services that lead there are neither asked nor told."""
    del account.networks[identity]
    gone = []
    for key in [key for key, holder in account.network_of.items() if holder == identity]:
        del account.network_of[key]
        account.resources.pop(key, None)
        account.routers.pop(key, None)
        gone.append(key)
    services.looked_up_again(world, account, gone)
    world.push(account, ())


def resource(account: Account, identity: str) -> Raw:
    """A resource as the API answers it: null where it is in no group."""
    raw = account.resources[identity]
    return {**raw, "groups": [in_short(account, group) for group in raw["groups"]] or None}


def make_resource(world: World, account: Account, holder: str, body: Body) -> Raw:
    """The name is unique in the account."""
    identity = world.new_id("res")
    raw = _resource(account, identity, body, "failed to create network resource: resource with name {name} already exists")
    account.resources[identity], account.network_of[identity] = raw, holder
    world.push(account, ())
    return resource(account, identity)


def replace_resource(world: World, account: Account, old: Raw, body: Body) -> Raw:
    """PUT: all services of the account are sent to the proxies once more, and each cuts its connections there."""
    identity = old["id"]
    account.resources[identity] = _resource(account, identity, body, "failed to update network resource: new resource name already exists")
    services.looked_up_again(world, account, (identity,))
    services.sent_again(world, account)
    return resource(account, identity)


def remove_resource(world: World, account: Account, identity: str) -> None:
    """Refused while a service leads there."""
    for service in account.services.values():
        if any(target["target_id"] == identity for target in service["targets"]):
            raise AnswerError(412, f"resource {identity} is in use by proxy {service['id']}")
    del account.resources[identity], account.network_of[identity]
    world.push(account, ())


def _resource(account: Account, identity: str, body: Body, twice: str) -> Raw:
    name = typed(body, "name", str, "")
    try:
        address, kind = address_and_type(typed(body, "address", str, ""))
    except ValueError:
        raise AnswerError(500, "internal server error") from None
    if any(other["name"] == name and key != identity for key, other in account.resources.items()):
        raise AnswerError(422, twice.format(name=name))
    return {
        "id": identity,
        "name": name,
        "description": typed(body, "description", str, ""),
        "address": address,
        "type": kind,
        "enabled": typed(body, "enabled", bool, False),
        "groups": [group for group in strings(body, "groups") if group in account.groups],
    }


def make_router(world: World, account: Account, holder: str, body: Body) -> Raw:
    """A new one is enabled, whatever was asked; duplicates are not."""
    identity = world.new_id("rtr")
    account.routers[identity] = {**_router(identity, body), "enabled": True}
    account.network_of[identity] = holder
    world.push(account, ())
    return account.routers[identity]


def replace_router(world: World, account: Account, old: Raw, body: Body) -> Raw:
    """PUT."""
    account.routers[old["id"]] = _router(old["id"], body)
    world.push(account, ())
    return account.routers[old["id"]]


def remove_router(world: World, account: Account, identity: str) -> None:
    """DELETE."""
    del account.routers[identity], account.network_of[identity]
    world.push(account, ())


def _router(identity: str, body: Body) -> Raw:
    peer, groups = typed(body, "peer", str, ""), strings(body, "peer_groups")
    if peer and groups:
        raise AnswerError(400, "peer and peer_groups cannot be set at the same time")
    if not peer and not groups:
        raise AnswerError(400, "either peer or peer_groups must be provided")
    return {
        "id": identity,
        "metric": typed(body, "metric", int, 0),
        "masquerade": typed(body, "masquerade", bool, False),
        "enabled": typed(body, "enabled", bool, False),
        "peer": peer,
        "peer_groups": groups or None,
    }


def policy(account: Account, identity: str) -> Raw:
    """A policy as the API answers it, with the groups in short."""
    raw = account.policies[identity]
    rules = []
    for rule in raw["rules"]:
        ends = {end: [in_short(account, group) for group in rule[end]] or None for end in ("sources", "destinations")}
        rules.append({**rule, **ends})
    return {**raw, "rules": rules}


def make_policy(world: World, account: Account, _holder: str, body: Body) -> Raw:
    """Names are not unique, and groups that do not exist are left out without a word."""
    return _write_policy(world, account, world.new_id("pol"), body)


def replace_policy(world: World, account: Account, old: Raw, body: Body) -> Raw:
    """PUT."""
    return _write_policy(world, account, old["id"], body)


def remove_policy(world: World, account: Account, identity: str) -> None:
    """DELETE."""
    del account.policies[identity]
    world.push(account, ())


def _write_policy(world: World, account: Account, identity: str, body: Body) -> Raw:
    name, rules = typed(body, "name", str, ""), typed(body, "rules", list, [])
    if not name:
        raise AnswerError(422, "policy name shouldn't be empty")
    if not rules:
        raise AnswerError(422, "policy rules shouldn't be empty")
    account.policies[identity] = {
        "id": identity,
        "name": name,
        "description": typed(body, "description", str, ""),
        "enabled": typed(body, "enabled", bool, False),
        "source_posture_checks": strings(body, "source_posture_checks"),
        "rules": [_rule(account, f"{identity}-{index}", rule) for index, rule in enumerate(rules)],
    }
    world.push(account, ())
    return policy(account, identity)


def _rule(account: Account, identity: str, body: Any) -> Raw:
    if not isinstance(body, dict):
        raise AnswerError(400, "couldn't parse JSON request")
    made: Raw = {
        "id": identity,
        "name": typed(body, "name", str, ""),
        "enabled": typed(body, "enabled", bool, False),
        "action": typed(body, "action", str, ""),
        "bidirectional": typed(body, "bidirectional", bool, False),
        "protocol": typed(body, "protocol", str, ""),
    }
    if made["action"] not in ("accept", "drop"):
        raise AnswerError(422, "unknown action type")
    if made["protocol"] not in ("all", "tcp", "udp", "icmp", "netbird-ssh"):
        raise AnswerError(422, f"unknown protocol type: {made['protocol']}")
    for end, single in (("sources", "sourceResource"), ("destinations", "destinationResource")):
        groups, one = strings(body, end), typed(body, single, dict, None)
        if groups and one is not None:
            raise AnswerError(422, f"specify either {end} or  {end[:-1]} resources, not both")
        if not groups and one is None:
            raise AnswerError(422, "specify either sources or source resources and destinations or destination resources")
        made[end] = [group for group in groups if group in account.groups]
        if one is not None:
            made[single] = {"id": typed(one, "id", str, ""), "type": typed(one, "type", str, "")}
    if ports := strings(body, "ports"):
        made["ports"] = ports
    return made


def _peers_of(account: Account, group: str) -> list[str]:
    return list(account.groups[group]["peers"]) if group in account.groups else []


def in_short(account: Account, identity: str) -> Raw:
    """A group as other objects have it."""
    raw = account.groups[identity]
    resources = sum(identity in other["groups"] for other in account.resources.values())
    return {"id": identity, "name": raw["name"], "peers_count": len(raw["peers"]), "resources_count": resources, "issued": "api"}


def group(account: Account, identity: str) -> Raw:
    """A group as the API answers it: null where there is nobody in it."""
    peers = [{"id": key, "name": account.peers[key]["name"]} for key in account.groups[identity]["peers"] if key in account.peers]
    resources = [{"id": key, "type": other["type"]} for key, other in account.resources.items() if identity in other["groups"]]
    return {**in_short(account, identity), "peers": peers or None, "resources": resources or None}


def make_group(world: World, account: Account, _holder: str, body: Body) -> Raw:
    """A name can be had once."""
    name = typed(body, "name", str, "")
    if not name:
        raise AnswerError(422, "group name shouldn't be empty")
    if any(other["name"] == name for other in account.groups.values()):
        raise AnswerError(409, f"group with name {name} already exists, please use the existing group")
    identity = world.new_id("grp")
    account.groups[identity] = {"id": identity, "name": name, "peers": strings(body, "peers")}
    return group(account, identity)


def peer(account: Account, identity: str) -> Raw:
    """A peer as the API answers it; the proxies' own peers are never among them."""
    groups = [in_short(account, key) for key, raw in account.groups.items() if identity in raw["peers"]]
    return {**account.peers[identity], "groups": groups or None, "version": "0.77.1", "ephemeral": False}


def domains(world: World, account: Account) -> list[Raw]:
    """Those of the clusters that are online, which are free and have no id, and the account's own."""
    free = [
        {
            "id": "",
            "domain": cluster.address,
            "validated": True,
            "type": "free",
            "supports_custom_ports": cluster.custom_ports,
            "require_subdomain": cluster.require_subdomain,
        }
        for cluster in world.clusters.values()
        if cluster.proxies
    ]
    return [*free, *account.domains.values()]


def make_domain(world: World, account: Account, body: Body) -> Raw:
    """A domain of one's own; it is used by services from now on, validated or not."""
    name, cluster = typed(body, "domain", str, ""), typed(body, "target_cluster", str, "")
    if not _NAME.fullmatch(name):
        raise AnswerError(422, f"invalid domain {name}")
    if cluster not in world.clusters or not world.clusters[cluster].proxies:
        raise AnswerError(500, "internal server error")
    if any(known["domain"] == name for other in world.accounts.values() for known in other.domains.values()):
        raise AnswerError(409, f"domain {name} already exists")
    identity = world.new_id("dom")
    account.domains[identity] = {"id": identity, "domain": name, "validated": False, "type": "custom", "target_cluster": cluster}
    return account.domains[identity]


SHOWN: Mapping[str, Callable[[Account, str], Raw]] = {
    "networks": network,
    "resources": resource,
    "routers": lambda account, identity: account.routers[identity],
    "policies": policy,
    "groups": group,
    "peers": peer,
}
"""A stored object as the API answers it, by kind."""
MADE: Mapping[str, Callable[[World, Account, str, Body], Raw]] = {
    "networks": make_network,
    "resources": make_resource,
    "routers": make_router,
    "policies": make_policy,
    "groups": make_group,
}
"""POST, by kind; the text is the network that a resource or a router is in."""
REPLACED: Mapping[str, Callable[[World, Account, Raw, Body], Raw]] = {
    "networks": replace_network,
    "resources": replace_resource,
    "routers": replace_router,
    "policies": replace_policy,
}
"""PUT, by kind."""
REMOVED: Mapping[str, Callable[[World, Account, str], None]] = {
    "networks": remove_network,
    "resources": remove_resource,
    "routers": remove_router,
    "policies": remove_policy,
}
"""DELETE, by kind."""

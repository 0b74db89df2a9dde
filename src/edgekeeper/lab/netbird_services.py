"""Services of the fake: what the server does with one, in the order in which it does it, and what a PUT forgets. Pure.

Read in the server's source (v0.77.1), traps included; none of it was tried on a live server. What a request must be like by itself is in
``netbird_checks``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgekeeper.lab.netbird_checks import checked, demand, seconds
from edgekeeper.lab.netbird_world import L4, Account, AnswerError, Raw, Route, World, encoded, stamp, typed

_RESOURCES = ("host", "subnet", "domain")
_FIRST_PORT = 10_000
_UNKNOWN = "unknown"
"""The host of a target that leads to something that is gone."""


def create(world: World, account: Account, body: Mapping[str, Any]) -> tuple[Raw, bytes]:
    """POST: the service and the bytes of the answer. It is sent to the proxies enabled or not."""
    made = checked(world, body)
    made["proxy_cluster"] = _derived(world, account, made["domain"])
    _subdomain(world, made)
    _header_values(body, {})
    _references(account, made["targets"])
    if made["domain"] in world.taken:
        raise AnswerError(409, "domain already taken")
    # For TLS the server also looks whether the domain is on this port of the cluster; after the line above that never says anything more.
    _port(world, made, old=None)
    made["id"] = world.new_id("svc")
    made["meta"] = {"created_at": stamp(world.now), "status": "pending"}
    _keep_secrets(world, made, body)
    text = keep(world, account, made)
    _sent(world, account, made["id"])
    return made, text


def update(world: World, account: Account, identity: str, body: Mapping[str, Any]) -> bytes:
    """PUT: a full replace, but for the mode, the secrets, and the port of a TCP or UDP service.

    Only a change from enabled to disabled takes a route away. Any other PUT is an update to the proxies, which do not know that a service
    is disabled: they route it again.
    """
    made = checked(world, body)
    if identity not in account.services:
        raise AnswerError(404, f"service {identity} not found")
    old = account.services[identity]
    made["proxy_cluster"] = old["proxy_cluster"]
    if made["domain"] != old["domain"]:
        try:
            made["proxy_cluster"] = _derived(world, account, made["domain"])
        except AnswerError:
            made["proxy_cluster"] = old["proxy_cluster"]  # a warning in the server's log, no more
    _references(account, made["targets"])
    _subdomain(world, made)
    if old["terminated"]:
        raise AnswerError(403, "service is terminated and cannot be updated")
    demand(made["mode"] == old["mode"], f'cannot change mode from "{old["mode"]}" to "{made["mode"]}"')
    if made["domain"] != old["domain"] and made["domain"] in world.taken:
        raise AnswerError(409, "domain already taken")
    made |= {"id": identity, "meta": dict(old["meta"])}
    _header_values(body, world.secrets.get(identity, {}))
    _port(world, made, old=old)
    _keep_secrets(world, made, body)
    world.taken.pop(old["domain"], None)
    text = keep(world, account, made)
    world.counters.cut += identity in world.live
    if old["enabled"] and not made["enabled"] and made["domain"] == old["domain"]:
        world.live.discard(identity)
        world.push(account, (identity,))
    else:
        _sent(world, account, identity)
    return text


def remove(world: World, account: Account, identity: str) -> None:
    """DELETE."""
    old = account.services.pop(identity, None)
    if old is None:
        raise AnswerError(404, f"service {identity} not found")
    del account.texts[identity]
    account.joined = None
    world.taken.pop(old["domain"], None)
    world.secrets.pop(identity, None)
    world.live.discard(identity)
    world.push(account, (identity,))


def keep(world: World, account: Account, service: Raw) -> bytes:
    """Store a service; the bytes of an answer."""
    identity = service["id"]
    text = encoded(shown(account, service))
    account.services[identity], account.texts[identity] = service, text
    account.joined = None
    world.taken[service["domain"]] = identity
    return text


def shown(account: Account, service: Raw) -> Raw:
    """A service as it is answered: where it leads to a resource or a peer of its own, the host is looked up, whatever was sent."""
    targets = [{**target, "host": _host(account, target)} for target in service["targets"]]
    kept = {key: value for key, value in service.items() if key not in ("id", "targets")}
    return {"id": service["id"], **kept, "targets": targets, "enabled": service["enabled"] and not service["terminated"]}


def looked_up_again(world: World, account: Account, resources: Iterable[str]) -> None:
    """Resources have changed or are gone: what is answered of services that lead there may be different now."""
    changed = set(resources)
    for service in list(account.services.values()):
        if any(target["target_id"] in changed for target in service["targets"]):
            keep(world, account, service)


def sent_again(world: World, account: Account) -> None:
    """All services of the account to the proxies once more, the disabled among them: each is routed, and cuts its connections."""
    for identity, service in account.services.items():
        if service["mode"] in L4:
            world.counters.cut += identity in world.live
            world.live.add(identity)
    world.push(account, tuple(account.services))


def route(world: World, account: Account, service: Raw) -> Route | None:
    """What the proxies have of a service: nothing where it is no TLS, or was not sent to them."""
    if service["mode"] != "tls" or service["id"] not in world.live:
        return None
    target = service["targets"][0]
    options, limits = target["options"], service.get("access_restrictions", {})
    return Route(
        service=service["id"],
        host=service["domain"].lower(),
        address=_host(account, target),
        port=target["port"],
        dead=target["target_id"] not in account.resources,
        listen_port=service["listen_port"],
        proxy_protocol=options.get("proxy_protocol", False),
        dial_s=seconds(options["request_timeout"]) if "request_timeout" in options else None,
        idle_s=seconds(options["session_idle_timeout"]) if "session_idle_timeout" in options else None,
        allowed=tuple(limits.get("allowed_cidrs", ())),
        blocked=tuple(limits.get("blocked_cidrs", ())),
    )


def _host(account: Account, target: Raw) -> str:
    kind, identity = target["target_type"], target["target_id"]
    if kind == "peer":
        return str(account.peers.get(identity, {}).get("ip", _UNKNOWN))
    if kind in ("host", "domain"):
        return str(account.resources.get(identity, {}).get("address", _UNKNOWN)).partition("/")[0]
    return str(target["host"])


def _sent(world: World, account: Account, identity: str) -> None:
    """To the proxies; a TLS service is active as soon as it is in their table, whatever stands behind it."""
    service = account.services[identity]
    world.live.add(identity)
    if world.clusters[service["proxy_cluster"]].proxies and service["meta"]["status"] == "pending":
        keep(world, account, {**service, "meta": {**service["meta"], "status": "active"}})
    world.push(account, (identity,))


def _header_values(body: Mapping[str, Any], before: Mapping[str, str]) -> None:
    for index, header in enumerate(typed(typed(body, "auth", dict, {}), "header_auths", list, [])):
        value = header.get("value") or before.get(f"header {header.get('header', '').lower()}")
        demand(bool(value) or not header.get("enabled"), f"header_auths[{index}]: value is required")


def _keep_secrets(world: World, made: Raw, body: Mapping[str, Any]) -> None:
    """An empty secret of a part that stays enabled is the one of before."""
    before, given, kept = world.secrets.get(made["id"], {}), typed(body, "auth", dict, {}), {}
    for key, secret in (("password_auth", "password"), ("pin_auth", "pin")):
        if made["auth"].get(key, {}).get("enabled"):
            kept[key] = given[key].get(secret) or before.get(key, "")
    for header in typed(given, "header_auths", list, []):
        if header.get("enabled"):
            name = f"header {header['header'].lower()}"
            kept[name] = header.get("value") or before.get(name, "")
    world.secrets[made["id"]] = kept
    if not kept:
        del world.secrets[made["id"]]


def _derived(world: World, account: Account, domain: str) -> str:
    """Which cluster a domain is on: by its own name (of those online), else by the longest of the account's domains, validated or not."""
    cannot = f"could not derive cluster from domain {domain}: "
    online = [cluster for cluster in world.clusters.values() if cluster.proxies]
    if not online:
        raise AnswerError(412, f"{cannot}no proxy clusters available")
    for cluster in online:
        if _within(domain, cluster.address):
            return cluster.address
    own = [known for known in account.domains.values() if _within(domain, known["domain"])]
    if not own:
        raise AnswerError(412, f"{cannot}domain {domain} does not match any available proxy cluster")
    found: str = max(own, key=lambda known: len(known["domain"]))["target_cluster"]
    return found


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _subdomain(world: World, made: Raw) -> None:
    bare = made["domain"] == made["proxy_cluster"]
    demand(not (bare and world.clusters[made["proxy_cluster"]].require_subdomain), f"domain {made['domain']} requires a subdomain label")


def _references(account: Account, targets: list[Raw]) -> None:
    for target in targets:
        identity, kind = target["target_id"], target["target_type"]
        if kind in _RESOURCES:
            resource = account.resources.get(identity)
            if resource is None:
                raise AnswerError(422, f'resource target "{identity}" not found in account')
            demand(resource["type"] == kind, f'target "{identity}" has target_type "{kind}" but resource is of type "{resource["type"]}"')
        elif kind == "peer":
            demand(identity in account.peers, f'peer target "{identity}" not found in account')


def _port(world: World, made: Raw, *, old: Raw | None) -> None:
    """TCP and UDP services have a port of their own: the one of before, or one that is found for them, when they ask for none."""
    if made["mode"] not in ("tcp", "udp"):
        return
    cluster = world.clusters[made["proxy_cluster"]]
    kept = old["listen_port"] if old is not None else 0
    if kept and not made["listen_port"]:
        made |= {"listen_port": kept, "port_auto_assigned": old is not None and old["port_auto_assigned"]}
    if made["listen_port"] not in (0, kept) and not cluster.custom_ports:
        raise AnswerError(422, f"custom ports not supported on {'target ' if old is not None else ''}cluster {cluster.address}")
    there = [service for account in world.accounts.values() for service in account.services.values() if service["proxy_cluster"] == cluster.address]
    if not made["listen_port"]:
        occupied = {service["listen_port"] for service in there}
        made |= {"listen_port": next(port for port in range(_FIRST_PORT, 65_536) if port not in occupied), "port_auto_assigned": True}
    for service in there:
        if (service["mode"], service["listen_port"]) == (made["mode"], made["listen_port"]) and service["id"] != made.get("id"):
            raise AnswerError(409, f'{made["mode"]} port {made["listen_port"]} is already in use by service "{service["name"]}" on cluster {cluster.address}')

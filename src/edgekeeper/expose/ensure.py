"""What of the mesh the targets stand on: the network, its resources, its router. What is there and what is wanted, to steps with reasons. Pure.

Names of networks and policies are not unique, those of resources are within the account. A resource that is right is never written
again: the server then sends every service to the proxies anew, which cuts each connection through them. What a person has made or
switched off is used or reported, never fought over; what another edgekeeper has made (its mark is in the description) is left alone,
because two clusters often have the same network of Services, and the other one's routing peers lead to the other cluster.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from edgekeeper.expose.kinds import Anchor
from edgekeeper.expose.netbird_say import Group, Network, Policy, Resource, Router

Prefix = ipaddress.IPv4Network | ipaddress.IPv6Network
Act = Literal["make network", "make resource", "change resource", "make router", "change router", "make policy"]

EVERYBODY: Final = "All"
"""The group that holds every peer of an account."""

_MARK = re.compile(r"\bedgekeeper:([a-z0-9-]{1,32}/[a-z0-9-]{1,32})(?![a-z0-9-])")


@dataclass(frozen=True, slots=True)
class Want:
    """What the targets need. ``owner`` is OWNER/CLUSTER; ``subnet`` the network of Services; ``addresses`` all that targets have."""

    owner: str
    network: str
    resource: str
    subnet: str | None
    addresses: tuple[str, ...]
    router_group: str | None = None
    metric: int = 9999
    masquerade: bool = True
    policy: bool = False
    ports: tuple[int, ...] = (443,)

    @property
    def mark(self) -> str:
        """What is written into descriptions."""
        return f"edgekeeper:{self.owner}"

    def needs(self) -> dict[str, Prefix]:
        """Name of each resource that is needed, to its address: one for the network of Services, one for each address outside of it."""
        made: dict[str, Prefix] = {}
        if self.subnet is not None and (subnet := prefix(self.subnet)) is not None:
            made[self.resource] = subnet
        for address in sorted(set(self.addresses)):
            alone = prefix(address)
            if alone is not None and not any(_inside(alone, other) for other in made.values()):
                made[f"{self.resource}-{address}"] = alone
        return made


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier look has chosen: the id of the network, and of each resource by its name."""

    network: str = ""
    resources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is there. ``network`` is the chosen one; resources and routers are its own. ``everybody`` and ``policies`` only where a policy is wanted."""

    network: Network | None
    resources: tuple[Resource, ...] = ()
    routers: tuple[Router, ...] = ()
    group: Group | None = None
    everybody: Group | None = None
    policies: tuple[Policy, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One write, and why; ``id`` is that of what is changed."""

    act: Act
    body: Mapping[str, Any]
    why: str
    id: str = ""

    @property
    def text(self) -> str:
        """For people: ``make network edgekeeper: there is none``."""
        name = self.body.get("name", "")
        return f"{self.act} {name}: {self.why}" if name else f"{self.act}: {self.why}"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do next (after a step, decide again), the resources that can be used already, and what a person should know.

    ``lacking``: for each other name of a resource that is needed, why there is none; the text of the step that would make it.
    """

    steps: tuple[Step, ...]
    used: Mapping[str, Resource]
    lacking: Mapping[str, str]
    remarks: tuple[str, ...]


def prefix(text: str) -> Prefix | None:
    """An address or a network as the server may write it (bare, with host bits, in capitals), parsed; None for a name."""
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return None


def choose(networks: tuple[Network, ...], want: Want, known: Known) -> tuple[Network | None, str, tuple[str, ...]]:
    """The network to use, why none can be, and what to say about the choice. None without a why: there is none of the name, one is made.

    The one that was chosen before (a person may have renamed it), else the oldest of the name: ids grow with time. Not one that another
    edgekeeper has made: the routing peers of a network lead to all of its resources.
    """
    for one in networks:
        if one.id == known.network:
            renamed = one.name != want.network
            return one, "", ((f"network {want.network} is called {one.name} now; it is used all the same",) if renamed else ())
    named = sorted((one for one in networks if one.name == want.network), key=lambda one: (_whose(one.description) != want.owner, one.id))
    free = [one for one in named if _whose(one.description) in {want.owner, ""}]
    if named and not free:
        why = f"network {want.network} in the mesh belongs to edgekeeper {_whose(named[0].description)}; name another one in expose.netbird.network"
        return None, why, ()
    if not free:
        return None, "", ()
    several = (f"{len(free)} networks are called {want.network}; the one with id {free[0].id} is used",) if len(free) > 1 else ()
    return free[0], "", several


def decide(seen: Seen, want: Want, known: Known) -> Decision:
    """What to do next, so that there is a resource for each address, and a router to them."""
    if seen.network is None:
        gone = f"network {want.network} was deleted" if known.network else f"there is no network {want.network}"
        step = Step("make network", {"name": want.network, "description": want.mark}, gone)
        return Decision((step,), {}, dict.fromkeys(want.needs(), step.text), ())
    steps: list[Step] = []
    used: dict[str, Resource] = {}
    lacking: dict[str, str] = {}
    for name, address in want.needs().items():
        found = _resource(name, address, seen, want, known)
        match found:
            case Resource():
                used[name] = found
            case Step():
                steps.append(found)
                lacking[name] = found.text
            case str():
                lacking[name] = found
    router, remarks = _router(seen, want)
    steps += router
    remarks += [f"resource {one.name} is switched off in the mesh; hosts behind it do not answer until it is on" for one in used.values() if not one.enabled]
    if want.policy and not steps:
        steps += _policy(seen, want, used, remarks)
    return Decision(tuple(steps), used, lacking, tuple(remarks))


def fitting(want: Want, used: Mapping[str, Resource]) -> dict[str, Resource]:
    """Those of the resources (by name) that still are what is needed."""
    return {name: used[name] for name, address in want.needs().items() if name in used and prefix(used[name].address) == address}


def anchored(want: Want, used: Mapping[str, Resource], lacking: Mapping[str, str]) -> tuple[dict[str, Anchor], dict[str, str]]:
    """An anchor for each address that a resource (by its name) is there for; and for each other address, why there is none."""
    anchors: dict[str, Anchor] = {}
    missing: dict[str, str] = {}
    needs = want.needs()
    for address in want.addresses:
        alone = prefix(address)
        if alone is None:
            missing[address] = f"{address} is no address"
            continue
        name = next(name for name, net in needs.items() if _inside(alone, net))
        if name in used:
            anchors[address] = Anchor(used[name].id, "host" if used[name].type == "host" else "subnet")
        else:
            missing[address] = lacking.get(name, f"there is no resource {name}")
    return anchors, missing


def _resource(name: str, address: Prefix, seen: Seen, want: Want, known: Known) -> Resource | Step | str:
    """The resource for an address, or the step towards it, or why there can be none."""
    same = [one for one in seen.resources if prefix(one.address) == address]
    best = sorted(same, key=lambda one: (_whose(one.description) not in {want.owner, ""}, one.id != known.resources.get(name), one.name != name, one.id))
    if best and _whose(best[0].description) in {want.owner, ""}:
        return best[0]
    if best:
        return _others(best[0])
    named = next((one for one in seen.resources if one.id == known.resources.get(name)), None) or next(
        (one for one in seen.resources if one.name == name), None
    )
    if named is None:
        gone = f"resource {name} was deleted" if name in known.resources else f"there is none for {address}"
        return Step("make resource", {"name": name, "description": want.mark, "address": str(address), "enabled": True, "groups": []}, gone)
    if _whose(named.description) == want.owner:
        body = {**{key: value for key, value in named.raw.items() if key not in {"id", "type"}}, "address": str(address), "groups": list(named.groups)}
        why = f"its address is {named.address} and {address} is wanted; every connection through the proxies is cut once"
        return Step("change resource", body, why, named.id)
    if _whose(named.description):
        return _others(named)
    return f"resource {named.name} in the mesh leads to {named.address} in place of {address}; change it there, or name another one in expose.netbird.resource"


def _others(one: Resource) -> str:
    return (
        f"resource {one.name} ({one.address}) belongs to edgekeeper {_whose(one.description)}, whose routing peers lead elsewhere; "
        "name a network of its own in expose.netbird.network"
    )


def _router(seen: Seen, want: Want) -> tuple[list[Step], list[str]]:
    if want.router_group is None:
        none = seen.network is not None and not seen.routers
        return [], [f"network {want.network} has no routing peer, so no host answers; name their group in expose.netbird.router_group"] if none else []
    if seen.group is None:
        return [], [f"the mesh has no group {want.router_group}; no router is made until it has"]
    own = sorted((one for one in seen.routers if seen.group.id in one.groups), key=lambda one: (not one.enabled, one.id))
    if not own:
        body = {"peer_groups": [seen.group.id], "metric": want.metric, "masquerade": want.masquerade, "enabled": True}
        return [Step("make router", body, f"nothing routes through group {want.router_group}")], []
    remarks = [] if seen.group.peers else [f"group {want.router_group} has no peers, so no host answers until it has one"]
    first = own[0]
    if not first.enabled:
        return [], [*remarks, f"the router of group {want.router_group} is switched off in the mesh; no host answers until it is on"]
    wrong = [
        f"{key} is {have} and {need} is wanted"
        for key, have, need in (("metric", first.metric, want.metric), ("masquerade", first.masquerade, want.masquerade))
        if have != need
    ]
    if not wrong:
        return [], remarks
    if seen.network is None or _whose(seen.network.description) != want.owner:
        return [], [*remarks, f"the router of group {want.router_group} was not made by this edgekeeper and stays: {', '.join(wrong)}"]
    body = {**{key: value for key, value in first.raw.items() if key != "id"}, "metric": want.metric, "masquerade": want.masquerade}
    return [Step("change router", body, ", ".join(wrong), first.id)], remarks


def _policy(seen: Seen, want: Want, used: Mapping[str, Resource], remarks: list[str]) -> list[Step]:
    """A policy to each resource that none leads to. The proxies need none; it opens the resource's ports to every peer."""
    led = {rid for one in seen.policies for rid in one.resources}
    alone = {name: one for name, one in used.items() if one.id not in led}
    if alone and seen.everybody is None:
        remarks.append(f"the mesh has no group {EVERYBODY}; no policy is made")
        return []
    return [
        Step("make policy", _rule(name, one, seen.everybody.id, want), f"expose.netbird.policy asks for one to {one.address}")
        for name, one in alone.items()
        if seen.everybody is not None
    ]


def _rule(name: str, to: Resource, everybody: str, want: Want) -> dict[str, Any]:
    rule = {
        "name": name,
        "enabled": True,
        "action": "accept",
        "bidirectional": False,
        "protocol": "tcp",
        "ports": [str(port) for port in sorted(set(want.ports))],
        "sources": [everybody],
        "destinationResource": {"id": to.id, "type": to.type},
    }
    return {"name": name, "description": want.mark, "enabled": True, "rules": [rule]}


def _whose(description: str) -> str:
    """OWNER/CLUSTER of the mark in a description; "" without one."""
    found = _MARK.search(description)
    return found.group(1) if found else ""


def _inside(inner: Prefix, outer: Prefix) -> bool:
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]

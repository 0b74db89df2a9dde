"""The virtual routers of some hosts' configurations together, and how long a dead service keeps each VIP. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgekeeper.doctor.facts import KeepalivedFacts
from edgekeeper.engines.keepalived.cfg_health import Look, look
from edgekeeper.engines.keepalived.cfg_values import OWNER, Host, Instance, Script, Tracked
from edgekeeper.engines.keepalived.detection import Move, never, probe_sum, skew, why_stays


@dataclass(frozen=True, slots=True)
class Node:
    """One host's part in a virtual router."""

    host: Host
    instance: Instance

    @property
    def preempts(self) -> bool:
        """Whether it takes over from a living owner: ``nopreempt`` is taken back by ``state MASTER`` and by priority 255."""
        return not self.instance.nopreempt or self.instance.state == "MASTER" or self.instance.priority == OWNER

    @property
    def delay_s(self) -> float:
        """Its ``preempt_delay``, where it counts."""
        return 0.0 if self.instance.state == "MASTER" or self.instance.nopreempt else self.instance.preempt_delay_s

    @property
    def object(self) -> str:
        """What a finding is about."""
        return f"vrrp_instance {self.instance.name}".strip()


@dataclass(frozen=True, slots=True)
class Router:
    """The nodes that share one VRID on purpose: they name the same VIP, or each other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """One tracker of one node's VIP. ``weight`` 0 means FAULT; ``script`` None: a file, a process, BFD, an interface."""

    node: Node
    tracked: Tracked
    weight: int
    reverse: bool
    script: Script | None = None
    look: Look | None = None

    @property
    def is_service(self) -> bool:
        """Whether it looks at a service, not at the way to it."""
        return self.tracked.kind in {"script", "file", "process"}


@dataclass(frozen=True, slots=True)
class Fault:
    """How long a VIP stays with a service that fails at once, and with one that hangs (None: does not apply)."""

    watched: Watched
    script: Script
    fails: Move
    hangs: Move | None
    known: bool = True


def nodes(facts: KeepalivedFacts) -> tuple[Node, ...]:
    """Every instance of every host."""
    return tuple(Node(host, instance) for host in facts.hosts for instance in host.instances)


def routers(facts: KeepalivedFacts) -> tuple[Router, ...]:
    """Nodes by the virtual router that they are of; one of which only one host is known stands alone."""
    by_id: dict[tuple[int, int], list[list[Node]]] = {}
    alone: list[Router] = []
    for node in nodes(facts):
        if node.instance.vrid is None:
            alone.append(Router((node,)))
            continue
        groups = by_id.setdefault((node.instance.vrid, node.instance.family), [])
        joined = [group for group in groups if any(belong(node, other) for other in group)]
        merged = [*(one for group in joined for one in group), node]
        groups[:] = [group for group in groups if group not in joined] + [merged]
    return tuple(Router(tuple(group)) for groups in by_id.values() for group in groups) + tuple(alone)


def belong(one: Node, other: Node) -> bool:
    """Whether two instances of one VRID are of one virtual router: of different hosts, with a VIP in common or each other's peers."""
    if one.host is other.host:
        return False
    return bool(one.instance.own_vips & other.instance.own_vips) or names(one, other) or names(other, one)


def names(one: Node, other: Node) -> bool:
    """Whether one lists the other's source address as its peer."""
    source = other.instance.source
    return source is not None and source.ip is not None and any(peer.ip == source.ip for peer in one.instance.peers)


def watched(facts: KeepalivedFacts, node: Node) -> tuple[Watched, ...]:
    """What moves a node's VIP; weights in a sync group that has no ``sync_group_tracking_weight`` are ignored by keepalived, and left out here."""
    groups = node.host.groups_of(node.instance)
    weighted = all(group.weights for group in groups)
    out = []
    for tracked in node.host.tracked(node.instance):
        script = node.host.scripts.get(tracked.name) if tracked.kind == "script" else None
        watch = node.host.watches.get((tracked.kind, tracked.name))
        if tracked.kind in {"script", "file", "process"} and script is None and watch is None:
            continue  # keepalived ignores it, and says so
        base, turned = (script.weight, script.reverse) if script else (watch.weight, watch.reverse) if watch else (0, False)
        weight = base if tracked.weight is None else tracked.weight
        if weight and not weighted:
            continue
        seen = look(script, facts.text_of(script)) if script else None
        out.append(Watched(node, tracked, weight, turned if tracked.reverse is None else tracked.reverse, script, seen))
    return tuple(out)


def priority(node: Node, watching: Sequence[Watched], failed: Watched | None = None) -> int:
    """The priority of a node whose trackers are all well, or all but one."""
    if node.instance.priority == OWNER:
        return OWNER
    total = node.instance.priority
    for one in watching:
        if one.weight and one.tracked.kind != "file" and (one.weight > 0) == (one is not failed):
            total += -one.weight if one.reverse else one.weight
    return min(max(total, 1), OWNER - 1)


def faults(facts: KeepalivedFacts, router: Router) -> Iterator[Fault]:
    """For each script of each node that can be the owner: what a dead service costs."""
    watching = {id(node): watched(facts, node) for node in router.nodes}
    well = {id(node): priority(node, watching[id(node)]) for node in router.nodes}
    for node in owners(router, well):
        others = [other for other in router.nodes if other is not node]
        for one in watching[id(node)]:
            if one.script is not None and not one.reverse:
                yield _fault(one, one.script, watching, well, others)


def owners(router: Router, well: Mapping[int, int]) -> tuple[Node, ...]:
    """The nodes that may own a VIP while another is well: those of the highest priority, and any that a ``nopreempt`` lets be."""
    best = max(well.values())
    return tuple(node for node in router.nodes if well[id(node)] == best or any(not other.preempts for other in router.nodes if other is not node))


def _fault(one: Watched, script: Script, watching: Mapping[int, Sequence[Watched]], well: Mapping[int, int], others: Sequence[Node]) -> Fault:
    node = one.node
    instance = node.instance
    if one.weight and instance.priority == OWNER:
        why = "never: weights are ignored at priority 255"
        return Fault(one, script, never(why), never(why) if one.look and one.look.can_hang else None)
    if one.weight and others:
        failed = priority(node, watching[id(node)], one)
        stays = why_stays(failed, tuple((well[id(other)], not other.preempts) for other in others))
        if stays is not None:
            why = f"never: priority {well[id(node)]} sinks to {failed} when {script.name} fails; {stays}"
            return Fault(one, script, never(why), never(why) if one.look and one.look.can_hang else None)
    takers = [other for other in others if not one.weight or other.preempts] or others
    taker = max(takers, key=lambda other: well[id(other)], default=None)
    advert = instance.advert_s
    most = skew(well[id(taker)], advert, instance.version) if taker else skew(1, advert, instance.version)
    least = most if taker else 0.0
    delay = taker.delay_s if taker and one.weight else 0.0

    def added(takes_s: float) -> Move:
        return probe_sum(
            script.interval_s, script.fall, takes_s, most, weight=one.weight, advert_s=advert,
            down_adverts=(taker or node).instance.down_adverts, delay_s=delay, skew_least_s=least,
        )  # fmt: skip

    return Fault(one, script, added(0.0), _hangs(script, one.look, added), known=bool(others) or not one.weight)


def _hangs(script: Script, seen: Look | None, added: Callable[[float], Move]) -> Move | None:
    """What a hang costs: the script's own limit where it is known, else keepalived's, and never where ending it counts as a success."""
    if seen is None or not seen.can_hang:
        return None
    own = seen.limit_s
    if own is not None and own < script.limit_s:
        return added(own)
    if seen.may_end_well:
        return never(f"never: {script.argv[0]} ends with 0 when keepalived ends it after {script.limit_s:g} s, which counts as a success")
    return added(script.limit_s)

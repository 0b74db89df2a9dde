"""Hosts that share VIPs must agree: VRIDs (VRP001, VRP002), priorities (VRP003, VRP005), preemption (VRP004), peers (VRP006), adverts (VRP011). Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from edgekeeper.doctor.check import NO_VIP_LINTER, Check, Needs, Page
from edgekeeper.doctor.checks.vip_words import change, listed, setting, where
from edgekeeper.doctor.facts import KeepalivedFacts
from edgekeeper.doctor.vips import Node, Router, names, nodes, routers
from edgekeeper.engines.keepalived.cfg_values import OWNER
from edgekeeper.model.finding import Finding, Severity

MOST_ALIKE = 100
"""Instances of one VRID that are compared with each other."""

VRP001_PAGE = Page(
    what="""
Two hosts with the same `virtual_router_id` whose instances name different VIPs: they have some VIPs in common, or are each other's unicast peers, or use multicast
and have VIPs in one network. Only `virtual_ipaddress` counts, `virtual_ipaddress_excluded` is not in the adverts.
""",
    why="""
A VRID is all that tells one virtual router from another on a segment. Measured with VRRP 2 and 3, one VIP in common or none: keepalived 2.2.7 throws the others' adverts away, and both hosts become MASTER
and hold what they share at once; 2.3.4 takes them for its own, and the VIPs that only the host of the lower priority names are nowhere.
""",
    fix="The same VIPs in the same instance on all hosts of one virtual router; another VRID for another one. All configurations of a segment have to be known to be sure.",
    others=f"`keepalived -t` reads one host only. {NO_VIP_LINTER}",
)
VRP002_PAGE = Page(
    what="One VRID twice on one interface for one address family in one configuration, unless both are unicast with different peers, or are told apart by multicast groups.",
    why="keepalived drops the second instance, with a line in its log: its VIP is nowhere on this host, and the other host is never relieved of it.",
    fix="A VRID of its own for each instance of a segment, the same on all hosts.",
    others=f"`keepalived -t` says it and exits 5; a real start goes on without the instance. {NO_VIP_LINTER}",
)
VRP003_PAGE = Page(
    what="`priority 255`, or `state MASTER` without any priority, which means 255.",
    why="""
255 says that the address is the host's own. keepalived then ignores `nopreempt` and every weight: a check that should lower the priority does nothing, and the host takes
the VIP at once whenever it starts, ready or not.
""",
    fix="At most 254: `priority 254` for the first host, 253 for the second. The closer to 255, the shorter a clean hand-over: (256 - priority) / 256 of an advert.",
    others=f"`keepalived -t` accepts it. {NO_VIP_LINTER}",
)
VRP004_PAGE = Page(
    what="`nopreempt` or `preempt_delay` together with `state MASTER`, or both of them at once.",
    why="""
keepalived says one line and clears them: the host that comes back after a crash takes its VIP back at once, while its services still start. It is the second outage of
every failure, and exactly what `nopreempt` was written to avoid.
""",
    fix="`state BACKUP` on all hosts; the priority alone elects the first owner.",
    others=f"`keepalived -t` says it and exits 5, which a start does not mind. {NO_VIP_LINTER}",
)
VRP005_PAGE = Page(
    what="Two hosts of one virtual router with the same priority.",
    why="""
The tie is broken by the higher source address, which nobody remembers; with weights, a host that sinks to the priority of the other keeps its VIP, since a backup takes
over only from a lower one.
""",
    fix="Priorities that differ by one: 254, 253, 252.",
    others=f"`keepalived -t` reads one host only. {NO_VIP_LINTER}",
)
VRP006_PAGE = Page(
    what="""
Unicast peers that do not answer each other: a host lists another that does not list it; a source address that is in nobody's list; one host with unicast
and one with multicast; a host in its own list of peers; a peer of the other address family.
""",
    why="""
Adverts go one way only: the host that hears none becomes MASTER beside the other one, and both hold the VIP. A host in its own list hears itself.
""",
    fix="On each host its own address as `unicast_src_ip`, and all the others, and only them, in `unicast_peer`.",
    others=f"`keepalived -t` says nothing of a host in its own list (2.2.7, 2.3.4). {NO_VIP_LINTER}",
)
VRP011_PAGE = Page(
    what="`advert_int` that differs between the hosts of one virtual router; one that VRRP version 2 cannot carry (fractions), or version 3 cannot (less than 10 ms steps); versions that differ.",
    why="""
In version 2 an advert with another interval is thrown away: both hosts become MASTER and hold the VIP (measured with 2.2.7 and 2.3.4). In version 3 the backup takes over the owner's interval, so that what is written there is not
what holds. keepalived rounds a fraction in version 2 to whole seconds, so a failover that was meant to take half a second takes four.
""",
    fix="The same `advert_int` everywhere; `vrrp_version 3` in `global_defs` for anything below a second.",
    others=f"`keepalived -t` says that it rounds. {NO_VIP_LINTER}",
)


def foreign(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP001."""
    by_id: dict[tuple[int, int], list[Node]] = {}
    for node in nodes(facts):
        if node.instance.vrid is not None and node.instance.own_vips and not _unresolved(node):
            by_id.setdefault((node.instance.vrid, node.instance.family), []).append(node)
    for alike in by_id.values():
        for one, other in itertools.combinations(alike[:MOST_ALIKE], 2):
            if one.host is not other.host and one.instance.own_vips != other.instance.own_vips:
                yield from _foreign(facts, one, other)


def _foreign(facts: KeepalivedFacts, one: Node, other: Node) -> Iterator[Finding]:
    a, b = one.instance, other.instance
    heard = names(one, other) or names(other, one)
    shared = bool(a.own_vips & b.own_vips)
    multicast = not a.peers and not b.peers
    if not heard and not shared and not (multicast and _one_network(one, other)):
        return
    yield Finding(
        id="VRP001",
        severity=Severity.CRIT,
        object=one.object,
        what=f"VRID {a.vrid} stands for other VIPs here than in {where(one, other)}",
        evidence=f"{listed(sorted(a.own_vips))} here, {listed(sorted(b.own_vips))} at {b.at('virtual_ipaddress').text()}",
        why="2.2.7: both become MASTER, and hold what they share at once; 2.3.4: what only the lower priority names is nowhere",
        fix=change(b.at("virtual_router_id"), f"virtual_router_id {_free(facts)}") if not shared and not heard else _same_vips(one, other),
        refs=("RFC 9568, section 7.1",),
        place=a.at("virtual_ipaddress"),
    )


def _same_vips(one: Node, other: Node) -> str:
    missing = sorted(other.instance.own_vips - one.instance.own_vips)
    place = one.instance.at("virtual_ipaddress")
    if missing:
        return f"{place.text()}: below this line, in {one.object}, add:\n" + "\n".join(
            f"    {vip.text}{f' dev {vip.dev}' if vip.dev else ''}" for vip in other.instance.vips if vip.ip in missing
        )
    place = other.instance.at("virtual_ipaddress")
    return f"{place.text()}: name the same VIPs as {place.file} does not have: {listed(sorted(one.instance.own_vips - other.instance.own_vips))}"


def _free(facts: KeepalivedFacts) -> int:
    taken = {node.instance.vrid for node in nodes(facts)}
    return next((vrid for vrid in range(1, 256) if vrid not in taken), 255)


def _unresolved(node: Node) -> bool:
    return any(vip.ip is None for vip in node.instance.vips)


def _one_network(one: Node, other: Node) -> bool:
    """Whether a VIP of one lies in the network of a VIP of the other."""
    mine = [vip.interface for vip in one.instance.vips]
    theirs = [vip.interface for vip in other.instance.vips]
    return any(a is not None and b is not None and a.version == b.version and (a.ip in b.network or b.ip in a.network) for a in mine for b in theirs)


def twice(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP002."""
    for host in facts.hosts:
        taken: dict[tuple[int, int, str | None], list[Node]] = {}
        for node in (Node(host, instance) for instance in host.instances):
            instance = node.instance
            if instance.vrid is None or "mcast_dst_ip" in instance.places:
                continue
            others = taken.setdefault((instance.vrid, instance.family, instance.interface), [])
            first = next((other for other in others[:MOST_ALIKE] if _clash(other, node)), None)
            others.append(node)
            if first is None:
                continue
            yield Finding(
                id="VRP002",
                severity=Severity.HIGH,
                object=node.object,
                what=f"VRID {instance.vrid} is already that of {first.object} on {instance.interface or 'the same interface'}",
                evidence=f"virtual_router_id {instance.vrid} at {first.instance.at('virtual_router_id').text()} and {instance.at('virtual_router_id').text()}",
                why="keepalived drops one of the two: its VIP is nowhere on this host",
                fix=change(instance.at("virtual_router_id"), f"virtual_router_id {_free(facts)}"),
                place=instance.at("virtual_router_id"),
            )


def _clash(one: Node, other: Node) -> bool:
    """Whether two instances of one VRID on one interface hear each other's adverts: unicast ones with different peers do not."""
    mine, theirs = one.instance.peers, other.instance.peers
    return not (mine and theirs) or bool({peer.ip for peer in mine} & {peer.ip for peer in theirs})


def owner(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP003."""
    for node in nodes(facts):
        instance = node.instance
        if instance.priority == OWNER:
            said = "priority" in instance.places
            yield Finding(
                id="VRP003",
                severity=Severity.WARN,
                object=node.object,
                what=f"priority 255: {'said' if said else 'state MASTER without a priority means it'}",
                evidence="priority 255" if said else "state MASTER, and no priority",
                why="nopreempt and every weight are ignored at 255: no check can lower it, and it takes the VIP at once when it starts",
                fix=setting(node, "priority", "254"),
                place=instance.at("priority" if said else "state"),
            )


def cleared(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP004."""
    for node in nodes(facts):
        instance = node.instance
        said = [name for name in ("nopreempt", "preempt_delay") if name in instance.places and (instance.nopreempt or name != "nopreempt")]
        if not said or (instance.state != "MASTER" and len(said) < 2):
            continue
        master = instance.state == "MASTER"
        yield Finding(
            id="VRP004",
            severity=Severity.WARN,
            object=node.object,
            what=f"{' and '.join(said)} {'are' if len(said) > 1 else 'is'} cleared by state MASTER" if master else "preempt_delay is cleared by nopreempt",
            evidence=f"state MASTER, {' and '.join(said)}" if master else "nopreempt and preempt_delay",
            why="a host that comes back takes its VIP back at once, while its services still start" if master else "one of the two does not do what it says",
            fix=setting(node, "state", "BACKUP") if master else f"{instance.at('preempt_delay').text()}: take this line away, or nopreempt",
            place=instance.at(said[0] if master else "preempt_delay"),
        )


def equal(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP005."""
    for router in routers(facts):
        for one, other in itertools.combinations(router.nodes[:MOST_ALIKE], 2):
            if one.instance.priority == other.instance.priority:
                yield Finding(
                    id="VRP005",
                    severity=Severity.WARN,
                    object=other.object,
                    what=f"the same priority as {where(other, one)}",
                    evidence=f"priority {one.instance.priority} at {one.instance.at('priority').text()} and {other.instance.at('priority').text()}",
                    why="the higher source address decides, and a weight that lowers one to the other's priority moves nothing",
                    fix=setting(other, "priority", str(max(1, other.instance.priority - 1))),
                    place=other.instance.at("priority"),
                )


def deaf(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP006."""
    for node in nodes(facts):
        yield from _itself(node)
    for router in routers(facts):
        for one, other in itertools.permutations(router.nodes[:MOST_ALIKE], 2):
            yield from _one_way(one, other)


def _itself(node: Node) -> Iterator[Finding]:
    instance = node.instance
    for peer in instance.peers:
        own = instance.source is not None and peer.ip is not None and peer.ip == instance.source.ip
        alien = peer.family is not None and instance.source is not None and instance.source.family not in {None, peer.family}
        if own or alien:
            yield Finding(
                id="VRP006",
                severity=Severity.HIGH,
                object=node.object,
                what=f"its own address {peer.ip} is in its list of peers" if own else f"the peer {peer.text} is of another address family than the source",
                evidence=f"unicast_src_ip {instance.source.text if instance.source else ''}, unicast_peer {peer.text}",
                why="a host in its own list hears itself, and what was meant to stand there hears nothing"
                if own
                else "keepalived skips it: that host hears nothing",
                fix=f"{peer.place.text()}: take this line away, or write the address of the host that was meant",
                place=peer.place,
            )


def _one_way(one: Node, other: Node) -> Iterator[Finding]:
    """What ``one`` has to say about ``other``: both ways of a pair are asked."""
    a, b = one.instance, other.instance
    if a.peers and not b.peers:
        yield Finding(
            id="VRP006",
            severity=Severity.HIGH,
            object=other.object,
            what=f"multicast here, unicast in {where(other, one)}",
            evidence=f"unicast_peer at {a.at('unicast_peer').text()}, none here",
            why="neither hears the other: both become MASTER",
            fix=f"{b.place.text()}: in {other.object}, give unicast_src_ip and unicast_peer as the other host does",
            place=b.place,
        )
    elif a.peers and b.peers and b.source is not None and b.source.ip is not None and not names(one, other) and all(p.ip for p in a.peers):
        mutual = names(other, one)
        yield Finding(
            id="VRP006",
            severity=Severity.HIGH,
            object=one.object,
            what=f"{b.source.ip} of {where(one, other)} is not in its list of peers{', but lists this one' if mutual else ''}",
            evidence=f"unicast_peer {listed([peer.text for peer in a.peers])}; unicast_src_ip {b.source.text} at {b.source.place.text()}",
            why="adverts go one way only: the host that hears none becomes MASTER beside the other",
            fix=f"{a.at('unicast_peer').text()}: below this line, in {one.object}, add:\n    {b.source.ip}",
            place=a.at("unicast_peer"),
        )


def adverts(facts: KeepalivedFacts) -> Iterator[Finding]:
    """VRP011."""
    for node in nodes(facts):
        instance = node.instance
        if instance.version == 2 and instance.advert_said_s != instance.advert_s:
            yield Finding(
                id="VRP011",
                severity=Severity.WARN,
                object=node.object,
                what=f"advert_int {instance.advert_said_s:g} becomes {instance.advert_s:g}: VRRP version 2 knows whole seconds only",
                evidence=f"advert_int {instance.advert_said_s:g}, version 2 ({'said' if 'version' in instance.places else 'nothing else is said'})",
                why="a failover takes three of them: seconds, not the tenths that were meant",
                fix=setting(node, "version", "3"),
                place=instance.at("advert_int"),
            )
    for router in routers(facts):
        yield from _unlike(router)


def _unlike(router: Router) -> Iterator[Finding]:
    first, *rest = router.nodes
    for other in rest:
        a, b = first.instance, other.instance
        name = "version" if a.version != b.version else "advert_int" if a.advert_s != b.advert_s else None
        if name is None:
            continue
        mine, theirs = (str(b.version), str(a.version)) if name == "version" else (f"{b.advert_s:g}", f"{a.advert_s:g}")
        lost = name == "version" or a.version == 2
        yield Finding(
            id="VRP011",
            severity=Severity.HIGH if lost else Severity.WARN,
            object=other.object,
            what=f"{name} {mine} here, {theirs} in {where(other, first)}",
            evidence=f"{a.at(name).text()} and {b.at(name).text()}",
            why="adverts of another version or interval are thrown away: both become MASTER"
            if lost
            else "the owner's interval counts, so this one holds only while it owns",
            fix=setting(other, name, theirs),
            place=b.at(name),
        )


CHECKS = (
    Check("VRP001", Severity.CRIT, "One VRID stands for different VIPs", Needs.VIPS, VRP001_PAGE, foreign),
    Check("VRP002", Severity.HIGH, "One VRID twice on one interface", Needs.VIPS, VRP002_PAGE, twice),
    Check("VRP003", Severity.WARN, "Priority 255: no check can lower it", Needs.VIPS, VRP003_PAGE, owner),
    Check("VRP004", Severity.WARN, "nopreempt or preempt_delay that does not count", Needs.VIPS, VRP004_PAGE, cleared),
    Check("VRP005", Severity.WARN, "Equal priorities", Needs.VIPS, VRP005_PAGE, equal),
    Check("VRP006", Severity.HIGH, "Unicast peers that do not hear each other", Needs.VIPS, VRP006_PAGE, deaf),
    Check("VRP011", Severity.HIGH, "Adverts that the others throw away or round", Needs.VIPS, VRP011_PAGE, adverts),
)

"""What a change of the topology costs. Pure. keepalived takes nothing over a wire: it reads its file again, which loses no client (0 of 240, 2.2.7 and 2.3.4)."""

from __future__ import annotations

from edgekeeper.engines.keepalived.topology import Topology
from edgekeeper.ports import Change, Cost


def change(old: Topology, new: Topology) -> Change:
    """What getting from ``old`` to ``new`` costs, with the first difference as its reason."""
    if old == new:
        return Change(Cost.NOTHING, "none", "nothing changes")
    return Change(Cost.RELOAD, *_difference(old, new))


def renumbered(old: Topology, new: Topology) -> str | None:
    """Why the new topology would give a VIP another VRID than it has, or None: two nodes would then hold it, each under a VRID of its own."""
    before = {instance.ip: instance.vrid for instance in old.instances}
    for instance in new.instances:
        was = before.get(instance.ip)
        if was is not None and was != instance.vrid:
            return (
                f"the VRID of {instance.ip} would become {instance.vrid} instead of {was}; nodes that still use {was} would own it too. "
                "Remove the VIP from all nodes first, or keep its VRID"
            )
    return None


def _difference(old: Topology, new: Topology) -> tuple[str, str]:
    before = {instance.name: instance for instance in old.instances}
    after = {instance.name: instance for instance in new.instances}
    added, gone = [n for n in after if n not in before], [n for n in before if n not in after]
    if added or gone:
        told = [f"{' and '.join(names)} {what}" for names, what in ((added, "added"), (gone, "removed")) if names]
        return "vips", f"VIPs: {', '.join(told)}"
    for name, instance in after.items():
        was = before[name]
        if was.peers != instance.peers:
            return "peers", f"the peers of {name} are {', '.join(instance.peers)}"
        if was != instance:
            field = next(f for f in instance.__slots__ if getattr(was, f) != getattr(instance, f))
            return "vips", f"the {field} of {name} changed"
    return "other", "global settings changed"

"""What must hold between the watches and the nodes: who probes whom, and who shares a budget. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgekeeper.config.ops import Peer
from edgekeeper.config.watch import Group, Watch

Broken = tuple[tuple[str | int, ...], str]


def watch_rules(watches: Sequence[Watch], node: str | None, nodes: Mapping[str, Peer]) -> tuple[Broken, ...]:
    """Every rule that the section breaks: where in it, and what to do."""
    out: list[Broken] = []
    names = [watch.name for watch in watches]
    out += [((i, "name"), f"the name {name} is taken by another watch") for i, name in enumerate(names) if name in names[:i]]
    first: dict[str, Watch] = {}
    for i, watch in enumerate(watches):
        group = watch.group
        if group is None:
            if watch.probe is not None and watch.probe.from_ != "node":
                out.append(((i, "probe", "from"), f"from: {watch.probe.from_} needs a group whose members probe each other; say group, or from: node"))
            continue
        out += [((i, *where), what) for where, what in _group(watch, group, node, nodes)]
        same = first.setdefault(group.name, watch)
        if same is not watch and same.budget != watch.budget:
            out.append(((i, "budget"), f"the budget of group {group.name} is shared, but the watch {same.name} says another one"))
    return tuple(out)


def _group(watch: Watch, group: Group, node: str | None, nodes: Mapping[str, Peer]) -> list[Broken]:
    out: list[Broken] = []
    if node is not None and group.members and node not in group.members:
        out.append((("group", "members"), f"this node, {node}, is not among them: {', '.join(group.members)}"))
    for name in group.members:
        if name not in nodes:
            out.append((("group", "members", name), f"{name} is not among nodes:, so it cannot be heard; add it there with its ops address"))
        elif name != node and not nodes[name].ops:
            out.append((("group", "members", name), f"{name} has no ops address in nodes:, so it cannot be heard"))
    if watch.probe is not None and watch.probe.from_ != "node":
        if group.members and watch.probe.from_ != "peer" and watch.probe.from_ not in group.members:
            out.append((("probe", "from"), f"{watch.probe.from_} is not among the members: {', '.join(group.members)}"))
        if not group.members:
            out.append((("group", "members"), f"from: {watch.probe.from_} needs members that probe each other; name them"))
        if node in group.members and not group.members[node]:
            out.append((("group", "members", node), f"{node} has no URL, so that the others could probe it; say {node}: tls://ADDRESS:443?sni=NAME"))
    return out

"""``edgekeeper vip owner``: who holds each VIP, asked of all nodes."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.context import Settings, settings
from edgekeeper.cli.output import Cell, Format, Tone, complain, say_json, table
from edgekeeper.errors import EdgekeeperError, MissingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgekeeper.cli.ask import Told
    from edgekeeper.config.kubernetes import Kubernetes
    from edgekeeper.config.load import Loaded
    from edgekeeper.config.vip import Vips
    from edgekeeper.vip.owner import Answer, Owner, Row

_AGAIN_S = 0.7
"""Nodes are not asked in the same instant: a VIP that moves just then has two owners, or none, for a moment. A second look tells."""
_WIRE_S = 0.6


def owner(
    ctx: typer.Context,
    wire: Annotated[bool, typer.Option("--wire", help="Also ask the wire who claims each VIP (ARP, neighbour discovery; needs root).")] = False,
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """Who holds each VIP: all nodes are asked what their kernel has; where a cluster moves the VIPs, the cluster.

    Exit code 1 when a VIP has two owners or none, 6 when no node could be asked.
    """
    import asyncio

    chosen = settings(ctx)
    loaded = chosen.load_role("vip")
    assert loaded.root.vip is not None  # noqa: S101 - load_role has checked it
    if loaded.root.vip.provider != "keepalived":
        _show_cluster(loaded.root.vip, asyncio.run(_of_cluster(loaded.root.vip, loaded.root.kubernetes)), output)
        return
    told, answers, rows = asyncio.run(_look(loaded, chosen, wire=wire))
    if all(answer.vips is None for answer in answers):
        msg = f"no node could be asked who holds the VIPs: {'; '.join(dict.fromkeys(answer.why for answer in answers))}"
        raise MissingError(msg)
    if output is Format.JSON:
        ages = {one.node: one.age_s for one in told}
        nodes = [{"node": a.node, "answered": a.vips is not None, "age_s": ages.get(a.node), "why": a.why} for a in answers]
        say_json({"vips": [_document(row) for row in rows], "nodes": nodes})
    else:
        head = ["VIP", "OWNER", "SINCE", "PRIORITIES", *(["WIRE"] if wire else []), "NOTE"]
        table(head, [_cells(row, wire=wire) for row in rows])
        complain(*(f"{a.node} did not say: {a.why}" for a in answers if a.vips is None))
    from edgekeeper.vip.owner import well

    if not well(rows):
        raise typer.Exit(1)


def _show_cluster(vips: Vips, owners: Mapping[str, Owner], output: Format) -> None:
    """The owners that a cluster names; MissingError when it names none at all, exit code 1 when it does not name all of them."""
    unknown = [name for name, owner in owners.items() if owner.node is None]
    if len(unknown) == len(owners):
        msg = f"the owner of {', '.join(owners)} is unknown: {'; '.join(dict.fromkeys(owner.why for owner in owners.values()))}"
        raise MissingError(msg)
    if output is Format.JSON:
        rows = [
            {"vip": v.name, "address": v.address, "owner": (o := owners[v.name]).node, "since": o.since, "lease_age_s": _rounded(o.age_s), "why": o.why}
            for v in vips.vips
        ]
        say_json({"provider": vips.provider, "vips": rows})
    else:
        table(
            ["VIP", "OWNER", "SINCE", "LEASE AGE", "NOTE"],
            [
                [name, Cell(o.node or "unknown", Tone.GOOD if o.node else Tone.BAD), _time(o.since), "-" if o.age_s is None else f"{o.age_s:.0f} s", o.why]
                for name, o in owners.items()
            ],
        )
    if unknown:
        raise typer.Exit(1)


async def _of_cluster(vips: Vips, kubernetes: Kubernetes) -> Mapping[str, Owner]:
    """What the cluster says of the owners of the VIPs that it moves."""
    from edgekeeper.host.clock import SystemClock
    from edgekeeper.kube.client import connect
    from edgekeeper.vip.owner_cluster import Asked
    from edgekeeper.vip.provider_kube import KubeProvider
    from edgekeeper.vip.service import bare

    try:
        made = connect(kubernetes)
    except MissingError as err:
        msg = f"the owner of {', '.join(vip.name for vip in vips.vips)} is unknown: {err}"
        raise MissingError(msg) from err
    async with made as api:
        source = Asked(api, vips.provider, [bare(vip) for vip in vips.vips], SystemClock())
        return await KubeProvider(vips.provider, vips.vips, source).owners()


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


async def _look(loaded: Loaded, chosen: Settings, *, wire: bool) -> tuple[list[Told], list[Answer], tuple[Row, ...]]:
    """Ask all nodes; once more when a VIP seems to have two owners, or none, as it does while it moves."""
    import asyncio

    from edgekeeper.cli.ask import ask_all
    from edgekeeper.vip.owner import table as owners
    from edgekeeper.vip.owner import well

    vips = loaded.root.vip
    assert vips is not None  # noqa: S101 - load_role has checked it
    wanted = {vip.name: vip.address for vip in vips.vips}
    order = list(loaded.root.nodes)

    async def once() -> tuple[list[Told], list[Answer], tuple[Row, ...]]:
        told = await ask_all(loaded, chosen, "vip")
        told.sort(key=lambda one: order.index(one.node) if one.node in order else -1)  # the same table on every node
        answers = [answer(one) for one in told]
        return told, answers, owners(answers, wanted)

    told, answers, rows = await once()
    if not well(rows) and any(one.vips is not None for one in answers):
        await asyncio.sleep(_AGAIN_S)
        told, answers, rows = await once()
    if wire:
        here = chosen.this_node(loaded)
        rows = tuple([await _asked_on_the_wire(row, vips, here) for row in rows])
    return told, answers, rows


def answer(told: Told) -> Answer:
    """What a node's status says of the VIPs."""
    from edgekeeper.vip.owner import Answer
    from edgekeeper.vip.peersay import read

    if told.status is None:
        return Answer(told.node, None, told.why)
    vips, why = read(told.node, told.status)
    return Answer(told.node, None if why else vips, why)


async def _asked_on_the_wire(row: Row, vips: Vips, here: str) -> Row:
    from edgekeeper.host.neighbour import ask
    from edgekeeper.vip.owner import with_wire

    interface = next((vips.interface_of(vip) for vip in vips.vips if vip.name == row.vip), None)
    if interface is None:
        return replace(row, notes=(*row.notes, "not asked on the wire: its interface is not known here"))
    try:
        macs = await ask(interface, str(ipaddress.ip_interface(row.address).ip), _WIRE_S)
    except EdgekeeperError as err:
        return replace(row, notes=(*row.notes, str(err)))
    return with_wire(row, macs, held_here=here in row.owners)


def _cells(row: Row, *, wire: bool) -> list[str | Cell]:
    tone = Tone.GOOD if row.count == "one" else Tone.BAD
    shown = ", ".join(row.owners) or "nobody"
    priorities = " ".join(f"{node}={'?' if value is None else value}" for node, value in row.priorities.items())
    claims = ["-" if row.macs is None else " ".join(row.macs) or "nobody else"] if wire else []
    return [row.vip, Cell(shown, tone), _time(row.since), priorities, *claims, "; ".join(row.notes)]


def _time(since: float | None) -> str:
    return "-" if since is None else datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _document(row: Row) -> dict[str, Any]:
    return {
        "vip": row.vip,
        "address": row.address,
        "count": str(row.count),
        "owners": list(row.owners),
        "since": row.since,
        "priorities": dict(row.priorities),
        "notes": list(row.notes),
        "macs": None if row.macs is None else list(row.macs),
    }

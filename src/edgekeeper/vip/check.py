"""The vip section of a config, rendered for this node and judged by the installed keepalived. Nothing outside a temporary folder is written."""

from __future__ import annotations

import tempfile
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.config.vip import Vips
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Place, Topology, build
from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.host import addresses, sysctl
from edgekeeper.host.files import read_text
from edgekeeper.model.verdict import EngineVerdict
from edgekeeper.supervise.ask import refusal_of
from edgekeeper.vip.build import Build, detect, program, script_user
from edgekeeper.vip.desired import advice, without_ops
from edgekeeper.vip.place import of_nodes, of_peers, read_peers


def place_of(root: Root, node: str) -> Place:
    """This node among the others; an EdgekeeperError when it cannot be known."""
    vips = root.vip
    assert vips is not None  # noqa: S101 - the caller has checked it
    if vips.peers is None:
        return of_nodes(vips, node, root.nodes)
    return of_peers(vips, node, root.nodes, read_peers(read_text(vips.peers.file)))


def topology_of(root: Root, node: str, found: Build, folder: str) -> Topology:
    """What would be asked of keepalived."""
    vips = root.vip
    assert vips is not None  # noqa: S101 - the caller has checked it
    return build(vips, node, place_of(root, node), folder, program(), script_user(vips), hmac=found.features.hmac)


def notes_of(vips: Vips, topology: Topology, found: Build) -> tuple[str, ...]:
    """What a person should know of this topology on this keepalived, whoever asks: sums, and what it cannot do."""
    return advice(
        topology, found.features, legacy=vips.legacy, hmac_asked=vips.hmac_key_file is not None, user=topology.script_user, budget_s=vips.budget
    )  # fmt: skip


async def verdict(root: Root, node: str) -> EngineVerdict:
    """Render the vip role of a node and ask keepalived. MissingError when it is not installed."""
    vips = root.vip
    assert vips is not None  # noqa: S101 - the caller has checked it
    if vips.provider != "keepalived":
        return EngineVerdict(
            "",
            None,
            (
                f"vip: {vips.provider} moves the VIPs; nothing is rendered for this node, `edgekeeper vip render` prints what its Service needs, `vip run` looks on",
            ),
            (),
        )
    doubts: list[str] = []
    with tempfile.TemporaryDirectory(prefix="edgekeeper-check-") as folder:
        try:
            found = await detect(vips, Path(folder))
        except MissingError as err:
            msg = f"{err}; the config is valid, what keepalived says of it is not known"
            raise MissingError(msg) from err
        try:
            topology = topology_of(root, node, found, folder)
        except EdgekeeperError as err:
            return EngineVerdict(f"keepalived {found.features.text}", str(err), (), ())
        absent = sorted({i.interface for i in topology.instances} - set(addresses.interfaces()))
        refusal = None
        if absent:
            doubts.append(f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} no interface of this machine, so keepalived's check is not judged here")
        else:
            refusal = await refusal_of(found.engine, found.engine.files(topology, Seat(folder)))
    told = notes_of(vips, topology, found)
    slips = [i.interface for i in topology.instances if ":" not in i.ip and not _promotes(i.interface)]
    if slips:
        told = (
            *told,
            f"{slips[0]} has promote_secondaries 0: a VIP that came before the node's own address takes that along when it leaves; sysctl -w net.ipv4.conf.all.promote_secondaries=1",
        )
    silent = without_ops([name for name, peer in root.nodes.items() if name != node and peer.ops is None])
    return EngineVerdict(f"keepalived {found.features.text}", refusal, (*told, *([silent] if silent else [])), tuple(doubts))


def _promotes(interface: str) -> bool:
    """Whether the kernel keeps the other addresses of a network when its first one goes; yes where that cannot be told."""
    try:
        return any(sysctl.read("ipv4", name, "promote_secondaries") for name in ("all", interface))
    except EdgekeeperError:
        return True

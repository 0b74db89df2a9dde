"""Who moves the VIPs: edgekeeper by its command line on each node, or a plain keepalived as a unit file would start it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgekeeper.lab import plain_keepalived
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.faults import engines_in
from edgekeeper.lab.outcome import Side
from edgekeeper.lab.plain_keepalived import FIELD, Check, Manner, Vip
from edgekeeper.lab.product import Home, Product, swap
from edgekeeper.lab.topology import NODE_ADDRESSES, NODE_ADDRESSES6, NODES
from edgekeeper.lab.vips import Lan

OPS_PORT = 8085
TOKEN = "lab-peers-token"  # noqa: S105 - of namespaces that are gone in a minute


class PlainNode:
    """keepalived on one node, with the config of ``lab.plain_keepalived``."""

    def __init__(self, lan: Lan, node: str, *, advert_s: float, check: Check | None, manner: Manner) -> None:
        self.lan = lan
        self.node = node
        self.folder = lan.stage.folder / node
        self.folder.mkdir(exist_ok=True)
        index = NODES.index(node)
        addresses = dict(zip(NODES, zip(NODE_ADDRESSES, NODE_ADDRESSES6, strict=True), strict=True))
        peers = tuple(addresses[n] for n in lan.nodes if n != node)
        self.plain = plain_keepalived.Plain(index, addresses[node], peers, lan.vips, str(self.folder), advert_s, check, manner)
        self.actor: Actor | None = None
        self._starts = 0

    def write(self) -> Path:
        """Write the config and the track files."""
        for vip in self.plain.vips if self.plain.manner.drain is not None else ():
            self.weigh(vip, 0)
        path = self.folder / "keepalived.conf"
        path.write_text(plain_keepalived.config(self.plain), encoding="utf-8")
        return path

    def weigh(self, vip: Vip, weight: int) -> None:
        """Write a VIP's track file."""
        swap(Path(plain_keepalived.weight_file(self.plain, vip)), str(weight))

    async def start(self) -> None:
        """Start it; returns at once."""
        self._starts += 1
        pids = [f"--{name}={self.folder}/{name}" for name in ("pid", "vrrp_pid", "checkers_pid")]
        argv = [self.lan.stage.engine.binary, "--dont-fork", "--log-console", "--log-detail", f"--use-file={self.write()}", *pids]
        self.actor = await self.lan.stage.spawn(self.node, f"{self.node}-keepalived-{self._starts}", argv)

    async def stands(self) -> bool:
        """Whether it runs."""
        if self.actor is not None:
            self.actor.must_run()
        return len(engines_in(self.lan.stage, self.node)) > 0

    async def drain(self, vip: Vip) -> tuple[int, str]:
        """Write the track file as the field does; there is nobody to ask whether it moved."""
        self.weigh(vip, self.plain.manner.drain or 0)
        return 0, f"{self.plain.manner.drain} written to the track file of {vip.name}"

    async def stop(self) -> None:
        """``systemctl stop keepalived``."""
        if self.actor is not None:
            await self.actor.stop(15.0)

    def hup(self) -> None:
        """``systemctl reload keepalived``."""
        if self.actor is not None:
            self.actor.signal(signal.SIGHUP)

    def supervisors(self) -> Sequence[Actor]:
        """Nobody watches over it."""
        return ()


class ProductNode(Product):
    """``edgekeeper vip run`` on one node; ``changes`` are keys of the vip section, ``root`` of the whole config."""

    def __init__(
        self, lan: Lan, node: str, *, advert_s: float = 1.0, preempt: bool = False, changes: Mapping[str, Any] | None = None,
        root: Mapping[str, Any] | None = None, everything: bool = False,
    ) -> None:  # fmt: skip
        self.lan = lan
        self.node = node
        self.section: dict[str, Any] = {
            "interface": "eth0",
            "advert": f"{advert_s:g}s",
            "preempt": preempt,
            "engine": {"binary": lan.stage.engine.binary, "script_user": "root"},
            "vips": [{"name": v.name, "address": v.address, "vrid": v.vrid, "probe": lan.probe(v)} for v in lan.vips],
            **(changes or {}),
        }
        self.addresses = dict(zip(NODES, NODE_ADDRESSES, strict=True))
        nodes = {
            name: {"address": v4, "address6": v6, "ops": f"http://{v4}:{OPS_PORT}"}
            for name, v4, v6 in zip(NODES, NODE_ADDRESSES, NODE_ADDRESSES6, strict=True)
            if name in lan.nodes
        }
        home = Home(node, node, node, f"{self.addresses[node]}:{OPS_PORT}", TOKEN, {"nodes": nodes, **(root or {})})
        super().__init__(lan.stage, "vip", self.section, OPS_PORT, home, everything=everything)
        self.folder.mkdir(exist_ok=True)

    async def rows(self) -> dict[str, dict[str, Any]]:
        """What it says of each VIP, by name."""
        return {row["name"]: row for row in (await self.role_status()).get("vips", [])}

    async def stands(self) -> bool:
        """Whether its keepalived runs, its probes are good, and every peer that runs has answered."""
        self.must_run()
        role = await self.role_status()
        rows = role.get("vips", [])
        settled = bool(rows) and all(row["state"] in {"MASTER", "BACKUP"} and row["health"] == "good" for row in rows)
        heard = all(peer["answered_s"] is not None for peer in role.get("peers", []) if self.lan.running(peer["name"]))
        return bool((role.get("engine") or {}).get("pid")) and settled and heard

    async def alarms(self) -> str:
        """All that it is alarmed about, as one text."""
        role = await self.role_status()
        raised = role.get("alarms") or {}
        return " | ".join(str(text) for text in (raised.values() if isinstance(raised, dict) else raised))

    async def drain(self, vip: Vip, *options: str) -> tuple[int, str]:
        """``edgekeeper vip drain``."""
        return await self.command("drain", vip.name, *options)

    async def command(self, *argv: str) -> tuple[int, str]:
        """``edgekeeper --config FILE vip ...``: exit code and what it said."""
        code, said = await self.run("--config", str(self.file), "vip", *argv)
        return code, said.strip()

    async def stop(self) -> None:
        """TERM, as a unit's stop: keepalived goes with it."""
        if self.actor is not None:
            await self.actor.stop(25.0)

    def supervisors(self) -> Sequence[Actor]:
        """The process of edgekeeper itself."""
        return (self.actor,) if self.actor is not None else ()


Node = PlainNode | ProductNode
"""One node of either side."""


async def up(
    lan: Lan, *, advert_s: float = 1.0, preempt: bool = False, manner: Manner = FIELD, check: Check | None = None, changes: Mapping[str, Any] | None = None
) -> dict[str, Node]:
    """Start whoever moves the VIPs on this side, node after node, and wait until each VIP has one owner and the others stand by."""
    nodes = make(lan, advert_s=advert_s, preempt=preempt, manner=manner, check=check, changes=changes)
    for node in nodes.values():
        await start(lan, node)
    await settled(lan, nodes)
    return nodes


def make(
    lan: Lan, *, advert_s: float = 1.0, preempt: bool = False, manner: Manner = FIELD, check: Check | None = None, changes: Mapping[str, Any] | None = None
) -> dict[str, Node]:
    """The nodes of this side, none started."""
    if lan.stage.side is Side.PRODUCT:
        return {n: ProductNode(lan, n, advert_s=advert_s, preempt=preempt, changes=changes) for n in lan.nodes}
    return {n: PlainNode(lan, n, advert_s=advert_s, check=check or Check(lan.check()), manner=manner) for n in lan.nodes}


async def start(lan: Lan, node: Node) -> None:
    """Start one node; the first one takes the VIPs before the next begins, so that drills know who owns them."""
    await node.start()
    lan.starts(node.node, *node.supervisors())
    await lan.stage.until(f"{node.node} stands", node.stands, timeout_s=20.0)
    if node.node == lan.nodes[0]:
        await lan.stage.until("every VIP has an owner", lan.all_owned, timeout_s=20.0)


async def settled(lan: Lan, nodes: Mapping[str, Node]) -> None:
    """Wait until every VIP has one owner for half a second and every node stands."""
    for node in nodes.values():
        await lan.stage.until(f"{node.node} stands", node.stands, timeout_s=20.0)
    since = [0.0]
    loop = asyncio.get_running_loop()

    async def steady() -> bool:
        if not await lan.all_owned():
            since[0] = loop.time()
        return loop.time() - since[0] >= 0.5

    since[0] = loop.time()
    await lan.stage.until("every VIP keeps one owner", steady, timeout_s=20.0)

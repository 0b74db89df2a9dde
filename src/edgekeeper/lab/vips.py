"""Two or three edge nodes and a client in one Ethernet segment: a service on each node, VIPs that move between them, and ways to break things."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from edgekeeper.lab import records
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.faults import engines_in
from edgekeeper.lab.holders import Holding, holding, worst
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.plain_keepalived import Vip
from edgekeeper.lab.stage import LoadRun, Stage
from edgekeeper.lab.topology import NODE_ADDRESSES, NODES
from edgekeeper.lab.watch import Watch
from edgekeeper.probe.packet import question

DNS = Vip("dns", "192.0.2.53/24", 53)
DNS32 = Vip("dns", "192.0.2.53/32", 53)
DNS6 = Vip("dns6", "2001:db8::53/64", 54)
HEALTH = "health.example."
ASKED = 4
"""So many VIPs at most have a service that is asked; one more track script a second for each VIP would be a load of its own."""

_CHECK = """#!{python} -I
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(0.9)
try:
    sock.connect(({host!r}, 53))
    sock.send({question!r})
    answer = sock.recv(512)
except OSError:
    sys.exit(1)
sys.exit(answer[3] & 15 != 0)
"""


class Lan:
    """The stage of a VIP drill. ``asks`` is how the product is told to ask the service, where that is no DNS server."""

    def __init__(self, stage: Stage, *vips: Vip, asks: Mapping[str, str] | None = None) -> None:
        self.stage = stage
        self._asks = asks or {"dns": HEALTH, "server": "127.0.0.1:53", "type": "TXT"}
        self.nodes = tuple(n for n in NODES if n in stage.net.name)
        self.vips = vips or (DNS,)
        self.vip = self.vips[0]
        self.watch = Watch(stage.net, self.nodes)
        self.watch.start()
        stage.closing.append(self._close)
        self.supervisors: dict[str, tuple[Actor, ...]] = {}
        self._started: set[str] = set()
        self._dead: set[str] = set()

    def _close(self) -> None:
        """Nobody waits for hand-overs to peers that are about to go as well: all processes of the nodes end now."""
        self.watch.stop()
        for node in self.nodes:
            self.stage.net.kill(node, signal.SIGKILL)

    # --- the service behind the VIPs

    async def serve(self, *options: str) -> None:
        """A small DNS server on each node, on the loopback address and on the VIPs; it answers with the node's own address."""
        for node, address in zip(NODES, NODE_ADDRESSES, strict=True):
            if node in self.nodes:
                await self.serve_on(node, address, *options)

    async def serve_on(self, node: str, address: str, *options: str) -> None:
        """Start it on one node."""
        listens = ["127.0.0.1:53", *(f"{bracketed(v)}:53" for v in self.vips[:ASKED])]
        argv = [sys.executable, "-m", "edgekeeper.lab.member", "--name", node, "--answer", address, "--control", str(self.stage.folder / f"{node}.sock")]
        actor = await self.stage.spawn(node, f"{node}-dns", [*argv, *(w for one in listens for w in ("--listen", one)), *options])
        self.stage.members[node] = actor

        async def answers() -> bool:
            actor.must_run()
            return await self.stage.ask(node, "127.0.0.1", 53, HEALTH, "TXT") is not None

        await self.stage.until(f"the service on {node} answers", answers)

    def probe(self, vip: Vip) -> Any:
        """How the product is told to ask it."""
        return dict(self._asks) if vip in self.vips[:ASKED] else "none"

    def check(self, host: str = "127.0.0.1") -> str:
        """The plain side's track script: asks once, gives up after 0.9 s (one that is killed at its timeout is never counted as failed)."""
        path = self.stage.folder / "check.py"
        path.write_text(_CHECK.format(python=sys.executable, host=host, question=question(7, HEALTH, "TXT")), encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    # --- who owns what

    def starts(self, node: str, *supervisors: Actor) -> None:
        """A node has been started: the others may expect to hear it."""
        self._started.add(node)
        self.supervisors[node] = supervisors

    def running(self, node: str) -> bool:
        """Whether a node has been started and lives."""
        return node in self._started - self._dead

    def owner(self, vip: Vip | None = None) -> str:
        """The one node that holds a VIP; empty when none does, or more than one."""
        found = self.watch.holders(ip(vip or self.vip))
        return next(iter(found)) if len(found) == 1 else ""

    def others(self, node: str) -> tuple[str, ...]:
        """The nodes beside one."""
        return tuple(n for n in self.nodes if n != node)

    async def all_owned(self) -> bool:
        """Whether every VIP has exactly one owner."""
        return all(self.owner(v) for v in self.vips)

    async def owned_by_other(self, node: str) -> float:
        """Wait until another node than this one holds the VIP; the moment."""
        await self.stage.until(f"another node than {node} holds {self.vip.name}", lambda: self._other(node), timeout_s=60.0, every=0.005)
        return time.monotonic()

    async def _other(self, node: str) -> bool:
        return bool(self.watch.holders(ip(self.vip)) - {node})

    # --- the client

    async def load(self, *options: str, qps: float = 500, duration: float = 5.0, transport: str = "udp", port: int = 53, vip: Vip | None = None) -> LoadRun:
        """The client asks at a VIP."""
        server = f"{bracketed(vip or self.vip)}:{port}"
        return await self.stage.load(*options, qps=qps, duration=duration, transport=transport, server=server)

    def measured(self, tally: records.Tally, start: float, **more: float) -> Measured:
        """The figures of a load and of who held the VIPs from a moment until now; the longest outage counts with its upper bound."""
        now = time.monotonic()
        outage = 0.0
        if tally.outage is not None:
            outage = tally.outage.max_s if math.isfinite(tally.outage.max_s) else now - tally.outage.first_bad
        held = self.held(start)
        for vip, found in held.items():
            for at in found.moved_at:
                self.stage.place(at, f"{vip} has moved")
        silent = tally.asked - sum(tally.rcodes.values())
        owners = worst(held)
        # Times of a side that has not come to rest end with the run: they are "at least".
        figures = {"outage_s": round(outage, 3), "silent": float(silent), "unserved": owners["without_one_owner"], **owners, **more}
        return self.stage.measured(tally, **figures)

    def held(self, start: float) -> Mapping[str, Holding]:
        """What became of each VIP from a moment until now."""
        now = time.monotonic()
        return {v.name: holding(self.watch.changes, ip(v), start, now) for v in self.vips}

    # --- faults

    def engine(self, node: str, number: signal.Signals) -> tuple[int, ...]:
        """Signal every process of keepalived on a node.

        Stopped first: a child that sees its parent die would withdraw its VIPs in good order, with an advert of priority 0.
        """
        found = engines_in(self.stage, node)
        for pid in found if number == signal.SIGKILL else ():
            os.kill(pid, signal.SIGSTOP)
        for pid in found:
            os.kill(pid, number)
        return found

    def parent(self, node: str, number: signal.Signals) -> None:
        """Signal keepalived's first process, as ``kill`` and a unit do."""
        found = engines_in(self.stage, node)
        if found:
            os.kill(min(found), number)

    def everything(self, node: str, number: signal.Signals) -> None:
        """Signal every process on a node: keepalived, edgekeeper, the service, track scripts."""
        self.stage.net.kill(node, number)
        if number == signal.SIGKILL:
            self._dead.add(node)

    async def unplug(self, node: str, *, carrier: bool = True) -> None:
        """Pull a node's cable. Without a lost carrier it is the segment that is cut: the node sees its link up and nobody there."""
        how = ("link", "set", node, "down") if carrier else ("link", "set", node, "nomaster")
        await self.stage.net.ip("switch", *how)
        self.watch.off(node)

    async def plug(self, node: str) -> None:
        """Put it back."""
        await self.stage.net.ip("switch", "link", "set", node, "master", "br0")
        await self.stage.net.ip("switch", "link", "set", node, "up")
        self.watch.on(node)

    async def cut_vrrp(self, node: str) -> None:
        """Everything of IP protocol 112 that reaches a node is dropped before any program sees it; nothing else is.

        By a routing rule, which every kernel with several routing tables has; the rule for local addresses must stand behind it.
        """
        await self.stage.net.ip(node, "rule", "add", "pref", "100", "lookup", "local")
        await self.stage.net.ip(node, "rule", "del", "pref", "0")
        await self.stage.net.ip(node, "rule", "add", "pref", "10", "ipproto", "112", "iif", "eth0", "blackhole")

    async def mend_vrrp(self, node: str) -> None:
        """Adverts arrive again."""
        await self.stage.net.ip(node, "rule", "del", "pref", "10")

    async def forget(self, vip: Vip | None = None) -> None:
        """The client's neighbour entry of a VIP is gone: it asks the segment for it again."""
        await self.stage.net.ip("client", "neigh", "del", ip(vip or self.vip), "dev", "eth0")

    async def strict(self) -> None:
        """Strict reverse-path filters on every machine."""
        line = "for i in all eth0 lo; do echo 1 > /proc/sys/net/ipv4/conf/$i/rp_filter; done"
        for name in (*self.nodes, "client"):
            actor = await self.stage.spawn(name, f"{name}-strict", ["sh", "-c", line])
            await actor.wait(5.0)


async def soon(until: float) -> None:
    """Sleep until a moment of the monotonic clock."""
    await asyncio.sleep(max(0.0, until - time.monotonic()))


def ip(vip: Vip) -> str:
    """The address without its length."""
    return vip.address.partition("/")[0]


def bracketed(vip: Vip) -> str:
    """The address as it stands before a port."""
    return f"[{ip(vip)}]" if ":" in vip.address else ip(vip)

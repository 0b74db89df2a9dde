"""dnsdist behind a VIP on two nodes, both kept by one ``edgekeeper run`` on each: what clients lose when a whole node goes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

from edgekeeper.lab import engines, plain
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.vip_moves import AT_S, MOVED_ONCE, NOTHING_LOST, ONE_OWNER
from edgekeeper.lab.edges import members_of
from edgekeeper.lab.faults import programs_in
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.owners import Node, PlainNode, ProductNode, settled, start
from edgekeeper.lab.plain_keepalived import FIELD, Check
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import lan_plan
from edgekeeper.lab.vips import DNS, Lan, ip

MEMBERS = 3
PLAN = lan_plan(2, MEMBERS)
ANYBODY = "0.0.0.0:53"  # of a namespace
Fault = Callable[[Lan, dict[str, Node], str], Awaitable[str]]


async def node_dies(lan: Lan, nodes: dict[str, Node], owner: str) -> str:
    """The machine is off."""
    del nodes
    await lan.unplug(owner)
    lan.everything(owner, signal.SIGKILL)
    return f"{owner} is off: its link is down and its processes are gone"


async def node_stopped(lan: Lan, nodes: dict[str, Node], owner: str) -> str:
    """It is shut down in good order: what a reboot does."""
    node = nodes[owner]
    if isinstance(node, PlainNode):
        for actor in (lan.stage.members[owner], *([node.actor] if node.actor else [])):
            actor.signal(signal.SIGTERM)
        return f"dnsdist and keepalived of {owner} are stopped (TERM), as a shutdown does"
    await node.stop()
    return f"edgekeeper of {owner} was stopped (TERM): both roles"


async def dnsdist_dies(lan: Lan, nodes: dict[str, Node], owner: str) -> str:
    """Only dnsdist is killed: edgekeeper starts it again, and meanwhile the VIP may move."""
    del nodes
    for pid in programs_in(lan.stage, owner, "dnsdist"):
        os.kill(pid, signal.SIGKILL)
    return f"dnsdist of {owner} is killed (SIGKILL)"


async def member_freezes(lan: Lan, nodes: dict[str, Node], owner: str) -> str:
    """A member of both dnsdists stands still."""
    del nodes, owner
    lan.stage.members["ns-b"].signal(signal.SIGSTOP)
    return "member ns-b is frozen (SIGSTOP)"


def joint(fault: Fault, advert_s: float) -> Script:
    """Three members, a dnsdist and a keepalived on each of two nodes, 500 questions a second at the VIP, and a fault after the first second."""

    async def script(stage: Stage) -> Measured:
        dnsdist = await engines.find(stage.engine.suite, "dnsdist")
        stage.note(f"{dnsdist.title} stands behind the VIP")
        lan = Lan(stage, DNS)
        await stage.add_members(MEMBERS)
        nodes: dict[str, Node] = {}
        for name in lan.nodes:
            nodes[name] = _product(lan, name, dnsdist.binary, advert_s) if stage.side is Side.PRODUCT else await _plain(lan, name, dnsdist.binary, advert_s)
            await start(lan, nodes[name])
        await settled(lan, nodes)
        await stage.all_serve(MEMBERS, server=ip(lan.vip))
        owner = lan.owner()
        load = await lan.load(duration=7.0)
        await load.at(AT_S)
        began = time.monotonic()
        stage.note(await fault(lan, nodes, owner))
        tally = await load.tally()
        return lan.measured(tally, began)

    return script


def _product(lan: Lan, node: str, dnsdist: str, advert_s: float) -> ProductNode:
    dns: dict[str, Any] = {
        "listen": [ANYBODY],
        "acl": ["192.0.2.0/24", "127.0.0.0/8"],
        "members": {"static": [f"{name}={address}" for name, address in members_of(MEMBERS)]},
        "proxy_protocol": "off",
        "health": {"name": "health.example.", "type": "TXT"},
        "policy": lan.stage.policy,
        "engine": {"binary": dnsdist},
    }
    return ProductNode(lan, node, advert_s=advert_s, root={"dns": dns}, everything=True)


async def _plain(lan: Lan, node: str, dnsdist: str, advert_s: float) -> PlainNode:
    found = PlainNode(lan, node, advert_s=advert_s, check=Check(lan.check()), manner=FIELD)
    path = found.folder / "dnsdist.conf"
    listen = plain.Plain(listen=(ANYBODY,), members=members_of(MEMBERS), policy=lan.stage.policy, acl=("192.0.2.0/24", "127.0.0.0/8"))
    path.write_text(plain.config(listen), encoding="utf-8")
    lan.stage.members[node] = await lan.stage.spawn(node, f"{node}-dnsdist", [dnsdist, "-C", str(path), "--supervised", "--disable-syslog"])
    return found


def _outage(limit: float) -> Promise:
    return Promise("outage_s", "longest time without an answer", limit, "s")


def _case(name: str, about: str, fault: Fault, advert_s: float, *promises: Promise, ci: bool = False) -> Case:
    seconds = promises[0].unit == "s"
    headline = "outage_s" if seconds else "unanswered_3s"
    return Case(name, about, joint(fault, advert_s), promises, plan=PLAN, headline=headline, unit="s" if seconds else "queries", ci=ci)


DNS_AND_VIP = Drill(
    "dns-and-vip",
    "dnsdist behind a VIP on two nodes, both roles in one edgekeeper on each, under 500 questions a second",
    (
        _case("node-dies", "the owner's machine is off, advert 1 s", node_dies, 1.0, _outage(3.7), MOVED_ONCE, ONE_OWNER),
        _case("node-dies-100ms", "the same, advert 100 ms", node_dies, 0.1, _outage(0.5), MOVED_ONCE, ONE_OWNER, ci=True),
        _case("node-stopped", "the owner is shut down in good order, advert 1 s", node_stopped, 1.0, NOTHING_LOST, MOVED_ONCE, ONE_OWNER),
        _case("engine-dies", "dnsdist of the owner is killed, advert 1 s", dnsdist_dies, 1.0, _outage(1.0), ONE_OWNER),
        _case(
            "member-freezes",
            "a member of both freezes, advert 1 s",
            member_freezes,
            1.0,
            Promise("unanswered_3s", "unanswered within 3 s", 0.004, share_of="asked", over="median"),
            Promise("owner_changes", "times that the VIP moved", 0, "moves"),
        ),
    ),
    engine="keepalived",
)

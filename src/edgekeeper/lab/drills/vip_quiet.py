"""What must not move a VIP: a fault that all nodes share, a supervisor that dies or hangs, reloads and upgrades; and sessions through one that moves."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
import time

from edgekeeper.errors import StepFailedError
from edgekeeper.lab.certs import SERVER_NAME as DNS_NAME
from edgekeeper.lab.certs import Authority
from edgekeeper.lab.cluster import Cluster
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.vip_moves import AT_S, MOVED_ONCE, NOTHING_LOST, ONE_OWNER, PAIR, begun
from edgekeeper.lab.faults import engines_in
from edgekeeper.lab.hold import SERVER_NAME
from edgekeeper.lab.holders import worst
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.owners import Node, ProductNode, settled, start, up
from edgekeeper.lab.plain_keepalived import Check, Vip
from edgekeeper.lab.product import swap
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import NODE_ADDRESSES, lan_plan
from edgekeeper.lab.vips import DNS, Lan

NOT_MOVED = Promise("owner_changes", "times that the VIP moved", 0, "moves")
ALWAYS_OWNED = Promise("no_owner_s", "nobody holds the VIP", 0, "s")
SAME_ENGINE = Promise("engine_restarts", "restarts of the engine", 0, "restarts")


def members_dead(advert_s: float) -> Script:
    """What stands behind both nodes' services is dead: each says SERVFAIL, one a moment after the other."""

    async def script(stage: Stage) -> Measured:
        lan, _, owner = await begun(stage, DNS, advert_s=advert_s)
        (peer,) = lan.others(owner)
        load = await lan.load(duration=6.0 if stage.quick else 10.0)
        await load.at(AT_S)
        began = time.monotonic()
        await stage.tell(owner, "mode servfail")
        await asyncio.sleep(0.05)
        await stage.tell(peer, "mode servfail")
        stage.note("everything that both services ask is dead: they answer SERVFAIL")
        tally = await load.tally()
        return lan.measured(tally, began)

    return script


DEAD = (
    Promise("silent", "questions without any answer", 0),
    NOT_MOVED,
    ALWAYS_OWNED,
)
VIP_ALL_MEMBERS_DEAD = Drill(
    "vip-all-members-dead",
    "what stands behind the services of both nodes is dead, under 500 questions a second",
    (
        Case("defaults", "both say SERVFAIL, advert 1 s; plain: its check wants NOERROR", members_dead(1.0), DEAD, plan=PAIR, headline="silent"),
        Case("advert-100ms", "the same, advert 100 ms", members_dead(0.1), DEAD, plan=PAIR, headline="silent", ci=True),
    ),
    engine="keepalived",
)


def supervisors(number: signal.Signals, advert_s: float) -> Script:
    """edgekeeper of both nodes is killed and started again, or frozen and thawed; keepalived and the services are not."""

    async def script(stage: Stage) -> Measured:
        lan, nodes, _ = await begun(stage, DNS, advert_s=advert_s)
        before = {name: engines_in(stage, name) for name in lan.nodes}
        seconds = 4.0 if stage.quick or number == signal.SIGKILL else 30.0
        load = await lan.load(duration=seconds + 60.0)
        await load.at(AT_S)
        began = time.monotonic()
        for node in nodes.values():
            for actor in node.supervisors():
                actor.signal(number)
        stage.note(f"edgekeeper of both nodes gets {number.name}")
        await load.at(AT_S + seconds)
        for node in nodes.values():
            if number == signal.SIGKILL:
                await node.start()
                lan.starts(node.node, *node.supervisors())
            for actor in node.supervisors():
                actor.signal(signal.SIGCONT)
        stage.note("edgekeeper of both nodes " + ("was started again" if number == signal.SIGKILL else "goes on (SIGCONT)"))
        await settled(lan, nodes)
        await asyncio.sleep(1.0 + 3 * advert_s)
        tally = await load.stop()
        restarts = sum(engines_in(stage, name) != pids for name, pids in before.items())
        return lan.measured(tally, began, engine_restarts=float(restarts))

    return script


QUIET = (NOTHING_LOST, NOT_MOVED, ALWAYS_OWNED, SAME_ENGINE)
VIP_SUPERVISOR_KILLED = Drill(
    "vip-supervisor-killed",
    "edgekeeper itself is killed on both nodes under 500 questions a second, and started again",
    (
        Case("defaults", "SIGKILL, advert 1 s", supervisors(signal.SIGKILL, 1.0), QUIET, alone=True, plan=PAIR),
        Case("advert-100ms", "SIGKILL, advert 100 ms", supervisors(signal.SIGKILL, 0.1), QUIET, alone=True, plan=PAIR, ci=True),
    ),
    engine="keepalived",
)
VIP_SUPERVISOR_FROZEN = Drill(
    "vip-supervisor-frozen",
    "edgekeeper itself freezes on both nodes for 30 s (4 s in the short form) under 500 questions a second",
    (
        Case("defaults", "SIGSTOP, later SIGCONT, advert 1 s", supervisors(signal.SIGSTOP, 1.0), QUIET, alone=True, plan=PAIR),
        Case("advert-100ms", "SIGSTOP, later SIGCONT, advert 100 ms", supervisors(signal.SIGSTOP, 0.1), QUIET, alone=True, plan=PAIR),
    ),
    engine="keepalived",
)

TWENTY = tuple(Vip(f"v{n}", f"192.0.2.{200 + n}/24", n) for n in range(1, 21))


def reloaded(advert_s: float, count: int) -> Script:
    """Three nodes and many VIPs: the config is changed and told by SIGHUP, the third node's address comes into the peers' file, edgekeeper is upgraded."""

    async def script(stage: Stage) -> Measured:
        lan = Lan(stage, *TWENTY[:count])
        await lan.serve()
        peers = stage.folder / "peers"
        swap(peers, "\n".join(NODE_ADDRESSES[:2]))
        changes = {"peers": {"file": str(peers)}, "debounce": "200ms"}
        nodes = {name: ProductNode(lan, name, advert_s=advert_s, changes=changes) for name in lan.nodes}
        first, third = list(nodes.values())[:2], list(nodes.values())[2]
        for node in first:
            await start(lan, node)
        await settled(lan, {n.node: n for n in first})
        load = await lan.load(duration=120.0)
        await load.at(AT_S)
        began = time.monotonic()
        restarted = {name: engines_in(stage, name) for name in lan.nodes}
        for rise in (3, 4):
            for node in first:
                node.section["script"] = {"rise": rise}
                node.reload()
            await asyncio.sleep(1.5)
        stage.note("the config was changed twice on both nodes (SIGHUP)")
        swap(peers, "\n".join(NODE_ADDRESSES))
        stage.note(f"{third.node} comes into the peers' file")
        await asyncio.sleep(2.0)
        await start(lan, third)
        restarted[third.node] = engines_in(stage, third.node)
        await settled(lan, nodes)
        stage.note(f"{third.node} was started")
        for node in nodes.values():
            await _upgrade(lan, node)
        await settled(lan, nodes)
        stage.note("edgekeeper was upgraded on all three nodes (QUIT, start)")
        tally = await load.stop()
        restarts = sum(engines_in(stage, name) != pids for name, pids in restarted.items())
        return lan.measured(tally, began, engine_restarts=float(restarts))

    return script


async def _upgrade(lan: Lan, node: ProductNode) -> None:
    node.signal(signal.SIGQUIT)
    if node.actor is not None:
        await node.actor.wait(10.0)
    await start(lan, node)


VIP_RELOADED = Drill(
    "vip-reloaded",
    "reloads, a new peer and an upgrade of edgekeeper on three nodes with many VIPs, under 500 questions a second",
    (
        Case("defaults", "20 VIPs on 3 nodes, advert 1 s", reloaded(1.0, 20), QUIET, alone=True, plan=lan_plan(3)),
        Case("advert-100ms", "4 VIPs on 3 nodes, advert 100 ms", reloaded(0.1, 4), QUIET, alone=True, plan=lan_plan(3), ci=True),
    ),
    engine="keepalived",
)

SESSIONS = (
    Promise("longest_s", "longest time without an answer, reconnect included", 1.0, "s"),
    Promise("hung", "connections that hung until their client gave up", 0, "cuts"),
    MOVED_ONCE,
    ONE_OWNER,
)


def sessions(transport: str) -> Script:
    """20 connections with 10 questions a second each stay open while the VIP moves: DNS over TCP, over TLS, or HTTP/2 to an API server."""

    async def script(stage: Stage) -> Measured:
        if transport == "api":
            return await _api_sessions(stage)
        lan = Lan(stage, DNS)
        authority = Authority(stage.folder)
        leaf = authority.issue(DNS_NAME)
        dot = ("--dot", "192.0.2.53:853", "--cert", str(leaf / "tls.crt"), "--key", str(leaf / "tls.key")) if transport == "dot" else ()
        await lan.serve(*dot)
        nodes = await up(lan, advert_s=1.0)
        owner = lan.owner()
        port = 853 if dot else 53
        load = await lan.load("--connections", "20", "--ca", str(authority.ca_file), qps=200, duration=6.0, transport=transport, port=port)
        began = await _drain(stage, lan, nodes, owner, load.started)
        tally = await load.tally()
        told = load.summary()
        stage.note(f"{told['ends']} connections ended, {told['stalls']} of them because their client gave up waiting")
        return lan.measured(tally, began, longest_s=tally.latest_s, hung=float(told["stalls"]), cuts=float(told["ends"]))

    return script


async def _drain(stage: Stage, lan: Lan, nodes: dict[str, Node], owner: str, started: float) -> float:
    await asyncio.sleep(max(0.0, started + AT_S - time.monotonic()))
    began = time.monotonic()
    _, said = await nodes[owner].drain(lan.vip)
    stage.note(f"{owner} was drained: {said}")
    await lan.owned_by_other(owner)
    return began


async def _api_sessions(stage: Stage) -> Measured:
    lan = Lan(stage, DNS, asks={"tcp": "127.0.0.1:6443"})
    cluster = Cluster(stage)
    leaf = cluster.authority.issue(SERVER_NAME)
    for node in lan.nodes:
        argv = [sys.executable, "-m", "edgekeeper.lab.apiserver", "--listen", "0.0.0.0:6443", "--name", node]
        stage.members[node] = await stage.spawn(node, f"{node}-api", [*argv, "--cert", str(leaf / "tls.crt"), "--key", str(leaf / "tls.key")])
    nodes = await up(lan, advert_s=1.0, check=Check(shutil.which("true") or "/bin/true"))
    owner = lan.owner()
    load = await cluster.hold(clients=20, every=0.1, server="192.0.2.53:6443", duration=6.0)
    began = await _drain(stage, lan, nodes, owner, load.started)
    found = await load.finish()
    with contextlib.suppress(StepFailedError):
        await stage.until("one node holds the VIP", lan.all_owned, timeout_s=2.0)
    return cluster.measured(found, **worst(lan.held(began)))


VIP_DRAINED_TCP = Drill(
    "vip-drained-tcp",
    "connections through a VIP that is drained: 20, with 10 questions a second each; advert 1 s",
    (
        Case("tcp", "DNS over TCP", sessions("tcp"), SESSIONS, plan=PAIR, headline="longest_s", unit="s", ci=True),
        Case("dot", "DNS over TLS", sessions("dot"), SESSIONS, plan=PAIR, headline="longest_s", unit="s"),
        Case("api", "HTTP/2 to an API server", sessions("api"), SESSIONS, plan=PAIR, headline="longest_s", unit="s"),
    ),
    engine="keepalived",
)

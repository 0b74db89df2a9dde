"""Two that write into one mesh: two clusters, and two edgekeepers of one cluster of which the one that leads is killed or freezes."""

from __future__ import annotations

import asyncio
import signal
import time

from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.expose_lists import KEPT
from edgekeeper.lab.mesh import TARGETS, Mesh, hosts, url
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.site import OPS_PORT, Keeper, Site, keeper
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import MEMBERS
from edgekeeper.lab.visitors import Visitors

COUNT = 5
LEASE_S = 15.0
_TAKEN_S = LEASE_S + 5.0
"""The Lease, what is between two looks at it (2 s), and the first pass."""
_LATENCY_S = 0.25
_NODES = ("edge-a", "edge-b")


async def clusters(stage: Stage) -> Measured:
    """Two clusters with a few hosts each and an edgekeeper each, which share the mesh."""
    async with Mesh(stage) as mesh:
        sites = [Site(stage, mesh, name, address=MEMBERS[n], target=TARGETS[n]) for n, name in enumerate(("a", "b"))]
        await asyncio.gather(*(site.up() for site in sites))
        wanted = [hosts(COUNT, site.name) for site in sites]
        guards = [keeper(site, node, ops_port=OPS_PORT + n) for n, (site, node) in enumerate(zip(sites, _NODES, strict=True))]
        for site, some in zip(sites, wanted, strict=True):
            await site.publish(*some)
        everybody = [host for some in wanted for host in some]
        for guard, some in zip(guards, wanted, strict=True):
            await guard.start()
            await mesh.routes(some)  # the second one's first pass may already be the end of the first one's
        if stage.side is Side.PRODUCT:
            await asyncio.sleep(1.5)
        since, cut = time.monotonic(), await mesh.cut()
        mesh.keep_an_eye_on(everybody)
        visitors = Visitors(stage, *(url(host) for host in everybody), every_s=0.25, timeout_s=3.0, warm=True)
        await visitors.start()
        await visitors.at(6.0 if stage.quick else 15.0)
        writes, cuts = await mesh.writes(since), await mesh.cut() - cut
        stage.note(f"{len(writes)} writes by both together since the clients began")
        seen = await visitors.finish()
        for guard in guards:
            guard.tells()
        return await mesh.measured(seen, since, writes=len(writes), cuts=cuts)


async def _leading(stage: Stage, guards: list[Keeper]) -> tuple[Keeper, Keeper]:
    """The one that leads and the one that stands by."""
    leads: list[bool] = []

    async def check() -> bool:
        leads[:] = [await guard.says("leads") is True for guard in guards]
        return sum(leads) == 1

    await stage.until("one of them leads", check, timeout_s=30.0)
    one, other = guards if leads[0] else guards[::-1]
    return one, other


def standby(number: signal.Signals) -> Script:
    """Two edgekeepers of one cluster; the one that leads gets a signal in the middle of its writes, and wakes again if it can."""

    async def script(stage: Stage) -> Measured:
        async with Mesh(stage) as mesh:
            site = Site(stage, mesh)
            await site.up()
            wanted = hosts(COUNT)
            await site.publish(*wanted)
            guards = [Keeper(site, node, {"concurrency": 1}, ops_port=OPS_PORT + n) for n, node in enumerate(_NODES)]
            for guard in guards:
                await guard.start()
            await mesh.routes(wanted)
            leader, other = await _leading(stage, guards)
            visitors = Visitors(stage, *(url(host) for host in wanted), every_s=0.25, timeout_s=3.0, warm=True)
            await visitors.start()
            mesh.keep_an_eye_on(wanted)
            await visitors.at(1.5)
            await mesh.tell("latency", seconds=_LATENCY_S)
            more = hosts(12, "m")
            since, cut = time.monotonic(), await mesh.cut()
            await site.publish(*more)
            await mesh.routes(more[:2])
            moment = time.monotonic()
            leader.signal(number)
            stage.place(moment, f"{leader.node}, which leads, gets {number.name} in the middle of twelve writes; {other.node} stands by")
            written = await _first(stage, mesh, other, moment)
            if number is signal.SIGSTOP:
                await asyncio.sleep(1.2)  # the other is in the middle of its writes now
                woken = time.monotonic()
                leader.signal(signal.SIGCONT)
                stage.place(woken, f"{leader.node} is woken")
            await mesh.routes(more, timeout_s=40.0)
            await asyncio.sleep(3.0)
            late = [at for at in await mesh.writes(written - 0.001, name=leader.node) if at > written]
            both = await mesh.writes(since, method="POST")
            seen = await visitors.finish()
            for guard in guards:
                guard.tells()
            stage.note(f"{len(late)} writes by {leader.node} after the first one of {other.node}; {len(both)} services made for 12 hosts")
            cuts = await mesh.cut() - cut
            return await mesh.measured(seen, since, cuts=cuts, written_s=round(written - moment, 2), late=len(late))

    return script


async def _first(stage: Stage, mesh: Mesh, guard: Keeper, since: float) -> float:
    """When it wrote first."""
    found: list[float] = []

    async def check() -> bool:
        found[:] = await mesh.writes(since, name=guard.node)
        return bool(found)

    await stage.until(f"{guard.node} writes", check, timeout_s=60.0)
    return found[0]


TAKEN = (
    Promise("written_s", "from the signal to the first write of the other", _TAKEN_S, "s"),
    Promise("late", "writes by the first after the first write of the other", 0, "writes"),
    *KEPT,
)

TWO_OWNERS = Drill(
    "expose-two-owners",
    "two that publish into one mesh: two clusters, or two edgekeepers of one cluster",
    (
        Case(
            "defaults",
            "two clusters with the same settings but for their names (the field's two: with the same defaults); a pass every 5 s",
            clusters,
            (Promise("writes", "writes once all is published", 0, "writes"), *KEPT),
            headline="writes",
            unit="writes",
            ci=True,
            members=2,
        ),
        Case(
            "killed",
            "one cluster, two edgekeepers; the one that leads is killed",
            standby(signal.SIGKILL),
            TAKEN,
            alone=True,
            headline="written_s",
            unit="s",
            members=2,
        ),
        Case(
            "frozen",
            "the one that leads is stopped (SIGSTOP) in the middle of its writes, and woken in the middle of the other's",
            standby(signal.SIGSTOP),
            TAKEN,
            alone=True,
            headline="written_s",
            unit="s",
            members=2,
        ),
    ),
    engine="kube-apiserver",
)

__all__ = ["TWO_OWNERS"]

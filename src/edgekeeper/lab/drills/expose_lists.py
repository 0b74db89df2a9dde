"""What a controller sees of the cluster is wrong for a moment: the label is lost, etcd is a fresh one, the API server fails. What is published must stay."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.mesh import Mesh, hosts, url
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.site import Keeper, PlainKeeper, Site, keeper
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.visitors import Visitors

COUNT = 20
SHORT = {"brake": {"absent_lists": 2, "grace": "2s", "disabled": "5s"}}
"""Brakes of seconds instead of minutes, so that the share of what would go is all that holds it."""
_NEW = "new.home.example"
_AT_S = 1.5
_ASK_S = 0.5

Fault = Callable[[Stage, Site, Keeper | PlainKeeper, tuple[str, ...]], Awaitable[None]]


def broken(fault: Fault) -> Script:
    """Twenty hosts are published, clients ask each of them, and the fault happens."""

    async def script(stage: Stage) -> Measured:
        async with Mesh(stage) as mesh:
            site = Site(stage, mesh)
            await site.up()
            wanted = hosts(COUNT)
            await site.publish(*wanted)
            guard = keeper(site, said=SHORT)
            await guard.start()
            await mesh.routes(wanted)
            visitors = Visitors(stage, *(url(host) for host in wanted), every_s=_ASK_S, timeout_s=3.0, warm=True)
            await visitors.start()
            mesh.keep_an_eye_on(wanted)
            await visitors.at(_AT_S)
            since, cut = time.monotonic(), await mesh.cut()
            await fault(stage, site, guard, wanted)
            await mesh.routes(wanted)
            await asyncio.sleep(1.0)
            cuts = await mesh.cut() - cut
            seen = await visitors.finish()
            guard.tells()
            return await mesh.measured(seen, since, cuts=cuts)

    return script


async def _refused(stage: Stage, guard: Keeper | PlainKeeper, plain_s: float) -> None:
    """Wait until edgekeeper has seen it and refused; the field's controller is given its time."""
    if isinstance(guard, PlainKeeper):
        await asyncio.sleep(plain_s)
        return
    mesh = guard.site.mesh

    async def said() -> bool:
        return bool(mesh.gone or await guard.says("refused"))

    took = await stage.until("edgekeeper refuses", said, timeout_s=30.0)
    if not mesh.gone:
        stage.note(f"edgekeeper refuses to delete, {took:.1f} s later, and says so")
    if not stage.quick:
        await asyncio.sleep(6.0)


async def _back(stage: Stage, lost: tuple[str, ...], put: Callable[[tuple[str, ...]], Awaitable[None]]) -> None:
    """They come back, the last two a while after the others: so few may go, and must not."""
    await put(lost[:-2])
    stage.note(f"{len(lost) - 2} of them are back")
    await asyncio.sleep(1.5)
    await put(lost[-2:])
    stage.note("so are the last two")
    await asyncio.sleep(1.0)


def unlabelled(count: int) -> Fault:
    """The label is lost on so many of the Ingresses, and put back."""

    async def fault(stage: Stage, site: Site, guard: Keeper | PlainKeeper, wanted: tuple[str, ...]) -> None:
        lost = wanted[:count]
        await site.label(lost, on=False)
        stage.note(f"{count} of {len(wanted)} Ingresses have lost the label")
        await _refused(stage, guard, 8.0)
        await _back(stage, lost, lambda some: site.label(some, on=True))

    return fault


async def fresh_etcd(stage: Stage, site: Site, guard: Keeper | PlainKeeper, wanted: tuple[str, ...]) -> None:
    """The API server has an empty etcd behind it; the platform is put back first, the applications ten seconds later."""
    await site.grow_old()
    await site.wipe()
    stage.note("the API server is back, with a fresh etcd behind it")
    await site.furnish()
    stage.note("namespaces and the ingress controller are there again, Ingresses are not")
    await _refused(stage, guard, 10.0)
    await _back(stage, wanted, lambda some: site.publish(*some))
    await site.publish(_NEW)
    stage.note(f"and a new one: it is published {await site.mesh.routes((_NEW,)):.2f} s later")


async def api_errors(stage: Stage, site: Site, guard: Keeper | PlainKeeper, wanted: tuple[str, ...]) -> None:  # noqa: ARG001 - one fault as the others
    """etcd is away (lists are not answered, or with errors), the API server hangs, and then it is away."""
    site.kube.kill_named("etcd")
    stage.note("etcd is away")
    await asyncio.sleep(2.0)
    said = "nothing"
    with contextlib.suppress(MissingError):
        answer = await site.kube.request("GET", "/apis/networking.k8s.io/v1/ingresses", deadline_s=10.0)
        if answer.status == 200:
            msg = "the API server lists without its etcd; the drill has no fault and stops"
            raise StepFailedError(msg)
        said = str(answer.status)
    stage.note(f"the API server answers {said} to a list")
    await site.kube.start_etcd()
    stage.note("etcd is back")
    await asyncio.sleep(2.0)
    site.kube.freeze()
    stage.note("the API server hangs")
    await asyncio.sleep(12.0)
    site.kube.thaw()
    stage.note("it goes on")
    await asyncio.sleep(2.0)
    site.kube.kill()
    stage.note("it is gone")
    await asyncio.sleep(6.0)
    await site.kube.start_api()
    stage.note("it is back")
    await asyncio.sleep(6.0)


KEPT = (
    Promise("deletes", "services deleted", 0, "deletes"),
    Promise("gone", "hosts that were not published at some time", 0, "hosts"),
    Promise("unanswered", "questions without an answer", 0, "requests"),
    Promise("cuts", "connections of clients cut", 0, "cuts"),
)
_PACE = "both make a pass every 5 s; brakes of seconds"

EMPTY_LIST = Drill(
    "expose-empty-list",
    "twenty published hosts, and a view of the cluster that is wrong for a moment",
    (
        Case(
            "defaults",
            f"the label is lost on 19 of 20 Ingresses; {_PACE}",
            broken(unlabelled(19)),
            KEPT,
            headline="deletes",
            unit="deletes",
            ci=True,
            members=2,
        ),
        Case(
            "empty",
            f"the label is lost on all of them: the list is empty; {_PACE}",
            broken(unlabelled(COUNT)),
            KEPT,
            headline="deletes",
            unit="deletes",
            members=2,
        ),
        Case(
            "fresh-etcd",
            f"the API server comes back with an empty etcd; the platform is put back, and the Ingresses ten seconds later; {_PACE}",
            broken(fresh_etcd),
            KEPT,
            headline="deletes",
            unit="deletes",
            members=2,
        ),
        Case(
            "api-errors",
            f"etcd is away, then the API server hangs, then it is away; {_PACE}",
            broken(api_errors),
            KEPT,
            headline="deletes",
            unit="deletes",
            members=2,
        ),
    ),
    engine="kube-apiserver",
)

__all__ = ["EMPTY_LIST", "KEPT"]

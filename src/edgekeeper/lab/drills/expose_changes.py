"""What is wanted changes, and how soon and how safely that is written: an address moves under an allow-list, many hosts come under a rate limit, and one by one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from edgekeeper.errors import StepFailedError
from edgekeeper.lab.drill import Case, Drill
from edgekeeper.lab.drills.expose_lists import KEPT
from edgekeeper.lab.mesh import TARGETS, Mesh, hosts, url
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.site import Site, keeper
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import CLIENT
from edgekeeper.lab.visitors import Visitors

FIELD_S = 60.0
"""Between two passes of the field's controller, where the time itself is measured."""
_COUNT = 4


async def moved(stage: Stage) -> Measured:
    """An allow-list is set by hand on one host; then the address of the ingress controller's Service moves."""
    async with Mesh(stage) as mesh:
        site = Site(stage, mesh)
        await site.up()
        wanted = hosts(_COUNT)
        await site.publish(*wanted)
        guard = keeper(site, every_s=FIELD_S)
        await guard.start()
        await mesh.routes(wanted)
        limited, free = url(wanted[0]), url(wanted[1])
        await mesh.tell("edit", domain=wanted[0], changes={"access_restrictions": {"allowed_cidrs": [f"{CLIENT}/32"]}})
        visitors = Visitors(stage, *(url(host) for host in wanted), every_s=0.1, timeout_s=3.0)
        strangers = Visitors(stage, limited, free, namespace="members", every_s=0.1, timeout_s=3.0)
        await visitors.start()
        await strangers.start()
        stage.note(f"only {CLIENT} may reach {wanted[0]}: a person has set that in the dashboard; strangers ask for it all the time")
        mesh.keep_an_eye_on(wanted)
        await visitors.at(2.0)
        since = await site.move(TARGETS[1])
        stage.place(since, f"the ingress controller's Service is another one, at {TARGETS[1]}")

        async def there() -> bool:
            found = [(await mesh.tell("find", domain=host))["service"] for host in wanted]
            return all(service["targets"][0]["host"] == TARGETS[1] for service in found)

        await stage.until("all services lead to the new address", there, timeout_s=FIELD_S + 20.0, every=0.02)
        updated = time.monotonic() - since
        stage.note(f"all services lead there, {updated:.2f} s later")
        await asyncio.sleep(2.0 if stage.quick else 8.0)
        seen, strange = await visitors.finish(), await strangers.finish()
        guard.tells()
        let_in = sum(sample.ok for sample in strange[limited])
        if not any(sample.ok for sample in strange[free]):
            msg = "no stranger was let in where everybody may: the drill would see no erased allow-list, and stops"
            raise StepFailedError(msg)
        answers = [sample for sample in seen[limited] if sample.ok and sample.sent > since]
        stage.note(f"{let_in} of {len(strange[limited])} strangers let in; {len(answers)} answers to the client that may, since the move")
        return await mesh.measured(seen, since, updated_s=round(updated, 2), let_in=let_in, shut_out=float(not answers))


async def limited(stage: Stage) -> Measured:
    """NetBird's rate limit, ten times as fast: 60 calls a minute and 50 at once, a pass each 6 s; more hosts come than calls may be made."""
    few, many, burst = (3, 14, 14) if stage.quick else (5, 60, 50)
    async with Mesh(stage) as mesh:
        site = Site(stage, mesh)
        await site.up()
        wanted, more = hosts(few), hosts(many, "m")
        await site.publish(*wanted)
        guard = keeper(site, every_s=6.0)
        await guard.start()
        await mesh.routes(wanted)
        visitors = Visitors(stage, *(url(host) for host in wanted), every_s=0.25, timeout_s=3.0, warm=True)
        await visitors.start()
        mesh.keep_an_eye_on(wanted)
        await visitors.at(1.0)
        await mesh.tell("limit", on=True, per_minute=60.0, burst=float(burst))
        since, cut = time.monotonic(), await mesh.cut()
        await site.publish(*more)
        stage.note(f"{many} hosts more are wanted; the mesh takes {burst} calls at once and 60 a minute")
        with contextlib.suppress(StepFailedError):
            await mesh.routes(more, timeout_s=60.0 if stage.side is Side.PLAIN else 120.0)
        missing = sum(host not in mesh.seen for host in more)
        took = time.monotonic() - since if missing else max(mesh.seen[host] for host in more) - since
        stage.note(f"{many - missing} of {many} are published after {took:.1f} s")
        await asyncio.sleep(2.0)
        before = (await mesh.tell("counters"))["throttled"]
        await asyncio.sleep(2.0 if stage.quick else 30.0)
        throttled = (await mesh.tell("counters"))["throttled"] - before
        stage.note(f"{throttled} calls were refused for the rate since")
        seen = await visitors.finish()
        guard.tells()
        cuts = await mesh.cut() - cut
        return await mesh.measured(seen, since, cuts=cuts, missing=missing, throttled=throttled, **({} if missing else {"published_s": round(took, 1)}))


async def one_by_one(stage: Stage) -> Measured:
    """Thirty times an Ingress gets a host more, once a second and now and then two close together."""
    changes = 10 if stage.quick else 30
    async with Mesh(stage) as mesh:
        site = Site(stage, mesh)
        await site.up()
        wanted = hosts(changes)
        await site.publish(*wanted)
        guard = keeper(site, every_s=FIELD_S)
        await guard.start()
        await mesh.routes(wanted)
        visitors = Visitors(stage, *(url(host) for host in wanted[:_COUNT]), every_s=0.25, timeout_s=3.0, warm=True)
        await visitors.start()
        mesh.keep_an_eye_on(wanted)
        begun, cut = time.monotonic(), await mesh.cut()
        made: dict[str, float] = {}
        for number, (host, more) in enumerate(zip(wanted, hosts(changes, "m"), strict=True)):
            await visitors.at(1.0 + number + (0.0, 0.45, -0.35)[number % 3])
            made[more] = await site.add_host(host, more)
        await mesh.routes(made, timeout_s=FIELD_S + 10.0)
        took = sorted(mesh.seen[host] - at for host, at in made.items())
        p95 = took[min(len(took) - 1, int(0.95 * len(took)))]
        stage.note(f"from the change to the route in the proxy: half within {took[len(took) // 2]:.2f} s, 95 % within {p95:.2f} s, all within {took[-1]:.2f} s")
        cuts = await mesh.cut() - cut
        seen = await visitors.finish()
        guard.tells()
        return await mesh.measured(seen, begun, cuts=cuts, written_p95_s=round(p95, 2), written_most_s=round(took[-1], 2))


def _case(name: str, about: str, script: Any, promises: tuple[Promise, ...], headline: str, unit: str, *, ci: bool = False) -> Case:
    return Case(name, about, script, promises, headline=headline, unit=unit, ci=ci, members=2)


RESTRICTIONS = Drill(
    "expose-restrictions",
    "an allow-list that a person has set in the dashboard, and services that must be written",
    (
        _case(
            "defaults",
            "the address of the ingress controller's Service moves; the field's controller makes a pass every 60 s",
            moved,
            (
                Promise("let_in", "strangers let in", 0, "clients"),
                Promise("updated_s", "from the new Service to the last service that leads there", 2.0, "s"),
                Promise("shut_out", "clients that may reach it and cannot any more", 0, "clients"),
                Promise("deletes", "services deleted", 0, "deletes"),
                Promise("gone", "hosts that were not published at some time", 0, "hosts"),
            ),
            "let_in",
            "clients",
            ci=True,
        ),
        _case(
            "changes",
            "an Ingress gets a host more, thirty times; the field's controller makes a pass every 60 s",
            one_by_one,
            (Promise("written_p95_s", "from the change of an Ingress to the route in the proxy, 95 %", 2.0, "s"), *KEPT),
            "written_p95_s",
            "s",
        ),
    ),
    engine="kube-apiserver",
)

RATE_LIMIT = Drill(
    "expose-rate-limit",
    "more hosts come at once than calls may be made",
    (
        _case(
            "defaults",
            "60 hosts; 50 calls at once and 60 a minute, a pass every 6 s: the mesh's own limit and the field's pace, ten times as fast",
            limited,
            (
                Promise("missing", "wanted hosts that are not published in the end", 0, "hosts"),
                Promise("published_s", "until all are published", 90.0, "s"),
                Promise("throttled", "calls refused for the rate once all is published", 0, "errors"),
                *KEPT,
            ),
            "missing",
            "hosts",
            ci=True,
        ),
    ),
    engine="kube-apiserver",
)

__all__ = ["RATE_LIMIT", "RESTRICTIONS"]

"""When a cure would do harm: what the service needs is away, or the other member of its group is being cured."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from edgekeeper.lab import visits
from edgekeeper.lab.boxes import HEALTH, Box, Scripts, Watchdog
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.watch_wedges import AT_S, ONCE, PLAIN_S, begun, measured
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.product import Home
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import NODE_ADDRESSES, NODES, lan_plan
from edgekeeper.lab.visitors import Visitors

AWAY_S = 8.0


def management_down(*, wedged: bool) -> Script:
    """Management is away for eight seconds; a second after it left, the service hangs, or its log only says so."""

    async def script(stage: Stage) -> Measured:
        box, guard, visitors = await begun(stage)
        await visitors.at(AT_S)
        await box.tell("management down")
        stage.note(f"management is away: a service that is started now serves nothing (http://{HEALTH}/healthz says so)")
        await visitors.at(AT_S + 1.0)
        began = time.monotonic()
        if wedged:
            await box.wedge()
        else:
            await box.tell("flood")
            stage.note("the log says that it hangs, and it does not")
        await visitors.at(AT_S + AWAY_S)
        early = box.starts_since(began)
        back = time.monotonic()
        await box.tell("management up")
        stage.note("management is back")
        if wedged or early:
            await visitors.cured(box.url, back, 15.0 if stage.side is Side.PRODUCT else PLAIN_S, began)
        await asyncio.sleep(2.0)
        found = await measured(stage, box, guard, visitors, back if wedged else began, wedged=began, early=early)
        return found if wedged else Measured({**found.figures, "cured_s": 0.0}, found.outage)

    return script


EARLY = Promise("early", "restarts while management is away", 0, "restarts")

MANAGEMENT_DOWN = Drill(
    "watch-management-down",
    "a mesh proxy that is started while its management is away serves nothing until that is back",
    (
        Case(
            "wedged",
            "it hangs meanwhile: no restart until management is back, and one at once then",
            management_down(wedged=True),
            (EARLY, Promise("cured_s", "from when management is back until a client is answered", 3.0, "s", over="median"), ONCE),
            headline="early",
            unit="restarts",
            ci=True,
        ),
        Case(
            "line-only",
            "it serves, but its log says that it hangs: no restart, and no client notices",
            management_down(wedged=False),
            (
                Promise("unanswered", "requests without an answer", 0, "requests"),
                EARLY,
                Promise("restarts", "restarts of the service", 0, "restarts"),
            ),
            headline="unanswered",
            unit="requests",
        ),
    ),
    engine="dockerd",
)

PAIR = NODES[:2]
WAIT_S = 15.0
_TOKEN = "a-token-of-the-pair"  # noqa: S105 - of a drill


def pair(*, both: bool) -> Script:
    """Two members on two nodes; both hang at the same moment, or the first one does."""

    async def script(stage: Stage) -> Measured:
        boxes = {node: Box(stage, node, address) for node, address in zip(PAIR, NODE_ADDRESSES, strict=False)}
        for box in boxes.values():
            await box.up()
        guards = [_guard(stage, node, boxes) for node in PAIR]
        for guard in guards:
            await guard.start()
        visitors = Visitors(stage, *(box.url for box in boxes.values()))
        await visitors.start()
        await visitors.at(2.0)  # each has heard the other by then
        at = min([await boxes[node].wedge() for node in (PAIR if both else PAIR[:1])])
        hurt = [boxes[node] for node in (PAIR if both else PAIR[:1])]
        for box in hurt:
            await visitors.cured(box.url, at, 2 * WAIT_S if stage.side is Side.PRODUCT else PLAIN_S)
        await asyncio.sleep(2.0)
        seen = await visitors.finish()
        for guard in guards:
            guard.tells()
        dark = [visits.dark_s(seen[box.url], at) for box in hurt]
        for box in hurt:
            for stop in box.stops():
                stage.place(stop, f"the service on {box.namespace} is told to end")
            stage.place(at + visits.dark_s(seen[box.url], at), f"a client of {box.namespace} is answered again")
        one, other = (seen[boxes[node].url] for node in PAIR)
        return Measured(
            {
                "asked": sum(len(some) for some in seen.values()),
                "unanswered": sum(visits.lost(some) for some in seen.values()),
                "cured_s": round(max(dark), 3),
                "first_s": round(min(dark), 3),
                "both_s": round(visits.both_dark_s(one, other, at), 3),
                "at_once": _at_once(boxes, seen, at),
                "restarts": max(box.starts_since(at) for box in boxes.values()),
            },
            visits.worst(seen[hurt[0].url]),
        )

    return script


def _guard(stage: Stage, node: str, boxes: dict[str, Box]) -> Watchdog | Scripts:
    if stage.side is Side.PLAIN:
        return Scripts(boxes[node])
    ops = {name: f"{address}:8087" for name, address in zip(PAIR, NODE_ADDRESSES, strict=False)}
    nodes = {name: {"address": address, "ops": f"http://{ops[name]}"} for name, address in zip(PAIR, NODE_ADDRESSES, strict=False)}
    home = Home(namespace=node, node=node, folder=f"{node}-home", ops=ops[node], token=_TOKEN, root={"nodes": nodes})
    group = {"name": "mesh", "members": {name: [box.url] for name, box in boxes.items()}, "wait": f"{WAIT_S:g}s"}
    return Watchdog(boxes[node], {"group": group}, home)


def _at_once(boxes: dict[str, Box], seen: visits.Visits, since: float) -> int:
    """Cures that began while the other member's was under way: after it was told to end, and before its clients were answered again.

    What a client sees is late by the pause between two of its questions, so that much is given.
    """
    spans = [(stop, visits.answered(seen[box.url], since)) for box in boxes.values() for stop in box.stops() if stop >= since]
    spans.sort()
    return sum(later[0] < (earlier[1] or later[0] + 1.0) - 0.1 for earlier, later in pairwise(spans))


WATCH_PAIR = Drill(
    "watch-pair",
    "two members of a group on two nodes; the followers beside it know nothing of each other",
    (
        Case(
            "both",
            "both hang at the same moment: the second one's cure waits until the first is proven",
            pair(both=True),
            (
                Promise("at_once", "cures that began before the other's was proven", 0, "restarts"),
                Promise("both_s", "neither member answers a client", 3.5, "s", over="median"),
                Promise("cured_s", "from the wedge until both members answer again", 6.0, "s", over="median"),
                ONCE,
            ),
            headline="at_once",
            unit="restarts",
            ci=True,
            plan=lan_plan(2),
        ),
        Case(
            "one",
            "one hangs: it waits for nobody",
            pair(both=False),
            (
                Promise("cured_s", "from the wedge until a client is answered again", 3.0, "s", over="median"),
                Promise("both_s", "neither member answers a client", 0, "s"),
                ONCE,
            ),
            headline="cured_s",
            unit="s",
            plan=lan_plan(2),
        ),
    ),
    engine="dockerd",
)

__all__ = ["MANAGEMENT_DOWN", "WATCH_PAIR"]

"""A service in a container wedges, once or again while its watchdog is in its cooldown: how long until clients are answered again."""

from __future__ import annotations

from typing import Any

from edgekeeper.lab import plain_watch, visits
from edgekeeper.lab.boxes import Box, Scripts, Watchdog
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.visitors import Visitors

AT_S = 1.0
"""When the fault comes, after the clients began."""
CURED = "from the wedge until a client is answered again"
ONCE = Promise("restarts", "restarts of the service", 1, "restarts")
PLAIN_S = 30.0
"""So long a plain follower is waited for that has no cooldown to wait for: it acts on the line or never."""
URL_S = (plain_watch.ROUNDS + 1) * plain_watch.PERIOD_S + 20.0
"""And so long one that has, until the URL watchdog beside it has counted its three rounds."""


async def begun(
    stage: Stage, said: dict[str, Any] | None = None, cooldown_s: int = plain_watch.COOLDOWN_S, *, options: tuple[str, ...] = (), live: bool = False
) -> tuple[Box, Watchdog | Scripts, Visitors]:
    """The service, what watches it (edgekeeper, or the scripts of the field reports), and the clients.

    ``options`` are those of ``docker run``; with ``live`` the daemon leaves its containers alone when it is started again.
    """
    box = Box(stage, more={"live-restore": live})
    await box.up(*options)
    guard = Watchdog(box, said) if stage.side is Side.PRODUCT else Scripts(box, cooldown_s)
    await guard.start()
    visitors = Visitors(stage, box.url)
    await visitors.start()
    return box, guard, visitors


async def measured(
    stage: Stage, box: Box, guard: Watchdog | Scripts, visitors: Visitors, since: float, *, wedged: float | None = None, **more: float
) -> Measured:
    """What the clients saw since a moment (that of the wedge, when ``wedged`` says no other), and how often the service was started."""
    seen = (await visitors.finish())[box.url]
    guard.tells()
    found = visits.worst(tuple(s for s in seen if s.sent >= since - 1.0))
    dark = visits.dark_s(seen, since, wedged)
    for at in box.starts():
        if at >= since:
            stage.place(at, "the service is started")
    if found is not None:
        stage.place(since + dark, f"a client is answered again: the outage was {found.text()}")
    return Measured({"asked": len(seen), "unanswered": visits.lost(seen), "cured_s": round(dark, 3), "restarts": box.starts_since(since), **more}, found)


def wedge(how: str, **said: Any) -> Script:
    """One wedge."""

    async def script(stage: Stage) -> Measured:
        box, guard, visitors = await begun(stage, said)
        await visitors.at(AT_S)
        at = await box.wedge(how)
        quiet = URL_S if "quiet" in how else PLAIN_S
        await visitors.cured(box.url, at, 15.0 if stage.side is Side.PRODUCT else quiet)
        return await measured(stage, box, guard, visitors, at)

    return script


def _case(name: str, about: str, how: str, limit: float, *, ci: bool = False, **said: Any) -> Case:
    promises = (Promise("cured_s", CURED, limit, "s", over="median"), ONCE)
    return Case(name, about, wedge(how, **said), promises, headline="cured_s", unit="s", ci=ci)


def _fast(url: str) -> dict[str, Any]:
    return {"targets": [url], "timeout": "300ms", "confirm_every": "300ms"}


FAST: dict[str, Any] = {"cure": [{"docker": "mesh-proxy", "stop_timeout": "0s"}], "probe": _fast("http://198.51.100.1:8443/")}

WEDGE = Drill(
    "watch-wedge",
    "a service in a container wedges and its log says so; the scripts beside it are those of the field reports",
    (
        _case("hang", "it takes connections and never answers; the default probe", "hang", 3.0, ci=True),
        _case("refuse", "its port is closed; the default probe", "refuse", 1.5, ci=True),
        _case("hang-fast", "it hangs; the probe gives up after 300 ms, and nothing is drained", "hang", 1.5, **FAST),
        _case("quiet", "it hangs and its log says nothing: three failed rounds of the probe", "hang quiet", 5.0),
    ),
    engine="dockerd",
)


def again(cooldown_s: int, gap_s: float, **said: Any) -> Script:
    """A wedge that is cured, and a second one."""

    async def script(stage: Stage) -> Measured:
        box, guard, visitors = await begun(stage, said, cooldown_s)
        gap = 10.0 if stage.quick else gap_s
        await visitors.at(AT_S)
        first = await box.wedge()
        await visitors.cured(box.url, first, PLAIN_S)
        await visitors.at(AT_S + gap)
        second = await box.wedge()
        await visitors.cured(box.url, second, URL_S if stage.side is Side.PLAIN else 75.0)
        return await measured(stage, box, guard, visitors, second)

    return script


IN_COOLDOWN = Drill(
    "watch-wedge-in-cooldown",
    "a second wedge, 30 s after the first one was cured; the scripts beside it are in their cooldown, and take up to 4 minutes",
    (
        Case(
            "defaults",
            "edgekeeper's default budget; the scripts have a cooldown of 600 s",
            again(plain_watch.COOLDOWN_S, 30.0),
            (Promise("cured_s", CURED, 3.0, "s", over="median"), ONCE),
            headline="cured_s",
            unit="s",
            ci=True,
        ),
        Case(
            "cooldown-60",
            "a cooldown of 60 s for both",
            again(plain_watch.LATER_S, 30.0, budget={"cooldown": "60s"}),
            (Promise("cured_s", CURED, 33.0, "s", over="median"), ONCE),
            headline="cured_s",
            unit="s",
        ),
    ),
    engine="dockerd",
)

__all__ = ["CURED", "IN_COOLDOWN", "ONCE", "WEDGE", "begun", "measured"]

"""What happens to the log of a watched service: clients forge lines in it, it is rotated, recreated, and its daemon is started again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable

from edgekeeper.errors import StepFailedError
from edgekeeper.lab import plain_watch, wedge
from edgekeeper.lab.boxes import PORT, Box, Scripts, Watchdog
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.watch_wedges import AT_S, CURED, ONCE, PLAIN_S, begun, measured
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT

FORGED = 1000
PER_S = 100
_SAYS = wedge.SAYS.replace(" ", "%20")
PATHS = (
    "/" + wedge.FINGERPRINT.replace(" ", "%20") + "AAAA=",
    "/x%0A2026-11-30T10:00:00.000Z%20WARN%20" + _SAYS,
)
"""A path that holds the fingerprint, and one that ends the line and writes one of its own."""


async def forge(stage: Stage, count: int = FORGED) -> None:
    """Requests of clients that want the service restarted; each hangs up at once."""
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / PER_S - time.monotonic()))
        sock = stage.net.socket("client")
        with contextlib.suppress(OSError):  # a service that is just being restarted refuses
            await asyncio.wait_for(loop.sock_connect(sock, (FRONT, PORT)), 1.0)
            await loop.sock_sendall(sock, f"GET {PATHS[number % len(PATHS)]} HTTP/1.1\r\nHost: git.example\r\n\r\n".encode())
        sock.close()


def forged(*, wedged: bool = False) -> Script:
    """A thousand forged lines; in the middle of them, when asked for, a real wedge."""

    async def script(stage: Stage) -> Measured:
        box, guard, visitors = await begun(stage, cooldown_s=plain_watch.LATER_S)
        await visitors.at(AT_S)
        began = at = time.monotonic()
        stage.note(f"clients begin to ask for {FORGED} paths with the fingerprint, {PER_S} a second")
        forging = asyncio.create_task(forge(stage))
        try:
            if wedged:
                await visitors.at(AT_S + FORGED / PER_S / 2)
                at = await box.wedge()
                await visitors.cured(box.url, at, 15.0 if stage.side is Side.PRODUCT else PLAIN_S)
            await forging
        finally:
            forging.cancel()
        await asyncio.sleep(1.0)
        lines = sum(wedge.FINGERPRINT in line for line in (await box.log()).splitlines())
        stage.note(f"the log holds the fingerprint in {lines} lines")
        if lines < FORGED * 9 // 10 and box.starts_since(began) == 0:
            msg = f"of {FORGED} forged requests only {lines} are in the log; the drill stops"
            raise StepFailedError(msg)
        found = await measured(stage, box, guard, visitors, at if wedged else began, forged=lines)
        return found if wedged else Measured({**found.figures, "cured_s": 0.0}, found.outage)

    return script


FORGED_LINES = Drill(
    "watch-forged-lines",
    "clients write the fingerprint into the log by what they ask for; the follower beside it has a cooldown of 60 s: 60 restarts an hour",
    (
        Case(
            "healthy",
            "1,000 forged lines, every second of them a whole line of its own; the service is well",
            forged(),
            (
                Promise("restarts", "restarts of the service", 0, "restarts"),
                Promise("unanswered", "requests of other clients without an answer", 0, "requests"),
            ),
            headline="restarts",
            unit="restarts",
            ci=True,
        ),
        Case(
            "wedged",
            "the same, and in the middle of it the service hangs",
            forged(wedged=True),
            (Promise("cured_s", CURED, 3.0, "s", over="median"), ONCE),
            headline="cured_s",
            unit="s",
        ),
    ),
    engine="dockerd",
)

Event = Callable[[Stage, Box, "Watchdog | Scripts"], Awaitable[int]]
"""Something that happens to the log; how often the service is started by it."""
SMALL = ("--log-opt", "max-size=64k", "--log-opt", "max-file=2")


async def rotate(stage: Stage, box: Box, guard: Watchdog | Scripts) -> int:
    """The log is rotated some eighty times."""
    del guard
    await box.tell("chatter 20000 200")
    stage.note("the log is written over some eighty times: 20,000 lines, rotated at 64 kB")
    return 0


async def recreate(stage: Stage, box: Box, guard: Watchdog | Scripts) -> int:
    """The container is removed and made anew."""
    del guard
    await box.create()
    stage.note("the container is made anew: another id, an empty log")
    return 1


async def restart_daemon(stage: Stage, box: Box, guard: Watchdog | Scripts) -> int:
    """The daemon is stopped and started."""
    del guard
    before = box.starts()
    await box.daemon.stop()
    stage.note("the Docker daemon is stopped")
    await box.daemon.start()
    await stage.until("the service answers", box.answers)
    stage.note(f"it is started again; the service {'was started by it' if box.starts() != before else 'went on'}")
    return len(box.starts()) - len(before)


async def freeze(stage: Stage, box: Box, guard: Watchdog | Scripts) -> int:
    """What watches stands still for five seconds, while the service goes on."""
    del guard
    watching = [a for a in stage.actors if a.name.startswith(("edgekeeper", f"{box.namespace}-flood", f"{box.namespace}-url"))]
    for actor in watching:
        actor.signal(signal.SIGSTOP)
    stage.note("what watches is stopped (SIGSTOP)")
    await asyncio.sleep(5.0)
    for actor in watching:
        actor.signal(signal.SIGCONT)
    stage.note("it goes on (SIGCONT)")
    return 0


def after(event: Event, *, options: tuple[str, ...] = (), live: bool = False) -> Script:
    """Something happens to the log, and two seconds later the service hangs."""

    async def script(stage: Stage) -> Measured:
        box, guard, visitors = await begun(stage, cooldown_s=plain_watch.LATER_S, options=options, live=live)
        await visitors.at(AT_S)
        began = time.monotonic()
        own = await event(stage, box, guard)
        await asyncio.sleep(2.0)
        more = box.starts_since(began) - own
        at = await box.wedge()
        await visitors.cured(box.url, at, 15.0 if stage.side is Side.PRODUCT else PLAIN_S)
        await asyncio.sleep(2.0)
        return await measured(stage, box, guard, visitors, at, more=more)

    return script


async def wedged_while_frozen(stage: Stage) -> Measured:
    """The service hangs while what watches it stands still: what counts is the time from when that goes on."""
    box, guard, visitors = await begun(stage, cooldown_s=plain_watch.LATER_S)
    await visitors.at(AT_S)
    freezing = asyncio.create_task(freeze(stage, box, guard))
    await asyncio.sleep(3.0)
    wedged = await box.wedge()
    await freezing
    at = time.monotonic()
    await visitors.cured(box.url, at, 15.0 if stage.side is Side.PRODUCT else PLAIN_S, wedged)
    await asyncio.sleep(2.0)
    return await measured(stage, box, guard, visitors, at, wedged=wedged, more=0)


def _rotation(name: str, about: str, script: Script, *, ci: bool = False) -> Case:
    what = CURED if name != "wedged-while-stopped" else "from SIGCONT until a client is answered again"
    promises = (
        Promise("cured_s", what, 3.0, "s", over="median"),
        ONCE,
        Promise("more", "restarts that nothing asked for", 0, "restarts"),
    )
    return Case(name, about, script, promises, headline="cured_s", unit="s", ci=ci)


ROTATION = Drill(
    "watch-rotation",
    "something happens to the log or to who follows it, and then the service hangs",
    (
        _rotation("rotated", "json-file log of two files of 64 kB, written over eighty times", after(rotate, options=SMALL), ci=True),
        _rotation("recreated", "the container is removed and made anew", after(recreate)),
        _rotation("daemon-restarted", "the Docker daemon is stopped and started, and its containers with it", after(restart_daemon)),
        _rotation("daemon-live-restore", "the same with live-restore: the container goes on", after(restart_daemon, live=True)),
        _rotation("stopped", "who follows is stopped for 5 s (SIGSTOP) and goes on", after(freeze)),
        _rotation("wedged-while-stopped", "the same, and the service hangs while it is stopped", wedged_while_frozen),
    ),
    engine="dockerd",
)

__all__ = ["FORGED_LINES", "ROTATION"]

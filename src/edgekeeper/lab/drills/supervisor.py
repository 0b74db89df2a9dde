"""The supervisor dies, freezes, or must restart its engine."""

from __future__ import annotations

import asyncio
import signal
import time

from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.changes import NOTHING_LOST, SAME_ENGINE
from edgekeeper.lab.drills.members import DOT, edge_up_dot
from edgekeeper.lab.edges import PlainEdge, ProductEdge
from edgekeeper.lab.faults import engines_in
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT

EXTRA = f"{FRONT}:5300"
ADOPTED = Promise("adopted_s", "from the start of the next supervisor to the engine adopted", 1.0, "s")


async def killed(stage: Stage) -> Measured:
    """SIGKILL to edgekeeper, a second without it, then the next one starts."""
    await stage.add_members(3)
    edge = ProductEdge(stage)
    await edge.up()
    pid = await edge.engine_pid()
    load = await stage.load(duration=6.0)
    await load.at(1.0)
    edge.signal(signal.SIGKILL)
    stage.note("edgekeeper killed (SIGKILL)")
    await load.at(2.5)
    began = time.monotonic()
    await edge.start()
    stage.note("edgekeeper started again")

    await stage.until("the engine is adopted", lambda: edge.adopted(pid), timeout_s=10.0, every=0.01)
    took = time.monotonic() - began
    stage.note(f"engine {pid} adopted after {took:.2f} s")
    tally = await load.tally()
    return stage.measured(tally, engine_restarts=float(await edge.engine_pid() != pid), adopted_s=round(took, 3), engines=float(len(engines_in(stage))))


KILLED = Drill(
    "dns-supervisor-killed",
    "edgekeeper itself is killed under 500 questions a second, and started again",
    (
        Case(
            "defaults",
            "SIGKILL, 1.5 s later the next one",
            killed,
            (NOTHING_LOST, SAME_ENGINE, ADOPTED, Promise("engines", "engines running afterwards", 1, "processes")),
            alone=True,
            ci=True,
        ),
    ),
)


async def frozen(stage: Stage) -> Measured:
    """SIGSTOP to edgekeeper for 30 s (6 s in the short form) while a member is killed as well."""
    await stage.add_members(3)
    edge = ProductEdge(stage)
    await edge.up()
    pid = await edge.engine_pid()
    seconds = 6.0 if stage.quick else 30.0
    load = await stage.load(duration=seconds + 3.0)
    await load.at(1.0)
    edge.signal(signal.SIGSTOP)
    stage.note("edgekeeper frozen (SIGSTOP)")
    await load.at(1.0 + seconds)
    edge.signal(signal.SIGCONT)
    stage.note("edgekeeper thawed (SIGCONT)")
    tally = await load.tally()
    edge.must_run()
    await stage.until("edgekeeper says that it is well", edge.ready)
    return stage.measured(tally, engine_restarts=float(await edge.engine_pid() != pid))


FROZEN = Drill(
    "dns-supervisor-frozen",
    "edgekeeper itself freezes for 30 s under 500 questions a second",
    (Case("defaults", "SIGSTOP, 30 s later SIGCONT", frozen, (NOTHING_LOST, SAME_ENGINE), alone=True, ci=True),),
)


async def _restart_engine(edge: ProductEdge | PlainEdge, stage: Stage) -> None:
    """Add a listener: what no engine can do while it runs."""
    if isinstance(edge, PlainEdge):
        stage.note("a listener added to dnsdist.conf, dnsdist restarted (TERM, start)")
        edge.extra_listen(EXTRA)
        await edge.restart()
        return
    edge.dns["listen"] = [f"{FRONT}:53", EXTRA]
    stage.note("a listener added to edgekeeper.yaml, SIGHUP")
    edge.reload()


def restarted(mode: str, transport: str = "udp", *, black_hole: bool = False) -> Script:
    """2,500 questions in 5 s from 200 ports (or 40 connections), and a restart of the engine after the first second."""

    async def script(stage: Stage) -> Measured:
        edge: ProductEdge | PlainEdge
        options: tuple[str, ...] = ()
        if transport == "udp":
            await stage.add_members(3)
            edge = ProductEdge(stage, dns={"restart": mode}) if stage.side is Side.PRODUCT else PlainEdge(stage)
            await edge.up()
        else:
            authority, edge = await edge_up_dot(stage, restart=mode)
            options = ("--connections", "40", "--ca", str(authority.ca_file))
        if black_hole:
            stage.members["ns-b"].signal(signal.SIGSTOP)
            stage.note("member ns-b is a black hole (SIGSTOP)")
            await asyncio.sleep(4.0)
        before = await edge.engine_pid() if isinstance(edge, ProductEdge) else 0
        server = DOT if transport == "dot" else f"{FRONT}:53"
        load = await stage.load(*options, qps=500 if transport == "udp" else 400, transport=transport, server=server)
        await load.at(1.0)
        await _restart_engine(edge, stage)
        if isinstance(edge, ProductEdge):
            product = edge

            async def other() -> bool:
                return await product.engine_pid() not in {0, before}

            await stage.until("another engine process runs", other, timeout_s=20.0)
            stage.note("the new engine has taken over")
        tally = await load.tally()
        reached = await stage.ask("client", FRONT, 5300, "extra.example.")
        figures = {"not_listening": float(reached is None)}
        if isinstance(edge, ProductEdge):
            await stage.until("one engine is left", lambda: _one_left(stage), timeout_s=12.0)
        return stage.measured(tally, **figures)

    return script


async def _one_left(stage: Stage) -> bool:
    return len(engines_in(stage)) == 1


LISTENING = Promise("not_listening", "new listeners that do not answer", 0, "errors")


def _udp(lost: float) -> tuple[Promise, ...]:
    return (Promise("unanswered_3s", "unanswered within 3 s", lost, over="median"), LISTENING)


RECONNECT = (
    Promise("unanswered_5s", "unanswered within 5 s", 0),
    Promise("most_tries", "reconnects that a question needed", 1, "restarts"),
    LISTENING,
)


async def killed_while_steering(stage: Stage) -> Measured:
    """SIGKILL to edgekeeper at many moments of a steered restart; the next one must leave one engine and no held traffic."""
    await stage.add_members(3)
    edge = ProductEdge(stage, dns={"restart": "steer"})
    await edge.up()
    moments = (0.15, 0.4, 0.8) if stage.quick else (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0)
    lost, asked, most_engines, slowest = 0.0, 0.0, 0.0, 0.0
    for number, moment in enumerate(moments):
        edge.dns["listen"] = [f"{FRONT}:53"] if number % 2 else [f"{FRONT}:53", EXTRA]
        edge.reload()
        await asyncio.sleep(moment)
        edge.signal(signal.SIGKILL)
        stage.note(f"edgekeeper killed {moment:g} s after SIGHUP for a steered restart")
        await asyncio.sleep(0.3)
        await edge.start()
        slowest = max(slowest, await stage.until("the next edgekeeper is ready", edge.ready, timeout_s=20.0))
        await stage.all_serve(3)
        await stage.until("one engine is left", lambda: _one_left(stage), timeout_s=15.0)
        most_engines = max(most_engines, len(engines_in(stage)))
        tally = await (await stage.load(duration=1.0)).tally()
        lost += tally.unanswered_3s
        asked += tally.asked
    return Measured({"asked": asked, "unanswered_3s": lost, "engines": most_engines, "ready_s": round(slowest, 2)})


RESTARTED = Drill(
    "dns-engine-restarted",
    "a listener is added, which needs another engine process, under 500 questions a second",
    (
        Case("overlap", "restart: overlap, UDP", restarted("overlap"), _udp(2)),
        Case("overlap-black-hole", "restart: overlap, UDP, a member is a black hole", restarted("overlap", black_hole=True), _udp(2)),
        Case("steer", "restart: steer, UDP", restarted("steer"), _udp(0), ci=True),
        Case("steer-black-hole", "restart: steer, UDP, a member is a black hole", restarted("steer", black_hole=True), _udp(0)),
        Case("tcp", "restart: overlap, 40 TCP connections", restarted("overlap", "tcp"), RECONNECT, headline="unanswered_5s", ci=True),
        Case("dot", "restart: overlap, 40 DoT connections", restarted("overlap", "dot"), RECONNECT, headline="unanswered_5s"),
        Case(
            "steer-killed",
            "edgekeeper killed at each step of a steered restart, then started again",
            killed_while_steering,
            (
                Promise("unanswered_3s", "unanswered within 3 s after the next start", 0),
                Promise("engines", "engines running afterwards", 1, "processes"),
            ),
            alone=True,
        ),
    ),
)

"""HAProxy is reloaded: a thousand times, onto a taken port, while a server is down; and its supervisor dies or freezes."""

from __future__ import annotations

import asyncio
import signal
import time

from edgekeeper.lab import held
from edgekeeper.lab.cluster import WEB, Cluster
from edgekeeper.lab.drill import Case, Drill
from edgekeeper.lab.drills.pinned import AT_S, CUT_ONCE, DETECTION_S, LEAST, is_down, swallow
from edgekeeper.lab.faults import engines_in
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.proxies import PlainProxy, ProductProxy, proxy
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT

TAKEN = f"{FRONT}:7443"
NOTHING_LOST = Promise("unanswered", "requests lost", 0, "requests")
SAME_ENGINE = Promise("engine_restarts", "restarts of the engine", 0, "restarts")


async def reloads(stage: Stage) -> Measured:
    """A thousand reloads (a hundred in the short form) under 200 fresh requests a second of 100 ms each, and five clients that stay."""
    cluster = Cluster(stage)
    await cluster.start(web=True)
    edge = proxy(cluster, web=True)
    await edge.up()
    for name in ("web1", "web2", "web3"):
        await stage.tell(name, "delay 0.1")
    count = 100 if stage.quick else 1000
    warm = await cluster.hold(clients=5, duration=3600)
    fresh = await cluster.hold(clients=0, fresh=200, server=WEB, tls=False, duration=3600)
    began = time.monotonic()
    most = 0
    for number in range(count):
        await edge.new_worker(number + 1)
        most = max(most, len(engines_in(stage)))
    took = time.monotonic() - began
    stage.note(f"{count} reloads in {took:.0f} s, at most {most} processes of HAProxy at the same time")
    await asyncio.sleep(2.0)
    left = len(engines_in(stage)) - 2
    requests, kept = await fresh.stop(), await warm.stop()
    both = held.Held(tuple(sorted((*requests.requests, *kept.requests), key=lambda r: r.sent)), kept.cuts)
    return cluster.measured(both, reloads=count, left=left, reload_s=round(took / count, 3), most_processes=most)


RELOADS = Drill(
    "lb-reloads",
    "a thousand reloads (a hundred in the short form) under 200 fresh requests a second",
    (
        Case(
            "defaults",
            "an idle timeout is changed, again and again; five clients keep their connections",
            reloads,
            (NOTHING_LOST, Promise("left", "old workers left behind", 2, "processes"), Promise("cuts", "connections cut", 0, "cuts")),
            headline="unanswered",
            unit="requests",
            ci=True,
            most_runs=1,
        ),
    ),
    engine="haproxy",
)


async def taken_port(stage: Stage) -> Measured:
    """The config gets one listener more, on a port that another program has: the validator of HAProxy says yes."""
    cluster = Cluster(stage)
    await cluster.start()
    edge = proxy(cluster)
    await edge.up()
    pid = await edge.engine_pid() if isinstance(edge, ProductProxy) else 0
    await cluster.squat(TAKEN)
    load = await cluster.hold(fresh=100, duration=6.0)
    await load.at(AT_S)
    edge.listen_too(TAKEN)
    stage.note(f"a listener on {TAKEN}, which another program has, is added, and HAProxy is to be reloaded")
    if isinstance(edge, PlainProxy):
        stage.note(f"haproxy -c says {'yes' if await edge.reload() else 'no'}")
        return cluster.measured(await load.finish(), engine_restarts=0)
    edge.reload()
    found = await load.finish()
    edge.must_run()
    refused = sum(entry.get("decision") in {"refuse", "alarm"} for entry in edge.journal())
    stage.note(f"{refused} refusals in the journal")
    return cluster.measured(found, unsaid=float(refused == 0), engine_restarts=await edge.restarts(pid))


TAKEN_PORT = Drill(
    "lb-taken-port",
    "a reload with a new listener whose port is taken, under 100 fresh requests a second",
    (
        Case(
            "defaults",
            "haproxy -c accepts it; the reload would make every other listener refuse for 2 s",
            taken_port,
            (NOTHING_LOST, SAME_ENGINE, Promise("unsaid", "mistakes without a line in the journal", 0, "errors")),
            headline="unanswered",
            unit="requests",
            ci=True,
        ),
    ),
    engine="haproxy",
)


async def reload_down(stage: Stage) -> Measured:
    """cp1 hangs and is DOWN; then HAProxy is reloaded: the new worker must not believe that it is up until its first checks say otherwise."""
    cluster = Cluster(stage)
    await cluster.start()
    edge = proxy(cluster, directive=True, inter="1s", fall=2)
    await edge.up()
    await swallow(stage)
    await stage.until("HAProxy says that cp1 is DOWN", lambda: is_down(edge))
    await asyncio.sleep(1.0)
    load = await cluster.hold(clients=0, fresh=80, duration=5.0)
    await load.at(AT_S)
    await edge.new_worker(1)
    stage.note("HAProxy reloaded")
    return cluster.measured(await load.finish())


RELOAD_DOWN = Drill(
    "lb-reload-down",
    "HAProxy is reloaded while a server hangs and is DOWN, under 80 fresh requests a second",
    (
        Case(
            "defaults",
            "the plain HAProxy beside it has the directive, inter 1s fall 2",
            reload_down,
            (NOTHING_LOST,),
            headline="unanswered",
            unit="requests",
            ci=True,
        ),
    ),
    engine="haproxy",
)


async def killed(stage: Stage) -> Measured:
    """SIGKILL to edgekeeper, a second and a half without it, then the next one starts."""
    cluster = Cluster(stage)
    await cluster.start()
    edge = ProductProxy(cluster)
    await edge.up()
    pid = await edge.engine_pid()
    before = len(engines_in(stage))
    load = await cluster.hold(fresh=50, duration=6.0)
    await load.at(AT_S)
    edge.signal(signal.SIGKILL)
    stage.note("edgekeeper killed (SIGKILL)")
    await load.at(AT_S + 1.5)
    began = time.monotonic()
    await edge.start()
    stage.note("edgekeeper started again")
    await stage.until("the engine is adopted", lambda: edge.adopted(pid), timeout_s=10.0, every=0.01)
    took = time.monotonic() - began
    stage.note(f"engine {pid} adopted after {took:.2f} s")
    found = await load.finish()
    restarts = await edge.restarts(pid)
    return cluster.measured(found, engine_restarts=restarts, adopted_s=round(took, 3), more_engines=max(0.0, float(len(engines_in(stage)) - before)))


async def frozen(stage: Stage) -> Measured:
    """SIGSTOP to edgekeeper; while it stands still, cp1 becomes a black hole: HAProxy must do without it."""
    cluster = Cluster(stage)
    await cluster.start()
    edge = ProductProxy(cluster)
    await edge.up()
    pid = await edge.engine_pid()
    load = await cluster.hold(duration=AT_S + 8.0)
    await load.at(AT_S / 2)
    edge.signal(signal.SIGSTOP)
    stage.note("edgekeeper frozen (SIGSTOP)")
    await load.at(AT_S)
    await swallow(stage)
    await load.at(AT_S + 6.0)
    edge.signal(signal.SIGCONT)
    stage.note("edgekeeper thawed (SIGCONT)")
    found = await load.finish()
    await stage.until("edgekeeper says that it is well", edge.ready)
    return cluster.measured(found, engine_restarts=await edge.restarts(pid))


SUPERVISOR = Drill(
    "lb-supervisor-killed",
    "edgekeeper itself is killed, or freezes while a server becomes a black hole",
    (
        Case(
            "killed",
            "SIGKILL, 1.5 s later the next one, under nine kept connections and 50 fresh requests a second",
            killed,
            (
                NOTHING_LOST,
                Promise("cuts", "connections cut", 0, "cuts"),
                SAME_ENGINE,
                Promise("adopted_s", "from the start of the next supervisor to the engine adopted", 1.0, "s"),
                Promise("more_engines", "engine processes more than before", 0, "processes"),
            ),
            alone=True,
            headline="unanswered",
            unit="requests",
            ci=True,
        ),
        Case(
            "frozen-blackhole",
            "SIGSTOP, and cp1 becomes a black hole: HAProxy cuts by itself",
            frozen,
            (Promise("longest_s", LEAST, DETECTION_S + 0.2, "s"), CUT_ONCE, SAME_ENGINE),
            alone=True,
            headline="longest_s",
            unit="s",
            ci=True,
        ),
    ),
    engine="haproxy",
)

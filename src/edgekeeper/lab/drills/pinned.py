"""A control-plane server becomes a black hole under clients that keep their connections: who stays pinned, and for how long."""

from __future__ import annotations

import asyncio
import contextlib

from edgekeeper.errors import StepFailedError
from edgekeeper.lab import held
from edgekeeper.lab.cluster import Cluster, admin, server_at
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.product import command
from edgekeeper.lab.proxies import PlainProxy, Proxy, proxy
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage

AT_S = 1.0
"""When the fault comes, after the clients began."""
DETECTION_S = 2.5
"""Until a rendered config says DOWN, at the most: T + (fall-1)(F+T) + inter with T 500 ms, F 500 ms, fall 2, inter 1 s."""
LEAST = "the longest time that a client was without an answer"
CUT_ONCE = Promise("cuts_most", "cuts of the client that was cut most", 1, "cuts")


async def swallow(stage: Stage, name: str = "cp1") -> None:
    """The fault: a kube-apiserver whose etcd is dead."""
    await stage.tell(name, "mode blackhole")
    stage.note(f"{name} becomes a black hole: TCP, TLS and PING are answered, requests are not")


async def is_down(edge: Proxy, name: str = "cp1") -> bool:
    """Whether HAProxy says so."""
    return (await server_at(edge.socket, name))[1].startswith("DOWN")


def blackhole(*, directive: bool = False) -> Script:
    """Three servers, nine warm clients and some fresh ones; cp1 stops answering requests and goes on answering PING."""

    async def script(stage: Stage) -> Measured:
        cluster = Cluster(stage)
        await cluster.start()
        edge = proxy(cluster, directive=directive)
        await edge.up()
        seconds = 8.0 if stage.quick or stage.side is Side.PRODUCT else 14.0
        load = await cluster.hold(fresh=5, duration=AT_S + seconds)
        await load.at(AT_S)
        await swallow(stage)
        with contextlib.suppress(StepFailedError):
            await stage.until("HAProxy says that cp1 is DOWN", lambda: is_down(edge), every=0.02, timeout_s=seconds)
            stage.note("HAProxy says that cp1 is DOWN")
        return cluster.measured(await load.finish())

    return script


BLACKHOLE = Drill(
    "lb-blackhole",
    "one of three control-plane servers becomes a black hole under clients that keep one HTTP/2 connection each",
    tuple(
        Case(
            name,
            about,
            blackhole(directive=name != "defaults"),
            (
                Promise("longest_s", LEAST, DETECTION_S + 0.2, "s"),
                Promise("lost_most", "requests lost by the client that lost most", 1, "requests"),
                CUT_ONCE,
            ),
            headline="longest_s",
            unit="s",
            ci=name == "defaults",
        )
        for name, about in (
            ("defaults", "TCP, TLS and PING are answered, requests are not"),
            ("with-directive", "the same; the plain HAProxy beside it has on-marked-down shutdown-sessions at inter 2s fall 3"),
        )
    ),
    engine="haproxy",
)


async def after_reload(stage: Stage) -> Measured:
    """The clients' sessions are in a worker of before the reload when cp1 becomes a black hole: that worker checks nothing."""
    cluster = Cluster(stage)
    await cluster.start()
    edge = proxy(cluster, directive=True, inter="1s", fall=2)
    await edge.up()
    load = await cluster.hold(duration=AT_S + 2.0 + (8.0 if stage.quick or stage.side is Side.PRODUCT else 20.0))
    await load.at(AT_S)
    await edge.new_worker(1)
    stage.note("reloaded: the clients' sessions are in the old worker now")
    await load.at(AT_S + 2.0)
    await swallow(stage)
    return cluster.measured(await load.finish())


AFTER_RELOAD = Drill(
    "lb-blackhole-after-reload",
    "sessions that were opened before a reload; then their server becomes a black hole",
    (
        Case(
            "defaults",
            "the plain HAProxy beside it has on-marked-down shutdown-sessions, inter 1s fall 2",
            after_reload,
            (Promise("longest_s", LEAST, DETECTION_S + 1.0, "s"), Promise("lost_most", "requests lost by the client that lost most", 1, "requests"), CUT_ONCE),
            headline="longest_s",
            unit="s",
            ci=True,
        ),
    ),
    engine="haproxy",
)
HOLD_S = 2.0
SHALLOW_S = 7.0
"""The guard's own probe: three rounds a second apart, the last of which waits 3 s for a byte; then the mark, and a request that was under way."""


def guarded(*, shallow: bool = False) -> Script:
    """A HAProxy that edgekeeper does not own, without the directive, and ``edgekeeper lb guard`` beside it (not on the plain side)."""

    async def script(stage: Stage) -> Measured:
        cluster = Cluster(stage)
        await cluster.start()
        edge = PlainProxy(cluster, check="tcp" if shallow else "https", inter="1s", fall=2)
        await edge.up()
        if stage.side is Side.PRODUCT:
            argv = [*command(), "lb", "guard", "--socket", str(edge.socket), "--hold", f"{HOLD_S:g}s", "--state-dir", str(stage.folder / "guard")]
            guard = await stage.spawn("edge", "guard", argv)
            await asyncio.sleep(2.0)
            guard.must_run()
            stage.note("edgekeeper lb guard watches the socket")
        load = await cluster.hold(duration=AT_S + (10.0 if stage.side is Side.PRODUCT else 16.0))
        await load.at(AT_S)
        await swallow(stage)
        if shallow:
            return cluster.measured(await load.finish())
        took = await stage.until("HAProxy says that cp1 is DOWN", lambda: is_down(edge), every=0.02)
        at = load.started + AT_S + took
        stage.note("HAProxy says that cp1 is DOWN; it ends no session by itself")
        found = await load.finish()
        return cluster.measured(found, freed_s=round(held.after(found, at), 3))

    return script


GUARD = Drill(
    "lb-guard",
    "a HAProxy that edgekeeper does not own and whose config lacks the directive; edgekeeper lb guard beside it",
    (
        Case(
            "down",
            "cp1 becomes a black hole; the check sees it, the sessions stay",
            guarded(),
            (Promise("freed_s", "from DOWN until the last client is answered again", HOLD_S + 2.0, "s"), CUT_ONCE),
            headline="freed_s",
            unit="s",
            ci=True,
        ),
        Case(
            "shallow",
            "cp1 becomes a black hole; the check only connects and sees nothing",
            guarded(shallow=True),
            (Promise("longest_s", LEAST, SHALLOW_S, "s"), CUT_ONCE),
            headline="longest_s",
            unit="s",
        ),
    ),
    engine="haproxy",
)


async def all_slow(stage: Stage) -> Measured:
    """One slow etcd makes every /readyz slow, for some time; all else is answered as ever."""
    cluster = Cluster(stage)
    await cluster.start()
    await proxy(cluster, directive=True, inter="1s", fall=2).up()
    seconds = 7.0 if stage.quick else 12.0
    load = await cluster.hold(fresh=20, duration=AT_S + seconds + 7.0)
    await load.at(AT_S)
    for name in ("cp1", "cp2", "cp3"):
        await stage.tell(name, "slow 2")
    stage.note("every server answers /readyz after 2 s from now on, and all else as ever")
    await load.at(AT_S + seconds)
    for name in ("cp1", "cp2", "cp3"):
        await stage.tell(name, "slow 0")
    stage.note("every server answers /readyz at once again")
    return cluster.measured(await load.finish())


ALL_SLOW = Drill(
    "lb-all-slow",
    "every control-plane server answers its health check late, and all else as ever",
    (
        Case(
            "defaults",
            "/readyz after 2 s; the plain HAProxy beside it has the directive, inter 1s fall 2",
            all_slow,
            (
                Promise("again_s", "from a cut until that client is answered again", 1.0, "s"),
                CUT_ONCE,
                Promise("unserved", "clients without an answer at the end", 0, "clients"),
                Promise("fresh_unanswered", "fresh requests lost", 0, "requests"),
            ),
            headline="again_s",
            unit="s",
            ci=True,
        ),
    ),
    engine="haproxy",
)


def maint(*, reload: bool = False) -> Script:
    """A person puts cp1 in MAINT to work on it; the server itself is well."""

    async def script(stage: Stage) -> Measured:
        cluster = Cluster(stage)
        await cluster.start()
        edge = proxy(cluster)
        await edge.up()
        load = await cluster.hold(duration=AT_S + 7.0)
        await load.at(AT_S)
        if reload:
            await edge.new_worker(1)
            stage.note("reloaded: the clients' sessions are in the old worker now")
        await load.at(AT_S + 1.0)
        backend, _ = await server_at(edge.socket, "cp1")
        await admin(edge.socket, f"set server {backend}/cp1 state maint")
        stage.note("cp1 is put in MAINT over the stats socket")
        found = await load.finish()
        stayed = sum(who == "cp1" for who in held.last_served(found).values())
        stage.note(f"{stayed} clients were still with cp1 at the end")
        return cluster.measured(found, stayed=stayed)

    return script


MAINT = Drill(
    "lb-maint",
    "a server with sessions is put in MAINT",
    tuple(
        Case(
            name,
            about,
            maint(reload=name != "defaults"),
            (
                Promise("stayed", "clients still with the server in MAINT after 6 s", 0, "clients"),
                CUT_ONCE,
                Promise("lost_most", "requests lost by the client that lost most", 1, "requests"),
            ),
            headline="stayed",
            unit="clients",
            ci=name == "defaults",
        )
        for name, about in (
            ("defaults", "set server cp1 state maint, while three clients are with it"),
            ("after-reload", "the same after a reload: the sessions are in the old worker"),
        )
    ),
    engine="haproxy",
)

__all__ = ["AFTER_RELOAD", "ALL_SLOW", "BLACKHOLE", "GUARD", "MAINT"]

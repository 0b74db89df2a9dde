"""Things change under load: members, the config (for the worse), the certificate."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from edgekeeper.lab.certs import Authority
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.members import DOT
from edgekeeper.lab.edges import PlainEdge, ProductEdge, members_of
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import MEMBER_PORT, NAMES, Stage
from edgekeeper.lab.topology import MEMBERS

NOTHING_LOST = Promise("unanswered_3s", "unanswered within 3 s", 0)
SAME_ENGINE = Promise("engine_restarts", "restarts of the engine", 0, "restarts")


def changed(answer_s: float = 0.0) -> Script:
    """ns-b leaves, ns-d joins, in one edit of the members file; the plain engine is restarted for it.

    Members that need ``answer_s`` have questions under way when one of them leaves.
    """

    async def script(stage: Stage) -> Measured:
        await stage.add_members(4)
        after = tuple(m for m in members_of(4) if m[0] != "ns-b")
        edge: ProductEdge | PlainEdge = ProductEdge(stage) if stage.side is Side.PRODUCT else PlainEdge(stage)
        await edge.up()
        pid = await edge.engine_pid() if isinstance(edge, ProductEdge) else 0
        for name in stage.members if answer_s else ():
            await stage.tell(name, f"delay {answer_s} clients")
        load = await stage.load(duration=6.0)
        await load.at(2.5)  # the start is a change too: this is after the debounce
        if isinstance(edge, PlainEdge):
            edge.plain = replace(edge.plain, members=after)
            stage.note("members changed in dnsdist.conf, dnsdist restarted (TERM, start)")
            await edge.restart()
            return stage.measured(await load.tally(), engine_restarts=1)
        edited = time.monotonic()
        edge.write_members(after)
        stage.note("members file changed: ns-b out, ns-d in")
        tally = await load.tally()
        present = accepted_at(edge, edited)
        left = tally.by.get(int(MEMBERS[3].rpartition(".")[2]), 0)
        stage.note(f"the change was in the engine {present:.2f} s after the edit; ns-d gave {left} answers")
        restarts = float(await edge.engine_pid() != pid)
        return stage.measured(tally, engine_restarts=restarts, present_s=present, new_member_unused=float(left == 0))

    return script


def accepted_at(edge: ProductEdge, since: float) -> float:
    """Seconds from an edit to the journal's line that it is in the engine (the journal has the monotonic clock)."""
    for entry in edge.journal():
        if entry.get("event") == "config.live" and entry.get("decision") == "act" and entry["mono"] >= since:
            return round(float(entry["mono"]) - since, 3)
    return 99.0


async def often_changed(stage: Stage) -> Measured:
    """ns-b leaves and comes back, ten times (three in the short form)."""
    await stage.add_members(3)
    edge = ProductEdge(stage)
    await edge.up()
    pid = await edge.engine_pid()
    edits, every = (6, 1.4) if stage.quick else (20, 1.4)
    load = await stage.load(duration=2.5 + edits * every)
    times = []
    for number in range(edits):
        await load.at(2.0 + number * every)
        times.append(time.monotonic())
        edge.write_members(tuple(m for m in members_of(3) if m[0] != "ns-b" or number % 2))
    stage.note(f"{edits} edits of the members file, one every {every:g} s")
    tally = await load.tally()
    # Every second edit adds a member. A removal is done within 1.1 s: dnsdist waits for the receiver to wake up.
    took = sorted(accepted_at(edge, at) for at in times[1::2])
    p95 = took[min(len(took) - 1, int(0.95 * len(took)))]
    stage.note(f"from an edit that adds a member to the member in the engine: half within {took[len(took) // 2]:.2f} s, 95 % within {p95:.2f} s")
    return stage.measured(tally, engine_restarts=float(await edge.engine_pid() != pid), present_s=p95)


PRESENT = Promise("present_s", "from the edit to the new member in the engine, 95 %", 0.2, "s")
USED = Promise("new_member_unused", "new members that gave no answer", 0, "members")
CHANGED = Drill(
    "dns-member-changed",
    "one member leaves and another joins under 500 questions a second",
    (
        Case("defaults", "one edit of the members file: ns-b out, ns-d in", changed(), (NOTHING_LOST, SAME_ENGINE, USED), ci=True, members=4),
        Case("under-way", "the same with members that need 100 ms: questions are under way", changed(0.1), (NOTHING_LOST, SAME_ENGINE), members=4),
        Case("often", "twenty edits, one every 1.4 s", often_changed, (NOTHING_LOST, SAME_ENGINE, PRESENT), alone=True),
    ),
)


async def rolled(stage: Stage) -> Measured:
    """Each member is replaced by one at another address: new one started, file edited, old one stopped."""
    await stage.add_members(3)
    members = dict(members_of(3))
    edge: ProductEdge | PlainEdge = ProductEdge(stage) if stage.side is Side.PRODUCT else PlainEdge(stage)
    await edge.up()
    pid = await edge.engine_pid() if isinstance(edge, ProductEdge) else 0
    each = 2.5 if stage.quick else 4.0
    load = await stage.load(duration=3 * each + 2.0)
    for number, name in enumerate(NAMES[:3]):
        await load.at(1.0 + number * each)
        old = stage.members[name]
        address = MEMBERS[3 + number]
        new = await stage.add_member(f"{name}-new", address)
        await stage.until(f"{name} answers at its new address", lambda a=address: stage.ask("edge", a, MEMBER_PORT, "health.example.", "TXT"))  # type: ignore[misc]
        await stage.tell(f"{name}-new", f"identity {name}")
        members[name] = f"{address}:{MEMBER_PORT}"
        if isinstance(edge, ProductEdge):
            edge.write_members(tuple(members.items()))
        else:
            edge.plain = replace(edge.plain, members=tuple(members.items()))
            await edge.restart()
        stage.note(f"{name} moved to {address}")
        await asyncio.sleep(each / 2)
        await old.stop()
        stage.members[name] = new
        stage.note(f"the old {name} stopped")
    tally = await load.tally()
    restarts = float(await edge.engine_pid() != pid) if isinstance(edge, ProductEdge) else 3.0
    return stage.measured(tally, engine_restarts=restarts)


ROLLED = Drill(
    "dns-members-rolled",
    "every member is replaced by one at another address, one by one, under 500 questions a second",
    (Case("defaults", "three members, one after the other", rolled, (NOTHING_LOST, SAME_ENGINE), ci=True, members=6),),
)


async def bad_config(stage: Stage) -> Measured:
    """A config with a mistake, a members file with a mistake, a config that the engine refuses; then it is mended."""
    await stage.add_members(3)
    if stage.side is Side.PLAIN:
        plain = PlainEdge(stage)
        await plain.up()
        load = await stage.load(duration=6.0)
        await load.at(1.0)
        plain.plain = replace(plain.plain, policy="chashed)\nsetNoSuchThing(")
        stage.note("a mistake in dnsdist.conf, dnsdist restarted")
        await plain.restart()
        await load.at(4.0)
        plain.plain = replace(plain.plain, policy="chashed")
        stage.note("mended, dnsdist restarted")
        await plain.restart()
        return stage.measured(await load.tally(), engine_restarts=2)
    edge = ProductEdge(stage)
    await edge.up()
    pid = await edge.engine_pid()
    good, good_members = edge.file.read_text(encoding="utf-8"), edge.members_file.read_text(encoding="utf-8")
    load = await stage.load(duration=6.0)
    await load.at(1.0)
    edge.file.write_text(good.replace('"listen"', '"listne"'), encoding="utf-8")
    edge.hup()
    stage.note("a mistake in edgekeeper.yaml, SIGHUP")
    await load.at(2.2)
    edge.file.write_text(good, encoding="utf-8")
    edge.members_file.write_text('{"members": ["ns-a=not an address"', encoding="utf-8")
    stage.note("a mistake in the members file")
    await load.at(3.4)
    edge.members_file.write_text(good_members, encoding="utf-8")
    edge.dns["tls"] = {"dir": str(stage.folder / "nowhere"), "dot": [DOT]}
    edge.reload()
    stage.note("a listener whose certificate is not there, SIGHUP")
    await load.at(4.6)
    edge.file.write_text(good, encoding="utf-8")
    edge.hup()
    stage.note("mended, SIGHUP")
    tally = await load.tally()
    edge.must_run()
    refused = _refusals(edge)
    stage.note(f"{refused} refusals in the journal")
    return stage.measured(tally, engine_restarts=float(await edge.engine_pid() != pid), unsaid=max(0.0, 3.0 - refused))


def _refusals(edge: ProductEdge) -> int:
    return sum(entry.get("decision") in {"refuse", "alarm"} for entry in edge.journal())


BAD_CONFIG = Drill(
    "dns-bad-config",
    "mistakes in the config, in the members file, and one that only the engine would see, under 500 questions a second",
    (
        Case(
            "defaults",
            "three mistakes, one after the other, then mended",
            bad_config,
            (NOTHING_LOST, SAME_ENGINE, Promise("unsaid", "mistakes without a line in the journal", 0, "errors")),
            ci=True,
        ),
    ),
)


async def certificate(stage: Stage) -> Measured:
    """A new certificate under 100 DoT handshakes a second; the plain engine is restarted for it."""
    await stage.add_members(3)
    authority = Authority(stage.folder)
    folder = authority.mount()
    edge: ProductEdge | PlainEdge
    if stage.side is Side.PRODUCT:
        edge = ProductEdge(stage, dns={"tls": {"dir": str(folder), "dot": [DOT]}})
    else:
        edge = PlainEdge(stage, dot=(DOT,), certificate=str(folder / "tls.crt"), key=str(folder / "tls.key"))
    await edge.up()
    pid = await edge.engine_pid() if isinstance(edge, ProductEdge) else 0
    options = ("--connections", "20", "--per-connection", "1", "--ca", str(authority.ca_file))
    load = await stage.load(*options, qps=100, duration=6.0, transport="dot", server=DOT)
    await load.at(2.0)
    authority.rotate(folder)
    stage.note("certificate and key swapped, as Kubernetes swaps a Secret")
    if isinstance(edge, PlainEdge):
        await edge.restart()
        stage.note("dnsdist restarted")
    tally = await load.tally()
    summary = load.summary()
    seen = summary["certificates"]
    stage.note(
        f"{summary['handshakes']} handshakes, {summary['failed_handshakes']} failed; certificates seen: {', '.join(f'{n} times {k}' for k, n in seen.items())}"
    )
    restarts = float(await edge.engine_pid() != pid) if isinstance(edge, ProductEdge) else 1.0
    more = {"failed_handshakes": float(summary["failed_handshakes"]), "handshakes": float(summary["handshakes"])}
    return stage.measured(tally, engine_restarts=restarts, not_served=float(len(seen) < 2), **more)


CERTIFICATE = Drill(
    "dns-certificate-rotated",
    "the certificate is swapped under 100 DoT handshakes a second",
    (
        Case(
            "defaults",
            "one rename swaps certificate and key",
            certificate,
            (
                Promise("failed_handshakes", "handshakes failed", 0, "handshakes"),
                Promise("not_served", "new certificates not served", 0, "errors"),
                Promise("unanswered_5s", "unanswered within 5 s", 0),
                SAME_ENGINE,
            ),
            headline="failed_handshakes",
            ci=True,
        ),
    ),
)

__all__ = ["BAD_CONFIG", "CERTIFICATE", "CHANGED", "ROLLED"]

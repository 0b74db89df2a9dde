"""A VIP is moved on purpose: drained, its owner stopped, a drain that nobody answers."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from typing import Any

from edgekeeper.errors import StepFailedError
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.outcome import Measured
from edgekeeper.lab.owners import Node, PlainNode, ProductNode, up
from edgekeeper.lab.plain_keepalived import FIELD, PREEMPT, Manner, Vip
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import lan_plan
from edgekeeper.lab.vips import DNS, DNS6, DNS32, Lan, ip

AT_S = 1.0
"""When the fault comes, after the load began."""
PAIR = lan_plan(2)
NOTHING_LOST = Promise("unanswered_3s", "unanswered within 3 s", 0)
MOVED_ONCE = Promise("owner_changes", "times that the VIP moved", 1, "moves")
ONE_OWNER = Promise("without_one_owner", "VIPs without exactly one owner at the end", 0, "VIPs")
NO_SHADOW = Promise("shadows_left", "shadow addresses left behind", 0, "VIPs")


async def begun(stage: Stage, vip: Vip, *, strict: bool = False, advert_s: float = 1.0, **how: Any) -> tuple[Lan, dict[str, Node], str]:
    """Services, nodes and a VIP with an owner that the client knows; its name."""
    lan = Lan(stage, vip)
    if strict:
        await lan.strict()
    await lan.serve()
    nodes = await up(lan, advert_s=advert_s, **how)
    return lan, nodes, lan.owner()


def shadows_left(lan: Lan) -> float:
    """How many VIPs some node still has on its loopback interface."""
    return float(sum(bool(lan.watch.shadows(ip(v))) for v in lan.vips))


async def shadows_gone(lan: Lan) -> None:
    """Wait a moment for the last shadow to go; what is left is a figure, not an error."""

    async def none() -> bool:
        return not shadows_left(lan)

    with contextlib.suppress(StepFailedError):
        await lan.stage.until("no shadow is left", none, timeout_s=2.0)


def drained(vip: Vip = DNS, *, advert_s: float = 1.0, preempt: bool = False, forget: bool = False, strict: bool = False) -> Script:
    """500 questions a second, and after the first second the owner hands its VIP over."""

    async def script(stage: Stage) -> Measured:
        manner: Manner = PREEMPT if preempt else FIELD
        lan, nodes, owner = await begun(stage, vip, strict=strict, advert_s=advert_s, preempt=preempt, manner=manner)
        load = await lan.load(duration=5.0 + 3 * (advert_s if preempt else 0))
        await load.at(AT_S)
        forgetting = asyncio.create_task(_forget_when_moved(lan, owner)) if forget else None
        began = time.monotonic()
        code, said = await nodes[owner].drain(lan.vip)
        stage.note(f"{owner} was drained: {said}")
        await lan.owned_by_other(owner)
        if forgetting is not None:
            await forgetting
        tally = await load.tally()
        await shadows_gone(lan)
        return lan.measured(tally, began, drain_failed=float(code != 0), shadows_left=shadows_left(lan))

    return script


async def _forget_when_moved(lan: Lan, owner: str) -> None:
    while owner in lan.watch.holders(ip(lan.vip)):  # noqa: ASYNC110 - tighter than the kernel's news reach a waiter
        await asyncio.sleep(0.001)
    await lan.forget()
    lan.stage.note("the client's neighbour entry expires just now")


DRAINED = (
    NOTHING_LOST,
    MOVED_ONCE,
    ONE_OWNER,
    NO_SHADOW,
    Promise("drain_failed", "drains that failed", 0, "errors"),
)


SIX = (Promise("unanswered_3s", "unanswered within 3 s", 10), *DRAINED[1:])
"""While the address leaves its interface the kernel's IPv6 routing drops what arrives in those milliseconds, copy on the loopback or not: 0 mostly, 7 at most seen."""


def _drain(name: str, about: str, script: Script, promises: tuple[Promise, ...] = DRAINED, *, ci: bool = False) -> Case:
    return Case(name, about, script, promises, plan=PAIR, ci=ci)


VIP_DRAINED = Drill(
    "vip-drained",
    "the owner of a VIP is drained under 500 questions a second",
    (
        _drain("nopreempt", "advert 1 s; plain writes 300 to its track file", drained()),
        _drain("preempt", "the higher priority takes its VIP back; plain writes 60", drained(preempt=True)),
        _drain("advert-100ms", "advert 100 ms", drained(advert_s=0.1), ci=True),
        _drain("ipv6", "an IPv6 VIP over IPv6 adverts, advert 100 ms", drained(DNS6, advert_s=0.1), SIX),
        _drain("prefix-32", "the VIP is a /32 itself, advert 100 ms", drained(DNS32, advert_s=0.1)),
        _drain("neighbour-expires", "the client's neighbour entry expires while both answer, advert 1 s", drained(forget=True)),
        _drain("strict-rp-filter", "rp_filter 1 on every machine, advert 100 ms", drained(advert_s=0.1, strict=True)),
    ),
    engine="keepalived",
)


def stopped(*, advert_s: float = 1.0, foreign: bool = False) -> Script:
    """The owner's edgekeeper is stopped (TERM); or somebody else stops its keepalived."""

    async def script(stage: Stage) -> Measured:
        lan, nodes, owner = await begun(stage, DNS, advert_s=advert_s)
        load = await lan.load(duration=5.0)
        await load.at(AT_S)
        began = time.monotonic()
        node = nodes[owner]
        if foreign or isinstance(node, PlainNode):
            lan.parent(owner, signal.SIGTERM)
            stage.note(f"keepalived of {owner} gets SIGTERM from somebody")
        else:
            stage.note(f"edgekeeper of {owner} is stopped (TERM)")
            await node.stop()
            stage.note(f"edgekeeper of {owner} has ended")
        tally = await load.tally()
        await shadows_gone(lan)
        return lan.measured(tally, began, shadows_left=shadows_left(lan))

    return script


OUTAGE_60MS = Promise("outage_s", "longest time without an answer", 0.06, "s")
VIP_STOPPED = Drill(
    "vip-stopped",
    "the owner of a VIP is stopped under 500 questions a second",
    (
        Case("defaults", "TERM to edgekeeper; plain: TERM to keepalived", stopped(), (NOTHING_LOST, MOVED_ONCE, ONE_OWNER, NO_SHADOW), plan=PAIR),
        Case("advert-100ms", "the same, advert 100 ms", stopped(advert_s=0.1), (NOTHING_LOST, MOVED_ONCE, ONE_OWNER, NO_SHADOW), plan=PAIR),
        Case(
            "by-somebody",
            "TERM to keepalived, which nobody told edgekeeper about; advert 1 s",
            stopped(foreign=True),
            (OUTAGE_60MS, ONE_OWNER, NO_SHADOW),
            plan=PAIR,
            headline="outage_s",
            unit="s",
        ),
        Case(
            "by-somebody-100ms",
            "the same, advert 100 ms",
            stopped(advert_s=0.1, foreign=True),
            (OUTAGE_60MS, ONE_OWNER, NO_SHADOW),
            plan=PAIR,
            headline="outage_s",
            unit="s",
            ci=True,
        ),
    ),
    engine="keepalived",
)


async def never_taken(stage: Stage) -> Measured:
    """The peer's keepalived hangs when the drain begins: nobody takes the VIP, and the owner must have it back before its shadow goes."""
    lan, nodes, owner = await begun(stage, DNS, advert_s=0.1, changes={"handover": "2s"})
    (peer,) = lan.others(owner)
    load = await lan.load(duration=60.0)
    await load.at(AT_S)
    began = time.monotonic()
    lan.engine(peer, signal.SIGSTOP)
    stage.note(f"keepalived of {peer} hangs (SIGSTOP)")
    code, said = await nodes[owner].drain(lan.vip)
    stage.note(f"the drain of {owner} ends with {code}: {said}")
    await asyncio.sleep(1.0)
    tally = await load.stop()
    lan.engine(peer, signal.SIGCONT)
    await shadows_gone(lan)
    back = float(owner not in lan.watch.holders(ip(lan.vip)))
    return lan.measured(tally, began, not_refused=float(code == 0), not_back=back, shadows_left=shadows_left(lan))


async def killed_under_shadow(stage: Stage) -> Measured:
    """edgekeeper is killed as soon as its shadow is up, and started again two seconds later."""
    lan, nodes, owner = await begun(stage, DNS, advert_s=0.1)
    node = nodes[owner]
    assert isinstance(node, ProductNode)  # noqa: S101 - the case stands alone
    load = await lan.load(duration=60.0)
    await load.at(AT_S)
    began = time.monotonic()
    drain = asyncio.create_task(node.drain(lan.vip))

    async def covered() -> bool:
        return bool(lan.watch.shadows(ip(lan.vip)))

    await stage.until("the shadow is up", covered, every=0.002)
    node.signal(signal.SIGKILL)
    stage.note(f"edgekeeper of {owner} is killed (SIGKILL) with its shadow up")
    await drain
    await asyncio.sleep(2.0)
    await node.start()
    stage.note("edgekeeper started again")
    await stage.until(f"{owner} stands or is drained", lambda: _says(node), timeout_s=15.0)
    await asyncio.sleep(1.5)
    tally = await load.stop()
    await shadows_gone(lan)
    return lan.measured(tally, began, shadows_left=shadows_left(lan))


async def _says(node: ProductNode) -> bool:
    return bool(await node.rows())


VIP_DRAIN_ABORTED = Drill(
    "vip-drain-aborted",
    "a drain that does not reach its end, under 500 questions a second",
    (
        Case(
            "never-taken",
            "the peer's keepalived hangs, nobody takes the VIP within handover (2 s)",
            never_taken,
            (
                NOTHING_LOST,
                ONE_OWNER,
                NO_SHADOW,
                Promise("not_refused", "drains that were said to have worked", 0, "errors"),
                Promise("not_back", "VIPs that their owner does not hold again", 0, "VIPs"),
            ),
            alone=True,
            plan=PAIR,
            ci=True,
        ),
        Case(
            "killed",
            "SIGKILL to edgekeeper with its shadow up, two seconds later the next one",
            killed_under_shadow,
            (NOTHING_LOST, ONE_OWNER, NO_SHADOW),
            alone=True,
            plan=PAIR,
            ci=True,
        ),
    ),
    engine="keepalived",
)

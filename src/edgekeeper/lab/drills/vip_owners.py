"""Who owns a VIP becomes unclear: adverts are cut, keepalived hangs or is killed, a frozen machine wakes, two machines boot at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

from edgekeeper.errors import StepFailedError
from edgekeeper.lab import records
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.drills.vip_moves import AT_S, NOTHING_LOST, ONE_OWNER, PAIR, begun
from edgekeeper.lab.faults import engines_in
from edgekeeper.lab.holders import holding
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.owners import Node, ProductNode, make
from edgekeeper.lab.plain_keepalived import Check
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.vips import DNS, Lan, ip

NEVER_S = 60.0
"""What a figure says of something that did not come about."""
HEALED_S = 1.5
"""The client goes on for so long: one that still asks the node that stepped back would have no answer from then on."""
BOOT_S = 2.2
"""Beyond the protocol's own time: the reload starts the track script anew, and the one after it comes a second later."""
NAMED = Promise("named_s", "from the second owner until both nodes name both", 2.0, "s")


async def when(stage: Stage, what: str, node: Node, *words: str, timeout_s: float = 8.0) -> float:
    """The moment at which a node's alarms have all these words; infinity when it does not come."""
    assert isinstance(node, ProductNode)  # noqa: S101 - the cases stand alone
    product = node

    async def said() -> bool:
        text = await product.alarms()
        return all(word in text for word in words)

    try:
        await stage.until(f"{node.node} says {what}", said, timeout_s=timeout_s, every=0.02)
    except StepFailedError:
        stage.note(f"{node.node} never says {what}: {await node.alarms() or 'no alarm'}")
        return float("inf")
    now = time.monotonic()
    stage.note(f"{node.node} says: {await node.alarms()}")
    return now


def _since(moment: float, start_at: float) -> float:
    return round(min(NEVER_S, moment - start_at), 3)


async def two_hold(lan: Lan) -> float:
    """Wait until two nodes hold the VIP; the moment."""

    async def both() -> bool:
        return len(lan.watch.holders(ip(lan.vip))) > 1

    await lan.stage.until("two nodes hold the VIP", both, timeout_s=15.0, every=0.005)
    return time.monotonic()


async def heals(lan: Lan, timeout_s: float = 15.0) -> float:
    """How long until one node holds it; ``NEVER_S`` when that does not come."""

    async def one() -> bool:
        return bool(lan.owner())

    try:
        return await lan.stage.until("one node holds the VIP", one, timeout_s=timeout_s, every=0.005)
    except StepFailedError:
        return NEVER_S


def vrrp_cut(advert_s: float) -> Script:
    """Adverts do not arrive any more, everything else does; then they do again."""

    async def script(stage: Stage) -> Measured:
        lan, nodes, owner = await begun(stage, DNS, advert_s=advert_s)
        (peer,) = lan.others(owner)
        load = await lan.load(qps=50, duration=120.0)
        await load.at(AT_S)
        began = time.monotonic()
        for node in (peer, owner):
            await lan.cut_vrrp(node)
        stage.note("adverts are cut between the nodes, nothing else is")
        second = await two_hold(lan)
        stage.note(f"{peer} has taken the VIP too")
        named = await asyncio.gather(
            when(stage, "that there are two", nodes[owner], peer, "owner"), when(stage, "that there are two", nodes[peer], owner, "owner")
        )
        await asyncio.sleep(1.0)
        for node in (peer, owner):
            await lan.mend_vrrp(node)
        stage.note("adverts arrive again")
        healed = await heals(lan)
        stage.note(f"one owner ({lan.owner()}) {healed:.2f} s later")
        await asyncio.sleep(HEALED_S)
        tally = await load.stop()
        return lan.measured(tally, began, named_s=_since(max(named), second), healed_s=round(healed, 3))

    return script


def all_cut(advert_s: float) -> Script:
    """The peer is alone in its half of the segment: no advert, no status."""

    async def script(stage: Stage) -> Measured:
        lan, nodes, owner = await begun(stage, DNS, advert_s=advert_s)
        (peer,) = lan.others(owner)
        load = await lan.load(qps=50, duration=120.0)
        await load.at(AT_S)
        began = time.monotonic()
        await lan.unplug(peer, carrier=False)
        stage.note(f"the segment is cut: {peer} is alone behind a link that is up")
        named = await asyncio.gather(when(stage, "who is unheard", nodes[owner], peer, "may own"), when(stage, "who is unheard", nodes[peer], owner, "may own"))
        await asyncio.sleep(1.0 + 3 * advert_s)
        await lan.plug(peer)
        stage.note("the segment is whole again")
        healed = await heals(lan)
        stage.note(f"one owner ({lan.owner()}) {healed:.2f} s later")
        await asyncio.sleep(HEALED_S)
        tally = await load.stop()
        return lan.measured(tally, began, unheard_s=_since(max(named), began), healed_s=round(healed, 3))

    return script


def _healed(advert_s: float) -> Promise:
    return Promise("healed_s", "from the mended network to one owner", round(3.7 * advert_s + 0.3, 2), "s")


OUTAGE = Promise("outage_s", "longest time without an answer", 1.0, "s")
UNHEARD = Promise("unheard_s", "from the cut until each node names the other as unheard", 2.0, "s")


def _partition(name: str, about: str, script: Script, first: Promise, advert_s: float, *, ci: bool = False) -> Case:
    return Case(name, about, script, (first, _healed(advert_s), OUTAGE, ONE_OWNER), alone=True, plan=PAIR, headline=first.figure, unit="s", ci=ci)


VIP_PARTITION = Drill(
    "vip-partition",
    "the nodes that share a VIP do not hear each other, 50 questions a second",
    (
        _partition("vrrp-cut", "adverts are cut, the status path is whole; advert 1 s", vrrp_cut(1.0), NAMED, 1.0),
        _partition("vrrp-cut-100ms", "the same, advert 100 ms", vrrp_cut(0.1), NAMED, 0.1, ci=True),
        _partition("all-cut", "everything is cut, links stay up; advert 1 s", all_cut(1.0), UNHEARD, 1.0),
        _partition("all-cut-100ms", "the same, advert 100 ms", all_cut(0.1), UNHEARD, 0.1, ci=True),
    ),
    engine="keepalived",
)


def hangs(advert_s: float) -> Script:
    """Only keepalived of the owner hangs: the peer takes over, the old address stays; then it goes on."""

    async def script(stage: Stage) -> Measured:
        lan, nodes, owner = await begun(stage, DNS, advert_s=advert_s)
        (peer,) = lan.others(owner)
        load = await lan.load(duration=6.0 + 8 * advert_s)
        await load.at(AT_S)
        began = time.monotonic()
        lan.engine(owner, signal.SIGSTOP)
        stage.note(f"keepalived of {owner} hangs (SIGSTOP); edgekeeper and the service do not")
        second = await two_hold(lan)
        figures: dict[str, float] = {}
        if stage.side is Side.PRODUCT:
            both = (when(stage, "that there are two", nodes[owner], peer, "owner"), when(stage, "that there are two", nodes[peer], owner, "owner"))
            figures["named_s"] = _since(max(await asyncio.gather(*both)), second)
        await asyncio.sleep(max(0.0, second + 2.5 - time.monotonic()))
        lan.engine(owner, signal.SIGCONT)
        stage.note("it goes on (SIGCONT)")
        healed = await heals(lan)
        tally = await load.tally()
        return lan.measured(tally, began, **figures, healed_s=round(healed, 3))

    return script


VIP_TWO_OWNERS = Drill(
    "vip-two-owners",
    "keepalived of a VIP's owner hangs for a while, its machine does not, under 500 questions a second",
    (
        Case("defaults", "advert 1 s", hangs(1.0), (NAMED, _healed(1.0), ONE_OWNER), plan=PAIR, headline="named_s", unit="s"),
        Case("advert-100ms", "advert 100 ms", hangs(0.1), (NAMED, _healed(0.1), ONE_OWNER), plan=PAIR, headline="named_s", unit="s"),
    ),
    engine="keepalived",
)


def resumed(advert_s: float, frozen_s: float) -> Script:
    """The owner's machine stands still and wakes again: by then another node owns the VIP."""

    async def script(stage: Stage) -> Measured:
        lan, _, owner = await begun(stage, DNS, advert_s=advert_s)
        load = await lan.load(duration=frozen_s + 4.0 + 6 * advert_s)
        await load.at(AT_S)
        began = time.monotonic()
        lan.everything(owner, signal.SIGSTOP)
        lan.watch.off(owner)
        stage.note(f"{owner} is frozen (SIGSTOP to all its processes)")
        await lan.owned_by_other(owner)
        await asyncio.sleep(max(0.0, began + frozen_s - time.monotonic()))
        thawed = time.monotonic()
        lan.watch.on(owner)
        lan.everything(owner, signal.SIGCONT)
        stage.note(f"{owner} wakes")
        found = await load.finish()
        after = records.tally([r for r in found if r.sent >= thawed])
        two = holding(lan.watch.changes, ip(lan.vip), thawed, time.monotonic())
        return lan.measured(records.tally(found), began, two_after_s=round(two.two_s, 3), lost_after=float(after.unanswered_3s), moves_after=float(two.moves))

    return script


RESUMED = (
    Promise("two_after_s", "two owners after it woke", 1.0, "s"),
    Promise("lost_after", "unanswered after it woke", 0),
    Promise("owner_changes", "times that the VIP moved", 1, "moves"),
    ONE_OWNER,
)
VIP_RESUMED = Drill(
    "vip-resumed",
    "the machine that owns a VIP stands still and wakes when another has taken it, under 500 questions a second",
    (
        Case("defaults", "8 s, advert 1 s", resumed(1.0, 8.0), RESUMED, plan=PAIR, headline="owner_changes", unit="moves"),
        Case("advert-100ms", "4 s, advert 100 ms", resumed(0.1, 4.0), RESUMED, plan=PAIR, headline="owner_changes", unit="moves", ci=True),
    ),
    engine="keepalived",
)


def keepalived_killed(advert_s: float) -> Script:
    """SIGKILL to both processes of keepalived on the owner: its address stays, nobody announces it."""

    async def script(stage: Stage) -> Measured:
        lan, _, owner = await begun(stage, DNS, advert_s=advert_s)
        load = await lan.load(duration=6.0 + 4 * advert_s)
        await load.at(AT_S)
        began = time.monotonic()
        lan.engine(owner, signal.SIGKILL)
        stage.note(f"both processes of keepalived on {owner} are killed (SIGKILL)")
        tally = await load.tally()
        stage.note(f"{lan.owner() or 'nobody, or more than one,'} owns the VIP")
        return lan.measured(tally, began)

    return script


KEEPALIVED_KILLED = (NOTHING_LOST, Promise("two_owners_s", "two nodes hold the VIP", 1.0, "s"), ONE_OWNER)
VIP_KEEPALIVED_KILLED = Drill(
    "vip-keepalived-killed",
    "both processes of keepalived are killed on the owner of a VIP, under 500 questions a second",
    (
        Case("defaults", "advert 1 s", keepalived_killed(1.0), KEEPALIVED_KILLED, plan=PAIR, headline="two_owners_s", unit="s"),
        Case("advert-100ms", "advert 100 ms", keepalived_killed(0.1), KEEPALIVED_KILLED, plan=PAIR, headline="two_owners_s", unit="s", ci=True),
    ),
    engine="keepalived",
)


def cold_start(advert_s: float, rounds: int = 1) -> Script:
    """Both nodes boot in the same moment, and keepalived is told to read its configuration again a second later."""

    async def script(stage: Stage) -> Measured:
        lan = Lan(stage, DNS)
        await lan.serve()
        check = Check(lan.check("192.0.2.53")) if stage.side is Side.PLAIN else None
        nodes = make(lan, advert_s=advert_s, check=check)
        waits, unserved = 0.0, 0.0
        worst_two, changes, after = 0.0, 0, 0.0
        boots = min(2, rounds) if stage.quick else rounds
        for number in range(boots):
            began = time.monotonic()
            await asyncio.gather(*(node.start() for node in nodes.values()))
            for name in nodes:
                await stage.until(f"keepalived runs on {name}", lambda n=name: _runs(lan, n), timeout_s=15.0, every=0.01)  # type: ignore[misc]
            booted = time.monotonic()
            await asyncio.sleep(1.0)
            for name in nodes:
                lan.parent(name, signal.SIGHUP)
            wait = await _first_owner(lan, booted, 4.0 + 10 * advert_s)
            stage.note(
                f"boot {number + 1}: {'nobody owns the VIP' if wait >= NEVER_S else f'{lan.owner()} owns the VIP {wait:.2f} s after both keepalived ran'}"
            )
            await asyncio.sleep(1.0 + 3 * advert_s)
            found = holding(lan.watch.changes, ip(lan.vip), began, time.monotonic())
            later = holding(lan.watch.changes, ip(lan.vip), booted + min(wait, 20.0), time.monotonic())
            unserved = max(unserved, float(wait >= NEVER_S))
            waits = max(waits, wait if wait < NEVER_S or stage.side is Side.PRODUCT else time.monotonic() - booted)
            worst_two, changes = max(worst_two, found.two_s), changes + found.moves
            after = max(after, later.none_s if wait < NEVER_S else NEVER_S)
            if number + 1 < boots:
                await _off(lan, nodes)
        return Measured(
            {
                "asked": 0.0,
                "unanswered": 0.0,
                "unserved": unserved,
                "first_owner_s": round(waits, 3),
                "two_owners_s": round(worst_two, 3),
                "owner_changes": changes,
                "no_owner_after_s": round(after, 3),
                "without_one_owner": float(not lan.owner()),
            }
        )

    return script


async def _runs(lan: Lan, node: str) -> bool:
    return bool(engines_in(lan.stage, node))


async def _first_owner(lan: Lan, since: float, timeout_s: float) -> float:
    try:
        await lan.stage.until("the VIP has an owner", lan.all_owned, timeout_s=timeout_s, every=0.01)
    except StepFailedError:
        return NEVER_S
    return time.monotonic() - since


async def _off(lan: Lan, nodes: dict[str, Node]) -> None:
    """Both machines are off: nothing of what ran is left, nor the addresses that it set."""
    for name, node in nodes.items():
        keep = lan.stage.members[name].pid
        for pid in lan.stage.net.pids(name):
            if pid != keep:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for actor in node.supervisors():
            await actor.wait(5.0)
    await asyncio.sleep(0.2)
    for name in nodes:
        if name in lan.watch.holders(ip(lan.vip)):
            await lan.stage.net.ip(name, "address", "delete", lan.vip.address, "dev", "eth0")
    await asyncio.sleep(0.1)


def _cold(advert_s: float) -> tuple[Promise, ...]:
    return (
        Promise("first_owner_s", "from both keepalived running to one owner", round(1.0 + 3 * advert_s + BOOT_S, 2), "s"),
        Promise("two_owners_s", "two nodes hold the VIP", round(max(0.1, 0.1 * advert_s), 2), "s"),
        Promise("no_owner_after_s", "nobody holds the VIP once it was held", 0.5, "s"),
        ONE_OWNER,
    )


VIP_COLD_START = Drill(
    "vip-cold-start",
    "both nodes boot in the same moment and reload a second later",
    (
        Case("defaults", "advert 1 s; plain: its check asks the VIP itself", cold_start(1.0), _cold(1.0), plan=PAIR, headline="first_owner_s", unit="s"),
        Case(
            "advert-100ms",
            "advert 100 ms, ten boots (two in the short form)",
            cold_start(0.1, 10),
            _cold(0.1),
            alone=True,
            plan=PAIR,
            headline="first_owner_s",
            unit="s",
            ci=True,
            most_runs=1,
        ),
    ),
    engine="keepalived",
)

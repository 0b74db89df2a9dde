"""Who is up: as clients would say, and only the machine that is meant."""

from __future__ import annotations

import asyncio

from edgekeeper.lab.drill import Case, Drill
from edgekeeper.lab.edges import PlainEdge, ProductEdge
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import MEMBER_PORT, Stage
from edgekeeper.lab.topology import FRONT, MEMBERS

SETTLE_S = 6.0
"""Long enough for fall 2 at one check a second, its timeouts, and for the late answers of before."""


async def clients_say(stage: Stage, addresses: tuple[str, ...], serial: int) -> dict[str, bool]:
    """Asks each member itself what a client would ask: a name that nobody has asked before."""

    async def one(address: str) -> bool:
        reply = await stage.ask("edge", address, MEMBER_PORT, f"truth{serial}.clients.example.", timeout=2.0)
        return reply is not None and reply.rcode == 0 and bool(reply.addresses)

    said = await asyncio.gather(*(one(a) for a in addresses))
    return dict(zip(addresses, said, strict=True))


async def served_by(stage: Stage, serial: int, asked: int = 120) -> tuple[dict[str, int], int]:
    """Ask the edge many names: which member answered how often, and how many questions failed."""
    by: dict[str, int] = {}
    failed = 0
    for number in range(asked):
        reply = await stage.ask("client", FRONT, 53, f"s{serial}-{number}.served.example.", timeout=1.0)
        if reply is None or reply.rcode != 0 or not reply.addresses:
            failed += 1
        else:
            by[reply.addresses[0]] = by.get(reply.addresses[0], 0) + 1
    return by, failed


async def upstream_dead(stage: Stage) -> Measured:
    """Two of three members lose their upstream (one says SERVFAIL, one says nothing), then get it back."""
    await stage.add_members(3)
    if stage.side is Side.PRODUCT:
        edge = ProductEdge(stage)
        del edge.dns["health"]  # the default question of purpose: resolver
        await edge.up()
    else:
        await PlainEdge(stage, health_name="a.root-servers.net.", health_type="A", must_resolve=False).up()
    figures: dict[str, float] = {}
    await stage.tell("ns-b", "mode servfail clients")
    await stage.tell("ns-c", "mode drop clients")
    stage.note("the upstream of ns-b (SERVFAIL) and ns-c (silence) is dead")
    await asyncio.sleep(SETTLE_S)
    figures |= await _compare(stage, 1)
    for name in ("ns-b", "ns-c"):
        await stage.tell(name, "mode normal")
    stage.note("both have it back")
    await asyncio.sleep(SETTLE_S)
    healed = await _compare(stage, 2)
    figures["wrongly_down"] += healed["wrongly_down"]
    figures["wrongly_up"] += healed["wrongly_up"]
    figures["failed"] += healed["failed"]
    figures["asked"] += healed["asked"]
    return Measured(figures)


async def _compare(stage: Stage, serial: int) -> dict[str, float]:
    addresses = MEMBERS[:3]
    truth = await clients_say(stage, addresses, serial)
    by, failed = await served_by(stage, serial)
    wrongly_down = [a for a in addresses if truth[a] and not by.get(a)]
    wrongly_up = [a for a in addresses if not truth[a] and by.get(a)]
    in_use = ", ".join(f"{a}: {by.get(a, 0)}{'' if truth[a] else ' (clients: dead)'}" for a in addresses)
    stage.note(f"answers by member: {in_use}; {failed} of 120 questions failed")
    # A dead member in use cannot answer: the questions that failed are what shows it.
    return {"wrongly_down": len(wrongly_down), "wrongly_up": len(wrongly_up) + (failed > 0), "failed": failed, "asked": 120}


UPSTREAM = Drill(
    "dns-upstream-dead",
    "members whose upstream is dead go down, and come back, exactly as their clients would say",
    (
        Case(
            "two-of-three",
            "two of three members lose their upstream, then get it back",
            upstream_dead,
            (
                Promise("failed", "questions failed once the dead members are out", 0),
                Promise("wrongly_up", "dead members in use", 0, "members"),
                Promise("wrongly_down", "live members not in use", 0, "members"),
            ),
            headline="failed",
            ci=True,
        ),
    ),
)


async def wrong_node(stage: Stage) -> Measured:
    """Another machine answers at the address of ns-b: who gets its answers, and who notices."""
    await stage.add_members(3)
    edge: ProductEdge | PlainEdge
    edge = ProductEdge(stage, dns={"identity": "require"}) if stage.side is Side.PRODUCT else PlainEdge(stage)
    await edge.up()
    await stage.tell("ns-b", "identity ns-x")
    stage.note("the machine behind the address of ns-b is now ns-x")
    figures: dict[str, float] = {}
    if isinstance(edge, ProductEdge):
        product = edge

        async def noticed() -> bool:
            text = str((await product.status()).get("roles", {}).get("dns", {}))
            return "ns-x" in text

        try:
            figures["noticed_s"] = round(await stage.until("the status names ns-x", noticed, timeout_s=12.0), 2)
            stage.note("the status names ns-x")
        except Exception as err:  # noqa: BLE001 - a promise that is not kept is a figure, not an end
            stage.note(str(err))
            figures["noticed_s"] = 12.0
    await asyncio.sleep(SETTLE_S)
    by, failed = await served_by(stage, 1)
    wrong = by.get(MEMBERS[1], 0)
    stage.note(f"{wrong} of 120 answers came from the wrong machine, {failed} questions failed")
    return Measured({**figures, "from_wrong": wrong, "failed": failed, "asked": 120})


WRONG_NODE = Drill(
    "dns-wrong-node",
    "another machine answers at a member's address, identity: require",
    (
        Case(
            "identity-require",
            "the machine behind the address of ns-b says that it is ns-x",
            wrong_node,
            (
                Promise("noticed_s", "until the status names it", 10, "s"),
                Promise("from_wrong", "answers from the wrong machine", 0, since=(2, 1)),
                Promise("failed", "questions failed", 0),
            ),
            headline="from_wrong",
            ci=True,
        ),
    ),
)

__all__ = ["UPSTREAM", "WRONG_NODE", "clients_say", "served_by"]

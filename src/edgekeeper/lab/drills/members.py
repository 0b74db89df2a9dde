"""A member dies, freezes or is slow, under UDP, TCP and DoT."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

from edgekeeper.lab.certs import Authority
from edgekeeper.lab.drill import Case, Drill, Script
from edgekeeper.lab.edges import PlainEdge, ProductEdge
from edgekeeper.lab.faults import take_host
from edgekeeper.lab.outcome import Measured, Side
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT, MEMBERS

AT_S = 1.0
"""When the fault comes, after the load began."""
DOT = f"{FRONT}:853"


async def edge_up(stage: Stage, members: int = 3, **dns: object) -> None:
    """Members and whoever stands at the edge, ready; ``dns`` are keys of the product's config."""
    await stage.add_members(members)
    if stage.side is Side.PRODUCT:
        await ProductEdge(stage, members, dns=dns).up(members)
    else:
        await PlainEdge(stage, members).up(members)


async def edge_up_dot(stage: Stage, **dns: object) -> tuple[Authority, ProductEdge | PlainEdge]:
    """As ``edge_up``, with DNS over TLS too: the authority to trust, and the edge."""
    await stage.add_members(3)
    authority = Authority(stage.folder)
    folder = authority.mount()
    edge: ProductEdge | PlainEdge
    if stage.side is Side.PRODUCT:
        edge = ProductEdge(stage, dns={"tls": {"dir": str(folder), "dot": [DOT]}, **dns})
    else:
        edge = PlainEdge(stage, dot=(DOT,), certificate=str(folder / "tls.crt"), key=str(folder / "tls.key"))
    await edge.up()
    return authority, edge


Fault = Callable[[Stage], Awaitable[str]]
"""Does something to member ns-b and says what."""


async def killed(stage: Stage) -> str:
    """Its process dies; the machine refuses what comes for it."""
    stage.members["ns-b"].signal(signal.SIGKILL)
    return "member ns-b killed (SIGKILL)"


async def frozen(stage: Stage) -> str:
    """Its process stands still; its kernel still accepts connections."""
    stage.members["ns-b"].signal(signal.SIGSTOP)
    return "member ns-b frozen (SIGSTOP)"


async def host_gone(stage: Stage) -> str:
    """Its machine is gone."""
    await take_host(stage, MEMBERS[1])
    return "the machine of member ns-b is gone"


def hurt(fault: Fault, retry: str = "normal") -> Script:
    """Three members, 2,500 questions in 5 s, and a fault after the first second."""

    async def script(stage: Stage) -> Measured:
        await edge_up(stage, retry=retry)
        load = await stage.load()
        await load.at(AT_S)
        stage.note(await fault(stage))
        return stage.measured(await load.tally())

    return script


DEFAULTS = (
    Promise("unanswered_3s", "unanswered within 3 s", 0.004, share_of="asked", over="median"),
    Promise("unanswered_5s", "unanswered within 5 s", 0, over="median", since=(2, 0)),
)
FAST = (Promise("unanswered_3s", "unanswered within 3 s", 0.001, share_of="asked", over="median"),)

KILLED = Drill(
    "dns-member-killed",
    "one of three members is killed under 500 questions a second",
    (
        Case("defaults", "SIGKILL to one of three members, retry: normal", hurt(killed), DEFAULTS, ci=True),
        Case("retry-fast", "SIGKILL to one of three members, retry: fast", hurt(killed, "fast"), FAST, since=(2, 0)),
    ),
)
FROZEN = Drill(
    "dns-member-frozen",
    "one of three members freezes (a black hole) under 500 questions a second",
    (
        Case("defaults", "SIGSTOP to one of three members, retry: normal", hurt(frozen), DEFAULTS, ci=True),
        Case("host-gone", "the machine of one of three members is gone, retry: normal", hurt(host_gone), DEFAULTS),
        Case("retry-fast", "SIGSTOP to one of three members, retry: fast", hurt(frozen, "fast"), FAST, since=(2, 0)),
    ),
)


def hurt_stream(fault: Fault, transport: str) -> Script:
    """20 connections with 10 questions a second each for 5 s, and a fault after the first second."""

    async def script(stage: Stage) -> Measured:
        authority, _ = await edge_up_dot(stage)
        options = ("--connections", "20", "--ca", str(authority.ca_file))
        server = DOT if transport == "dot" else f"{FRONT}:53"
        load = await stage.load(*options, qps=200, transport=transport, server=server)
        await load.at(AT_S)
        stage.note(await fault(stage))
        return stage.measured(await load.tally())

    return script


STREAMS = (
    Promise("unanswered_5s", "unanswered within 5 s", 0),
    Promise("latest_s", "the latest answer", 2.5, "s"),
)
OVER_STREAMS = Drill(
    "dns-member-killed-dot",
    "one of three members is killed or freezes under 20 TCP or DoT connections",
    tuple(
        Case(f"{transport}-{name}", f"{words}, clients over {transport}", hurt_stream(fault, transport), STREAMS, ci=name == "killed", ci_since=(2, 0))
        for transport in ("tcp", "dot")
        for name, words, fault in (
            ("killed", "SIGKILL to one of three members", killed),
            ("frozen", "SIGSTOP to one of three members", frozen),
            ("host-gone", "the machine of one of three members is gone", host_gone),
        )
    ),
)


def slow(seconds: float, slow_members: tuple[str, ...], share: float) -> Script:
    """Members that need so long for what clients ask, from the start; health is answered at once."""

    async def script(stage: Stage) -> Measured:
        await edge_up(stage)
        for name in slow_members:
            await stage.tell(name, f"delay {seconds} clients")
        stage.note(f"{', '.join(slow_members)} answer after {seconds:g} s from now on")
        load = await stage.load(qps=500 * share)
        return stage.measured(await load.tally())

    return script


NO_WORSE = (Promise("more_than_plain", "unanswered within 3 s more than behind plain dnsdist", 0, over="median"),)
SLOW = Drill(
    "dns-slow-member",
    "a live member answers late: what was lost to it must not be more than behind plain dnsdist",
    (
        Case("one-1.6s", "one of three members answers after 1.6 s", slow(1.6, ("ns-b",), 1), NO_WORSE, compare=True, ci=True),
        Case("one-2.2s", "one of three members answers after 2.2 s", slow(2.2, ("ns-b",), 1), NO_WORSE, compare=True),
        Case("all-1.6s", "all members answer after 1.6 s", slow(1.6, ("ns-a", "ns-b", "ns-c"), 0.2), NO_WORSE, compare=True),
        Case("all-2.2s", "all members answer after 2.2 s", slow(2.2, ("ns-a", "ns-b", "ns-c"), 0.2), NO_WORSE, compare=True),
    ),
)

"""A member dies, freezes, lies or is slow, under UDP, TCP and DoT."""

from __future__ import annotations

import signal

from edgekeeper.lab.drill import Case, Drill, Measured, Script, Side
from edgekeeper.lab.edges import PlainEdge, ProductEdge
from edgekeeper.lab.referee import Promise
from edgekeeper.lab.stage import Stage

AT_S = 1.0
"""When the fault comes, after the load began."""


def hurt(number: signal.Signals, verb: str, retry: str = "normal") -> Script:
    """Three members, 2,500 questions in 5 s, and a signal to one of them after the first second."""

    async def script(stage: Stage) -> Measured:
        await stage.add_members(3)
        if stage.side is Side.PRODUCT:
            await ProductEdge(stage, dns={"retry": retry}).up()
        else:
            await PlainEdge(stage).up()
        load = await stage.load()
        await load.at(AT_S)
        stage.members["ns-b"].signal(number)
        stage.note(f"member ns-b {verb} ({number.name})")
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
        Case("defaults", "retry: normal", hurt(signal.SIGKILL, "killed"), DEFAULTS),
        Case("retry-fast", "retry: fast", hurt(signal.SIGKILL, "killed", "fast"), FAST, since=(2, 0)),
    ),
)
FROZEN = Drill(
    "dns-member-frozen",
    "one of three members freezes (a black hole) under 500 questions a second",
    (
        Case("defaults", "retry: normal", hurt(signal.SIGSTOP, "frozen"), DEFAULTS),
        Case("retry-fast", "retry: fast", hurt(signal.SIGSTOP, "frozen", "fast"), FAST, since=(2, 0)),
    ),
)

"""``edgekeeper`` that kills itself with SIGKILL at the N-th step of what it does to disk, processes and engine.

``EK_GO`` names a file: steps count from when it exists. ``EK_KILL_AT`` is the step (0: never), and
every step is written to ``EK_STEPS``. A step is the moment before, and the moment after, an effect.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgekeeper.engines.dnsdist import console, hands
from edgekeeper.engines.haproxy import hands as haproxy_hands
from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.keepalived import hands as keepalived_hands
from edgekeeper.host import addresses, files, process, steer, sysctl
from edgekeeper.supervise import crew, stage
from edgekeeper.vip import cover, drained, weight

GO, KILL_AT, STEPS = Path(os.environ["EK_GO"]), int(os.environ["EK_KILL_AT"]), Path(os.environ["EK_STEPS"])
count = 0


def step(what: str) -> None:
    """Count a step, and die at the chosen one."""
    global count  # noqa: PLW0603
    if not GO.exists():
        return
    count += 1
    with STEPS.open("a") as log:
        log.write(f"{count} {what}\n")
    if count == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)


def watched(owner: Any, name: str) -> None:
    """Make a step of the moments before and after each call."""
    inner: Callable[..., Any] = getattr(owner, name)
    label = f"{getattr(owner, '__name__', owner)}.{name}"

    @functools.wraps(inner)
    def plain(*args: Any, **kwargs: Any) -> Any:
        step(f"before {label}")
        result = inner(*args, **kwargs)
        step(f"after {label}")
        return result

    @functools.wraps(inner)
    async def later(*args: Any, **kwargs: Any) -> Any:
        step(f"before {label}")
        result = await inner(*args, **kwargs)
        step(f"after {label}")
        return result

    setattr(owner, name, later if asyncio.iscoroutinefunction(inner) else plain)


for each, attribute in (
    (stage.Stage, "write"), (stage, "write_text"), (stage, "point"), (stage.Stage, "swap"),
    (crew.Crew, "save"), (crew, "spawn"), (crew.Crew, "promote"), (crew.Crew, "stop"),
    (console.Console, "run"), (hands.DnsdistHands, "prove"), (hands.DnsdistHands, "live"), (hands.DnsdistHands, "preflight"),
    (steer, "attach"), (steer, "detach"),
    (haproxy_hands, "write_text"), (haproxy_hands.HaproxyHands, "prove"), (haproxy_hands.HaproxyHands, "live"),
    (haproxy_hands.HaproxyHands, "reload"), (haproxy_hands.HaproxyHands, "preflight"),
):  # fmt: skip
    watched(each, attribute)

if "vip" in sys.argv:
    for each, attribute in (
        (addresses, "add"), (addresses, "remove"), (sysctl, "set_arp_ignore"), (cover, "write_text"), (weight, "write_text"), (drained, "write_text"),
        (process.Process, "signal"), (keepalived_hands.KeepalivedHands, "preflight"), (keepalived_hands.KeepalivedHands, "reload"),
    ):  # fmt: skip
        watched(each, attribute)


class Counted(Admin):
    """HAProxy's command line: what changes something is a step, what only asks is none."""

    async def ask(self, command: str, *, worker: int | None = None) -> str:
        if command.startswith("show "):
            return await super().ask(command, worker=worker)
        step(f"before {command}")
        said = await super().ask(command, worker=worker)
        step(f"after {command}")
        return said


haproxy_hands.Admin = Counted  # type: ignore[misc]
del files, process

if __name__ == "__main__":
    from edgekeeper.cli.main import main

    sys.argv[0] = "edgekeeper"
    main()

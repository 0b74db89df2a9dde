"""Clients that ask all the time, each question over a connection of its own: ``edgekeeper probe`` on the stage of a drill."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time

from edgekeeper.errors import StepFailedError
from edgekeeper.lab import visits
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.product import command
from edgekeeper.lab.stage import Stage

EVERY_S = 0.05
"""Between two questions of the clients: what they see is known to about a tenth of a second."""


class Visitors:
    """They ask each of some URLs, from the client's namespace unless another one is said; ``warm``: over a kept connection too."""

    def __init__(self, stage: Stage, *urls: str, namespace: str = "client", every_s: float = EVERY_S, timeout_s: float = 1.0, warm: bool = False) -> None:
        self._stage = stage
        self._urls = urls
        self._namespace = namespace
        self._every_s = every_s
        self._options = ["--every", f"{every_s * 1000:.0f}ms", "--timeout", f"{timeout_s:g}s", *(["--warm"] if warm else [])]
        self._file = stage.folder / f"visits-{namespace}.jsonl"
        self._actor: Actor | None = None
        self.started = 0.0

    async def start(self) -> None:
        """Begin, and wait for the first answers."""
        # A runner in the background of a shell has INT ignored, and so would they.
        argv = [
            "env",
            "--default-signal=INT",
            *command(),
            "probe",
            *self._urls,
            *self._options,
            "--record",
            str(self._file),
        ]
        self._actor = actor = await self._stage.spawn(self._namespace, f"visitors-{self._namespace}", argv)

        async def begun() -> bool:
            actor.must_run()
            return self._file.exists() and self._file.stat().st_size > 0

        await self._stage.until("the clients have begun", begun, every=0.02)
        self.started = time.monotonic()
        self._stage.begins(self.started)
        self._stage.note(f"the clients ask {1 / self._every_s:g} times a second")

    async def at(self, seconds: float) -> None:
        """Wait until so many seconds after they began."""
        await asyncio.sleep(max(0.0, self.started + seconds - time.monotonic()))

    def now(self) -> visits.Visits:
        """What they have seen so far; a line that is not whole yet is left out."""
        text = self._file.read_text(encoding="utf-8")
        return visits.read(text[: text.rfind("\n") + 1].splitlines())

    async def cured(self, url: str, since: float, timeout_s: float, wedged: float | None = None) -> bool:
        """Wait until a client is answered that asked after a moment, and after one that was not; whether that came in time."""

        async def answered() -> bool:
            return visits.answered(self.now().get(url, ()), since, wedged) is not None

        with contextlib.suppress(StepFailedError):
            await self._stage.until("the service answers again", answered, timeout_s=timeout_s, every=0.1)
            return True
        self._stage.note(f"not cured after {timeout_s:g} s")
        return False

    async def finish(self) -> visits.Visits:
        """End them (what is under way is waited for); what they saw."""
        if self._actor is not None:
            self._actor.signal(signal.SIGINT)
            await self._actor.wait(10.0)
        return self.now()

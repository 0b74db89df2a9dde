"""One round of questions to a service: its targets all at once, each over a fresh connection, and the sentence that says how it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.host import process
from edgekeeper.model.text import printable
from edgekeeper.probe import once
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import unasked
from edgekeeper.watch.combine import Need, Reply, combined, decided, known
from edgekeeper.watch.seams import Answer


class TargetsAsker:
    """Asks targets and a command; ``need`` says whether one good answer is enough or all must be good. A ``seams.Asker``.

    A round ends with the answer that decides it: the first good one of any, the first bad one of all. What is still under way is
    given up. A round over loopback costs 0.8 ms of processor for tcp, 1.0 for http, 2.3 for tls, 2.6 for https, 1.2 for ``/bin/true``
    (measured 2026-11-30).
    """

    def __init__(
        self,
        targets: Sequence[Target],
        *,
        command: Sequence[str] = (),
        need: Need = "any",
        timeout_s: float = 1.0,
    ) -> None:
        self._askers = [(target.url, once.Asker(target)) for target in targets]
        self._command = tuple(command)
        self._need = need
        self._timeout_s = timeout_s

    async def ask(self) -> Answer:
        """Ask now; never raises. What this machine slept through is for the caller to see, by the time since ``asked``."""
        asked = time.monotonic()
        tasks = [asyncio.create_task(self._target(url, asker)) for url, asker in self._askers]
        if self._command:
            tasks.append(asyncio.create_task(self._run()))
        replies: list[Reply] = []
        try:
            for next_one in asyncio.as_completed(tasks):
                replies.append(await next_one)
                if decided(replies, self._need):
                    break
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        well, why = combined(replies, len(tasks), self._need)
        return Answer(well, why, asked, known(replies))

    async def _target(self, url: str, asker: once.Asker) -> Reply:
        sample = await asker.ask(self._timeout_s)
        return Reply(url, sample.error, sample.done - sample.sent, not unasked(sample.error or ""))

    async def _run(self) -> Reply:
        name, began = printable(self._command[0], 80), time.monotonic()
        try:
            ended = await process.run(self._command, self._timeout_s)
        except EdgekeeperError as err:
            return Reply(name, str(err).removeprefix(f"{self._command[0]} "), time.monotonic() - began, not isinstance(err, MissingError))
        said = next((line for line in ended.output.splitlines() if line.strip()), "")
        failed = f"exit {ended.code}{': ' + printable(said.strip(), 200) if said else ''}" if ended.code else None
        return Reply(name, failed, time.monotonic() - began)

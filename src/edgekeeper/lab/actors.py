"""Real processes of a drill: each in a namespace and a session of its own, its log in the drill's folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgekeeper.errors import StepFailedError
from edgekeeper.lab.netns import Net

_TAIL = 400


class Actor:
    """One process. A session of its own: a stopped child whose session leader exits would be woken by the kernel."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    async def start(cls, net: Net, namespace: str, name: str, argv: Sequence[str], *, folder: Path, env: Mapping[str, str] | None = None) -> Actor:
        """Start ``argv`` in a namespace, standard output and error into ``folder/<name>.log``."""
        log = folder / f"{name}.log"
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *net.argv(namespace, list(argv)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        """The process that was started (``ip netns exec`` becomes it)."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """How it ended: its exit code, minus the signal; None while it runs."""
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when it is gone already."""
        # Not send_signal: that looks first whether the process has ended, and so takes its exit code away from asyncio, which waits for it too.
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def wait(self, timeout_s: float) -> int:
        """Wait for its end; StepFailedError when it does not come in time."""
        try:
            return await asyncio.wait_for(self._process.wait(), timeout_s)
        except TimeoutError:
            msg = f"{self.name} did not end within {timeout_s:g} s; the drill stops"
            raise StepFailedError(msg) from None

    async def stop(self, timeout_s: float = 5.0) -> int:
        """TERM, wait, KILL, reap. A frozen one is woken first, so that TERM reaches it."""
        for number in (signal.SIGCONT, signal.SIGTERM):
            self.signal(number)
        try:
            return await asyncio.wait_for(self._process.wait(), timeout_s)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await self._process.wait()

    def tail(self) -> str:
        """The end of its log in one line, for an error message."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return " | ".join(text.split("\n")[-6:])[-_TAIL:].strip(" |")

    def must_run(self) -> None:
        """Raise StepFailedError with the end of its log when it has ended."""
        if self.code is not None:
            msg = f"{self.name} ended with code {self.code} ({self.tail()}); the drill stops"
            raise StepFailedError(msg)

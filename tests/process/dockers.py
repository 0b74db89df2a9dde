"""Real Docker daemons for tests, each in a network namespace of its own: plain stories over ``edgekeeper.lab.docker``."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from edgekeeper.lab import netns
from edgekeeper.lab.docker import IMAGE, Daemon, python_argv, python_mounts
from edgekeeper.lab.netns import Net
from edgekeeper.lab.topology import Plan

from .edge import engines
from .fleet import Loop

SUITES = ("debian12", "debian13", "testing")
"""docker 20.10, 26.1 and 28.5."""
NAMESPACE = "docker"


def dockerd(suite: str = "testing") -> str:
    """A real dockerd; its absence is a failure, never a skip."""
    binary = engines() / suite / "bin" / "dockerd"
    assert binary.exists(), f"{binary} is missing; run script/engines {suite}"
    return str(binary)


class Docker:
    """One daemon; ``socket`` is where it listens, ``env`` what a ``docker`` command needs."""

    def __init__(self, suite: str = "testing", more: Mapping[str, Any] | None = None) -> None:
        self._loop = Loop()
        self._stack = contextlib.AsyncExitStack()
        self._suite = suite
        self._more = more
        self.daemon: Daemon
        self._do(self._open())

    def _do(self, work: Coroutine[Any, Any, Any], deadline_s: float = 60.0) -> Any:
        future: Future[Any] = self._loop.submit(work)
        return future.result(deadline_s)

    async def _open(self) -> None:
        folder = self._stack.enter_context(netns.folder(id(self) % 1_000_000))
        net = await self._stack.enter_async_context(Net(Plan((NAMESPACE,), ()), serial=id(self) % 100_000))
        self.daemon = Daemon(net, NAMESPACE, folder / "docker", dockerd(self._suite), self._more)
        try:
            await self.daemon.start()
            await self.daemon.image()
        except BaseException:
            await self._stack.aclose()
            raise

    @property
    def socket(self) -> str:
        return str(self.daemon.socket)

    @property
    def folder(self) -> Path:
        """For files of the test: it is there inside containers when it is bound into them."""
        return self.daemon.folder.parent

    @property
    def env(self) -> dict[str, str]:
        return self.daemon.env

    def __call__(self, *argv: str, deadline_s: float = 60.0) -> str:
        """What one ``docker`` command printed."""
        return str(self._do(self.daemon.docker(*argv, timeout_s=deadline_s), deadline_s + 5))

    def run(self, name: str, script: str, *options: str) -> str:
        """Start a container that runs a Python script (standard library only); its id."""
        return self("run", "--detach", "--name", name, "--network", "none", *options, *python_mounts(), IMAGE, *python_argv("-c", script))

    def stop(self) -> None:
        self._do(self.daemon.stop())

    def kill(self) -> None:
        self._do(self.daemon.kill())

    def start(self) -> None:
        """Again, after ``stop`` or ``kill``: the same containers."""
        self._do(self.daemon.start())

    def close(self) -> None:
        async def close() -> None:
            await self.daemon.close()
            await self._stack.aclose()

        try:
            self._do(close())
        finally:
            self._loop.close()


__all__ = ["NAMESPACE", "SUITES", "Docker", "dockerd"]

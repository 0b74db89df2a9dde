"""The log of NetBird's proxy in a container, and whether it could show a wedge at all: its environment may hide the lines that arm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.docker import Docker, Which
from edgekeeper.watch import netbird
from edgekeeper.watch.seams import Sight, Source


class NetbirdSource:
    """Another source, whose sight is judged by what Docker tells of the container at each of its starts. A ``seams.Source``.

    A proxy that hides its warnings is not seen, though its log is followed; of one that is seen the version is told, with what to
    expect of it. Where Docker does not tell, the sight is that of the other source. ``health`` is the URL that a guard asks, if one does.
    """

    def __init__(self, inner: Source, docker: Docker, which: Which, health: str | None = None) -> None:
        self._inner = inner
        self._docker = docker
        self._which = which
        self._health = health

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        """As ``seams.Source`` says."""
        looks = _Looks(self._docker, self._which, self._health, state)
        try:
            await self._inner.follow(arrived, looks.told)
        finally:
            await looks.close()


class _Looks:
    """The last sight, and what was found of the container that it is of."""

    def __init__(self, docker: Docker, which: Which, health: str | None, state: Callable[[Sight], None]) -> None:
        self._docker = docker
        self._which = which
        self._health = health
        self._state = state
        self._sight: Sight | None = None
        self._of: float | None = None
        self._found: tuple[str | None, str] | None = None
        self._task: asyncio.Task[None] | None = None

    def told(self, sight: Sight) -> None:
        self._sight = sight
        if sight.seeing and (self._found is None or sight.started != self._of):
            self._of, self._found = sight.started, None
            if self._task is not None:
                self._task.cancel()
            self._task = asyncio.create_task(self._look())
        self._say()

    def _say(self) -> None:
        if self._sight is None:
            return
        if not self._sight.seeing or self._found is None:
            self._state(self._sight)
            return
        blind, note = self._found
        self._state(replace(self._sight, seeing=blind is None, why=blind or f"{self._sight.why}; {note}"))

    async def _look(self) -> None:
        try:
            container = await self._docker.find(self._which)
        except EdgekeeperError:
            return  # the source itself tells of a Docker that does not answer; at the next start it is asked again
        moved = netbird.elsewhere(container.env, self._health) if self._health is not None else ""
        notes = [netbird.version_note(container.image, dict(container.labels)), *([moved] if moved else [])]
        self._found = netbird.blind(container.env), "; ".join(notes)
        self._say()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

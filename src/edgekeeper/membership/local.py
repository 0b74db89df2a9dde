"""Members from the config, or from a file that is watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from edgekeeper.config.members import BaseEntry, parse_members
from edgekeeper.host.files import read_text
from edgekeeper.host.watch import changes
from edgekeeper.model.backend import Member, Membership
from edgekeeper.ports import Clock


def as_members(entries: Iterable[BaseEntry], default_port: int = 0) -> tuple[Member, ...]:
    """Config entries as members; hosts may still be names. ``default_port`` counts where neither entry nor role says one."""
    return tuple(entry.member(default_port) for entry in entries)


class StaticSource:
    """The members written in the config."""

    def __init__(self, entries: Iterable[BaseEntry], clock: Clock, default_port: int = 0) -> None:
        self._members = as_members(entries, default_port)
        self._clock = clock

    async def read(self) -> Membership:
        """Always the same."""
        return Membership(self._members, "the config", self._clock.wall())

    async def changed(self) -> None:
        """Never: a changed config is read again by the role."""
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        """It holds nothing."""


class FileSource:
    """The members in a YAML file, read again when it changes."""

    def __init__(self, path: str, clock: Clock, entry: type[BaseEntry], default_port: int = 0) -> None:
        self._path = Path(path)
        self._entry = entry
        self._default_port = default_port
        self._clock = clock
        self._changes: AsyncIterator[None] = changes([self._path])

    async def read(self) -> Membership:
        """The whole file; a mistake in it is a ConfigError with line and column, and nothing is half read."""
        entries = parse_members(read_text(self._path), str(self._path), self._entry, self._default_port)
        return Membership(as_members(entries, self._default_port), str(self._path), self._clock.wall())

    async def changed(self) -> None:
        """When the file was replaced or written."""
        await anext(self._changes)

    async def aclose(self) -> None:
        """The watch ends with its last reader."""

"""Members from the config, or from a file that is watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from edgekeeper.config.dns import MemberEntry
from edgekeeper.config.members import parse_members
from edgekeeper.host.files import read_text
from edgekeeper.host.watch import changes
from edgekeeper.model.backend import Member, Membership
from edgekeeper.ports import Clock


def as_members(entries: tuple[MemberEntry, ...]) -> tuple[Member, ...]:
    """Config entries as members; hosts may still be names."""
    return tuple(Member(e.name, e.host, e.port, tuple(e.pools)) for e in entries)


class StaticSource:
    """The members written in the config."""

    def __init__(self, entries: tuple[MemberEntry, ...], clock: Clock) -> None:
        self._members = as_members(entries)
        self._clock = clock

    async def read(self) -> Membership:
        """Always the same."""
        return Membership(self._members, "the config", self._clock.wall())

    async def changed(self) -> None:
        """Never: a changed config is read again by the role."""
        await asyncio.Event().wait()


class FileSource:
    """The members in a YAML file, read again when it changes."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = Path(path)
        self._clock = clock
        self._changes: AsyncIterator[None] = changes([self._path])

    async def read(self) -> Membership:
        """The whole file; a mistake in it is a ConfigError with line and column, and nothing is half read."""
        entries = parse_members(read_text(self._path), str(self._path))
        return Membership(as_members(entries), str(self._path), self._clock.wall())

    async def changed(self) -> None:
        """When the file was replaced or written."""
        await anext(self._changes)

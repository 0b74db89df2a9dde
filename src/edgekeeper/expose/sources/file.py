"""Hosts that are named in a file, watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose.hosts import claim_of, parse_hosts
from edgekeeper.expose.kinds import Claim, Origin, Snapshot
from edgekeeper.host.files import read_text
from edgekeeper.host.watch import changes
from edgekeeper.ports import Clock


class FileSource:
    """The hosts in a YAML file, read again when it changes. A file with a mistake keeps what the last whole one said, and counts as not known."""

    def __init__(self, path: str, prefix: str, clock: Clock) -> None:
        self._path = Path(path)
        self._prefix = prefix
        self._clock = clock
        self._changes: AsyncIterator[None] = changes([self._path])
        self._claims: tuple[Claim, ...] = ()
        self._lists = 0
        self._good_at: float | None = None
        self._why = f"{path} has not been read yet"
        self._news = asyncio.Event()

    def snapshot(self) -> Snapshot:
        """What the last whole file said."""
        stale = self._clock.monotonic() - self._good_at if self._good_at is not None and self._why else 0.0
        return Snapshot(self._claims, {}, self._lists, whole=not self._why, why=self._why, stale_s=stale)

    async def changed(self) -> None:
        """Return when the snapshot may be another one than at the last return."""
        await self._news.wait()
        self._news.clear()

    async def run(self) -> None:
        """Follow the file for ever."""
        self._read()
        async for _ in self._changes:
            self._read()

    async def relist(self) -> bool:
        """Read the file once more, on purpose; whether that was a full list."""
        return self._read()

    def status_of(self, origin: Origin) -> str:
        """Nothing is written onto the entries of a file."""
        del origin
        return ""

    def kind_of(self, name: str) -> None:
        """Nothing can be written onto the entries of a file."""
        del name

    def _read(self) -> bool:
        before = self._claims, self._why
        try:
            self._claims = tuple(claim_of(entry, self._prefix) for entry in parse_hosts(read_text(self._path), str(self._path)))
        except EdgekeeperError as err:
            self._why = str(err).replace("\n", "; ") + "; what the last whole file said stays"
        else:
            self._why = ""
            self._lists += 1
            self._good_at = self._clock.monotonic()
        if (self._claims, self._why) != before:
            self._news.set()
        return not self._why

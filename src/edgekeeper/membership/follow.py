"""One source of members, followed: read, chosen, resolved and remembered; every role's members go this way.

A follower never decides what follows from another set of members: it calls ``changed``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.members import MembersFrom
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.membership.resolve import resolved
from edgekeeper.membership.select import Holding, hold_left, select
from edgekeeper.membership.sources import source_of
from edgekeeper.model.backend import Member, Membership
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Clock, Journal, Source

AGAIN_S = 1.0
"""The least time between two readings of a source whose loss waits for its confirmation."""

_NEWS = {"act": Event.MEMBERS_CHANGED, "hold": Event.MEMBERS_HELD, "suppress": Event.MEMBERS_KEPT}


class Follower:
    """The members of one role, or of one ``service`` of it, as they are known right now.

    ``memory`` is the file that keeps the last full set over restarts; ``alarm`` raises one by its name
    (None clears it), ``changed`` is called after the members became others. ``beside`` are members that
    the config writes elsewhere and whose host names are followed along, by a key of the caller's.
    ``default_port`` counts where an entry says none, ``slice_port`` is the port's name where an EndpointSlice
    is asked for none, and ``cluster`` is how a source in a cluster is reached.
    """

    def __init__(
        self,
        wanted: MembersFrom,
        memory: Path,
        clock: Clock,
        journal: Journal,
        *,
        role: str,
        alarm: Callable[[str, str | None], None],
        changed: Callable[[], None],
        service: str = "",
        default_port: int = 0,
        slice_port: str = "",
        cluster: Kubernetes | None = None,
        beside: Mapping[str, tuple[Member, ...]] | None = None,
    ) -> None:
        self.members: tuple[Member, ...] = ()
        self.beside: dict[str, tuple[Member, ...]] = {}
        self.read_at: float | None = None
        self.why = "the source has not been read yet"
        self._wanted = wanted
        self._memory = memory
        self._clock = clock
        self._journal = journal
        self._role = role
        self._service = service
        self._alarm = alarm
        self._changed = changed
        self._default_port = default_port
        self._slice_port = slice_port
        self._cluster = cluster
        self._aside = dict(beside or {})
        self._holding: Holding | None = None
        self._names: dict[str, tuple[str, ...]] = {}
        self._raw: tuple[Member, ...] = ()

    def source(self) -> Source:
        """The one source that the config names."""
        return source_of(self._wanted, self._clock, self._default_port, slice_port=self._slice_port, cluster=self._cluster)

    def remember(self) -> None:
        """Start from what an earlier run knew last, so that an empty source is noticed, and one that is away loses nobody."""
        with contextlib.suppress(EdgekeeperError, ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(read_text(self._memory))
            raw = tuple(_from_row(row) for row in record["members"])
            self._names = {str(name): tuple(str(a) for a in found) for name, found in record["names"].items()}
            self._raw = raw

    async def read_once(self) -> None:
        """Read the source once, through a reader that is closed again."""
        async with contextlib.aclosing(self.source()) as source:
            await self.read(source)

    async def read(self, source: Source) -> None:
        """Read the source once, choose, resolve, and keep the result."""
        try:
            fresh = await source.read()
        except EdgekeeperError as err:
            await self._unread(err)
            return
        await self._take(fresh)

    async def _unread(self, err: EdgekeeperError) -> None:
        if not self.members and self._raw:
            await self.resolve()
        age = f", {self._clock.wall() - self.read_at:.0f} s old" if self.read_at else " of an earlier run"
        kept = f"the last full set of {len(self.members)}{age} stays" if self.members else "there is no earlier set to keep"
        self._raise("membership", f"the members cannot be read: {err}; {kept}")
        self.why = f"{err}; {kept}"

    async def _take(self, fresh: Membership) -> None:
        chosen = select(self._raw, fresh, self._holding, self._clock.monotonic())
        self._holding = chosen.holding
        news = chosen.decision != "none" and (chosen.decision == "act" or chosen.why != self.why)
        self.why = chosen.why
        self._raise("membership", chosen.why if chosen.decision in ("suppress", "hold") else None)
        self._raise("source", "; ".join(fresh.notes) or None)
        if news:
            event = _NEWS[chosen.decision]
            if self._raw or chosen.decision != "act":
                self._journal.write(Entry(self._role, event, self._service or "members", chosen.decision, chosen.why))
            said = {"service": self._service} if self._service else {}
            emit(event, chosen.why, level=INFO if chosen.decision == "act" else WARNING, **said)
        self.read_at = fresh.at
        self._raw = chosen.members
        await self.resolve()

    async def resolve(self) -> None:
        """Host names to addresses; keep the result when it is another one."""
        members, notes = await resolved(self._raw, self._names)
        beside = {}
        for key, aside in self._aside.items():
            beside[key], more = await resolved(aside, self._names)
            notes += more
        self._raise("host names", "; ".join(notes) or None)
        if members != self.members or beside != self.beside:
            self.members, self.beside = members, beside
            record = {"members": [_row(m) for m in self._raw], "names": self._names}
            with contextlib.suppress(EdgekeeperError):
                write_text(self._memory, json.dumps(record))
            self._changed()

    async def follow(self) -> None:
        """Follow the source for ever."""
        async with contextlib.aclosing(self.source()) as source:
            await self.read(source)
            while True:
                await self._due(source)
                await self.read(source)

    async def _due(self, source: Source) -> None:
        """When the source may say something new, or a loss that it told has waited long enough for its confirmation."""
        left = None if self._holding is None else max(AGAIN_S, hold_left(self._holding, self._clock.monotonic()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await source.changed()

    async def follow_names(self) -> None:
        """Follow the host names of members for ever (a config with addresses only has none)."""
        while True:
            await asyncio.sleep(self._wanted.resolve_every)
            await self.resolve()

    def _raise(self, name: str, why: str | None) -> None:
        self._alarm(f"{self._service} {name}".strip(), why)


def _row(member: Member) -> list[Any]:
    """A member as it is remembered; what came to members later stands at the end, where an older version does not look for it."""
    row: list[Any] = [member.name, member.host, member.port, list(member.pools)]
    return row if (member.weight, member.drain) == (100, False) else [*row, member.weight, member.drain]


def _from_row(row: list[Any]) -> Member:
    name, host, port, pools, *more = row
    weight, drain = more or (100, False)
    return Member(str(name), str(host), int(port), tuple(str(p) for p in pools), int(weight), bool(drain))

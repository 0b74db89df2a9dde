"""A live copy of what a cluster has of one kind: list, tell the differences, watch, for ever; and how old it is.

A copy that is old looks like one that is true, so its age is always told (``stale_s``): whoever acts on it asks first.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube import decide
from edgekeeper.kube.answer import named
from edgekeeper.kube.client import WINDOW_S, Api
from edgekeeper.kube.errors import Absent, Expired, Unreachable
from edgekeeper.kube.objects import Object, key, meta
from edgekeeper.log import ERROR, Event, emit
from edgekeeper.model.moment import Moment, elapsed
from edgekeeper.ports import Clock

K = TypeVar("K", bound=Object)
V = TypeVar("V")

CHUNK = 500
"""Objects a page: as client-go asks for them."""
PROVING_S = 1
"""How long the first watch after a failure lasts: its orderly end shows soon that the server is well."""

_SHARE = 2 / 3
"""A window is at most so much of the silence that is taken for a dead server: a quiet one must end first."""


def _nothing() -> None:
    pass


class Reflector(Generic[K, V]):
    """The copy. Only what ``project`` makes of each object is kept (None: it does not matter, and is left out).

    ``changed`` is called after each change of what is kept, and when the copy is full for the first time. Deletions that happened while
    nobody watched are found by comparing the new list with what is kept.
    """

    def __init__(
        self,
        api: Api,
        kind: type[K],
        *,
        clock: Clock,
        project: Callable[[K], V | None],
        namespace: str | None = None,
        labels: str | None = None,
        changed: Callable[[], None] = _nothing,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._kind = kind
        self._clock = clock
        self._project = project
        self._namespace = namespace
        self._labels = labels
        self._changed = changed
        self._chance = chance
        self._items: dict[tuple[str, str], V] = {}
        self._version = ""
        self._heard: Moment | None = None
        self._listed: Moment | None = None
        self._pace = decide.Pace()
        self._chunk = CHUNK
        self._expired = False
        self._relisted = False
        self.items: Mapping[tuple[str, str], V] = MappingProxyType(self._items)
        """By namespace and name. The same mapping for ever: copy it where it must not change."""
        self.synced = False
        """Whether a full list was read once."""
        self.lists = 0
        """How often the full list was read."""
        self.told = 0
        """How many changes were told."""
        self.why = ""
        """Why the copy is not being kept up at the moment; "" while it is."""
        self.absent = False
        """Whether the cluster says that it does not know this kind (a CRD is not installed). What is kept stays: a gateway that is set up wrongly says so, too."""

    def stale_s(self) -> float | None:
        """Seconds, those asleep included, since the server was last heard (a list, an event, a bookmark, an orderly end of a watch); None: never."""
        return None if self._heard is None else elapsed(self._heard, self._clock.moment())

    async def run(self) -> None:
        """Keep the copy, for ever; only cancelling ends it."""
        while True:
            failed = absent = False
            try:
                await self._round()
            except EdgekeeperError as err:
                self.why, failed, absent = str(err), True, isinstance(err, Absent)
                self.absent = self.absent or absent
                if isinstance(err, (Absent, Expired)):
                    self._version = ""
                if isinstance(err, Expired) and not self._expired:  # the server lives, it has only forgotten: it is asked at once, the first time
                    self._expired, self._pace = True, self._pace.well()
            except Exception as err:  # noqa: BLE001 -- what nobody foresaw (in ``project``, say) makes the copy stale, which is told; ended, it would look true for ever
                failed = True
                if not self.why:
                    emit(Event.INTERNAL_ERROR, f"the copy of {named(self._kind)} is not kept up: {type(err).__name__}: {err}", level=ERROR)
                self.why = f"{type(err).__name__}: {err}"
            self._pace, wait = self._pace.ended(self._clock.monotonic(), failed=failed, absent=absent, chance=self._chance())
            await asyncio.sleep(wait)

    async def _round(self) -> None:
        age_s = elapsed(self._listed, self._clock.moment()) if self._listed is not None else 0.0
        if decide.wants_list(self._pace, self._version, age_s, relisted=self._relisted) or (self._pace.failures and await self._went_back()):
            try:
                await self._list()
            except Expired:  # the pages took longer than the server keeps the past: all at once, the next time
                self._chunk = 0
                raise
            except Unreachable as err:
                if isinstance(err.__cause__, TimeoutError):
                    self._chunk = decide.page(self._chunk, CHUNK)
                raise
        await self._watch()

    async def _went_back(self) -> bool:
        """Whether the cluster has lost the version to go on from; asked after a failure, because it takes one to change a cluster's etcd."""
        pages = self._api.pages(self._kind, namespace=self._namespace, labels=self._labels, chunk=1)
        async with contextlib.aclosing(pages):
            return decide.behind((await anext(pages)).version, self._version)

    async def _list(self) -> None:
        found: dict[tuple[str, str], V] = {}
        version, began = "", self._clock.moment()
        async with contextlib.aclosing(self._api.pages(self._kind, namespace=self._namespace, labels=self._labels, chunk=self._chunk)) as pages:
            async for page in pages:
                for obj in page.items:
                    kept = self._project(obj)
                    if kept is not None:
                        found[key(obj)] = kept
                version = page.version
        self.lists += 1
        self._relisted = True
        self._listed = self._heard = began
        self._chunk = min(CHUNK, self._chunk * 2 or CHUNK)
        self.absent = False
        first, self.synced = not self.synced, True
        differs = found != self._items
        if differs:
            self.told += sum(1 for name in found.keys() | self._items.keys() if found.get(name) != self._items.get(name))
            for gone in self._items.keys() - found.keys():
                del self._items[gone]
            self._items.update(found)
        self._version = version
        if differs or first:
            self._changed()

    async def _watch(self) -> None:
        window_s = PROVING_S if self._pace.failures else max(1, min(WINDOW_S, int(self._api.silence_s * _SHARE)))
        watch = self._api.watch(self._kind, namespace=self._namespace, labels=self._labels, version=self._version, window_s=window_s)
        async with contextlib.aclosing(watch) as events:
            async for what, obj in events:
                if what != "BOOKMARK":
                    self._take(what, obj)
                self._version = meta(obj).resourceVersion or self._version
                self._well()
        self._well()

    def _take(self, what: str, obj: K) -> None:
        name = key(obj)
        kept = None if what == "DELETED" else self._project(obj)
        if kept == self._items.get(name):
            return
        if kept is None:
            del self._items[name]
        else:
            self._items[name] = kept
        self.told += 1
        self._changed()

    def _well(self) -> None:
        """The server was heard in a watch, and what it said is kept."""
        self._heard = self._clock.moment()
        self._pace = self._pace.well()
        self._expired = self._relisted = False
        self.why = ""

"""One kind of object in one namespace (or in all), followed in whichever of its versions the cluster has."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose.kinds import Claim
from edgekeeper.kube.client import Api
from edgekeeper.kube.errors import Absent
from edgekeeper.kube.objects import key
from edgekeeper.kube.reflector import Reflector
from edgekeeper.ports import Clock

AGAIN_S: Final = 15.0
"""How often a kind that the cluster does not have is looked for, and a copy that has lost its server for other versions of its kind."""
GONE_S: Final = 60.0
"""A kind that was there and is not found for so long is gone: an API server that starts answers 404 for a CRD that it has not read yet."""
_CATCHING_UP_S = 0.5
_TRIES = 3


class Followed:
    """The claims of one kind. ``versions`` are its classes, the one that is preferred first.

    ``project`` makes the claim of an object. It is called for each object that is seen, also when nothing has changed.
    """

    def __init__(
        self,
        api: Api,
        name: str,
        versions: Sequence[type[Any]],
        project: Callable[[Any], Claim],
        *,
        clock: Clock,
        namespace: str | None,
        labels: str,
        changed: Callable[[], None],
        look_s: float = AGAIN_S,
    ) -> None:
        self.name = name
        self.version = versions[0]
        """The version that is followed, or would be."""
        self.absent = False
        """Whether the cluster does not have this kind; then it counts as empty."""
        self._api = api
        self._versions = tuple(versions)
        self._project = project
        self._clock = clock
        self._namespace = namespace
        self._labels = labels
        self._changed = changed
        self._look_s = look_s
        self._shown: Reflector[Any, Claim] | None = None
        self._coming: Reflector[Any, Claim] | None = None
        self._why = "it has not been listed yet"
        self._lost_at: float | None = None
        self._anew = asyncio.Event()

    @property
    def claims(self) -> Mapping[tuple[str, str], Claim]:
        """By namespace and name; the last that were known."""
        return self._shown.items if self._shown is not None and not self.absent else {}

    @property
    def why(self) -> str:
        """Why the claims are not known in full, or not kept up; "" when they are."""
        if self.absent:
            return ""
        reflector = self._shown or self._coming
        return self._why if reflector is None else reflector.why or ("" if reflector.synced else self._why)

    @property
    def synced(self) -> bool:
        """Whether the claims were known in full once."""
        return self.absent or (self._shown is not None and self._shown.synced)

    def stale_s(self) -> float | None:
        """Seconds since they were last known to be current; None: never. A kind that the cluster does not have is never stale."""
        return 0.0 if self.absent else None if self._shown is None else self._shown.stale_s()

    async def run(self) -> None:
        """Follow, for ever."""
        while True:
            version = self._versions[0] if len(self._versions) == 1 else await self._which()
            if version is None:
                await asyncio.sleep(self._look_s)
                continue
            self.version = version
            await self._follow(version)

    async def relist(self) -> str:
        """A fresh full list beside the copy: "" when both say the same, else why this does not count as one more full list."""
        if self.absent:
            return ""
        reflector = self._shown
        if reflector is None:
            return self.why
        found: dict[tuple[str, str], Claim] = {}
        for turn in range(_TRIES):
            found.clear()
            try:
                async with contextlib.aclosing(self._api.pages(self.version, namespace=self._namespace, labels=self._labels)) as pages:
                    async for page in pages:
                        found.update((key(obj), self._project(obj)) for obj in page.items)
            except EdgekeeperError as err:
                return str(err)
            if found == reflector.items:
                return ""
            await asyncio.sleep(_CATCHING_UP_S * (turn + 1))  # what the watch tells is a moment later than what a list says
            if found == reflector.items:
                return ""
        self._anew.set()
        return f"the watch of {self.name} shows other objects than a fresh list; it is begun anew"

    async def _which(self) -> type[Any] | None:
        """The first version that the cluster has; None when it has none, or does not say."""
        for version in self._versions:
            try:
                async with contextlib.aclosing(self._api.pages(version, namespace=self._namespace, chunk=1)) as pages:
                    await anext(pages)
            except Absent:
                continue
            except EdgekeeperError as err:
                self._why = str(err)
                return None
            self._set_absent(absent=False)
            return version
        self._not_found()
        return None

    def _not_found(self) -> None:
        """The cluster says that it does not have the kind."""
        now = self._clock.monotonic()
        self._lost_at = now if self._lost_at is None else self._lost_at
        self._why = f"the cluster does not have {self.name} objects any more"
        if self._shown is None or now - self._lost_at >= GONE_S:
            self._set_absent(absent=True)

    def _set_absent(self, *, absent: bool) -> None:
        self._lost_at = self._lost_at if absent else None
        if absent != self.absent:
            self.absent = absent
            if absent:
                self._shown = None
            self._changed()

    async def _follow(self, version: type[Any]) -> None:
        """Keep a copy of this version until another one is to be followed, or the copy is to be made anew."""
        self._anew.clear()
        reflector: Reflector[Any, Claim] = Reflector(
            self._api, version, clock=self._clock, project=self._project, namespace=self._namespace, labels=self._labels, changed=lambda: self._news(reflector)
        )
        self._coming = reflector
        async with asyncio.TaskGroup() as group:
            task = group.create_task(reflector.run())
            while not await self._to_leave(reflector):
                pass
            task.cancel()

    def _news(self, reflector: Reflector[Any, Claim]) -> None:
        if reflector.synced:  # what an earlier one knew stays until a new one knows all
            self._shown = reflector
        self._changed()

    async def _to_leave(self, reflector: Reflector[Any, Claim]) -> bool:
        """After a while: whether another reflector is needed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._look_s):
                await self._anew.wait()
                return True
        stale = reflector.stale_s()
        if len(self._versions) == 1 or (stale is not None and stale < max(self._look_s, AGAIN_S)):
            return False
        version = await self._which()
        return self.absent or (version is not None and version is not self.version)

"""All sources of a config as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from edgekeeper.config.expose import Expose
from edgekeeper.expose.kinds import Origin, Snapshot
from edgekeeper.expose.places import fixed
from edgekeeper.expose.sources.file import FileSource
from edgekeeper.ports import Clock


class HostSource(Protocol):
    """Where wanted hosts come from: a snapshot at any time, and word when it may have changed."""

    def snapshot(self) -> Snapshot:
        """Everything as it is known now."""

    async def changed(self) -> None:
        """Return when the snapshot may be another one than at the last return."""

    async def run(self) -> None:
        """Follow, for ever."""

    async def relist(self) -> bool:
        """Read everything afresh; whether that counts as one more full list."""

    def status_of(self, origin: Origin) -> str:
        """The status annotation that the object was last seen with; "" for none."""

    def kind_of(self, name: str) -> type[Any] | None:
        """The class of a kind, to write onto its objects; None for one that nothing can be written onto."""


class Together:
    """Several sources as one: all their claims, and whole only while each is. Targets that are addresses have their places here."""

    def __init__(self, sources: Sequence[HostSource], expose: Expose) -> None:
        self._sources = tuple(sources)
        self._fixed = fixed(expose.targets)
        self._unplaced = {klass: "there is no source that could find its Service" for klass, target in expose.targets.items() if target.ip is None}

    def snapshot(self) -> Snapshot:
        """All of them; ``lists`` is that of the source with the fewest, so that each full list counted was one of every source."""
        all_of_them = [source.snapshot() for source in self._sources]
        places = dict(self._fixed)
        for one in all_of_them:
            places.update(one.places)
        unplaced = self._unplaced | {klass: why for one in all_of_them for klass, why in one.unplaced.items()}
        return Snapshot(
            claims=tuple(claim for one in all_of_them for claim in one.claims),
            places=places,
            lists=min((one.lists for one in all_of_them), default=0),
            whole=bool(all_of_them) and all(one.whole for one in all_of_them),
            why="; ".join(one.why for one in all_of_them if one.why),
            stale_s=max((one.stale_s for one in all_of_them), default=0.0),
            service_cidr=next((one.service_cidr for one in all_of_them if one.service_cidr is not None), None),
            unplaced={klass: why for klass, why in unplaced.items() if klass not in places},
            absent=tuple(dict.fromkeys(kind for one in all_of_them for kind in one.absent)),
            relisted="; ".join(one.relisted for one in all_of_them if one.relisted),
        )

    async def changed(self) -> None:
        """When any of them has news."""
        waiting = [asyncio.ensure_future(source.changed()) for source in self._sources]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def run(self) -> None:
        """Follow all, for ever."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(source.run())

    async def relist(self) -> bool:
        """Read all of them afresh; whether each counted."""
        return all(await asyncio.gather(*(source.relist() for source in self._sources)))

    def status_of(self, origin: Origin) -> str:
        """The status annotation that the object was last seen with; "" for none."""
        return next((text for source in self._sources if (text := source.status_of(origin))), "")

    def kind_of(self, name: str) -> type[Any] | None:
        """The class of a kind, to write onto its objects; None for one that nothing can be written onto."""
        return next((kind for source in self._sources if (kind := source.kind_of(name)) is not None), None)


def needs_cluster(expose: Expose) -> bool:
    """Whether anything that the config names is in a cluster: objects, or the Service of a target."""
    return expose.sources.cluster or any(target.service is not None for target in expose.targets.values())


def sources_of(expose: Expose, clock: Clock, api: Any = None, *, silence_s: float = 15.0) -> Together:
    """Every source that the config names. ``api`` (``kube.client.Api``) is needed where ``needs_cluster`` says so."""
    sources: list[HostSource] = []
    if needs_cluster(expose):
        from edgekeeper.expose.sources.kubernetes import KubernetesSource  # noqa: PLC0415 - the Kubernetes client is an extra, and a fifth of a start

        sources.append(KubernetesSource(api, expose, clock, silence_s=silence_s))
    if expose.sources.file is not None:
        sources.append(FileSource(expose.sources.file, expose.prefix, clock))
    return Together(sources, expose)

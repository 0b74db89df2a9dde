"""Members from a cluster: the EndpointSlices of a Service, or nodes with a label; followed by a watch of its API.

The first reading, and any while the watch is not heard, is a list of its own, whose failure says what is wrong. All others are of
what the watch keeps, and as old as its last word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.members import EndpointSliceSource, NodesSource
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.objects import EndpointSlice, Node
from edgekeeper.kube.reflector import Reflector
from edgekeeper.membership import nodes as machines
from edgekeeper.membership import slices
from edgekeeper.model.backend import Member, Membership
from edgekeeper.ports import Clock

LOOK_S = 2.0
"""After a change the same is read once more: a loss that is told for so long is confirmed (a Service's slices may change one after the other)."""

AGAIN_S = 5.0
"""How often the cluster is asked while its watch is not heard."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked at: objects of ``kind`` with these labels; how one is read, what members all of them make, and what that is called."""

    kind: type[Any]
    namespace: str | None
    labels: str
    read: Callable[[Any], Any]
    members: Callable[[Iterable[Any]], tuple[tuple[Member, ...], tuple[str, ...]]]
    title: str


def endpoint_slices(wanted: EndpointSliceSource, cluster: Kubernetes, clock: Clock, slice_port: str) -> ClusterSource:
    """The endpoints of a Service; ``slice_port`` is the port's name where the config says none (empty: the only one)."""
    port = slices.Wanted(wanted.port or slice_port, wanted.port is not None, wanted.fallback_port)
    labels = f"{slices.SERVICE_LABEL}={wanted.name}"
    look = Look(EndpointSlice, wanted.namespace, labels, slices.read, lambda found: slices.members(found, port), f"Service {wanted.service}")
    return ClusterSource(look, cluster, clock)


def nodes(wanted: NodesSource, cluster: Kubernetes, clock: Clock, default_port: int) -> ClusterSource:
    """The nodes with a label."""
    port = wanted.port or default_port
    title = f"the cluster (nodes with {wanted.label})"
    return ClusterSource(Look(Node, None, wanted.label, machines.read, lambda found: machines.members(found, wanted.address, port), title), cluster, clock)


class ClusterSource:
    """``ports.Source`` over a cluster's API. Nothing is connected before it is read, nothing watched before ``changed`` is waited for."""

    def __init__(self, look: Look, cluster: Kubernetes, clock: Clock) -> None:
        self._look = look
        self._cluster = cluster
        self._clock = clock
        self._api: Api | None = None
        self._reflector: Reflector[Any, Any] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._confirm = False

    async def read(self) -> Membership:
        """The members now; MissingError while the cluster gives no answer."""
        self._news.clear()
        reflector = self._reflector
        age = reflector.stale_s() if reflector is not None and reflector.synced else None
        if reflector is not None and age is not None and age <= self._cluster.silence:
            found = list(reflector.items.values())
        else:
            found, age = await self._list(), 0.0
        members, notes = self._look.members(found)
        return Membership(members, self._look.title, self._clock.wall() - age, by_person=False, notes=notes)

    async def _list(self) -> list[Any]:
        if self._api is None:
            self._api = connect(self._cluster)
        listed = await self._api.list(self._look.kind, namespace=self._look.namespace, labels=self._look.labels)
        return [self._look.read(item) for item in listed.items]

    async def changed(self) -> None:
        """When an object changed, a moment after it did, and whenever the watch was silent for too long."""
        if self._api is None:
            await asyncio.sleep(AGAIN_S)
            return
        if self._reflector is None:
            look = self._look
            self._reflector = Reflector(
                self._api, look.kind, clock=self._clock, project=look.read, namespace=look.namespace, labels=look.labels, changed=self._news.set
            )
        if self._watching is None:
            self._watching = asyncio.create_task(self._reflector.run())
        if self._watching.done():  # it never ends by itself: say why it did, and be made anew
            self._watching.result()
        try:
            async with asyncio.timeout(self._longest()):
                await self._news.wait()
        except TimeoutError:
            self._confirm = False
        else:
            self._confirm = True

    def _longest(self) -> float:
        """Until it is worth reading again without any news."""
        if self._confirm:
            return LOOK_S
        age = self._reflector.stale_s() if self._reflector is not None else None
        left = self._cluster.silence - age if age is not None else 0.0
        return left + 0.1 if left > 0 else AGAIN_S

    async def aclose(self) -> None:
        """End the watch and its connections."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        if self._api is not None:
            await self._api.close()
            self._api = None

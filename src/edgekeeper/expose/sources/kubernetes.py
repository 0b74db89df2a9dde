"""Hosts that objects of the cluster ask for, and the Services that they lead to: a live copy of each, and one snapshot of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from edgekeeper.config.expose import Expose
from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose.claims import of_ingress, of_route, status_of
from edgekeeper.expose.kinds import Claim, Origin, Place, Snapshot
from edgekeeper.expose.places import Front, front_of, place_of, service_network
from edgekeeper.expose.sources.followed import AGAIN_S, Followed
from edgekeeper.kube.client import WINDOW_S, Api
from edgekeeper.kube.objects import HTTPRoute, Ingress, Service, ServiceCIDR, TLSRoute, TLSRouteV1Alpha2, TLSRouteV1Alpha3, created, generic, key
from edgekeeper.kube.reflector import Reflector
from edgekeeper.ports import Clock

HTTPRouteV1Beta1 = generic("gateway.networking.k8s.io", "v1beta1", "HTTPRoute", "httproutes")
VERSIONS: Final[dict[str, tuple[type[Any], ...]]] = {
    "Ingress": (Ingress,),
    "HTTPRoute": (HTTPRoute, HTTPRouteV1Beta1),
    "TLSRoute": (TLSRoute, TLSRouteV1Alpha3, TLSRouteV1Alpha2),
}
"""The kinds that can ask for hosts, in the versions that are understood (all read alike), the preferred one first."""
_NETWORK_AGAIN_S = 600.0


class KubernetesSource:
    """Ingress, HTTPRoute and TLSRoute objects with the label, and the Services that targets name. ``silence_s``: see ``kubernetes.silence``.

    ``look_s``: how often a kind that the cluster does not have is looked for.
    """

    def __init__(self, api: Api, expose: Expose, clock: Clock, *, silence_s: float = 15.0, look_s: float = AGAIN_S) -> None:
        self._api = api
        self._expose = expose
        self._silence_s = silence_s
        self._news = asyncio.Event()
        self._lists = 0
        self._ever_whole = False
        self._relisted = ""
        self._network: str | None = None
        self._network_asked = expose.service_cidr is not None or not any(target.service for target in expose.targets.values())
        self._seen: dict[tuple[str, str, str], str] = {}
        sources = expose.sources
        wanted = [name for name, on in (("Ingress", sources.ingress), ("HTTPRoute", sources.httproute), ("TLSRoute", sources.tlsroute)) if on]
        self._followed = [
            Followed(
                api, name, VERSIONS[name], self._projecting(name), clock=clock, namespace=space, labels=expose.label, changed=self._news.set, look_s=look_s
            )
            for name in wanted
            for space in (sources.namespaces or (None,))
        ]
        services = {target.service for target in expose.targets.values() if target.service is not None}
        self._fronts = {
            space: Reflector(api, Service, clock=clock, project=partial(_front, services), namespace=space, changed=self._news.set)
            for space in sorted({name.partition("/")[0] for name in services})
        }

    def snapshot(self) -> Snapshot:
        """Everything as it is known now; ``whole`` only while every kind is known in full and heard of lately."""
        stale = [one.stale_s() for one in self._followed]
        old = max((age for age in stale if age is not None), default=0.0)
        doubts = [
            one.why or f"{one.name} objects were last heard of {age:.0f} s ago" for one, age in zip(self._followed, stale, strict=True) if self._doubtful(one)
        ]
        if not self._ever_whole:  # a first view without the places of its targets would be told to every owner as a mistake
            doubts += [f"the Services of {space} have not been listed yet" for space, one in self._fronts.items() if not one.synced and not one.why]
            doubts += [] if self._network_asked else ["the network of Services has not been asked for yet"]
        whole = not doubts
        if whole and not self._ever_whole:
            self._ever_whole = True
            self._lists += 1
        places, unplaced = self._places()
        claims = tuple(claim for one in self._followed for claim in one.claims.values())
        absent = tuple(dict.fromkeys(one.name for one in self._followed if one.absent))
        return Snapshot(claims, places, self._lists, whole, "; ".join(dict.fromkeys(doubts)), old, self._network, unplaced, absent, self._relisted)

    async def changed(self) -> None:
        """Return when the snapshot may be another one than at the last return. What edgekeeper itself writes onto objects is no change."""
        await self._news.wait()
        self._news.clear()

    async def run(self) -> None:
        """Follow the cluster, for ever."""
        async with asyncio.TaskGroup() as group:
            for one in self._followed:
                group.create_task(one.run())
            for reflector in self._fronts.values():
                group.create_task(reflector.run())
            group.create_task(self._find_network())

    async def relist(self) -> bool:
        """List every kind afresh, and count it as one more full list if each says what the watch says."""
        why = "; ".join(filter(None, await asyncio.gather(*(one.relist() for one in self._followed))))
        there = {(one.name, *where) for one in self._followed for where in one.claims}
        self._seen = {where: text for where, text in self._seen.items() if where in there}
        whole = not why and not any(self._doubtful(one) for one in self._followed)
        if whole:
            self._ever_whole = True
            self._lists += 1
        self._relisted = why
        return whole

    def status_of(self, origin: Origin) -> str:
        """The status annotation that the object was last seen with; "" for none."""
        return self._seen.get((origin.kind, origin.namespace, origin.name), "")

    def kind_of(self, name: str) -> type[Any] | None:
        """The class of a kind, in the version that the cluster has; None for a kind that is not followed."""
        return next((one.version for one in self._followed if one.name == name), None)

    def _doubtful(self, one: Followed) -> bool:
        age = one.stale_s()
        return not one.synced or age is None or age > self._silence_s + max(self._silence_s, WINDOW_S)  # a quiet watch says nothing for a window

    def _projecting(self, name: str) -> Callable[[Any], Claim]:
        prefix, known = self._expose.prefix, self._known()

        def project(item: Any) -> Claim:
            made = created(item.metadata)
            self._note(name, item)
            return of_ingress(item, prefix, made) if name == "Ingress" else of_route(item, name, prefix, made, known)

        return project

    def _known(self) -> frozenset[str]:
        """The classes of which a route with several Gateways takes the first."""
        targets = frozenset(self._expose.targets)
        classes = frozenset(self._expose.sources.classes)
        return targets & classes or classes or targets

    def _note(self, name: str, item: Any) -> None:
        """Remember the status annotation beside the claim: within it, each write of ours would count as a change."""
        where = (name, *key(item))
        text = status_of(item, self._expose.prefix)
        if text:
            self._seen[where] = text
        else:
            self._seen.pop(where, None)

    def _places(self) -> tuple[dict[str, Place], dict[str, str]]:
        places: dict[str, Place] = {}
        unplaced: dict[str, str] = {}
        for klass, target in self._expose.targets.items():
            found = place_of(target, self._front(target.service))
            if isinstance(found, Place):
                places[klass] = found
            else:
                unplaced[klass] = self._unheard(target.service) or found
        return places, unplaced

    def _front(self, service: str | None) -> Front | None:
        space, _, name = (service or "/").partition("/")
        reflector = self._fronts.get(space)
        return reflector.items.get((space, name)) if reflector is not None else None

    def _unheard(self, service: str | None) -> str:
        """Why a Service is not known, where that is not its own fault."""
        reflector = self._fronts.get((service or "").partition("/")[0])
        if reflector is None or reflector.synced:
            return ""
        return reflector.why or f"the Services of {(service or '').partition('/')[0]} have not been listed yet"

    async def _find_network(self) -> None:
        """Ask for the cluster's network of Services until it tells; clusters before 1.33 never do."""
        while self._expose.service_cidr is None:
            try:
                found = await self._api.get(ServiceCIDR, "kubernetes")
            except EdgekeeperError:  # not to be read, or not now: the config can say it
                found = None
            if not self._network_asked:
                self._network_asked = True
                self._news.set()
            self._network = service_network((found.spec.cidrs or ()) if found is not None and found.spec is not None else (), self._expose.targets.values())
            if self._network is not None:
                self._news.set()
                return
            await asyncio.sleep(_NETWORK_AGAIN_S)


def _front(wanted: set[str], service: Service) -> Front | None:
    """What is kept of a Service: nothing, when no target names it."""
    return front_of(service) if "/".join(key(service)) in wanted else None

"""Who owns the VIPs of a cluster, read from its API: once for a command (``Asked``), or followed all the time for a role (``Followed``).

Both are an ``OwnerSource``. What is read is projected to the few values that ``leases`` decides on; nothing else is kept. Imported
only where a cluster moves the VIPs: it needs the extra ``kube``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from edgekeeper.errors import MissingError
from edgekeeper.kube import objects
from edgekeeper.kube.client import Api
from edgekeeper.kube.errors import Absent
from edgekeeper.kube.objects import ServiceL2Status
from edgekeeper.kube.reflector import Reflector
from edgekeeper.ports import Clock
from edgekeeper.vip.leases import ALL_SERVICES, Announced, Key, Lease, Service, addresses_of, lease_of, of_kube_vip, of_metallb, told_addresses
from edgekeeper.vip.owner import Owner
from edgekeeper.vip.service import KUBE_VIP

_AGAIN_S = 0.5
_LONGEST_LOOK_S = 20.0
"""A Lease of which nobody can tell yet whether it is held is looked at for so long, or as long as it lasts: kube-vip's lasts 5 s when not said otherwise."""
_UNHEARD_S = 12.0
"""A watch is ended by the server each 10 s; what is silent for longer is not heard."""
_NO_STATUS = "the cluster knows no ServiceL2Status (metallb.io/v1beta1): MetalLB is not there, or does not tell which node announces"


class Records:
    """When each Lease was first seen as it is now: another's clock says little, a change that was seen says all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[Key, tuple[object, Lease]] = {}

    def lease(self, obj: objects.Lease) -> Lease:
        """The Lease, with when this record of it was first seen."""
        key, spec = objects.key(obj), obj.spec
        renewed = _unix(spec.renewTime) if spec is not None else None
        holder = (spec.holderIdentity or "") if spec is not None else ""
        stamp = (holder, renewed, spec.leaseTransitions if spec is not None else None)
        before = self._seen.get(key)
        if before is not None and before[0] == stamp:
            return before[1]
        lease = Lease(
            key=key,
            holder=holder,
            duration_s=float((spec.leaseDurationSeconds if spec is not None else None) or 0),
            seen=self._clock.monotonic(),
            stamped_s=self._clock.wall() - (renewed if renewed is not None else 0.0),
            witnessed=before is not None,
            since=_unix(spec.acquireTime) if spec is not None else None,
            addresses=told_addresses(objects.meta(obj).annotations or {}),
        )
        self._seen[key] = (stamp, lease)
        return lease


def service(obj: objects.Service) -> Service | None:
    """What counts of a Service; None for one without addresses."""
    namespace, name = objects.key(obj)
    notes = objects.meta(obj).annotations or {}
    status, spec = obj.status, obj.spec
    given = status.loadBalancer.ingress if status is not None and status.loadBalancer is not None else None
    texts = [one.ip or "" for one in given or ()]
    texts += [notes.get("kube-vip.io/loadbalancerIPs", ""), (spec.loadBalancerIP or "") if spec is not None else ""]
    addresses = addresses_of(texts)
    if not addresses:
        return None
    return Service((namespace, name), addresses, lease_of(namespace, name, notes.get("kube-vip.io/leaseName", "")), notes.get("kube-vip.io/vipHost", ""))


def announced(obj: Any) -> Announced | None:
    """What counts of a ServiceL2Status; older versions name the Service by labels only."""
    found = obj.get("status") if isinstance(obj, Mapping) else None
    status: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    labels = objects.meta(obj).labels or {}
    name = status.get("serviceName") or labels.get("metallb.io/service-name") or labels.get("metallb.io/service")
    namespace = status.get("serviceNamespace") or labels.get("metallb.io/service-namespace") or objects.key(obj)[0]
    node = status.get("node") or labels.get("metallb.io/node")
    if not (isinstance(name, str) and isinstance(namespace, str) and isinstance(node, str)):
        return None
    return Announced((namespace, name), node, objects.created(objects.meta(obj)) or None)


def decided(provider: str, services: Iterable[Service], leases: Iterable[Lease], statuses: Iterable[Announced], now: float) -> Mapping[str, Owner]:
    """The owners by address, as this provider decides."""
    if provider == KUBE_VIP:
        return of_kube_vip(services, tuple(leases), now)
    return of_metallb(services, statuses, tuple(leases), now)


class Asked:
    """Asks the cluster anew each time, for the owners of the ``wanted`` addresses; where only time tells whether a Lease is held, it looks for so long."""

    def __init__(self, api: Api, provider: str, wanted: Collection[str], clock: Clock) -> None:
        self._api = api
        self._provider = provider
        self._wanted = frozenset(wanted)
        self._clock = clock
        self._records = Records(clock)

    async def read(self) -> Mapping[str, Owner]:
        """The owners by address; an EdgekeeperError when the cluster does not say."""
        until = self._clock.monotonic() + _LONGEST_LOOK_S
        while True:
            found = [service(one) for one in (await self._api.list(objects.Service)).items]
            services = [one for one in found if one is not None and one.addresses & self._wanted]
            leases = [self._records.lease(one) for one in (await self._api.list(objects.Lease)).items]
            statuses = [] if self._provider == KUBE_VIP else await self._statuses()
            now = self._clock.monotonic()
            elected = [lease for lease in leases if self._provider == KUBE_VIP and self._concerns(lease, services)]
            if now >= until or not any(lease.doubtful(now) for lease in elected):
                return decided(self._provider, services, leases, statuses, now)
            await asyncio.sleep(_AGAIN_S)

    def _concerns(self, lease: Lease, services: Iterable[Service]) -> bool:
        return bool(lease.addresses & self._wanted) or lease.key[1] == ALL_SERVICES or any(lease.key == one.lease for one in services)

    async def _statuses(self) -> list[Announced]:
        try:
            found = (await self._api.list(ServiceL2Status)).items
        except Absent as err:
            raise MissingError(_NO_STATUS) from err
        return [one for one in map(announced, found) if one is not None]


class Followed:
    """Follows the cluster for the owners of the ``wanted`` addresses: ``works`` are to be run for ever, ``changed`` is called when it says something new."""

    def __init__(self, api: Api, provider: str, wanted: Collection[str], clock: Clock, changed: Callable[[], None]) -> None:
        self._provider = provider
        self._clock = clock
        self._records = Records(clock)
        self._wanted = frozenset(wanted)
        self._services: Reflector[objects.Service, Service] = Reflector(api, objects.Service, clock=clock, project=self._service, changed=changed)
        self._leases: Reflector[objects.Lease, Lease] = Reflector(api, objects.Lease, clock=clock, project=self._records.lease, changed=changed)
        self._statuses: Reflector[Any, Announced] | None = None
        if provider != KUBE_VIP:
            self._statuses = Reflector(api, ServiceL2Status, clock=clock, project=announced, changed=changed)

    def _service(self, obj: objects.Service) -> Service | None:
        found = service(obj)
        return found if found is not None and found.addresses & self._wanted else None

    @property
    def _followed(self) -> dict[str, Reflector[Any, Any]]:
        statuses = {"ServiceL2Status": self._statuses} if self._statuses is not None else {}
        return {"Services": self._services, "Leases": self._leases, **statuses}

    @property
    def works(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """What is to be run, by name."""
        return {f"following {name}": reflector.run for name, reflector in self._followed.items()}

    async def read(self) -> Mapping[str, Owner]:
        """The owners by address; MissingError while the cluster is not heard: an old answer about a moving address is worth nothing."""
        for name, reflector in self._followed.items():
            stale = reflector.stale_s()
            if not reflector.synced or stale is None:
                msg = f"{name} of the cluster are not known yet{': ' + reflector.why if reflector.why else ''}"
                raise MissingError(msg)
            if stale > _UNHEARD_S:
                msg = f"the API of the cluster has not been heard for {stale:.0f} s{': ' + reflector.why if reflector.why else ''}"
                raise MissingError(msg)
        statuses = self._statuses.items.values() if self._statuses is not None else ()
        return decided(self._provider, self._services.items.values(), self._leases.items.values(), statuses, self._clock.monotonic())


def _unix(stamp: Any) -> float | None:
    return float(stamp.timestamp()) if stamp is not None else None

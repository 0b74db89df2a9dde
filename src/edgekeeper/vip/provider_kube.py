"""kube-vip and MetalLB as providers: the cluster moves the VIPs, and the cluster knows who owns them.

It is asked through an ``OwnerSource`` (``owner_cluster``): the holder of kube-vip's Lease, the node of MetalLB's ``ServiceL2Status``,
each with the addresses of its Service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from edgekeeper.config.vip import Vip
from edgekeeper.errors import EdgekeeperError, RefusedError
from edgekeeper.vip import provider
from edgekeeper.vip.owner import Owner
from edgekeeper.vip.provider import NORMAL, Context, Feed, Subscription
from edgekeeper.vip.service import KUBE_VIP, METALLB, bare
from edgekeeper.vip.weight import Weight

_DECIDES = {
    KUBE_VIP: "kube-vip decides by its lease and knows no weights",
    METALLB: "MetalLB's speakers choose the node by themselves and know no weights",
}
_SHOWN = {
    KUBE_VIP: "`kubectl get leases -A` shows the holder (plndr-svcs-lock, or kubevip-SERVICE)",
    METALLB: "`kubectl get servicel2statuses -A` shows the node",
}


def cannot_move(provider: str) -> str:
    """Why edgekeeper moves none of its VIPs, and who does."""
    return f"{_DECIDES[provider]}; drain the node instead (kubectl drain)"


class OwnerSource(Protocol):
    """Who owns which address, as the cluster says. A full snapshot, or an EdgekeeperError."""

    async def read(self) -> Mapping[str, Owner]:
        """Address (without prefix length) to its owner, or why that is not known; an address of which nothing is said is left out."""


class KubeProvider:
    """The VIPs of a cluster; ``name`` is kube-vip or metallb. Without a source every owner is unknown."""

    def __init__(self, name: str, vips: Sequence[Vip], source: OwnerSource | None = None) -> None:
        self.name = name
        self._addresses = {vip.name: bare(vip) for vip in vips}
        self._source = source
        self._feed = Feed(name)

    async def owner(self, vip: str) -> Owner:
        """The node that the cluster names."""
        return self._owner(provider.known(vip, self._addresses, self.name), await self._read())

    async def weigh(self, vip: str, weight: Weight, context: Context = NORMAL) -> None:
        """Always RefusedError: the cluster decides."""
        provider.known(vip, self._addresses, self.name)
        provider.weighed(weight, context)
        raise RefusedError(cannot_move(self.name))

    def events(self) -> Subscription:
        """The changes that ``look`` finds from now on."""
        return self._feed.subscribe()

    async def look(self) -> None:
        """Read again and tell who has subscribed."""
        self._feed.tell(await self.owners())

    async def owners(self) -> Mapping[str, Owner]:
        """All of them, of one moment."""
        found = await self._read()
        return {vip: self._owner(vip, found) for vip in self._addresses}

    async def _read(self) -> Mapping[str, Owner] | str:
        """What the cluster says, or why that is not known."""
        if self._source is None:
            return f"only the cluster knows, and it is not asked; {_SHOWN[self.name]}"
        try:
            return await self._source.read()
        except EdgekeeperError as err:
            return str(err)

    def _owner(self, vip: str, found: Mapping[str, Owner] | str) -> Owner:
        if isinstance(found, str):
            return Owner(None, found)
        address = self._addresses[vip]
        return found.get(address) or Owner(None, f"no Service of the cluster has {address}; `edgekeeper vip render` prints the annotations that it needs")

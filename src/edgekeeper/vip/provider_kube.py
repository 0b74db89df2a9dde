"""kube-vip and MetalLB as providers: the cluster moves the VIPs, and the cluster knows who owns them.

This version cannot ask a cluster; what could is an ``OwnerSource``: the holder of kube-vip's Lease (``plndr-svcs-lock`` for all Services,
``kubevip-<service>`` where each is elected on its own), the node of MetalLB's ``ServiceL2Status``, each with the addresses in the Service's status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from edgekeeper.config.vip import Vip
from edgekeeper.errors import EdgekeeperError, RefusedError
from edgekeeper.model.text import printable
from edgekeeper.vip import provider
from edgekeeper.vip.provider import NORMAL, Context, Feed, Owner, Subscription
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


class OwnerSource(Protocol):
    """Who owns which address, as the cluster says. A full snapshot, or an EdgekeeperError."""

    async def read(self) -> Mapping[str, str]:
        """Address (without prefix length) to node; an address that nobody announces is left out."""


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
        msg = f"{_DECIDES[self.name]}; drain the node instead (kubectl drain)"
        raise RefusedError(msg)

    def events(self) -> Subscription:
        """The changes that ``look`` finds from now on."""
        return self._feed.subscribe()

    async def look(self) -> None:
        """Read again and tell who has subscribed."""
        found = await self._read()
        self._feed.tell({vip: self._owner(vip, found) for vip in self._addresses})

    async def _read(self) -> Mapping[str, str] | str:
        """What the cluster says, or why that is not known."""
        if self._source is None:
            return f"only the cluster knows, and this version does not ask it; {_SHOWN[self.name]}"
        try:
            return await self._source.read()
        except EdgekeeperError as err:
            return str(err)

    def _owner(self, vip: str, found: Mapping[str, str] | str) -> Owner:
        if isinstance(found, str):
            return Owner(None, found)
        node = found.get(self._addresses[vip])
        if node is None:
            return Owner(None, f"the cluster names no owner of {self._addresses[vip]}")
        return Owner(node, f"the cluster says {printable(node)}")

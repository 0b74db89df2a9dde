"""Ask a cluster what the checks compare with: its API servers, and its nodes' Leases. Changes nothing."""

from __future__ import annotations

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.doctor.facts import Inventory, NodeFact, Unknown
from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube import nodelease
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.objects import EndpointSlice
from edgekeeper.membership.slices import SERVICE_LABEL
from edgekeeper.ports import Clock

_OF_THE_API = f"{SERVICE_LABEL}=kubernetes"


async def inventory(kubernetes: Kubernetes, clock: Clock) -> Inventory:
    """What the cluster says; what it does not say is Unknown, with the reason. UsageError for a kubeconfig that cannot be used."""
    async with connect(kubernetes) as api:
        return Inventory(api_servers=await _servers(api), nodes=await _nodes(api, clock))


async def _servers(api: Api) -> frozenset[str] | Unknown:
    try:
        slices = (await api.list(EndpointSlice, namespace="default", labels=_OF_THE_API)).items
    except EdgekeeperError as err:
        return Unknown(str(err))
    found = frozenset(address for one in slices for endpoint in one.endpoints or () for address in endpoint.addresses)
    return found or Unknown("the service default/kubernetes has no endpoints")


async def _nodes(api: Api, clock: Clock) -> tuple[NodeFact, ...] | Unknown:
    try:
        found = await nodelease.node_leases(api, clock, patience_s=nodelease.PATIENCE_S)
    except EdgekeeperError as err:
        return Unknown(str(err))
    return tuple(NodeFact(one.name, one.addresses, one.ready, one.age_s) for one in found)

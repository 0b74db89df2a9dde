"""The objects of a cluster that edgekeeper uses, each a typed value, and small readers of them. Pure.

Everything outside ``kube/answer`` takes its kinds from here; the library behind them is known to this module alone.
"""

from __future__ import annotations

from typing import Any, Protocol

from lightkube.generic_resource import GenericNamespacedResource, create_namespaced_resource
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.core_v1 import EventSource, ObjectReference
from lightkube.models.meta_v1 import DeleteOptions, ObjectMeta, Preconditions
from lightkube.resources.apps_v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Event, Namespace, Node, Pod, PodEviction, Service
from lightkube.resources.discovery_v1 import EndpointSlice
from lightkube.resources.networking_v1 import Ingress, IngressClass, ServiceCIDR
from lightkube.resources.policy_v1 import PodDisruptionBudget

__all__ = [
    "DaemonSet",
    "DeleteOptions",
    "Deployment",
    "EndpointSlice",
    "Event",
    "EventSource",
    "HTTPRoute",
    "Ingress",
    "IngressClass",
    "Lease",
    "LeaseSpec",
    "Namespace",
    "Node",
    "Object",
    "ObjectMeta",
    "ObjectReference",
    "Pod",
    "PodDisruptionBudget",
    "PodEviction",
    "Preconditions",
    "ReplicaSet",
    "Service",
    "ServiceCIDR",
    "ServiceL2Status",
    "StatefulSet",
    "TLSRoute",
    "TLSRouteV1Alpha2",
    "TLSRouteV1Alpha3",
    "created",
    "generic",
    "key",
    "meta",
]


class Object(Protocol):
    """What all of them have."""

    @property
    def metadata(self) -> ObjectMeta | None:
        """Name, namespace, labels, version."""


def generic(group: str, version: str, kind: str, plural: str) -> type[GenericNamespacedResource]:
    """A namespaced kind that only some clusters have (a CRD's). Its objects are dicts with ``.metadata``; asking again gives the same class."""
    made: type[GenericNamespacedResource] = create_namespaced_resource(group, version, kind, plural)
    return made


HTTPRoute = generic("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
TLSRoute = generic("gateway.networking.k8s.io", "v1", "TLSRoute", "tlsroutes")
TLSRouteV1Alpha3 = generic("gateway.networking.k8s.io", "v1alpha3", "TLSRoute", "tlsroutes")
TLSRouteV1Alpha2 = generic("gateway.networking.k8s.io", "v1alpha2", "TLSRoute", "tlsroutes")
ServiceL2Status = generic("metallb.io", "v1beta1", "ServiceL2Status", "servicel2statuses")

_NONE = ObjectMeta()


def meta(obj: Object) -> ObjectMeta:
    """The object's metadata; empty ones for an object that has none."""
    return obj.metadata or _NONE


def key(obj: Object) -> tuple[str, str]:
    """Namespace ("" for a kind without) and name."""
    of = meta(obj)
    return of.namespace or "", of.name or ""


def created(of: ObjectMeta | None) -> float:
    """When the server made the object, in Unix seconds; 0.0 for one that it has not made yet."""
    stamp: Any = of.creationTimestamp if of is not None else None
    return float(stamp.timestamp()) if stamp is not None else 0.0

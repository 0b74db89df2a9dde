"""The sources of members that there are; a new one is a file beside this one and a line here."""

from __future__ import annotations

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.members import LbMembersFrom, MembersFrom
from edgekeeper.membership.local import FileSource, StaticSource
from edgekeeper.ports import Clock, Source


def source_of(members: MembersFrom, clock: Clock, default_port: int = 0, *, slice_port: str = "", cluster: Kubernetes | None = None) -> Source:
    """The one source that the config names (it has exactly one). ``default_port`` counts for members that are written without one.

    ``slice_port`` is the name of the port where an EndpointSlice is asked for none; ``cluster`` is how its API is reached.
    """
    if members.static is not None:
        return StaticSource(members.static, clock, default_port)
    if members.file is not None:
        return FileSource(members.file, clock, members.entry, default_port)
    if members.dns is not None:
        from edgekeeper.membership.dns import DnsSource  # noqa: PLC0415 - a resolver is a fifth of a start (95 ms), which most configs do not need

        return DnsSource(members.dns, clock)
    from edgekeeper.membership.cluster import endpoint_slices, nodes  # noqa: PLC0415 - as above

    reached = cluster or Kubernetes.model_validate({})
    if isinstance(members, LbMembersFrom) and members.nodes is not None:
        return nodes(members.nodes, reached, clock, default_port)
    assert members.endpointslice is not None  # noqa: S101 - exactly one is given
    return endpoint_slices(members.endpointslice, reached, clock, slice_port)

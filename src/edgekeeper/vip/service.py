"""What a Service of type LoadBalancer needs so that kube-vip or MetalLB gives it a VIP: its annotations, and a patch. Pure.

Read from the sources of kube-vip (2026-08) and MetalLB (2026-07): both split the list of addresses at commas. MetalLB takes
one address, or one of each family, refuses the annotation beside ``spec.loadBalancerIP``, and lets Services
share an address when their ``allow-shared-ip`` is the same and their ports differ (DNS by UDP and by TCP, say).
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence

from edgekeeper.config.vip import Vip
from edgekeeper.errors import RefusedError
from edgekeeper.model.text import printable

KUBE_VIP, METALLB = "kube-vip", "metallb"
_HEAD = (
    "# One document for each VIP, a patch of its Service (type: LoadBalancer):",
    "#   kubectl patch service NAME --patch-file FILE",
)
_BESIDE = "# MetalLB refuses a Service that has spec.loadBalancerIP too: remove it there."


def bare(vip: Vip) -> str:
    """The address without its prefix length."""
    return str(ipaddress.ip_interface(vip.address).ip)


def service_annotations(provider: str, vips: Sequence[Vip]) -> Mapping[str, str]:
    """The annotations of one Service that has these VIPs; RefusedError when it cannot have them."""
    if not vips:
        msg = "a Service without a VIP needs no annotation; name one"
        raise RefusedError(msg)
    listed = ",".join(bare(vip) for vip in vips)
    if provider == KUBE_VIP:
        return {"kube-vip.io/loadbalancerIPs": listed}
    if provider == METALLB:
        families = [ipaddress.ip_interface(vip.address).version for vip in vips]
        if len(set(families)) != len(families):
            msg = f"MetalLB gives a Service one address of each family, not {listed}; make a Service for each"
            raise RefusedError(msg)
        return {"metallb.io/allow-shared-ip": vips[0].name, "metallb.io/loadBalancerIPs": listed}
    msg = f"provider {printable(provider, 40)} has nothing to say in a Service; {KUBE_VIP} and {METALLB} have"
    raise RefusedError(msg)


def service_patch(provider: str, vips: Sequence[Vip]) -> str:
    """YAML: for each VIP a strategic-merge patch of its Service. The same VIPs give the same bytes."""
    head = [*_HEAD, *([_BESIDE] if provider == METALLB else [])]
    return "\n".join([*head, *(line for vip in vips for line in _patch(vip, service_annotations(provider, (vip,))))]) + "\n"


def _patch(vip: Vip, wanted: Mapping[str, str]) -> Iterable[str]:
    yield "---"
    yield f"# {printable(vip.name)}"
    yield "metadata:"
    yield "  annotations:"
    for key, value in wanted.items():
        yield f"    {key}: {json.dumps(value)}"  # a JSON string in ASCII is a YAML string too, whatever is in it

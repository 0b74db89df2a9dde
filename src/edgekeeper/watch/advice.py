"""What a probe of this target would not see: advice for ``edgekeeper check``. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from edgekeeper.probe.target import Target

_PRIVATE = tuple(ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
"""Addresses of local networks (RFC 1918, RFC 4193); ``is_private`` counts the documentation's addresses too."""
_INSTEAD = "ask from a peer (from: peer), or ask the address that clients use from another machine"


def advice(targets: Sequence[Target], own: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each target that is this machine's own; ``own`` are the addresses of its interfaces. For probes from this node.

    One's own address is reached through ``lo``: a mesh proxy that was asked so stayed warm for about 3 minutes into a wedge that
    clients felt at once (seen in the field). A local address need not take the clients' way either: behind a router that hairpins,
    it is another path.
    """
    held = {ipaddress.ip_address(text) for text in own}
    return tuple(text for target in targets if (text := _one(target, held)) is not None)


def _one(target: Target, held: set[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> str | None:
    if target.host == "localhost" or target.host.endswith(".localhost"):
        return f"{target.url} is this machine: it is reached through lo and may answer for minutes into a wedge; {_INSTEAD}"
    try:
        address = ipaddress.ip_address(target.host.partition("%")[0])
    except ValueError:
        return f"{target.url} has a name: where that is resolved too slowly or wrongly, a service that is well counts as down; an address (tls takes ?sni=NAME) asks only the service"
    if address.is_loopback or address.is_unspecified or address in held:
        local = any(address in network for network in _PRIVATE if network.version == address.version)
        also = ", and clients from outside come by another way" if local else ""
        return f"{target.url} is an address of this machine: it is reached through lo and may answer for minutes into a wedge{also}; {_INSTEAD}"
    return None

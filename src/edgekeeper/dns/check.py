"""The dns section of a config, rendered with stand-ins for what is not known here, and judged by the installed dnsdist.

Nothing outside a temporary folder is written and nothing is sent to the network.
"""

from __future__ import annotations

import os
from pathlib import Path

from edgekeeper.config.dns import Dns
from edgekeeper.config.root import Root
from edgekeeper.config.secret import SecretSource
from edgekeeper.dns.build import detect
from edgekeeper.engines.dnsdist import certificates
from edgekeeper.engines.dnsdist import seat as dnsdist_seat
from edgekeeper.engines.dnsdist import topology as dnsdist_topology
from edgekeeper.errors import MissingError, UsageError
from edgekeeper.host import secrets
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership.local import as_members
from edgekeeper.membership.standin import addressed, members
from edgekeeper.model.verdict import EngineVerdict
from edgekeeper.supervise.ask import refusal_of

_STAND_IN_SECRET = "a-stand-in-for-the-secret-of-this-check"  # noqa: S105 - rendered into a folder that is thrown away


async def verdict(root: Root, node: str) -> EngineVerdict:  # noqa: ARG001 - every role is asked alike
    """Render the dns role and ask dnsdist.

    MissingError when dnsdist is not installed; UsageError when the config asks for what it cannot do.
    """
    dns = root.dns
    assert dns is not None  # noqa: S101 - the command has checked it
    doubts: list[str] = []
    try:
        build = await detect(dns)
    except MissingError as err:
        msg = f"{err}; the config is valid, what dnsdist says of it is not known"
        raise MissingError(msg) from err
    topology = dnsdist_topology.build(
        dns,
        addressed(await members(dns.members, "dns.members", doubts)),
        dns.zones.static,
        build.features,
        proxy_secret=_proxy_secret(dns, doubts),
        forward={zone: addressed(as_members(entries)) for zone, entries in dns.forward.items()},
        certificate=_certificate(dns, doubts),
    )
    seat = dnsdist_seat.make((5199, 8083, 5354), os.urandom(128))
    refusal = await refusal_of(build.engine, build.engine.files(topology, seat))
    return EngineVerdict(f"dnsdist {build.features.text}", refusal, (*topology.notes, *_advice(dns)), tuple(doubts))


def _advice(dns: Dns) -> tuple[str, ...]:
    if dns.purpose == "resolver" and dns.health.name is None:
        # measured: docs/decisions/0003
        seen = "health asks a.root-servers.net., which resolvers keep in their caches for days: a member with a dead upstream stays up that long"
        return (f"{seen}. Name a record of your own with a short TTL to see it: health: {{name: health.example., type: A}}",)
    return ()


def _proxy_secret(dns: Dns, doubts: list[str]) -> str | None:
    if not isinstance(dns.proxy_protocol, SecretSource):
        return None
    try:
        return secrets.read(dns.proxy_protocol)
    except MissingError as err:
        doubts.append(f"dns.proxy_protocol: {err}; it is not judged here")
        return _STAND_IN_SECRET


def _certificate(dns: Dns, doubts: list[str]) -> dnsdist_topology.Certificate | None:
    """The certificate of the encrypted listeners; UsageError when it is here and cannot be used."""
    if dns.tls.dir is None:
        return None
    chain, key = f"{dns.tls.dir}/{dns.tls.certificate}", f"{dns.tls.dir}/{dns.tls.key}"
    if not Path(chain).exists() or not Path(key).exists():
        doubts.append(f"dns.tls: {chain} and {key} are not both on this machine; the certificate is not judged here")
    else:
        refusal = certificates.refusal(chain, key, SystemClock().wall())
        if refusal is not None:
            msg = f"dns.tls: {refusal}"
            raise UsageError(msg)
    return dnsdist_topology.Certificate(chain, key, "check")

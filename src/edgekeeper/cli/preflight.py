"""What ``edgekeeper check`` does beyond reading: render, ask the real validator, and say what cannot be judged here.

Nothing outside a temporary folder is written and nothing is sent to the network. What only the running
machine knows (a host name's address, members from DNS) stands as an address from the documentation
range, which the validator judges like any other.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from edgekeeper.config.dns import Dns
from edgekeeper.config.kinds import is_address, split_host_port
from edgekeeper.config.root import Root
from edgekeeper.config.secret import SecretSource
from edgekeeper.dns.build import ask, detect
from edgekeeper.engines.dnsdist import certificates
from edgekeeper.engines.dnsdist import seat as dnsdist_seat
from edgekeeper.engines.dnsdist import topology as dnsdist_topology
from edgekeeper.errors import MissingError, UsageError
from edgekeeper.host import secrets
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership.local import FileSource, as_members
from edgekeeper.model.backend import Member

_STAND_IN_SECRET = "a-stand-in-for-the-secret-of-this-check"  # noqa: S105 - rendered into a folder that is thrown away


@dataclass(frozen=True, slots=True)
class EngineVerdict:
    """What a real engine said of the rendered configuration: its refusal, or None.

    ``notes`` tell what this engine does without; ``doubts`` what could not be judged.
    """

    engine: str
    refusal: str | None
    notes: tuple[str, ...]
    doubts: tuple[str, ...]


async def engine_verdict(dns: Dns) -> EngineVerdict:
    """Render the dns role with stand-ins for what is not known here, and ask the installed dnsdist.

    MissingError when dnsdist is not installed; UsageError when the config asks for what it cannot do.
    """
    doubts: list[str] = []
    try:
        build = await detect(dns)
    except MissingError as err:
        msg = f"{err}; the config is valid, what dnsdist says of it is not known"
        raise MissingError(msg) from err
    topology = dnsdist_topology.build(
        dns,
        _addressed(await _members(dns, doubts)),
        dns.zones.static,
        build.features,
        proxy_secret=_proxy_secret(dns, doubts),
        forward={zone: _addressed(as_members(entries)) for zone, entries in dns.forward.items()},
        certificate=_certificate(dns, doubts),
    )
    seat = dnsdist_seat.make((5199, 8083, 5354), os.urandom(128))
    refusal = await ask(build, build.engine.files(topology, seat))
    return EngineVerdict(f"dnsdist {build.features.text}", refusal, (*topology.notes, *_advice(dns)), tuple(doubts))


def _advice(dns: Dns) -> tuple[str, ...]:
    if dns.purpose == "resolver" and dns.health.name is None:
        # measured: docs/decisions/0003
        seen = "health asks a.root-servers.net., which resolvers keep in their caches for days: a member with a dead upstream stays up that long"
        return (f"{seen}. Name a record of your own with a short TTL to see it: health: {{name: health.example., type: A}}",)
    return ()


def warnings(root: Root, node: str) -> list[str]:
    """What this config leaves in doubt on this machine."""
    out = [f"node {name} has no ops address in nodes:; status says unknown for it" for name, peer in root.nodes.items() if name != node and not peer.ops]
    listens = [root.ops.listen] if root.ops.listen else []
    if root.dns:
        listens += [*root.dns.listen, *root.dns.tls.dot, *root.dns.tls.doh, *root.dns.tls.doq, *root.dns.tls.doh3]
    hosts = dict.fromkeys(split_host_port(listen)[0] for listen in listens)
    out += [f"{host} is not an address of this machine; whether it can be listened on is not judged here" for host in hosts if _absent(host)]
    out += [f"{what}: {file} is not on this machine; it is not judged here" for what, file in _files(root) if not Path(file).exists()]
    return out


def _files(root: Root) -> Iterator[tuple[str, str]]:
    for name in ("token_file", "certificate", "key", "client_ca"):
        file = getattr(root.ops, name)
        if file:
            yield f"ops.{name}", file
    if root.dns and root.dns.zones.poll:
        for name in ("token_file", "ca_file"):
            file = getattr(root.dns.zones.poll, name)
            if file:
                yield f"dns.zones.poll.{name}", file


def _absent(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError as err:
        return err.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
    return False


async def _members(dns: Dns, doubts: list[str]) -> tuple[Member, ...]:
    source = dns.members
    if source.static is not None:
        return as_members(source.static)
    if source.file is not None:
        if Path(source.file).exists():
            return (await FileSource(source.file, SystemClock()).read()).members
        doubts.append(f"dns.members.file: {source.file} is not on this machine; its members are not judged here")
    else:
        doubts.append("dns.members.dns: members from DNS are not asked for by a check; they are not judged here")
    return (Member("stand-in", "stand-in", 53),)


def _addressed(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Host names replaced by addresses of the documentation range, one each."""
    return tuple(m if is_address(m.host) else replace(m, host=f"2001:db8::{number:x}") for number, m in enumerate(members, 1))


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

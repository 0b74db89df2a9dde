"""What ``edgekeeper check`` does beyond reading: render every role, ask its engine's real validator, and say what cannot be judged here."""

from __future__ import annotations

import errno
import importlib
import socket
from collections.abc import Iterator
from pathlib import Path

from edgekeeper.cli.run import configured, room
from edgekeeper.config.kinds import split_host_port
from edgekeeper.config.root import Root
from edgekeeper.model.verdict import EngineVerdict


async def engine_verdicts(root: Root, node: str) -> dict[str, EngineVerdict]:
    """What the engine of each configured role says, by the role's name.

    MissingError when an engine is not installed; UsageError when the config asks for what it cannot do.
    """
    out: dict[str, EngineVerdict] = {}
    for role in configured(root):
        out[role] = await importlib.import_module(f"{room(role)}.check").verdict(root, node)
    return out


def warnings(root: Root, node: str) -> list[str]:
    """What this config leaves in doubt on this machine."""
    out = [f"node {name} has no ops address in nodes:; status says unknown for it" for name, peer in root.nodes.items() if name != node and not peer.ops]
    listens = [root.ops.listen] if root.ops.listen else []
    if root.dns:
        listens += [*root.dns.listen, *root.dns.tls.dot, *root.dns.tls.doh, *root.dns.tls.doq, *root.dns.tls.doh3]
    if root.lb:
        listens += [listen for service in root.lb.services if not service.transparent for listen in service.listen]
    hosts = dict.fromkeys(split_host_port(listen)[0] for listen in listens)
    out += [f"{host} is not an address of this machine; whether it can be listened on is not judged here" for host in hosts if _absent(host)]
    out += [f"{what}: {file} is not on this machine; it is not judged here" for what, file in _files(root) if not Path(file).exists()]
    return out


def _files(root: Root) -> Iterator[tuple[str, str]]:
    for name in ("token_file", "certificate", "key", "client_ca", "peer_ca"):
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

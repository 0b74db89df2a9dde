"""The expose section of a config, judged: nothing is asked of the cluster or the mesh."""

from __future__ import annotations

import ipaddress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from edgekeeper.config.expose import Expose
from edgekeeper.config.root import Root
from edgekeeper.errors import ConfigError, EdgekeeperError
from edgekeeper.expose.hosts import parse_hosts
from edgekeeper.expose.sources.together import needs_cluster
from edgekeeper.host import secrets
from edgekeeper.host.files import read_text
from edgekeeper.model.verdict import EngineVerdict


async def verdict(root: Root, node: str) -> EngineVerdict:  # noqa: ARG001 - every role is asked alike
    """The hosts file is read; what only the cluster or the mesh can tell is told as not judged."""
    expose = root.expose
    assert expose is not None  # noqa: S101 - the command has checked it
    notes, doubts = _notes(expose), _doubts(expose)
    file = expose.sources.file
    if file is not None and Path(file).exists():
        try:
            parse_hosts(read_text(file), file)
        except (ConfigError, EdgekeeperError) as err:
            return EngineVerdict("the hosts file is not usable", str(err), (), ())
    if needs_cluster(expose):
        if find_spec("lightkube") is None:
            doubts.append("expose: the Kubernetes client is not installed here; pip install 'edgekeeper[kube]'")
        doubts.append("expose: what the cluster wants is not judged here; `edgekeeper expose plan` asks it and the mesh")
    return EngineVerdict("", None, tuple(notes), tuple(doubts))


def _notes(expose: Expose) -> list[str]:
    out: list[str] = []
    url = urlsplit(expose.netbird.url)
    if url.scheme == "http" and not _loopback(url.hostname or ""):
        out.append(f"expose: {expose.netbird.url} is not encrypted, and the token with which it is asked is worth the whole account; use https")
    if expose.netbird.policy:
        out.append("expose: policy: true opens the targets to every peer of the mesh; the proxy reaches them without one")
    if expose.lease is None and expose.sources.cluster:
        out.append("expose: without a lease two edgekeepers of one owner would undo each other's writes; run one only")
    if expose.service_cidr is None and any(target.service for target in expose.targets.values()):
        out.append(
            "expose: service_cidr is not said; clusters before 1.33 do not tell it, and then each target gets a resource of its own"
            " (kubeadm: `kubectl -n kube-system get cm kubeadm-config -o yaml` shows serviceSubnet)"
        )
    if expose.brake.grace + expose.brake.disabled < 60:
        out.append("expose: a host is deleted less than a minute after it vanished; an object that is re-created by a deployment loses its clients")
    return out


def _doubts(expose: Expose) -> list[str]:
    out: list[str] = []
    source = expose.netbird
    if source.token_file is not None:
        try:
            secrets.read(source.token_file)
        except EdgekeeperError as err:
            out.append(f"expose: {err}")
    if source.ca_file is not None and not Path(source.ca_file).exists():
        out.append(f"expose: {source.ca_file} is not on this machine; without the CA the mesh is not asked")
    if expose.sources.file is not None and not Path(expose.sources.file).exists():
        out.append(f"expose: {expose.sources.file} is not on this machine; nothing is known of its hosts")
    return out


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""Taking the owner's mark off services: they stay as they are, and are somebody else's from then on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from edgekeeper.errors import RefusedError, UsageError
from edgekeeper.expose import body, mark
from edgekeeper.expose.kinds import Service
from edgekeeper.expose.names import canonical_host
from edgekeeper.expose.plan import Action, Setting


def relinquished(services: Iterable[Service], hosts: Collection[str], setting: Setting) -> list[Action]:
    """One write for each host: the service's name becomes the host.

    UsageError when one of them has no service of this owner, RefusedError when its service is switched off; then none is written.
    """
    marked = [(service, own) for service in services if (own := mark.read(service.name)) is not None]
    found = {canonical_host(service.host): service for service, own in marked if own.ours(setting.owner, setting.cluster)}
    out: list[Action] = []
    for host in sorted(hosts):
        service = found.get(host)
        if service is None:
            msg = f"{host}: there is no service of {setting.owner}/{setting.cluster} for it; nothing was done"
            raise UsageError(msg)
        if not service.raw.get("enabled", True):
            msg = f"{host}: its service is switched off, and the mesh would route it again at any write; nothing was done. Switch it on or delete it there"
            raise RefusedError(msg)
        changed = {key: value for key, value in service.raw.items() if key not in body.ONLY_ANSWERED} | {"name": host}
        out.append(Action("relinquish", host, "it was asked for by command", service, partial(dict, changed)))
    return out

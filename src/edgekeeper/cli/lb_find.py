"""Which HAProxy a command looks at, when it may be any: one that is named, our own, or the one in the usual place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edgekeeper.cli.context import Settings
from edgekeeper.cli.output import complain
from edgekeeper.errors import EdgekeeperError, MissingError, RefusedError, StepFailedError, UsageError

if TYPE_CHECKING:
    from edgekeeper.config.root import Root
    from edgekeeper.engines.haproxy.look import Picture

PLACES = ("/run/haproxy-master.sock", "/run/haproxy/admin.sock", "/var/run/haproxy.sock", "/var/lib/haproxy/stats")
"""Where distributions and guides put the sockets of HAProxy."""


def config(chosen: Settings) -> Root | None:
    """The config where there is one: it names the clients. One that was asked for must be right, any other may be absent or wrong."""
    from edgekeeper.config.load import find as find_config

    if chosen.config is not None:
        return chosen.load().root
    try:
        find_config()
    except UsageError:
        return None
    try:
        return chosen.load().root
    except EdgekeeperError as err:
        complain(f"note: clients have no names here: {str(err).splitlines()[0]}")
        return None


def names(root: Root | None) -> dict[str, str]:
    """The names of clients by their addresses: the nodes of the config."""
    return {} if root is None else {str(peer.address): name for name, peer in root.nodes.items() if peer.address}


def places(socket: str | None, root: Root | None) -> list[str]:
    """The sockets to try in this order: the one that was named alone, else our own HAProxy's, then the usual ones that are there."""
    if socket is not None:
        return [socket]
    own: list[str] = []
    if root is not None and root.lb is not None:
        own = sorted(map(str, Path(root.run_dir, "lb").glob("master-*.sock")))
    return [*own, *(place for place in PLACES if Path(place).exists())]


async def find(sockets: list[str], *, wants_sessions: bool) -> tuple[Picture, list[str]]:
    """The picture by the first socket that answers, and what could not be seen beyond its own gaps."""
    from edgekeeper.engines.haproxy.admin import Admin
    from edgekeeper.engines.haproxy.look import look

    failed: list[EdgekeeperError] = []
    for place in sockets:
        admin = Admin(place)
        try:
            return await look(admin, sessions=True, sizes=True), [str(err) for err in failed]
        except RefusedError as err:
            if wants_sessions:
                raise
            return await look(admin), [*map(str, failed), f"whose the sessions are: {err}"]
        except (MissingError, StepFailedError) as err:
            failed.append(err)
    if failed:
        raise failed[0]
    msg = f"no HAProxy was found: none of {', '.join(PLACES)} is there; name its stats socket or master socket with --socket"
    raise MissingError(msg)

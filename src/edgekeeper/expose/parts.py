"""The parts of a config put together: its token, its mesh, its sources, its pass. Commands and the role build them alike."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgekeeper.config.expose import Expose
from edgekeeper.config.root import Root
from edgekeeper.expose.infrastructure import Infrastructure
from edgekeeper.expose.netbird import NetBird
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.sources.together import Together, needs_cluster, sources_of
from edgekeeper.expose.sync import Sync
from edgekeeper.expose.token import Reader, reader
from edgekeeper.host.files import make_folder
from edgekeeper.host.tls import NOBODY, Trust
from edgekeeper.ports import Clock, Journal

if TYPE_CHECKING:
    from edgekeeper.kube.client import Api

FOLDER = "expose"
"""Below ``state_dir``."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a pass works with; ``api`` is None when nothing of it is in the cluster."""

    expose: Expose
    api: Api | None
    token: Reader
    mesh: NetBird
    source: Together
    sync: Sync


@contextlib.asynccontextmanager
async def parts(
    root: Root,
    clock: Clock,
    journal: Journal,
    *,
    counted: Callable[[str, str, int], None] | None = None,
    told: Callable[[Outcome], None] = lambda _: None,
    remember: bool = True,
) -> AsyncIterator[Parts]:
    """Everything that a pass needs, opened; closed at the end of the block. MissingError when the cluster's access or a token is missing.

    ``remember`` is false for a look: no folder is made then.
    """
    expose = root.expose
    assert expose is not None  # noqa: S101 - the command has checked it
    netbird = expose.netbird
    folder = make_folder(Path(root.state_dir) / FOLDER) if remember else Path(root.state_dir) / FOLDER
    trust = Trust(netbird.ca_file) if netbird.ca_file else NOBODY
    async with contextlib.AsyncExitStack() as stack:
        api: Api | None = None
        if needs_cluster(expose):
            from edgekeeper.kube.client import connect  # noqa: PLC0415 - a config with a file only needs no client of a cluster

            api = await stack.enter_async_context(connect(root.kubernetes))
        token = reader(netbird, clock)
        mesh = await stack.enter_async_context(
            NetBird(netbird.url, token, timeout_s=netbird.timeout, trust=trust, clock=clock, counted=counted, connections=expose.concurrency)
        )
        source = sources_of(expose, clock, api, silence_s=root.kubernetes.silence)
        ground = Infrastructure(mesh, netbird, owner=expose.owner, cluster=expose.cluster, clock=clock, state_dir=str(folder) if remember else None)
        sync = Sync(expose, source, mesh, ground, clock, journal, folder / "memory.json", told)
        yield Parts(expose, api, token, mesh, source, sync)

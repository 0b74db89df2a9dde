"""The other nodes, asked all the time what they say of the VIPs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from edgekeeper import peers
from edgekeeper.config.ops import Ops, Peer
from edgekeeper.host.files import write_text
from edgekeeper.peers import DEADLINE_S
from edgekeeper.ports import Clock
from edgekeeper.vip.peersay import PeerView, PeerVip, every_s, heard, report, said, unheard

__all__ = ["DEADLINE_S", "PEERS_FILE", "PeerView", "PeerVip", "Peers", "heard", "unheard", "write_peers"]

PEERS_FILE = "peers.json"


class _Vips:
    """How nodes speak of their VIPs."""

    role = "vip"

    def every_s(self, nodes: int) -> float:
        return every_s(nodes)

    def unasked(self, name: str, why: str) -> PeerView:
        return PeerView(name, None, why)

    def read(self, view: PeerView, status: int, text: str, asked: float, now: float) -> tuple[PeerView, bool] | str:  # noqa: ARG002 - part of the seam
        vips, why = said(view.name, status, text)
        return why or (PeerView(view.name, now, "", vips), view.vips != vips or bool(view.why))


class Peers(peers.Polling[PeerView]):
    """The other nodes of ``nodes:``, as ``views``: one each, also for one that cannot be asked."""

    def __init__(self, node: str, nodes: Mapping[str, Peer], ops: Ops, clock: Clock, changed: Callable[[], None]) -> None:
        super().__init__(node, nodes, ops, clock, _Vips(), changed)


def write_peers(folder: Path, views: Mapping[str, PeerView], now: float) -> None:
    """Write what the peers say for the track script, which may run as another user and trusts nothing that is old.

    Each time as a whole, and not synced: after a crash of the machine nothing of it counts.
    """
    write_text(folder / PEERS_FILE, report(views, now), mode=0o644, sync=False)

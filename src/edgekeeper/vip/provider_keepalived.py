"""keepalived as a provider: what its FIFO told (``vip-state.json``), and the track file ``weight-<vip>``.

keepalived knows only its own state: with unicast peers a BACKUP never learns who the owner is. So the owner is this node, or unknown.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text
from edgekeeper.vip import provider, said
from edgekeeper.vip.owner import Owner
from edgekeeper.vip.provider import NORMAL, Context, Feed, Subscription
from edgekeeper.vip.weight import TrackFile, Weight

STATE = "fifo/vip-state.json"
"""Written by keepalived's FIFO reader; the supervisor puts the kernel's truth into it while there is no reader."""


class KeepalivedProvider:
    """The VIPs of this node, by their names; ``folder`` is the role's, below run_dir."""

    name = "keepalived"

    def __init__(self, node: str, folder: Path, vips: Collection[str]) -> None:
        self._node = node
        self._vips = tuple(vips)
        self._state = folder / STATE
        self._weights = TrackFile(folder, "weight")
        self._feed = Feed(self.name)

    async def owner(self, vip: str) -> Owner:
        """This node when keepalived told MASTER last, else unknown."""
        return self._owner(provider.known(vip, self._vips, self.name), self._read())

    async def weigh(self, vip: str, weight: Weight, context: Context = NORMAL) -> None:
        """Replace the track file in one rename; keepalived acts within milliseconds (1 to 4 measured with 2.2.7, 2.3.3 and 2.4.3)."""
        chosen = provider.weighed(weight, context)
        self._weights.write(provider.known(vip, self._vips, self.name), chosen)

    def events(self) -> Subscription:
        """The changes that ``look`` finds from now on."""
        return self._feed.subscribe()

    async def look(self) -> None:
        """Read again and tell who has subscribed. To be called when the state file may have changed, as often as one likes."""
        told = self._read()
        self._feed.tell({vip: self._owner(vip, told) for vip in self._vips})

    def _read(self) -> dict[str, said.Told] | str:
        """What keepalived told, or why that is not known."""
        try:
            found = json.loads(read_text(self._state))
        except (EdgekeeperError, ValueError, RecursionError):
            return f"keepalived has not told anything yet: {self._state} cannot be read"
        if not isinstance(found, dict) or found.get("node") != self._node:
            return f"{self._state} is not this node's ({self._node}); it is not believed"
        return dict(said.load(found))

    def _owner(self, vip: str, told: dict[str, said.Told] | str) -> Owner:
        if isinstance(told, str):
            return Owner(None, told)
        if vip not in told:
            return Owner(None, f"keepalived has not told anything of {vip} yet")
        state, _, since = told[vip]
        if state == "MASTER":
            return Owner(self._node, "keepalived is MASTER here", since)
        return Owner(None, f"keepalived is {state} here and does not know who the owner is; ask all nodes (`edgekeeper vip owner`)")

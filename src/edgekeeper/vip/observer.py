"""The vip role where a cluster moves the VIPs: it looks on, says who owns each, and tells every change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from edgekeeper.config.root import Root
from edgekeeper.errors import EdgekeeperError
from edgekeeper.kube.client import Api, connect
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.status import RoleStatus
from edgekeeper.runtime import Ground, accepted, cancelled, watched
from edgekeeper.vip.owner import Owner
from edgekeeper.vip.owner_cluster import Followed
from edgekeeper.vip.provider_kube import KubeProvider
from edgekeeper.vip.service import bare

LOOK_S = 1.0
"""Ages grow and Leases run out without any news."""

UNKNOWN_AFTER_S = 5.0
"""An owner that is unknown for so long is an alarm; a move takes a moment."""


class Observer:
    """``edgekeeper vip run`` with provider kube-vip or metallb."""

    def __init__(self, root: Root, ground: Ground) -> None:
        assert root.vip is not None  # noqa: S101 - the command has checked it
        self._started = root
        self._vips = root.vip
        self._ground = ground
        self._kubernetes = root.kubernetes
        self._ended = asyncio.Event()
        self._news = asyncio.Event()
        self.alarms = Alarms("vip", ground.journal)
        self.owners: Mapping[str, Owner] = {vip.name: Owner(None, "the cluster has not been asked yet") for vip in root.vip.vips}
        self._told: dict[str, str | None] = {}
        self._unknown: dict[str, float] = {}

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:  # noqa: ARG002 - there is no engine to stop or to leave
        """End it; nothing moves for that."""
        self._ended.set()
        self._news.set()

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """Nothing of it changes while it runs."""
        accepted("vip", self._started, fresh, self.alarms, self._ground.journal, self._refusal)

    def status(self) -> RoleStatus:
        """Who owns what, with the age of the evidence."""
        unknown = {name: owner.why for name, owner in self.owners.items() if owner.node is None}
        if unknown:
            told = Verdict(Health.UNKNOWN, "; ".join(f"{name}: {why}" for name, why in list(unknown.items())[:3]))
        else:
            told = Verdict(Health.OK, f"the cluster names the owner of {'every VIP' if len(self.owners) > 1 else next(iter(self.owners))}")
        return RoleStatus(
            told, told, {"provider": self._vips.provider, "vips": [self._vip(v.name, v.address) for v in self._vips.vips], "alarms": self.alarms.raised}
        )

    async def run(self) -> None:
        """Look on until ``end``."""
        async with connect(self._kubernetes) as api:
            await self._follow(api)

    # how it looks ---------------------------------------------------------------------------

    async def _follow(self, api: Api) -> None:
        source = Followed(api, self._vips.provider, [bare(vip) for vip in self._vips.vips], self._ground.clock, self._news.set)
        provider = KubeProvider(self._vips.provider, self._vips.vips, source)
        background = watched(self.alarms, dict(source.works))
        try:
            while not self._ended.is_set():
                self._news.clear()
                self.owners = await provider.owners()
                self._tell()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._news.wait()
        finally:
            await cancelled(background)

    def _tell(self) -> None:
        now, metrics = self._ground.clock.monotonic(), self._ground.metrics
        for name, owner in self.owners.items():
            if owner.node is not None:
                self._unknown.pop(name, None)
                before = self._told.get(name)
                if before != owner.node:
                    self._changed(name, before, owner)
            elif now - self._unknown.setdefault(name, now) < UNKNOWN_AFTER_S:
                continue
            self.alarms.set(f"owner of {name}", owner.why if owner.node is None else None)
        metrics.replace("edgekeeper_vip_master", "vip", {name: float(owner.node == self._ground.node) for name, owner in self.owners.items()})
        ages = {name: owner.age_s for name, owner in self.owners.items() if owner.age_s is not None}
        metrics.replace("edgekeeper_vip_lease_age_seconds", "vip", ages)
        metrics.set("edgekeeper_vip_alarms", len(self.alarms.raised))

    def _changed(self, name: str, before: str | None, owner: Owner) -> None:
        self._told[name] = owner.node
        why = f"{name} is owned by {owner.node}, {f'was by {before}' if before else 'as it is first seen'}: {owner.why}"
        emit(Event.VIP_MASTER_CHANGED, why, level=WARNING if before else INFO, vip=name, to=str(owner.node))
        self._ground.journal.write(Entry("vip", Event.VIP_MASTER_CHANGED, name, "act", why, {"vip": name, "from": before, "to": owner.node, "audit": True}))
        mine = "MASTER" if owner.node == self._ground.node else "BACKUP"
        self._ground.metrics.count("edgekeeper_vip_transitions", {"vip": name, "to": mine})

    def _vip(self, name: str, address: str) -> dict[str, Any]:
        owner = self.owners[name]
        age_s = round(owner.age_s, 1) if owner.age_s is not None else None
        return {"name": name, "address": address, "owner": owner.node, "since": owner.since, "lease_age_s": age_s, "why": owner.why}

    def _refusal(self, fresh: Root) -> str | None:
        if fresh.vip is not None and (fresh.vip.provider != self._vips.provider or fresh.vip.vips != self._vips.vips or fresh.kubernetes != self._kubernetes):
            return "other VIPs, another provider or another cluster are taken at a restart of this role"
        return None

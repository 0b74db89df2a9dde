"""Full snapshots of everything that the wanted topology depends on: the members of each service, and how patient its checks are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.lb import Lb
from edgekeeper.lb.measure import Patiences
from edgekeeper.membership.follow import Follower
from edgekeeper.model.backend import Member
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ports import Clock, Journal


class Inputs:
    """What is known right now. ``changed`` is called after the members of a service became others."""

    def __init__(
        self, lb: Lb, state: Path, clock: Clock, journal: Journal, alarms: Alarms, changed: Callable[[], None], *, cluster: Kubernetes | None = None
    ) -> None:
        self.lb = lb
        self.patiences = Patiences(state)
        self.followers = {
            service.name: Follower(
                service.members,
                state / f"membership-{service.name}.json",
                clock,
                journal,
                role="lb",
                alarm=alarms.set,
                changed=changed,
                service=service.name,
                default_port=service.default_port,
                slice_port=service.slice_port,
                cluster=cluster,
            )
            for service in lb.services
        }

    @property
    def members(self) -> dict[str, tuple[Member, ...]]:
        """The members by service."""
        return {name: follower.members for name, follower in self.followers.items()}

    async def begin(self) -> None:
        """Read every source once, starting from what is remembered, and learn how quickly new services answer."""
        for follower in self.followers.values():
            follower.remember()
        await asyncio.gather(*(follower.read_once() for follower in self.followers.values()))
        await self.patiences.learn(self.lb.services, self.members)

"""A mesh that is faked over real HTTP, one or more edgekeepers that publish into it, and a clock that all of them share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fakes.journal import Journal
from tests.fakes.turned import Still

from edgekeeper.config.expose import Expose
from edgekeeper.expose.infrastructure import Infrastructure
from edgekeeper.expose.kinds import Claim, Origin, Place, Snapshot
from edgekeeper.expose.netbird import NetBird
from edgekeeper.expose.sync import Pass, Sync, setting_of
from edgekeeper.lab.netbird import FakeNetBird

PLACE = Place("10.96.0.10", 443)


class Clock(Still):
    """Time that the test moves."""

    def __init__(self) -> None:
        super().__init__(1_000_000.0)


class Cluster:
    """A source of wishes that says what the test wants it to."""

    def __init__(self) -> None:
        self.seen = Snapshot((), {"default": PLACE}, 1, whole=True)

    def wants(self, *hosts: str, **annotations: str) -> None:
        """One Ingress for each host, with these annotations."""
        noted = {f"edgekeeper.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.seen = replace(
            self.seen, claims=tuple(Claim(Origin("Ingress", "shop", host, "u", 5.0), (host,), "", noted) for host in hosts), lists=self.seen.lists + 1
        )

    def snapshot(self) -> Snapshot:
        return self.seen

    async def relist(self) -> bool:
        self.seen = replace(self.seen, lists=self.seen.lists + 1)
        return True


class Keeper:
    """One edgekeeper: its config, its source, and passes one after the other."""

    def __init__(self, sync: Sync, cluster: Cluster, clock: Clock, fake: FakeNetBird, mesh: NetBird) -> None:
        self.sync, self.cluster, self.clock, self.fake, self.mesh = sync, cluster, clock, fake, mesh
        self.first = True

    async def once(self, *, later: float = 60.0, force: bool = False, adopt: Iterable[str] = ()) -> Pass:
        """One pass, so many seconds after the one before."""
        self.clock.now += later
        self.fake.advance(later)
        done = await self.sync.once(setting_of(self.sync.expose, force=force, adopt=adopt), first=self.first, may=lambda: None)
        self.first = False
        return done

    async def passes(self, count: int, *, later: float = 60.0) -> list[Pass]:
        return [await self.once(later=later) for _ in range(count)]

    def hosts(self) -> dict[str, Any]:
        """What is published now, by host, whoever's it is."""
        return {str(raw["domain"]): raw for raw in self.fake.state.main.services.values()}


def config(fake: FakeNetBird, **more: Any) -> Expose:
    """A config for it."""
    written = {
        "owner": "home",
        "netbird": {"url": fake.url, "token_env": "UNUSED", "router_group": "routers", **more.pop("netbird", {})},
        "targets": {"default": "10.96.0.10"},
        "service_cidr": "10.96.0.0/12",
        "lease": None,
        **more,
    }
    return Expose.model_validate(written)


@contextlib.asynccontextmanager
async def keeper(
    fake: FakeNetBird, folder: Path, clock: Clock | None = None, *, token: str | None = None, timeout_s: float = 5.0, **more: Any
) -> AsyncIterator[Keeper]:
    """One edgekeeper at work on this mesh; waiting takes no time but moves the clock."""
    clock = clock or Clock()
    expose = config(fake, **more)

    async def secret() -> str:
        return token or fake.token

    async def sleep(seconds: float) -> None:
        clock.now += seconds
        fake.advance(seconds)
        await asyncio.sleep(0)

    async with NetBird(fake.url, secret, timeout_s=timeout_s, clock=clock, sleep=sleep, connections=expose.concurrency) as mesh:
        ground = Infrastructure(mesh, expose.netbird, owner=expose.owner, cluster=expose.cluster, clock=clock, state_dir=str(folder))
        cluster = Cluster()
        yield Keeper(Sync(expose, cluster, mesh, ground, clock, Journal(), folder / "memory.json"), cluster, clock, fake, mesh)

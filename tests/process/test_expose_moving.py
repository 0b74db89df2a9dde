"""An edgekeeper that died between a migration's deletion and its making: the next pass makes the service with all that was set in it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from edgekeeper.lab.netbird import FakeNetBird

from .exposed import keeper

HOST = "git.home.example"


def test_a_service_that_a_dead_migration_has_deleted_comes_back_with_its_restrictions(tmp_path):
    async def run() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants(HOST)
            limits = {"allowed_cidrs": ["192.0.2.0/24"]}
            edge.sync.kept = replace(edge.sync.kept, moving={HOST: {"domain": HOST, "name": "by hand", "mode": "http", "access_restrictions": limits}})
            done = await edge.once()
            assert done.count("create") == 1, done.failed
            assert edge.hosts()[HOST]["access_restrictions"]["allowed_cidrs"] == ["192.0.2.0/24"]
            assert not edge.sync.kept.moving

    asyncio.run(run())


def test_what_another_one_has_made_anew_is_not_remembered_for_a_later_time(tmp_path):
    async def run() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants(HOST)
            await edge.once()
            edge.sync.kept = replace(edge.sync.kept, moving={HOST: {"domain": HOST, "access_restrictions": {"allowed_cidrs": ["192.0.2.0/24"]}}})
            await edge.once()
            assert not edge.sync.kept.moving
            assert '"moving": {}' in (tmp_path / "memory.json").read_text()

    asyncio.run(run())

"""Answers of the mesh that are torn, empty, late or lost, over real HTTP: nothing is concluded from them, and nothing is done twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose.kinds import Place
from edgekeeper.expose.sync import setting_of
from edgekeeper.lab.netbird import FakeNetBird, Fault

from .exposed import keeper

HOSTS = [f"h{i:02}.home.example" for i in range(20)]


def told(story) -> None:
    asyncio.run(story())


READ = ["truncated", "torn", "empty", "hang", "reset_before", "reset_mid"]


@pytest.mark.parametrize("how", [*READ, "status", "body"])
def test_a_list_that_cannot_be_read_changes_nothing(tmp_path, how):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path, timeout_s=0.5) as edge:
            edge.cluster.wants(*HOSTS)
            await edge.once()
            edge.cluster.wants(*HOSTS[:18], "new.home.example")
            before = edge.hosts()
            for text in ("null", "{}", "[{}]", "[null]") if how == "body" else ("",):
                fake.faults.add(Fault(how, method="GET", kind="services", times=0, body=text))
                fake.state.reset()
                for _ in range(3):
                    with pytest.raises(EdgekeeperError):
                        await edge.once()
                assert fake.state.counters.writes == 0
                assert edge.hosts() == before
                fake.faults.clear()
            assert (await edge.once()).count("create") == 1

    told(story)


@pytest.mark.parametrize("how", [*READ, "reset_after", "status"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_write_whose_answer_is_lost_is_done_once_in_the_end(tmp_path, method, how):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path, timeout_s=0.5) as edge:
            edge.cluster.wants(*HOSTS)
            await edge.once()
            if method == "POST":
                edge.cluster.wants(*HOSTS, "new.home.example")
            elif method == "PUT":
                edge.cluster.seen = replace(edge.cluster.seen, places={"default": Place("10.96.0.99", 443)})
            else:
                edge.cluster.wants(*HOSTS[1:])
                await edge.passes(17)
            fake.faults.add(Fault(how, method=method, kind="services", times=2))
            for _ in range(20):
                await edge.once()
            fake.faults.clear()
            done = await edge.once(later=900)
            done = await edge.once()
            assert done.plan.actions == ()
            wanted = {"POST": [*HOSTS, "new.home.example"], "PUT": HOSTS, "DELETE": HOSTS[1:]}[method]
            assert sorted(edge.hosts()) == sorted(wanted)
            assert all(raw["enabled"] for raw in edge.hosts().values())
            if method == "PUT":
                assert {raw["targets"][0]["host"] for raw in edge.hosts().values()} == {"10.96.0.99"}

    told(story)


def test_a_reader_s_token_looks_and_writes_nothing(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path, token="nbp_main_reader") as edge:
            edge.cluster.wants(*HOSTS)
            seen = await edge.sync.look(setting_of(edge.sync.expose))
            assert len(seen.plan.actions) == 20
            assert seen.steps
            fake.state.reset()
            done = await edge.once()
            assert done.count("create") == 0
            assert {held.state for held in done.plan.held} == {"no-resource"}
            assert "token of an admin" in done.plan.held[0].why
            assert fake.state.counters.writes == 0

    told(story)

"""What an operator meets at night: a mesh that bears few calls, one that comes back, an object that was repaired, a question without an answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from edgekeeper.lab.netbird import FakeNetBird, Fault

from .exposed import keeper

HOSTS = [f"h{i:02}.home.example" for i in range(20)]


def test_what_was_decided_long_ago_takes_nothing_away(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants(*HOSTS)
            await edge.passes(2)
            edge.cluster.wants(*HOSTS[1:])
            await edge.passes(5)
            new = [f"n{i:02}.home.example" for i in range(20)]
            edge.cluster.wants(*HOSTS[1:], *new)
            fake.state.limit(on=True, per_minute=6, burst=3)  # the new ones take minutes, and then the old one is to be disabled
            done = await edge.once()
            assert [one.kind for one in done.outcomes if one.action.host == HOSTS[0]] in (["old"], ["pending"])
            edge.cluster.wants(*HOSTS, *new)
            await edge.passes(3)
            assert edge.hosts()[HOSTS[0]]["enabled"]
            assert set(edge.hosts()) == {*HOSTS, *new}

    asyncio.run(story())


def test_a_pass_that_lasts_goes_on_with_a_fresh_view(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants("first.home.example")
            await edge.once()
            fake.state.limit(on=True, per_minute=6, burst=3)
            edge.cluster.wants("first.home.example", *(f"n{i:03}.home.example" for i in range(100)))
            done = await edge.once()
            assert 300 <= done.took_s < 500
            assert done.again_s == 0

    asyncio.run(story())


def test_a_host_whose_object_was_repaired_is_written_at_once(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            fake.faults.add(Fault("status", method="POST", kind="services", status=422, message="no", times=6))
            edge.cluster.wants("a.home.example")
            await edge.passes(200, later=5.0)
            assert not edge.hosts()
            edge.cluster.wants("a.home.example", request_timeout="5s")
            fake.faults.clear()
            await edge.once(later=1.0)
            assert set(edge.hosts()) == {"a.home.example"}

    asyncio.run(story())


def test_hosts_that_waited_for_the_proxies_are_written_when_one_goes_through(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            fake.state.world.clusters["proxy.example"].proxies = 0
            edge.cluster.wants(*HOSTS)
            await edge.passes(60)  # an hour: all wait for a quarter of one by now
            fake.state.world.clusters["proxy.example"].proxies = 1
            edge.cluster.wants(*HOSTS, "new.home.example")
            await edge.once(later=1.0)
            await edge.once(later=1.0)
            assert set(edge.hosts()) == {*HOSTS, "new.home.example"}

    asyncio.run(story())


def test_an_object_that_changes_while_a_host_is_absent_does_not_wait_for_lists(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants(*HOSTS)
            await edge.once()
            edge.cluster.wants(*HOSTS[1:], "new.home.example")
            order = []

            async def relist() -> bool:
                order.append("new.home.example" in edge.hosts())
                return True

            edge.cluster.relist = relist
            await edge.once()
            assert order == [True]

    asyncio.run(story())


def test_targets_stay_where_they_are_while_the_cluster_does_not_tell_its_network(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake:
            async with keeper(fake, tmp_path, service_cidr=None) as edge:
                edge.cluster.wants(*HOSTS)
                edge.cluster.seen = replace(edge.cluster.seen, service_cidr="10.96.0.0/12")
                await edge.passes(2)
            fake.state.reset()
            async with keeper(fake, tmp_path, service_cidr=None) as edge:  # started again while the API says nothing about it
                edge.cluster.wants(*HOSTS)
                await edge.passes(2)
                assert fake.state.counters.writes == 0

    asyncio.run(story())


def test_a_target_that_is_gone_is_told_while_its_last_address_stays(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants(*HOSTS)
            assert (await edge.once()).lost == ()
            edge.cluster.seen = replace(edge.cluster.seen, places={}, unplaced={"default": "Service web/web is not there"})
            done = await edge.once()
            assert done.outcomes == ()
            assert done.lost == ("the target of class default: Service web/web is not there; 10.96.0.10, where it was last, stays",)

    asyncio.run(story())


def test_an_annotation_that_two_controllers_fight_over_does_not_cut_clients_all_the_time(tmp_path):
    async def story() -> None:
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants("a.home.example")
            await edge.once()
            fake.state.reset()
            for i in range(600):
                edge.cluster.wants("a.home.example", request_timeout=f"{5 + i % 2}s")
                done = await edge.once(later=1.0)
            assert fake.state.counters.cut <= 33
            edge.cluster.wants("a.home.example", request_timeout="9s")
            await edge.once(later=60.0)
            assert edge.hosts()["a.home.example"]["targets"][0]["options"]["request_timeout"] == "9s"
            assert done.states()["a.home.example"][0] in {"pending", "active"}

    asyncio.run(story())


def test_a_memory_that_cannot_be_written_is_told_by_a_command_too(tmp_path):
    async def story() -> None:
        (tmp_path / "memory.json").mkdir()  # nothing can take its place
        async with FakeNetBird() as fake, keeper(fake, tmp_path) as edge:
            edge.cluster.wants("a.home.example")
            done = await edge.once()
            assert done.count("create") == 1
            assert done.doubt is not None

    asyncio.run(story())

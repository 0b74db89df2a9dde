"""The client of the mesh over real HTTP, against a server that misbehaves on command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from tests.fakes.turned import WALL_S, Still

from edgekeeper.expose.netbird import NetBird
from edgekeeper.expose.netbird_say import ApiError, NoAccessError
from edgekeeper.expose.throttle import LONGEST_S
from edgekeeper.lab.netbird import FakeNetBird, Fault
from edgekeeper.lab.netbird_schema import SERVICE_REQUEST, problems

T = TypeVar("T")


class Stage:
    """A server, its client, and what the client asked."""

    def __init__(self, fake: FakeNetBird, clock: Still, timeout_s: float) -> None:
        self.fake, self.clock = fake, clock
        self.token = fake.token
        self.tokens_read = 0
        self.calls: list[tuple[str, str, int]] = []
        self.mesh = NetBird(fake.url, self._read, timeout_s=timeout_s, clock=clock, sleep=clock.sleep, counted=lambda *call: self.calls.append(call))
        self.target = ""

    async def _read(self) -> str:
        self.tokens_read += 1
        return self.token

    def service(self, host: str, **more: Any) -> dict[str, Any]:
        if not self.target:
            network = self.fake.state.hand("POST", "networks", {"name": "n"})["id"]
            wanted = {"name": "r", "address": "198.51.100.0/24", "enabled": True, "groups": []}
            self.target = self.fake.state.hand("POST", f"networks/{network}/resources", wanted)["id"]
        target = {"target_id": self.target, "target_type": "subnet", "host": "198.51.100.10", "protocol": "tcp", "port": 443, "enabled": True}
        body = {"name": "mark", "domain": host, "enabled": True, "mode": "tls", "listen_port": 443, "targets": [target], **more}
        assert not problems(SERVICE_REQUEST, body)
        return body

    def posts(self) -> int:
        return self.fake.state.counters.calls["POST services"]


def on(work: Callable[[Stage], Awaitable[T]], *, timeout_s: float = 5.0) -> T:
    async def whole() -> T:
        clock = Still(0.0, wall_ahead=WALL_S)
        async with FakeNetBird(now=clock.wall) as fake:
            stage = Stage(fake, clock, timeout_s)
            async with stage.mesh:
                return await work(stage)

    return asyncio.run(whole())


def test_a_service_is_made_changed_in_whole_and_deleted() -> None:
    async def work(stage: Stage) -> None:
        mesh = stage.mesh
        stage.fake.state.world.newer = True
        assert await mesh.services() == ()
        made = await mesh.create(stage.service("git.home.example"))
        stage.fake.state.edit("git.home.example", access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]}, future={"x": 1})
        (found,) = await mesh.services()
        assert found.id == made.id
        body = {key: value for key, value in found.raw.items() if key not in {"id", "meta"}}
        await mesh.replace(found.id, {**body, "name": "other"})
        again = await mesh.service(found.id)
        assert again is not None
        assert again.name == "other"
        assert again.raw["access_restrictions"]["allowed_cidrs"] == ["192.0.2.0/24"]
        assert again.raw["future"] == {"x": 1}, "a field of a later server survives"
        assert await mesh.remove(found.id)
        assert not await mesh.remove(found.id)
        assert await mesh.service(found.id) is None
        assert stage.calls[:3] == [("GET", "services", 200), ("POST", "services", 200), ("GET", "services", 200)]

    on(work)


FAULTS = {
    "truncated": Fault("truncated", kind="services"),
    "torn": Fault("torn", kind="services"),
    "empty": Fault("empty", kind="services"),
    "null": Fault("body", kind="services", body="null"),
    "object": Fault("body", kind="services", body="{}"),
    "no service in it": Fault("body", kind="services", body='[{"id": "x"}]'),
    "a page": Fault("body", kind="services", body="<html></html>"),
    "500": Fault("status", kind="services"),
    "an empty 503": Fault("body", kind="services", body="", status=503),
    "hangs": Fault("hang", kind="services"),
    "too slow": Fault("slow", kind="services", seconds=30),
    "reset before": Fault("reset_before", kind="services"),
    "reset after": Fault("reset_after", kind="services"),
    "reset in it": Fault("reset_mid", kind="services"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_what_goes_wrong_with_a_list_is_never_an_empty_one(fault: Fault) -> None:
    async def work(stage: Stage) -> None:
        stage.fake.state.hand("POST", "reverse-proxies/services", stage.service("git.home.example"))
        stage.fake.faults.add(fault)
        with pytest.raises(ApiError) as caught:
            await stage.mesh.services()
        assert caught.value.kind in {"broken", "unreachable"}
        assert not caught.value.unsure
        stage.fake.faults.clear()
        assert len(await stage.mesh.services()) == 1, "the next pass sees it"

    fault.hit = 0
    on(work, timeout_s=0.5)


@pytest.mark.parametrize("how", ["truncated", "torn", "empty", "reset_after", "reset_mid", "hang"])
def test_a_write_whose_answer_is_lost_is_not_made_again_from_here_and_the_next_look_sees_it(how: str) -> None:
    async def work(stage: Stage) -> None:
        body = stage.service("git.home.example")
        await stage.mesh.services()
        stage.fake.faults.add(Fault(how, method="POST", kind="services", applied=True))  # type: ignore[arg-type]
        with pytest.raises(ApiError) as caught:
            await stage.mesh.create(body)
        assert caught.value.unsure
        assert "git.home.example cannot be published" in str(caught.value)
        assert stage.posts() == 1
        assert [one.host for one in await stage.mesh.services()] == ["git.home.example"]

    on(work, timeout_s=0.5)


def test_a_slow_answer_within_the_deadline_is_one() -> None:
    async def work(stage: Stage) -> None:
        stage.fake.faults.add(Fault("slow", kind="services", seconds=0.3))
        assert await stage.mesh.services() == ()

    on(work)


def test_connections_are_kept_and_those_that_the_server_closed_are_found_out_before_a_write_goes_out() -> None:
    async def work(stage: Stage) -> None:
        stage.fake.latency_s = 0.01
        await stage.mesh.services()
        await asyncio.gather(*(stage.mesh.create(stage.service(f"h{i}.home.example")) for i in range(48)))
        assert stage.fake.connections <= 16
        assert stage.fake.most_at_once > 8
        stage.fake.cut_connections()
        await asyncio.sleep(0.05)
        await stage.mesh.create(stage.service("last.home.example"))
        assert stage.posts() == 49

    on(work)


def test_refusals_are_told_apart() -> None:
    async def work(stage: Stage) -> None:
        mesh, world = stage.mesh, stage.fake.state.world

        async def kind(host: str, **more: Any) -> tuple[str, int]:
            with pytest.raises(ApiError) as caught:
                await mesh.create(stage.service(host, **more))
            assert not caught.value.unsure
            return caught.value.kind, caught.value.status

        await mesh.create(stage.service("git.home.example"))
        assert await kind("git.home.example") == ("taken", 409)
        assert await kind("git.elsewhere.example") == ("unknown_domain", 412)
        assert await kind("b.home.example", targets=[]) == ("invalid", 422)
        (found,) = await mesh.services()
        with pytest.raises(ApiError, match="cannot change mode") as caught:
            await mesh.replace(found.id, {**stage.service("git.home.example"), "mode": "http", "listen_port": 0})
        assert caught.value.kind == "invalid"
        gone = stage.service("c.home.example")
        gone["targets"][0]["target_id"] = "no-such-id"
        with pytest.raises(ApiError) as caught:
            await mesh.create(gone)
        assert caught.value.dead_target
        with pytest.raises(ApiError) as caught:
            await mesh.replace("no-such-id", stage.service("git.home.example"))
        assert caught.value.kind == "absent"
        for cluster in world.clusters.values():
            cluster.proxies = 0
        assert await kind("d.home.example") == ("no_cluster", 412)

    on(work)


def test_a_token_that_is_replaced_is_read_again_within_the_same_call() -> None:
    async def work(stage: Stage) -> None:
        stage.token = "nbp_expired"
        stage.fake.state.add_account("next")
        reads = iter(["nbp_expired", stage.fake.token])

        async def read() -> str:
            stage.tokens_read += 1
            return next(reads, stage.fake.token)

        stage.mesh._read_token = read
        assert await stage.mesh.services() == ()
        assert stage.tokens_read == 2

    on(work)


def test_a_wrong_token_is_one_question_and_a_reading_one_may_not_write() -> None:
    async def work(stage: Stage) -> None:
        stage.token = "nbp_wrong"
        with pytest.raises(NoAccessError, match="put a valid token in its place") as caught:
            await stage.mesh.services()
        assert caught.value.kind == "unauthenticated"
        assert "nbp_wrong" not in str(caught.value)
        assert len(stage.calls) == 1
        stage.token = stage.fake.reader
        assert await stage.mesh.services() == ()
        with pytest.raises(NoAccessError, match="needs the token of an admin"):
            await stage.mesh.create(stage.service("git.home.example"))

    on(work)


def test_nobody_there_is_told() -> None:
    async def work() -> None:
        async def token() -> str:
            return "nbp_x"

        async with NetBird("http://127.0.0.1:1", token, timeout_s=1, clock=Still()) as mesh:
            with pytest.raises(NoAccessError, match="what is published stays, the next pass tries again"):
                await mesh.services()

    asyncio.run(work())


def test_a_day_at_six_calls_a_minute() -> None:
    """A pass each minute; late in the day 700 hosts come at once: all of them are written, and no pass fails."""

    async def work(stage: Stage) -> None:
        stage.fake.state.limit(on=True, per_minute=6, burst=500)

        async def burst() -> None:
            slots = asyncio.Semaphore(8)

            async def one(index: int) -> None:
                async with slots:
                    await stage.mesh.create(stage.service(f"h{index}.home.example"))

            await asyncio.gather(*(one(index) for index in range(700)))

        for minute in range(1440):
            stage.clock.now = max(stage.clock.now, minute * 60.0)
            await stage.mesh.services()
            if minute == 1300:
                assert stage.mesh.throttled == 0, "a call a minute is borne for ever"
                await burst()
                assert stage.clock.now - minute * 60 < 45 * 60, "the 200 that the bucket does not hold, at nearly 6 a minute"
        assert len(stage.fake.state.main.services) == 700
        assert stage.posts() - stage.fake.state.counters.throttled <= 700
        assert stage.mesh.throttled < 100

    on(work)


def test_calls_that_queue_behind_a_server_that_always_refuses_end_within_minutes() -> None:
    async def work(stage: Stage) -> None:
        stage.fake.faults.add(Fault("status", status=429, message="too many requests", times=0))
        ends = await asyncio.gather(*(stage.mesh.create(stage.service(f"h{index}.home.example")) for index in range(30)), return_exceptions=True)
        assert {end.kind for end in ends if isinstance(end, ApiError)} == {"throttled"}
        assert len([end for end in ends if isinstance(end, ApiError)]) == 30
        assert stage.clock.now < 15 * 60

    on(work)


def test_refused_for_a_day_it_asks_every_two_minutes_and_then_goes_on_at_full_speed() -> None:
    async def work(stage: Stage) -> None:
        stage.fake.faults.add(Fault("status", status=429, message="too many requests", times=0))
        while stage.clock.now < 86_400:
            with pytest.raises(ApiError) as caught:
                await stage.mesh.services()
            assert caught.value.kind == "throttled"
            assert caught.value.again_s is not None
            assert caught.value.again_s <= LONGEST_S
            stage.clock.now += 60
        assert len(stage.calls) <= 86_400 / LONGEST_S + 10
        stage.fake.faults.clear()
        begun = stage.clock.now
        await asyncio.gather(*(stage.mesh.create(stage.service(f"h{index}.home.example")) for index in range(40)))
        assert stage.clock.now - begun < 20 * 60
        assert stage.mesh.waiting_s() == 0

    on(work)

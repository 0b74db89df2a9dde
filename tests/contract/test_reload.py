"""What the supervisor asks of an engine that reads its files again, beside what ``test_supervisor`` asks of all: a real HAProxy."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.engines.haproxy import hands

from .rig import Kit, Rig, kit_of


@pytest.fixture(params=["HAProxy 2.6", "HAProxy 3.2"])
def kit(request: pytest.FixtureRequest, real_engine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    monkeypatch.setattr(hands, "PROVE_DEADLINE_S", 2.0)
    with kit_of(request.param, real_engine) as made:
        yield made


@pytest.fixture
def rig(kit: Kit, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, kit)
    yield made
    made.kill_all()


@pytest.mark.parametrize("when", ["before", "while it is proven", "after"])
def test_a_reload_that_was_interrupted_is_done_again_by_the_next_supervisor(rig: Rig, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        async with rig.running() as supervisor:
            await rig.begin()
            pids, real = rig.pids(), rig.kit.hands.reload

            async def done_and_not_told(*words: Any) -> None:
                assert await real(*words) is None
                await hang()

            wanted = rig.kit.intent([rig.port, rig.spare], ("ns-a", "ns-b"))
            with monkeypatch.context() as patch:
                patch.setattr(rig.kit.hands, "prove" if when == "while it is proven" else "reload", done_and_not_told if when == "after" else hang)
                supervisor.want(wanted)
                await rig.until(lambda: rig.crew.applying is not None and (when == "before" or rig.kit.listens(rig.spare)), "it is under way")
                await asyncio.sleep(0.2)
                await rig.abandon()
            async with rig.running() as second:
                await rig.until(lambda: second.adopted, "it is adopted")
                assert "a reload was interrupted" in second.why
                await rig.want(wanted)
                assert second.actor.how == "reload"
                assert rig.pids() == pids
                assert rig.kit.listens(rig.spare)
                assert rig.crew.applying is None

    asyncio.run(story())


def test_what_a_reload_left_of_before_is_no_stray_and_ends_with_the_engine(rig: Rig) -> None:
    async def story() -> None:
        async with rig.running():
            await rig.begin()
            pids = rig.pids()
            with socket.create_connection(("127.0.0.1", rig.port)) as client:
                client.settimeout(3)
                await rig.want(rig.kit.intent([rig.port, rig.spare], ("ns-a", "ns-b")))
                await rig.abandon()
                async with rig.running() as second:
                    await rig.until(lambda: second.adopted, "it is adopted")
                    assert "ended" not in second.why
                    assert rig.pids() == pids
        assert rig.family() == []

    asyncio.run(story())


def test_a_worker_that_outlived_its_master_does_not_take_clients_beside_the_new_one(rig: Rig) -> None:
    async def story() -> None:
        async with rig.running():
            intent = await rig.begin()
            (pid,) = rig.pids()
            (worker,) = set(rig.family()) - {pid}
            os.kill(worker, signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
            await rig.again(intent, pid)
            assert worker not in rig.family()
            assert len(rig.pids()) == 1

    asyncio.run(story())


def test_a_live_change_that_fails_is_a_reload_and_hurts_nobody(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> str:
        return "web-c is not there"

    async def story() -> None:
        async with rig.running() as supervisor:
            await rig.begin()
            pids = rig.pids()
            with monkeypatch.context() as patch:
                patch.setattr(rig.kit.hands, "live", refused)
                wanted = rig.kit.intent([rig.port], ("ns-c",))
                await rig.want(wanted)
            assert supervisor.actor.how == "reload"
            assert await rig.held() == {"ns-c"}
            assert rig.pids() == pids
            assert "reloading instead" in " ".join(rig.told("engine.not_proved"))

    asyncio.run(story())


def test_who_is_connected_stays_connected_over_reloads(rig: Rig) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(64):
            writer.write(said)
        writer.close()

    async def story() -> None:
        async with rig.running(), await asyncio.start_server(echo, "127.0.0.2", 0) as member:
            intent = await rig.begin()
            service = intent.services[0]
            address = f"127.0.0.2:{member.sockets[0].getsockname()[1]}"
            there = replace(intent, services=(replace(service, servers=(replace(service.servers[0], address=address),)),))
            await rig.want(there)

            async def says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
                writer.write(b"hello")
                return await asyncio.wait_for(reader.read(64), 5) == b"hello"

            while not await says(*(kept := await asyncio.open_connection("127.0.0.1", rig.port))):  # until its checks are well
                kept[1].close()
                await asyncio.sleep(0.1)
            for seconds in (800.0, 801.0):
                await rig.want(replace(there, hard_stop_s=seconds))
                assert await says(*kept)
            kept[1].close()
            assert len(rig.pids()) == 1

    asyncio.run(story())

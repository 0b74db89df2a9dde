"""What every engine is owed by the supervisor, and what the supervisor asks of every engine: one class for fake and real."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.engines.dnsdist import hands as dnsdist_hands
from edgekeeper.engines.haproxy import hands as haproxy_hands
from edgekeeper.supervise.loop import intent_digest

from .rig import FakeKit, Kit, Rig, kit_of

KITS = ("fake", "dnsdist 1.7", "dnsdist 2.1", "HAProxy 2.6", "HAProxy 3.2")
Story = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=KITS)
def kit(request: pytest.FixtureRequest, real_engine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    monkeypatch.setattr(dnsdist_hands, "PROVE_DEADLINE_S", 2.0)
    monkeypatch.setattr(haproxy_hands, "PROVE_DEADLINE_S", 2.0)
    with kit_of(request.param, real_engine) as made:
        yield made


@pytest.fixture
def rig(kit: Kit, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, kit)
    yield made
    made.kill_all()


class TestSupervisor:
    """The conversation of supervisor and engine."""

    def test_start_and_stop(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running():
                intent = await rig.begin()
                (pid,) = rig.pids()
                assert await rig.held() == {"ns-a", "ns-b"}
                current = rig.stage.current()
                assert current is not None
                assert current.digest == intent_digest(rig.kit.engine, intent)
                assert all(p.stat().st_mode & 0o077 == 0 for p in rig.stage.path(current.name).iterdir())
                assert rig.crew.serving is not None
                assert (rig.crew.serving.process.pid, rig.crew.serving.generation) == (pid, current.name)
                assert rig.kit.listens(rig.port)
            assert rig.pids() == []
            assert not rig.kit.listens(rig.port)

        asyncio.run(story())

    def test_what_the_validator_refuses_touches_nothing(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                intent = await rig.begin()
                pids, link = rig.pids(), rig.stage.linked()
                supervisor.want(rig.kit.unacceptable(intent))
                await rig.until(lambda: supervisor.state.refused, "it is refused")
                assert (rig.pids(), rig.stage.linked()) == (pids, link)
                assert rig.in_force(intent)
                assert len(list((rig.folder / "state/generations").iterdir())) == 1
                assert rig.told("config.refused")
                assert "keeping" in supervisor.why

        asyncio.run(story())

    def test_a_taken_port_is_refused_before_the_engine_is_touched(self, rig: Rig) -> None:
        async def story() -> None:
            with socket.socket(type=socket.SOCK_DGRAM) as taken, socket.create_server(("127.0.0.1", rig.spare)):
                taken.bind(("127.0.0.1", rig.spare))
                async with rig.running() as supervisor:
                    await rig.begin()
                    pids = rig.pids()
                    supervisor.want(rig.kit.intent([rig.port, rig.spare], ("ns-a", "ns-b")))
                    refused = await rig.until(lambda: supervisor.state.refused, "it is refused")
                    assert str(rig.spare) in refused.why
                    assert rig.pids() == pids

        asyncio.run(story())

    def test_a_live_change_keeps_the_process_and_what_a_restart_would_read_agrees(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                await rig.begin()
                pids = rig.pids()
                for members in (("ns-a",), ("ns-a", "ns-b", "ns-c"), ("ns-c",)):
                    intent = rig.kit.intent([rig.port], members)
                    await rig.want(intent)
                    assert await rig.held() == set(members)
                    current = rig.stage.current()
                    assert current is not None
                    assert current.digest == intent_digest(rig.kit.engine, intent)
                    assert supervisor.actor.how == "live"
                assert rig.pids() == pids

        asyncio.run(story())

    @pytest.mark.parametrize("manner", ["plain", "overlap", pytest.param("steer", marks=pytest.mark.root)])
    def test_a_change_of_listeners_is_one_exchange(self, kit: Kit, tmp_path: Path, manner: str) -> None:
        rig = Rig(tmp_path, kit, manner)

        async def story() -> None:
            async with rig.running() as supervisor:
                await rig.begin()
                before = rig.pids()
                await rig.want(rig.kit.intent([rig.port, rig.spare], ("ns-a", "ns-b")))
                await asyncio.sleep(1.2)  # two ticks: an exit that is not one would start it again
                after = rig.pids()
                assert len(after) == 1
                assert (after == before) is kit.reloads
                assert rig.kit.listens(rig.port)
                assert rig.kit.listens(rig.spare)
                assert supervisor.actor.how == ("reload" if kit.reloads else manner)
                assert not rig.told("engine.exited")
                assert rig.crew.steering == ()
                assert rig.crew.beside is None

        asyncio.run(story())

    @pytest.mark.parametrize("manner", ["plain", "overlap"])
    def test_an_engine_that_is_not_proven_makes_room_for_the_last_proven_one(
        self, kit: Kit, tmp_path: Path, manner: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody takes a port that it needs between pre-flight and start: the engine runs, but cannot be asked, or does not listen."""
        rig = Rig(tmp_path, kit, manner)
        thieves: list[socket.socket] = []
        real = rig.kit.hands.preflight

        async def preflight(intent: Any, seat: Any, beside: Any, serving: int | None) -> str | None:
            refusal = await real(intent, seat, beside, serving)
            if steal:
                thieves.append(socket.create_server(("127.0.0.1", rig.kit.needs(intent, seat))))
            return refusal

        monkeypatch.setattr(rig.kit.hands, "preflight", preflight)
        steal = False

        async def story() -> None:
            nonlocal steal
            async with rig.running() as supervisor:
                intent = await rig.begin()
                pids, digest = rig.pids(), supervisor.state.live
                steal = True
                supervisor.want(rig.kit.intent([rig.port, rig.spare], ("ns-a", "ns-b")))
                await rig.until(lambda: supervisor.state.refused and rig.in_force(intent), "the last good one is in force again", 25)
                assert "was not proven" in " ".join(rig.told("engine.not_proved"))
                current = rig.stage.current()
                assert current is not None
                assert current.digest == digest
                assert len(rig.pids()) == 1
                assert (manner == "plain" and not kit.reloads) or rig.pids() == pids
                assert await rig.held() == {"ns-a", "ns-b"}
                for thief in thieves:
                    thief.close()
                await rig.until(lambda: not rig.kit.listens(rig.spare), "the refused one is gone")

        asyncio.run(story())

    def test_an_exit_is_followed_by_a_start_each_time_later(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                intent = await rig.begin()
                loop = asyncio.get_running_loop()
                for wait in (0.5, 1.0):
                    (pid,) = rig.pids()
                    os.kill(pid, signal.SIGKILL)
                    begun = loop.time()
                    await rig.again(intent, pid)
                    assert loop.time() - begun >= wait - 0.05
                    assert len(rig.pids()) == 1
                assert supervisor.state.failures == 2
                assert rig.told("engine.exited") == [
                    "the engine was killed by signal 9; starting again in 0.5 s",
                    "the engine was killed by signal 9; starting again in 1 s",
                ]
                assert await rig.held() == {"ns-a", "ns-b"}

        asyncio.run(story())

    def test_fresh_credentials_at_each_start(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                intent = await rig.begin()
                first = supervisor.actor.running()
                (pid,) = rig.pids()
                os.kill(pid, signal.SIGKILL)
                await rig.again(intent, pid)
                second = supervisor.actor.running()
                assert first is not None
                assert second is not None
                assert first[1] != second[1]
                assert first[0] == second[0]

        asyncio.run(story())

    def test_an_engine_that_does_not_end_on_term_is_killed(self, kit: Kit, tmp_path: Path) -> None:
        rig = Rig(tmp_path, kit, stop_timeout_s=0.0)

        async def story() -> None:
            async with rig.running() as supervisor:
                if isinstance(rig.kit, FakeKit):
                    await rig.want(rig.kit.intent([rig.port], ("ns-a",), stop="ignore"))
                else:
                    await rig.begin()
                supervisor.end(leave=False)
                await rig.until(lambda: rig.told("engine.stopped"), "it is stopped")
                assert rig.told("engine.stopped")[0].endswith("did not end within 0 s of TERM and was killed")
                await rig.until(lambda: rig.family() == [], "nothing of it is left")

        asyncio.run(story())

    def test_a_stopped_engine_is_continued_so_that_it_can_end(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                await rig.begin()
                os.kill(rig.pids()[0], signal.SIGSTOP)
                supervisor.end(leave=False)
                await rig.until(lambda: rig.told("engine.stopped"), "it is stopped")
                assert rig.told("engine.stopped")[0].endswith("ended on TERM")

        asyncio.run(story())

    def test_the_next_supervisor_adopts_and_restarts_nothing(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running():
                intent = await rig.begin()
                pids, link = rig.pids(), rig.stage.linked()
                await rig.abandon()
                async with rig.running() as supervisor:
                    await rig.until(lambda: supervisor.adopted, "it is adopted")
                    assert supervisor.state.running
                    supervisor.want(intent)
                    await rig.until(lambda: "unchanged" in supervisor.why, "nothing is to be done")
                    assert (rig.pids(), rig.stage.linked()) == (pids, link)
                    await rig.want(rig.kit.intent([rig.port], ("ns-c",)))
                    assert await rig.held() == {"ns-c"}
                    assert rig.pids() == pids
                    os.kill(pids[0], signal.SIGKILL)  # no child of this one
                    await rig.until(lambda: rig.pids() not in ([], pids) and rig.told("engine.exited") and supervisor.state.running, "it starts it again")
                    assert rig.told("engine.exited")

        asyncio.run(story())

    def test_without_the_record_it_is_found_by_its_environment(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running():
                intent = await rig.begin()
                pids = rig.pids()
                (rig.folder / "run/engine.json").unlink()
                await rig.abandon()
                async with rig.running() as supervisor:
                    await rig.until(lambda: supervisor.adopted, "it is adopted")
                    supervisor.want(intent)
                    await rig.until(lambda: "unchanged" in supervisor.why, "nothing is to be done")
                    assert rig.pids() == pids

        asyncio.run(story())

    def test_one_that_was_changed_before_its_record_was_lost_is_not_taken_for_what_it_was_started_with(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running():
                first = await rig.begin()
                await rig.want(rig.kit.intent([rig.port], ("ns-c",)))
                (rig.folder / "run/engine.json").unlink()
                await rig.abandon()
                async with rig.running() as second:
                    await rig.until(lambda: second.adopted, "it is adopted")
                    second.want(first)
                    await rig.until(lambda: rig.in_force(first) and not second.state.refused, "it is in force, on a busy machine at the second try", 45)
                    assert await rig.held() == {"ns-a", "ns-b"}
                    assert len(rig.pids()) == 1
                    assert rig.crew.applying is None

        asyncio.run(story())

    def test_a_live_change_that_was_interrupted_is_finished_by_the_next_supervisor(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        async def hang(*_: object) -> None:
            await asyncio.Event().wait()

        async def story() -> None:
            async with rig.running() as supervisor:
                await rig.begin()
                pids = rig.pids()
                with monkeypatch.context() as patch:
                    patch.setattr(rig.kit.hands, "live", hang)
                    wanted = rig.kit.intent([rig.port], ("ns-c",))
                    supervisor.want(wanted)
                    await rig.until(lambda: rig.crew.applying is not None, "it is under way")
                    await rig.abandon()
                async with rig.running() as second:
                    await rig.until(lambda: second.adopted, "it is adopted")
                    assert "an interrupted live change was finished" in second.why
                    assert await rig.held() == {"ns-c"}
                    second.want(wanted)
                    await rig.until(lambda: "unchanged" in second.why, "nothing is to be done")
                    assert rig.pids() == pids

        asyncio.run(story())

    @pytest.mark.parametrize("proven", [False, True])
    def test_an_exchange_that_was_interrupted_ends_with_one_engine(self, rig: Rig, monkeypatch: pytest.MonkeyPatch, proven: bool) -> None:
        """Killed while the new one is asked to prove itself, or while the old one is being stopped."""
        if rig.kit.reloads:
            pytest.skip("it exchanges no processes; a reload that was interrupted is the next test's")

        async def hang(*_: object) -> None:
            await asyncio.Event().wait()

        async def story() -> None:
            async with rig.running() as supervisor:
                await rig.begin()
                (old,) = rig.pids()
                wanted = rig.kit.intent([rig.port, rig.spare], ("ns-a", "ns-b"))
                with monkeypatch.context() as patch:
                    patch.setattr(*((rig.crew, "stop") if proven else (rig.kit.hands, "prove")), hang)
                    supervisor.want(wanted)
                    await rig.until(lambda: len(rig.pids()) == 2 and (not proven or (rig.crew.serving and rig.crew.serving.process.pid != old)), "both run")
                    await rig.abandon()
                async with rig.running() as second:
                    await rig.until(lambda: second.adopted, "one is adopted")
                    assert "ended 1 engine(s)" in second.why
                    assert len(rig.pids()) == 1
                    assert (rig.pids() == [old]) is not proven
                    await rig.want(wanted)
                    assert len(rig.pids()) == 1
                    assert rig.kit.listens(rig.spare)

        asyncio.run(story())

    def test_a_handshake_is_not_health(self, rig: Rig) -> None:
        """A frozen engine's ports accept connections, and nothing answers on them."""

        async def story() -> None:
            async with rig.running() as supervisor:
                intent = await rig.begin()
                (pid,) = rig.pids()
                running = supervisor.actor.running()
                assert running is not None
                assert await rig.kit.hands.prove(intent, running[1], pid) is None
                assert "prove itself" in str(await rig.kit.hands.prove(intent, running[1], os.getpid()))
                family = rig.family()
                for each in family:
                    os.kill(each, signal.SIGSTOP)
                with socket.create_connection(("127.0.0.1", rig.kit.needs(intent, running[1])), 2):
                    assert "did not prove itself" in str(await rig.kit.hands.prove(intent, running[1], pid))
                for each in family:
                    os.kill(each, signal.SIGCONT)
                await rig.until(lambda: rig.kit.listens(rig.port), "it goes on")
                assert await rig.kit.hands.prove(intent, running[1], pid) is None

        asyncio.run(story())

    def test_a_new_engine_that_freezes_before_it_is_proven_never_serves_alone(self, rig: Rig, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        real = rig.kit.hands.prove

        async def frozen(intent: Any, seat: Any, pid: int) -> str | None:
            if freeze:
                os.kill(pid, signal.SIGSTOP)
            return await real(intent, seat, pid)

        monkeypatch.setattr(rig.kit.hands, "prove", frozen)
        freeze = False

        async def story() -> None:
            nonlocal freeze
            async with rig.running() as supervisor:
                intent = await rig.begin()
                pids = rig.pids()
                freeze = True
                supervisor.want(rig.kit.intent([rig.port, rig.spare], ("ns-a", "ns-b")))
                await rig.until(lambda: supervisor.state.refused and rig.in_force(intent), "it is refused, and what was in force is")
                assert rig.pids() == pids
                if kit.reloads:  # the frozen master is not to be blamed on the next configuration
                    freeze = False
                    os.kill(pids[0], signal.SIGCONT)
                    await rig.want(rig.kit.intent([rig.port], ("ns-c",)))
                    assert await rig.held() == {"ns-c"}

        asyncio.run(story())

    def test_leaving_leaves_it(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                await rig.begin()
                supervisor.end(leave=True)
                await rig.until(lambda: rig.told("handover.done"), "it has left")
                assert len(rig.pids()) == 1

        asyncio.run(story())

"""The contract of ``test_supervisor`` and ``test_reload`` over a real keepalived, in a network of its own.

It has no ports that could be taken or asked, changes nothing while it runs but by reading its file again, and its seat never changes:
what the contract says of these is nothing to it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgekeeper.engines.keepalived import hands
from edgekeeper.host.process import children

from . import test_supervisor
from .rig import Kit, Rig, kit_of, own_network
from .test_reload import test_a_reload_that_was_interrupted_is_done_again_by_the_next_supervisor as test_a_reload_that_was_interrupted  # noqa: F401

pytestmark = [pytest.mark.root, pytest.mark.engine]


@pytest.fixture(params=["keepalived 2.2.7", "keepalived 2.3.4"])
def kit(request: pytest.FixtureRequest, real_engine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces; run them as root")
    monkeypatch.setattr(hands, "PROVE_DEADLINE_S", 1.5)
    with own_network(), kit_of(request.param, real_engine) as made:
        yield made


@pytest.fixture
def rig(kit: Kit, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, kit)
    yield made
    made.kill_all()


class TestKeepalived(test_supervisor.TestSupervisor):
    """The same conversation."""

    test_a_taken_port_is_refused_before_the_engine_is_touched = None
    test_a_live_change_keeps_the_process_and_what_a_restart_would_read_agrees = None
    test_a_change_of_listeners_is_one_exchange = None
    test_an_engine_that_is_not_proven_makes_room_for_the_last_proven_one = None
    test_fresh_credentials_at_each_start = None
    test_a_live_change_that_was_interrupted_is_finished_by_the_next_supervisor = None
    test_an_exchange_that_was_interrupted_ends_with_one_engine = None
    test_a_handshake_is_not_health = None

    def test_every_change_keeps_the_process_and_what_a_restart_would_read_agrees(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                await rig.begin()
                pids = rig.pids()
                for members in (("ns-a",), ("ns-a", "ns-b", "ns-c")):
                    await rig.want(rig.kit.intent([rig.port], members))
                    assert await rig.held() == set(members)
                    assert supervisor.actor.how == "reload"
                assert rig.pids() == pids
                assert not rig.told("engine.exited")

        asyncio.run(story())

    def test_one_that_does_not_say_what_it_holds_is_not_proven(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running() as supervisor:
                intent = await rig.begin()
                (pid,), running = rig.pids(), supervisor.actor.running()
                assert running is not None
                assert await rig.kit.hands.prove(intent, running[1], pid) is None
                assert "did not prove itself" in str(await rig.kit.hands.prove(intent, running[1], os.getpid()))
                other = rig.kit.intent([rig.port], ("ns-a",))
                assert "has the peers" in str(await rig.kit.hands.prove(other, running[1], pid))
                (vrrp,) = children(pid)
                os.kill(vrrp, signal.SIGSTOP)
                assert "did not say within 1 s what it holds" in str(await rig.kit.hands.prove(intent, running[1], pid))
                os.kill(vrrp, signal.SIGCONT)
                assert await rig.kit.hands.prove(intent, running[1], pid) is None

        asyncio.run(story())

    def test_another_keepalived_on_this_machine_is_named_before_anything_starts(self, rig: Rig) -> None:
        async def story() -> None:
            async with rig.running():
                await rig.begin()
                (pid,) = rig.pids()
                intent = rig.kit.intent([rig.port], ("ns-a",))
                seat = type(rig.kit.hands.new_seat(intent))("/run/other")
                told = await type(rig.kit.hands)("/run/other").preflight(intent, seat, None)  # type: ignore[call-arg]
                assert f"another keepalived (pid {pid}) runs here" in str(told)

        asyncio.run(story())

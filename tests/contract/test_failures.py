"""What only an engine of our own does when asked to: checks that hang, starts that crash, changes that kill it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.pair import answers

from .rig import FakeKit, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path, FakeKit())
    yield made
    made.kill_all()


@pytest.mark.parametrize("how", ["silent", "die", "complain"])
def test_a_validator_that_does_not_say_yes_has_refused(rig: Rig, how: str) -> None:
    async def story() -> None:
        async with rig.running() as supervisor:
            intent = await rig.begin()
            pids = rig.pids()
            supervisor.want(rig.kit.intent([rig.port], ("ns-a",), check=how))  # type: ignore[call-arg]
            await rig.until(lambda: supervisor.state.refused, "it is refused")
            assert rig.in_force(intent)
            assert rig.pids() == pids

    asyncio.run(story())


def test_a_validator_that_hangs_is_killed_and_has_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgekeeper.supervise.act.CHECK_DEADLINE_S", 0.3)

    async def story() -> None:
        async with rig.running() as supervisor:
            supervisor.want(rig.kit.intent([rig.port], ("ns-a",), check="hang"))  # type: ignore[call-arg]
            refused = await rig.until(lambda: supervisor.state.refused, "it is refused")
            assert "did not end within 0.3 s" in refused.why

    asyncio.run(story())


def test_a_first_start_that_crashes_is_tried_ever_more_slowly(rig: Rig) -> None:
    async def story() -> None:
        async with rig.running() as supervisor:
            supervisor.want(rig.kit.intent([rig.port], ("ns-a",), start="crash"))  # type: ignore[call-arg]
            await rig.until(lambda: supervisor.state.failures >= 3, "it was tried three times")
            assert not supervisor.state.running
            assert "ended at its start with exit code 3" in supervisor.why
            good = rig.kit.intent([rig.port], ("ns-a",))
            await rig.want(good)
            assert answers(f"127.0.0.1:{rig.port}")

    asyncio.run(story())


@pytest.mark.parametrize("script", [{"start": "crash"}, {"start": "mute"}])
@pytest.mark.parametrize("manner", ["plain", "overlap"])
def test_one_that_crashes_or_stays_mute_leaves_the_last_good_one_serving(tmp_path: Path, manner: str, script: dict[str, str]) -> None:
    rig = Rig(tmp_path, FakeKit(), manner, stop_timeout_s=1.0)

    async def story() -> None:
        async with rig.running() as supervisor:
            good = await rig.begin()
            supervisor.want(rig.kit.intent([rig.port], ("ns-a",), **script))  # type: ignore[call-arg]
            await rig.until(lambda: supervisor.state.refused and rig.in_force(good), "the last good one is in force")
            assert answers(f"127.0.0.1:{rig.port}")
            assert len(rig.pids()) == 1

    asyncio.run(story())


def test_one_that_crashes_again_and_again_uses_up_no_descriptors(rig: Rig) -> None:
    async def story() -> None:
        async with rig.running() as supervisor:
            good = await rig.begin()
            before = None
            for number in range(4):
                supervisor.state = supervisor.state.__class__(live=supervisor.state.live, good=supervisor.state.good, running=True)
                pid = rig.pids()[0]
                os.kill(pid, signal.SIGKILL)
                await rig.again(good, pid)
                await asyncio.sleep(0.05)
                count = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count is wanted
                if number == 1:
                    before = count
            assert before is not None
            assert count <= before

    asyncio.run(story())


@pytest.mark.parametrize("live", ["refuse", "die"])
def test_a_live_change_that_fails_is_a_replacement(rig: Rig, live: str) -> None:
    async def story() -> None:
        async with rig.running() as supervisor:
            await rig.want(rig.kit.intent([rig.port], ("ns-a", "ns-b"), live=live))  # type: ignore[call-arg]
            before = rig.pids()
            wanted = rig.kit.intent([rig.port], ("ns-c",), live=live)  # type: ignore[call-arg]
            supervisor.want(wanted)
            if live == "refuse":
                await rig.until(lambda: rig.in_force(wanted), "it is in force")
                assert await rig.held() == {"ns-c"}
            else:  # it died of the change: the last good one comes back, once
                await rig.until(lambda: supervisor.state.running and rig.pids() not in (before, []), "it runs again")
                after = rig.pids()
                await asyncio.sleep(1.2)
                assert rig.pids() == after
            assert rig.pids() != before
            assert len(rig.pids()) == 1

    asyncio.run(story())

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekeeper import runtime
from edgekeeper.errors import LockHeldError, MissingError
from edgekeeper.runtime import alone, kept_alive


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "RETRY_S", 0.0)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if true():
            return
        await asyncio.sleep(0)
    raise AssertionError


def test_a_watcher_that_fails_is_told_and_tried_again() -> None:
    told: list[str | None] = []
    failures: list[Exception] = [MissingError("the API is away"), RuntimeError("a bug with a secret")]

    async def work() -> None:
        if failures:
            raise failures.pop(0)

    asyncio.run(kept_alive("the members", work, told.append))
    assert told == [
        "the members failed: the API is away; trying again in 0 s",
        "the members failed: RuntimeError; trying again in 0 s",
        None,
    ]


def test_an_alarm_is_cleared_when_the_watcher_goes_on_again_though_it_never_ends() -> None:
    told: list[str | None] = []
    failures = [MissingError("the API is away")]

    async def work() -> None:
        if failures:
            raise failures.pop()
        await asyncio.Event().wait()

    async def watch() -> None:
        task = asyncio.create_task(kept_alive("the members", work, told.append))
        await until(lambda: told[-1:] == [None])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(watch())
    assert len(told) == 2


def test_a_watcher_that_fails_at_once_is_never_called_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "RETRY_S", 0.001)
    told: list[str | None] = []

    async def work() -> None:
        raise MissingError("away")

    async def watch() -> None:
        task = asyncio.create_task(kept_alive("the members", work, told.append))
        await until(lambda: len(told) >= 5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(watch())
    assert None not in told


def test_cancelling_ends_it() -> None:
    async def watch() -> None:
        task = asyncio.create_task(kept_alive("the members", asyncio.Event().wait, lambda _: None))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(watch())


def test_a_role_runs_once_for_each_run_dir(tmp_path: Path) -> None:
    with alone(str(tmp_path), "dns") as folder:
        assert folder == tmp_path / "dns"
        assert folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(LockHeldError, match="already running"), alone(str(tmp_path), "dns"):
            pass
        with alone(str(tmp_path), "vip"):
            pass
    with alone(str(tmp_path), "dns"):
        pass


def test_a_state_dir_has_one_master_too(tmp_path: Path) -> None:
    run, other, state = (tmp_path / name for name in ("run", "other", "state"))
    state.mkdir(mode=0o750)
    with alone(str(run), "dns", str(state)):
        assert state.stat().st_mode & 0o777 == 0o750
        with pytest.raises(LockHeldError, match=r"with state_dir .* is already running"), alone(str(other), "dns", str(state)):
            pass
    with alone(str(run), "dns", str(run)):
        pass

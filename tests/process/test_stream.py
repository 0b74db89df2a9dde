"""A child whose output is read: what it may do, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.process import start_time
from edgekeeper.host.stream import Stream
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.command import CommandSource


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what it waits for is another process
            await asyncio.sleep(0.01)


async def everything(stream: Stream) -> bytes:
    out = b""
    while (piece := await stream.read()) is not None:
        out += piece
    return out


def test_output_and_errors_are_read_and_no_shell_sees_the_words() -> None:
    async def story() -> None:
        stream = Stream([sys.executable, "-c", "import os, sys; os.write(1, sys.argv[1].encode()); os.write(2, b'wrong'); sys.exit(3)", "$HOME; `id`"])
        assert await everything(stream) == b"$HOME; `id`wrong"
        await stream.end()
        assert stream.code == 3

    asyncio.run(story())


@pytest.mark.parametrize("argv", [["/nowhere/at-all"], ["/etc/passwd"], ["a\0b"]])
def test_what_cannot_be_run_is_missing(argv: list[str]) -> None:
    with pytest.raises(MissingError, match="cannot be run"):
        Stream(argv)


def test_one_that_ignores_term_is_killed_with_its_children_even_when_it_is_stopped() -> None:
    async def story() -> None:
        stream = Stream(["sh", "-c", "trap '' TERM; sleep 100 & echo $!; while :; do sleep 100; done"])
        child = int(await stream.read() or b"")
        os.kill(stream.pid, signal.SIGSTOP)
        began = time.monotonic()
        await stream.end()
        assert time.monotonic() - began < 5
        assert stream.code == -signal.SIGKILL
        await until(lambda: start_time(child) is None)

    asyncio.run(story())


def test_an_end_is_seen_although_a_child_of_it_holds_the_pipe() -> None:
    async def story() -> None:
        stream = Stream(["sh", "-c", "sleep 100 & echo $!"])
        async with asyncio.timeout(10):
            child = int(await everything(stream))
            await stream.end()
        assert stream.code == 0
        await until(lambda: start_time(child) is None)

    asyncio.run(story())


def test_one_that_closes_its_output_and_stays_has_ended() -> None:
    async def story() -> None:
        stream = Stream(["sh", "-c", "echo last; exec >&- 2>&-; exec sleep 100"])
        async with asyncio.timeout(10):
            assert await everything(stream) == b"last\n"
            await stream.end()
        assert stream.code == -signal.SIGTERM

    asyncio.run(story())


def test_a_flood_does_not_hold_up_the_loop_and_an_endless_line_not_the_memory() -> None:
    async def story(argv: list[str]) -> tuple[int, float, int]:
        size = longest = 0
        rounds = []

        def arrived(chunk: bytes, _: float) -> None:
            nonlocal size, longest
            size += len(chunk)
            longest = max(longest, *(len(line) for line in chunk.splitlines()))

        task = asyncio.create_task(CommandSource(argv, SystemClock()).follow(arrived, lambda _: None))
        end = time.monotonic() + 0.7
        while (now := time.monotonic()) < end:
            await asyncio.sleep(0)
            rounds.append(time.monotonic() - now)
        task.cancel()
        await asyncio.wait([task])
        return size, sorted(rounds)[len(rounds) * 99 // 100], longest

    size, round_s, _ = asyncio.run(story(["yes", "a line of a service that has gone mad"]))
    assert size > 5_000_000
    assert round_s < 0.01
    size, _, longest = asyncio.run(story(["sh", "-c", "echo first; exec cat /dev/zero | tr '\\0' x"]))
    assert size == len(b"first\n") + longest + 1
    assert longest == 2**20 - 1


def test_a_missing_program_is_told_and_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        program = tmp_path / "late"
        sights: list[Sight] = []
        came = asyncio.Event()
        task = asyncio.create_task(CommandSource([str(program)], SystemClock()).follow(lambda _, __: came.set(), sights.append))
        await until(lambda: len(sights) > 1)
        assert sights[-1] == Sight(seeing=False, why=f"{program} cannot be run: No such file or directory; it is started again in 0.5 s")
        program.write_text("#!/bin/sh\necho here; exec sleep 100\n", encoding="utf-8")
        program.chmod(0o755)
        await until(lambda: came.is_set() and sights[-1].seeing)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(story())

"""A word between a command and the supervisor, over a real socket of the file system."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.host import control


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ek-") as folder:  # pytest's own may be too long for a socket
        yield Path(folder) / "vip" / "control.sock"


async def echo(request: dict[str, Any]) -> dict[str, Any]:
    return {"said": request}


async def _there(path: Path) -> None:
    async with asyncio.timeout(2):
        while not path.is_socket():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def serving(path: Path, answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] = echo) -> AsyncIterator[None]:
    task = asyncio.create_task(control.serve(path, answer))
    await _there(path)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_word_each_way_and_only_the_owner_may_say_it(path: Path) -> None:
    async def work() -> None:
        async with serving(path):
            assert await control.ask(path, {"do": "drain", "vips": ["\n"]}, 1) == {"said": {"do": "drain", "vips": ["\n"]}}
            assert path.stat().st_mode & 0o777 == 0o600
            assert await asyncio.gather(*(control.ask(path, {"n": n}, 1) for n in range(5))) == [{"said": {"n": n}} for n in range(5)]

    asyncio.run(work())


@pytest.mark.parametrize("junk", [b"", b"\n", b"[]\n", b"{\n", b"\xff\n", b"x" * 100_000 + b"\n"])
def test_junk_is_not_answered_and_hurts_nobody(path: Path, junk: bytes) -> None:
    async def work() -> None:
        async with serving(path):
            reader, writer = await asyncio.open_unix_connection(path)
            with contextlib.suppress(ConnectionError):
                writer.write(junk)
                writer.write_eof()
                assert await asyncio.wait_for(reader.read(), 1) == b""
            writer.close()
            assert await control.ask(path, {}, 1) == {"said": {}}

    asyncio.run(work())


def test_a_socket_that_a_dead_one_left_is_replaced_and_one_that_was_wiped_comes_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "EVERY_S", 0.001)

    async def work() -> None:
        path.parent.mkdir()
        path.write_text("left")
        async with serving(path):
            path.unlink()
            await _there(path)
            assert await control.ask(path, {"again": 1}, 1) == {"said": {"again": 1}}

    asyncio.run(work())


def test_where_nobody_answers_it_is_said_who_should(path: Path) -> None:
    with pytest.raises(MissingError, match=r"no supervisor answers at .*is `edgekeeper vip run` running"):
        asyncio.run(control.ask(path, {}, 1))


def test_one_that_is_too_slow_or_ends_meanwhile_is_a_failed_step(path: Path) -> None:
    async def slow(_: dict[str, Any]) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def work() -> None:
        async with serving(path, slow):
            with pytest.raises(StepFailedError, match=r"did not answer within 0\.01 s; what it was asked may still happen"):
                await control.ask(path, {}, 0.01)
            asked = asyncio.create_task(control.ask(path, {}, 60))
            await asyncio.sleep(0.01)
        with pytest.raises(StepFailedError, match="ended before it answered"):
            await asyncio.wait_for(asked, 1)

    asyncio.run(work())


def test_what_is_no_answer_is_a_failed_step(path: Path) -> None:
    async def work(said: bytes) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(said)
            writer.close()

        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        async with await asyncio.start_unix_server(talk, path):
            with pytest.raises(StepFailedError, match="ended before it answered"):
                await control.ask(path, {}, 1)

    for said in (b"", b"{", b"[]\n", json.dumps("x").encode() + b"\n"):
        asyncio.run(work(said))


def test_a_path_that_no_socket_can_have_is_told_before_anything(path: Path) -> None:
    long = path.parent / ("x" * 100) / "control.sock"
    with pytest.raises(MissingError, match="longer than a socket's path may be"):
        asyncio.run(control.serve(long, echo))
    assert not long.parent.exists()


def test_an_answer_that_fails_does_not_leave_the_one_who_asked_waiting(path: Path) -> None:
    async def fails(_: dict[str, Any]) -> dict[str, Any]:
        msg = "a mistake of ours"
        raise StepFailedError(msg)

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with serving(path, fails):
            with pytest.raises(StepFailedError, match="ended before it answered"):
                await asyncio.wait_for(control.ask(path, {}, 5), 1)

    asyncio.run(work())

"""The command line of HAProxy: one that is frozen, breaks off, says too little, or is none."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from edgekeeper.engines.haproxy.admin import Admin, word
from edgekeeper.engines.haproxy.look import look
from edgekeeper.engines.haproxy.masters import masters_of
from edgekeeper.errors import EdgekeeperError, MissingError, RefusedError, StepFailedError, UsageError

from .edge import until
from .proxied import Proxied

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(path: Path, answer: Answer) -> AsyncIterator[Admin]:
    """A socket that answers as told."""
    answers: list[asyncio.Task[None]] = []

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers.append(asyncio.current_task())
        with suppress(asyncio.CancelledError, ConnectionError):
            await answer(reader, writer)
        writer.close()
        await asyncio.sleep(0)

    async with await asyncio.start_unix_server(answered, path):
        yield Admin(str(path), deadline_s=0.3)
        for task in answers:
            task.cancel()
        await asyncio.gather(*answers)


def says(*pieces: str, pause_s: float = 0.0) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        for piece in pieces:
            writer.write(piece.encode())
            await writer.drain()
            await asyncio.sleep(pause_s)

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    await asyncio.sleep(5)


def asked(path: Path, answer: Answer, command: str = "show stat") -> str:
    async def work() -> str:
        async with listening(path, answer) as admin:
            return await admin.ask(command)

    return asyncio.run(work())


def test_a_whole_answer_in_pieces(tmp_path: Path) -> None:
    assert asked(tmp_path / "s", says("a,b\n1", ",2\n", "\n", pause_s=0.2)) == "a,b\n1,2\n\n", "each piece has a deadline of its own"


def test_one_that_never_answers_is_frozen(tmp_path: Path) -> None:
    with pytest.raises(StepFailedError, match=r"did not answer `show stat` within 0\.3 s; its process may be frozen"):
        asked(tmp_path / "s", silent)


@pytest.mark.parametrize("pieces", [("# pxname\napi\n",), ("# pxname\nap",), ("",)])
def test_an_answer_that_breaks_off_is_no_short_list(tmp_path: Path, pieces: tuple[str, ...]) -> None:
    with pytest.raises(StepFailedError, match="broke off"):
        asked(tmp_path / "s", says(*pieces))


def test_nothing_said_is_not_done(tmp_path: Path) -> None:
    with pytest.raises(StepFailedError, match="broke off"):
        asked(tmp_path / "s", says(), "shutdown sessions server api/cp1")
    assert asked(tmp_path / "t", says("\n"), "shutdown sessions server api/cp1") == "\n"


def test_a_level_that_is_too_low_names_the_one_that_is_needed_and_the_line(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"may not `show sess`: that needs level operator; say `stats socket .* level operator`"):
        asked(tmp_path / "s", says("Permission denied\n\n"), "show sess")
    with pytest.raises(RefusedError, match="level admin"):
        asked(tmp_path / "t", says("Permission denied\n\n"), "shutdown session 0x1")


def test_sockets_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, word_of_it in ((tmp_path / "none", "there is no socket"), (tmp_path / "file", "nobody listens"), (tmp_path, "cannot be used|nobody listens")):
        with pytest.raises(MissingError, match=word_of_it):
            asyncio.run(Admin(str(path), deadline_s=0.2).ask("show info"))
    with pytest.raises(EdgekeeperError):
        asyncio.run(Admin("/" + "x" * 200).ask("show info"))


def test_something_else_that_answers_is_not_haproxy(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path / "s", says("HTTP/1.1 400 Bad Request\r\n\r\n\n\n")) as admin:
            await look(admin)

    with pytest.raises(MissingError, match="is not HAProxy's command line"):
        asyncio.run(work())


@pytest.mark.parametrize(
    "command",
    ["", "show info; shutdown frontend x", "show info\nshutdown frontend x", "@1 show info", "set x <<", "show \\; info", "show \x1b[2J", "show info\r"],
)
def test_nothing_can_be_smuggled_into_a_command(tmp_path: Path, command: str) -> None:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.write(b"\n")
        writer.close()

    for admin_word in (lambda a: a.ask(command), lambda a: a.ask_each(["show info", command])):

        async def work(call: Callable[[Admin], Awaitable[object]] = admin_word) -> None:
            path = tmp_path / "s"
            path.unlink(missing_ok=True)
            async with listening(path, answer) as admin:
                await call(admin)

        with pytest.raises(UsageError):
            asyncio.run(work())
    assert heard == []


def test_words_that_are_names() -> None:
    assert word("k8s-api_1.x:y") == "k8s-api_1.x:y"
    for text in ("", "a b", "a/b", "a;b", "a\nb", "a\\b", "ä", "x" * 300):
        with pytest.raises(UsageError):
            word(text)


@pytest.mark.engine
@pytest.mark.parametrize("version", ["2.6", "3.0", "3.2"])
def test_from_a_stats_socket_to_the_master_and_back(tmp_path: Path, version: str) -> None:
    with Proxied(tmp_path, version) as made:
        made.open(6, 1, 6)
        made.reload()
        current, old = made.workers()

        async def work() -> None:
            for path in (made.admin, made.master):
                picture = await look(Admin(path), sessions=True)
                assert (picture.current.pid, [w.pid for w in picture.old]) == (current, [old])
                assert picture.blind == ()
                assert {pid: len(found) for pid, found in picture.sessions.items()} == {current: 0, old: 6}
            assert await masters_of(current) == await masters_of(old) == await masters_of(made.process.pid) == made.master
            assert await Admin(made.master).is_master()
            assert not await Admin(made.admin).is_master()
            assert await Admin(made.admin).workers() == ()
            said = await Admin(made.master).ask_each(["shutdown session 0x1"] * 300, worker=old)
            assert said == ("No such session (use 'show sess').",) * 300
            assert "No such server" in await Admin(made.admin).ask("shutdown sessions server api/cp9")

        asyncio.run(work())


@pytest.mark.engine
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may chroot")
@pytest.mark.parametrize("version", ["2.6", "3.0", "3.2"])
def test_a_worker_in_a_chroot_has_its_master_outside_of_it(tmp_path: Path, version: str) -> None:
    """As Debian's own haproxy.cfg has it; the worker's command line is its master's, its root is not."""
    jail = tmp_path / "jail"
    jail.mkdir()
    with Proxied(tmp_path, version) as made:
        made.open(3, 1, 3)
        made.write(f"global\n  chroot {jail}\n")
        made.reload()
        current, old = made.workers()

        async def work() -> None:
            assert await masters_of(current) == made.master
            picture = await look(Admin(made.admin), sessions=True)
            assert picture.blind == ()
            assert {pid: len(found) for pid, found in picture.sessions.items()} == {current: 0, old: 3}

        asyncio.run(work())


@pytest.mark.engine
@pytest.mark.parametrize("version", ["2.6", "3.2"])
def test_a_frozen_old_worker_is_told_and_a_frozen_current_one_is_an_error(tmp_path: Path, version: str) -> None:
    with Proxied(tmp_path, version) as made:
        made.open(3, 1, 3)
        made.reload()
        current, old = made.workers()
        os.kill(old, signal.SIGSTOP)
        picture = asyncio.run(look(Admin(made.admin, deadline_s=0.5), sessions=True))
        assert old not in picture.sessions
        assert len(picture.blind) == 1
        assert f"old worker {old} cannot be seen" in picture.blind[0]
        os.kill(old, signal.SIGCONT)
        os.kill(current, signal.SIGSTOP)
        for path in (made.admin, made.master):
            with pytest.raises(StepFailedError, match="frozen"):
                asyncio.run(look(Admin(path, deadline_s=0.5), sessions=True))
        os.kill(current, signal.SIGCONT)


@pytest.mark.engine
@pytest.mark.parametrize("version", ["2.6", "3.2"])
def test_without_a_master_socket_what_a_reload_left_is_told_and_not_guessed(tmp_path: Path, version: str) -> None:
    with Proxied(tmp_path, version, master=False) as made:
        made.open(3, 1, 3)
        assert asyncio.run(look(Admin(made.admin), sessions=True)).blind == ()
        made.reload()
        current, old = made.workers()
        picture = asyncio.run(look(Admin(made.admin), sessions=True))
        assert (picture.master, [w.pid for w in picture.workers]) == (None, [current])
        assert len(picture.blind) == 1
        assert f"pid {old}" in picture.blind[0]
        assert "-S" in picture.blind[0]


@pytest.mark.engine
def test_a_master_whose_level_is_too_low_is_a_gap(tmp_path: Path) -> None:
    with Proxied(tmp_path, "3.2", master_level=",level,user") as made:
        made.open(3, 1, 3)
        made.reload()
        picture = asyncio.run(look(Admin(made.admin), sessions=True))
        assert picture.current.pid == made.pid()
        assert len(picture.blind) == 1, picture.blind
        assert "level" in picture.blind[0]


@pytest.mark.engine
@pytest.mark.parametrize("version", ["2.6", "3.2"])
def test_asking_while_it_reloads_succeeds_or_says_why(tmp_path: Path, version: str) -> None:
    with Proxied(tmp_path, version) as made:
        made.open(3, 1, 3)
        before = made.pid()
        made.process.send_signal(signal.SIGUSR2)

        async def work() -> int:
            failures = 0
            for _ in range(60):
                try:
                    picture = await look(Admin(made.admin), sessions=True)
                    assert before in {w.pid for w in picture.workers} or picture.blind
                except EdgekeeperError:
                    failures += 1
                await asyncio.sleep(0.005)
            return failures

        assert asyncio.run(work()) <= 3
        until(lambda: made.pid() not in (0, before), "the new worker answers")

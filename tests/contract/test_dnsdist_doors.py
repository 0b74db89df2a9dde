"""The console and the API when what answers is slow, silent, broken, or something else: an error in time, never a hang."""

from __future__ import annotations

import asyncio
import base64
import struct
import time

import pytest
from nacl.secret import SecretBox

from edgekeeper.engines.dnsdist import api
from edgekeeper.engines.dnsdist.console import Console
from edgekeeper.errors import MissingError, StepFailedError

KEY = base64.b64encode(bytes(range(32))).decode()


class Peer:
    """The engine's end of the console: ``answers`` are texts, or bytes to send as they are, or None to fall silent."""

    def __init__(self, *answers: str | bytes | None, key: bytes = bytes(range(32))) -> None:
        self.answers, self.box, self.heard = list(answers), SecretBox(key), []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            theirs = await reader.readexactly(24)
            ours = bytes(range(100, 124))
            writer.write(ours)
            reading, writing = ours[:12] + theirs[12:], theirs[:12] + ours[12:]
            for answer in self.answers:
                (size,) = struct.unpack("!I", await reader.readexactly(4))
                self.heard.append(self.box.decrypt(await reader.readexactly(size), reading).decode())
                reading = self.next(reading)
                if answer is None:
                    await asyncio.sleep(30)
                elif isinstance(answer, bytes):
                    writer.write(answer)
                else:
                    sealed = self.box.encrypt(answer.encode(), writing).ciphertext
                    writing = self.next(writing)
                    writer.write(struct.pack("!I", len(sealed)) + sealed)
        finally:
            writer.close()

    @staticmethod
    def next(nonce: bytes) -> bytes:
        return struct.pack("!I", struct.unpack("!I", nonce[:4])[0] + 1 & 0xFFFFFFFF) + nonce[4:]


async def with_server(handler, use):
    def fresh(reader, writer):
        task = asyncio.ensure_future(handler(reader, writer))
        tasks.append(task)

    tasks: list[asyncio.Future] = []
    server = await asyncio.start_server(fresh, "127.0.0.1", 0)
    try:
        return await use(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # closed transports say so in the loop's next turn


def talk(peer, *commands, timeout_s=0.3):
    async def use(port):
        async with Console(port, KEY, timeout_s=timeout_s) as console:
            return [await console.run(command) for command in commands]

    return asyncio.run(with_server(peer.serve, use))


def test_commands_and_answers_keep_their_order_over_one_connection():
    peer = Peer("", "one", "", "a\nb\n" * 5000)
    assert talk(peer, "first", "second", "third\0") == ["one", "", "a\nb\n" * 5000]
    assert peer.heard == ["", "first", "second", "third\0"]


@pytest.mark.parametrize("text", ["Error: x", "a\nError: x", "addLocal cannot be used at runtime!", "Command returned an object we can't print: y"])
def test_an_answer_that_says_it_failed_is_an_error(text):
    with pytest.raises(StepFailedError, match="refused a command"):
        talk(Peer("", text), "x")


def test_a_word_error_inside_an_answer_is_none():
    assert talk(Peer("", "No Error: here"), "x") == ["No Error: here"]


@pytest.mark.parametrize(
    "answer",
    [b"", None, b"\xff\xff\xff\xff", b"\0\0\0\x10" + bytes(16), b"\0\0\0\1\0", b"\0\0\0\x40short"],
    ids=["closes", "silent", "huge", "forged", "too short", "cut"],
)
@pytest.mark.parametrize("when", ["handshake", "command"])
def test_a_peer_that_breaks_is_an_error_in_time(when, answer):
    began = time.monotonic()
    if when == "handshake":
        with pytest.raises(MissingError, match="console on port"):
            talk(Peer(answer), "x")
    else:
        with pytest.raises(StepFailedError, match="may have been carried out"):
            talk(Peer("", answer), "x")
    assert time.monotonic() - began < 5


def test_after_a_failure_nothing_is_sent_again():
    peer = Peer("", None)

    async def use(port):
        async with Console(port, KEY, timeout_s=0.2) as console:
            for _ in range(2):
                with pytest.raises(StepFailedError):
                    await console.run("once")

    asyncio.run(with_server(peer.serve, use))
    assert peer.heard == ["", "once"]


def test_another_key_and_nobody_there():
    with pytest.raises(MissingError):
        talk(Peer("", key=bytes(32)), "x")

    async def nobody():
        async with Console(1, KEY, timeout_s=0.3):
            pass

    with pytest.raises(MissingError, match="port 1"):
        asyncio.run(nobody())


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", "abc"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n", "abc"),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", "abc"),
    ],
)
def test_bodies_of_each_form(sent, body):
    assert get(sent) == body


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"HTTP/1.1 401 no\r\nContent-Length: 0\r\n\r\n", StepFailedError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", MissingError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc", MissingError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", MissingError),
        (b"SSH-2.0-x\r\n", MissingError),
        (b"", MissingError),
        (None, MissingError),
    ],
)
def test_an_api_that_breaks_is_an_error_in_time(sent, error):
    with pytest.raises(error):
        get(sent)


def get(sent):
    async def serve(reader, writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
            if sent is None:
                await asyncio.sleep(30)
            writer.write(sent)
        finally:
            writer.close()

    return asyncio.run(with_server(serve, lambda port: api.get(port, "/x?key=1", "k", timeout_s=0.3)))

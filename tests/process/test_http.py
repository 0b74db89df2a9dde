"""The one HTTP client against servers that do not behave."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.host import http
from edgekeeper.host.http import Client, Response, Trust, get, request, stream
from edgekeeper.lab.certs import Authority

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def served(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that answers the head of each request so."""

    busy: set[asyncio.Task[None]] = set()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
                await answer(await reader.readuntil(b"\r\n\r\n"), writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    server = await asyncio.start_server(client, "127.0.0.1", 0, ssl=tls)
    async with server:  # its end waits for the connections, since Python 3.12
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)


def ask(answer: Answer, *, deadline_s: float = 3.0, headers: dict[str, str] | None = None) -> Response:
    async def work() -> Response:
        async with served(answer) as port:
            return await get(f"http://127.0.0.1:{port}/zones", deadline_s=deadline_s, headers=headers)

    return asyncio.run(work())


def say(body: bytes, status: str = "200 OK", *more: str) -> Answer:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *more))
        writer.write(head.encode() + b"\r\n" + body)
        await writer.drain()

    return answer


def test_an_answer_is_its_status_and_its_text() -> None:
    assert ask(say("zö".encode())) == Response(200, "zö")
    assert ask(say(b"no", "404 Not Found")) == Response(404, "no")
    assert ask(say(b"\xff")) == Response(200, "\ufffd")


def test_headers_are_sent() -> None:
    async def echo(head: bytes, writer: asyncio.StreamWriter) -> None:
        await say(head)(head, writer)

    assert "Bearer x-y-z" in ask(echo, headers={"Authorization": "Bearer x-y-z"}).text


def test_a_redirection_is_not_followed_so_that_no_token_goes_elsewhere() -> None:
    assert ask(say(b"", "302 Found", "Location: http://192.0.2.1/")).status == 302


@pytest.mark.parametrize("slow", ["silence", "drips"])
def test_the_deadline_is_for_the_whole_and_not_for_each_byte(slow: str) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            await asyncio.sleep(0.1 if slow == "drips" else 60)
            writer.write(b"x")
            await writer.drain()

    begun = time.monotonic()
    with pytest.raises(MissingError, match=r"did not answer in full within 0\.5 s"):
        ask(answer, deadline_s=0.5)
    assert time.monotonic() - begun < 1.5


def test_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_LIMIT", 1000)
    with pytest.raises(MissingError, match="answered more than 1000 bytes"):
        ask(say(b"x" * 1001))


@pytest.mark.parametrize("raw", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"])
def test_what_is_no_answer_is_an_error_of_ours(raw: bytes) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    with pytest.raises(MissingError, match="did not answer"):
        ask(answer)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://[fe80::1%25lo]:1/", "http://[fe80::1%lo]:1/", "http://127.0.0.1:abc/", "http://[x]:1/", "ftp://127.0.0.1/"]
)
def test_an_address_that_cannot_be_asked_is_an_error_of_ours(url: str) -> None:
    with pytest.raises(MissingError, match="did not answer"):
        asyncio.run(get(url, deadline_s=2))


def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert ask(say(b"direct")).text == "direct"


def context(folder: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return made


def test_a_server_is_trusted_by_its_ca_and_its_name_only(tmp_path: Path) -> None:
    """The file of the CA is read again once it has changed."""
    (tmp_path / "other").mkdir()
    ours, other = Authority(tmp_path), Authority(tmp_path / "other")
    ca = tmp_path / "trusted"

    async def work(name: str) -> str:
        async with served(say(b"x"), context(ours.issue(name))) as port:
            return (await get(f"https://127.0.0.1:{port}/", deadline_s=3, trust=Trust(str(ca)))).text

    ca.write_bytes(other.ca_file.read_bytes())
    with pytest.raises(MissingError, match=r"did not answer: ConnectError .*CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(work("127.0.0.1"))
    ca.write_bytes(ours.ca_file.read_bytes())
    with pytest.raises(MissingError, match="mismatch"):
        asyncio.run(work("127.0.0.2"))
    assert asyncio.run(work("127.0.0.1")) == "x"


@pytest.mark.parametrize("text", [None, "", "-----BEGIN NONSENSE-----"])
def test_a_ca_file_that_cannot_be_used_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "ca").write_text(text)
    with pytest.raises(MissingError, match=rf"{tmp_path}/ca cannot be used as the CA of https://192.0.2.1/"):
        asyncio.run(get("https://192.0.2.1/", deadline_s=2, trust=Trust(str(tmp_path / "ca"))))


def test_a_unix_socket_is_asked_with_any_method_and_a_body(tmp_path: Path) -> None:
    path = str(tmp_path / "sock")

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = head + await reader.readexactly(3)
        writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()

    async def work() -> str:
        async with await asyncio.start_unix_server(client, path):
            return (await request("POST", "http://docker/x?t=1", deadline_s=3, body=b"abc", uds=path)).text

    told = asyncio.run(work())
    assert told.startswith("POST /x?t=1 HTTP/1.1\r\nHost: docker\r\n")
    assert told.endswith("abc")


def test_an_answer_without_end_is_given_as_it_comes_and_its_end_is_told(tmp_path: Path) -> None:
    async def drip(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"one", b"two"):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0.3)

    async def mute(_: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    async def work(answer: Answer, deadline_s: float) -> list[bytes]:
        got = []
        async with served(answer) as port, stream(f"http://127.0.0.1:{port}/", deadline_s=deadline_s) as flow:
            assert flow.status == 200
            with pytest.raises(MissingError, match="RemoteProtocolError"):  # noqa: PT012 - what came before is kept
                async for chunk in flow.chunks:
                    got.append(chunk)  # noqa: PERF401 - as above
        return got

    assert asyncio.run(work(drip, 0.2)) == [b"one", b"two"], "the deadline is that of the head alone"
    with pytest.raises(MissingError, match=r"did not answer in full within 0\.2 s"):
        asyncio.run(work(mute, 0.2))


def kept(seen: list[tuple[int, bytes]], *, close_after: int = 0) -> Answer:
    """A server that keeps its connections (until it has answered so many times on one), and tells on which a request came."""

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        reader: asyncio.StreamReader = writer.transport.get_protocol()._stream_reader  # type: ignore[attr-defined,union-attr]
        count = 0
        while True:
            length = int(next((line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), b"0"))
            seen.append((id(writer), head.split(b" ")[0] + await reader.readexactly(length)))
            await say(b"ok")(head, writer)
            count += 1
            if count == close_after:
                return
            head = await reader.readuntil(b"\r\n\r\n")

    return answer


def test_a_client_keeps_its_connections() -> None:
    seen: list[tuple[int, bytes]] = []

    async def work() -> None:
        async with served(kept(seen)) as port, Client(connections=2) as client:
            for _ in range(3):
                assert await client.request("PUT", f"http://127.0.0.1:{port}/", deadline_s=3, body=b"x") == Response(200, "ok")
            await asyncio.gather(*(client.request("GET", f"http://127.0.0.1:{port}/", deadline_s=3) for _ in range(6)))

    asyncio.run(work())
    assert [said for _, said in seen[:3]] == [b"PUTx"] * 3
    assert len({wire for wire, _ in seen[:3]}) == 1
    assert len({wire for wire, _ in seen}) == 2


def test_a_kept_connection_that_the_server_closed_is_found_out_before_anything_is_sent() -> None:
    seen: list[tuple[int, bytes]] = []

    async def work() -> None:
        async with served(kept(seen, close_after=1)) as port, Client() as client:
            for _ in range(3):
                await client.request("POST", f"http://127.0.0.1:{port}/", deadline_s=3)
                await asyncio.sleep(0.05)

    asyncio.run(work())
    assert len(seen) == 3


def test_a_connection_that_breaks_after_the_question_is_told_and_nothing_is_asked_twice() -> None:
    asked = 0

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1

    async def work() -> None:
        async with served(answer) as port, Client() as client:
            with pytest.raises(MissingError, match="did not answer"):
                await client.request("GET", f"http://127.0.0.1:{port}/", deadline_s=3)

    asyncio.run(work())
    assert asked == 1


def test_a_client_has_the_deadline_and_the_limit_of_each_request() -> None:
    async def hang(_: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async def work() -> None:
        async with served(hang) as port, Client(connections=1) as client:
            both = [client.request("GET", f"http://127.0.0.1:{port}/", deadline_s=0.3) for _ in range(2)]
            for failed in await asyncio.gather(*both, return_exceptions=True):
                assert "did not answer in full within 0.3 s" in str(failed)
        async with served(say(b"x" * 1001)) as port, Client(limit=1000) as client:
            with pytest.raises(MissingError, match="answered more than 1000 bytes"):
                await client.request("GET", f"http://127.0.0.1:{port}/", deadline_s=3)

    asyncio.run(work())


def test_a_client_reads_a_replaced_ca_with_its_next_request(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    ours, other = Authority(tmp_path), Authority(tmp_path / "other")
    ca = tmp_path / "trusted"
    ca.write_bytes(ours.ca_file.read_bytes())

    async def work() -> None:
        async with served(say(b"x"), context(ours.issue("127.0.0.1"))) as port, Client(Trust(str(ca))) as client:
            url = f"https://127.0.0.1:{port}/"
            assert (await client.request("GET", url, deadline_s=3)).text == "x"
            ca.write_bytes(other.ca_file.read_bytes())
            with pytest.raises(MissingError, match="CERTIFICATE_VERIFY_FAILED"):
                await client.request("GET", url, deadline_s=3)

    asyncio.run(work())

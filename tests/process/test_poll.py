"""A kept connection to servers that do not behave, and what is shown to those that ask for a certificate."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from edgekeeper.errors import MissingError
from edgekeeper.host.poll import Poll, Response
from edgekeeper.host.tls import NOBODY, Trust
from edgekeeper.lab.certs import Authority

from .test_http import Answer, context, say, served


async def once(url: str, trust: Trust = NOBODY, **headers: str) -> str:
    poll = Poll(url, trust)
    try:
        return (await poll.get(deadline_s=3, headers=headers)).text
    finally:
        poll.close()


def ask(answer: Answer, **headers: str) -> str:
    async def work() -> str:
        async with served(answer) as port:
            return await once(f"http://127.0.0.1:{port}/status?role=vip", **headers)

    return asyncio.run(work())


def raw(data: bytes, *, end: bool = True) -> Answer:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if not end:
            await asyncio.sleep(60)

    return answer


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nz\xc3\xb6",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\nz\r\n2\r\n\xc3\xb6\r\n0\r\nTrailer: x\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nz\xc3\xb6",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200\r\ncontent-length:3\r\n\r\nz\xc3\xb6",
    ],
)
def test_an_answer_is_read_however_its_length_is_told(data: bytes) -> None:
    assert ask(raw(data)) == "zö"


def test_path_and_headers_are_sent_and_nothing_can_become_another_line() -> None:
    async def echo(head: bytes, writer: asyncio.StreamWriter) -> None:
        await say(head)(head, writer)

    told = ask(echo, Authorization="Bearer x-y-z")
    assert told.startswith("GET /status?role=vip HTTP/1.1\r\nHost: 127.0.0.1:")
    assert "\r\nAuthorization: Bearer x-y-z\r\n" in told
    with pytest.raises(MissingError, match="is not a URL that can be asked"):
        ask(echo, Authorization="Bearer x\r\nX: y")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"nonsense\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", b"HTTP/1.1 200 OK\r\nA: b\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000, b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"80000\r\n" + b"x" * 0x80000 + b"\r\n80001\r\n" + b"x" * 0x80001,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (2**20 + 1),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(MissingError, match="did not answer: "):
        ask(raw(data))


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://[fe80::1%lo]:1/", "http://127.0.0.1:abc/", "http://[x]:1/", "ftp://127.0.0.1/", "http:///"])
def test_an_address_that_cannot_be_asked_is_an_error_of_ours(url: str) -> None:
    with pytest.raises(MissingError, match="did not answer"):
        asyncio.run(once(url))


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx"])
def test_the_deadline_is_for_the_whole(sent: bytes) -> None:
    async def work() -> Response:
        async with served(raw(sent, end=False)) as port:
            return await Poll(f"http://127.0.0.1:{port}/").get(deadline_s=0.3)

    begun = time.monotonic()
    with pytest.raises(MissingError, match=r"did not answer in full within 0\.3 s"):
        asyncio.run(work())
    assert time.monotonic() - begun < 1.0


def test_a_server_is_trusted_by_its_ca_and_its_name_only(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    ours, other = Authority(tmp_path), Authority(tmp_path / "other")

    async def work(name: str, trusted: Authority) -> str:
        async with served(say(b"x"), context(ours.issue(name))) as port:
            return await once(f"https://127.0.0.1:{port}/", Trust(str(trusted.ca_file)))

    with pytest.raises(MissingError, match="CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(work("127.0.0.1", other))
    with pytest.raises(MissingError, match="mismatch"):
        asyncio.run(work("127.0.0.2", ours))
    assert asyncio.run(work("127.0.0.1", ours)) == "x"


async def counted(answer: Answer) -> tuple[list[str], list[object]]:
    """What four questions over a kept connection gave, and the connection that each came by."""
    came: list[object] = []

    async def seen(head: bytes, writer: asyncio.StreamWriter) -> None:
        reader = writer.transport.get_protocol()._stream_reader  # type: ignore[attr-defined]
        while True:
            came.append(writer)
            await answer(head, writer)
            head = await reader.readuntil(b"\r\n\r\n")

    told: list[str] = []
    async with served(seen) as port:
        poll = Poll(f"http://127.0.0.1:{port}/", limit=1000)
        for _ in range(4):
            try:
                told.append((await poll.get(deadline_s=0.3)).text)
            except MissingError:
                told.append("nothing")
        poll.close()
    return told, came


def test_a_connection_is_kept_while_all_goes_well() -> None:
    told, came = asyncio.run(counted(say(b"x")))
    assert told == ["x"] * 4
    assert len(set(map(id, came))) == 1


@pytest.mark.parametrize("wrong", ["silence", "too much", "nonsense", "end"])
def test_after_any_failure_there_is_another_connection(wrong: str) -> None:
    asked = 0

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            match wrong:
                case "too much":
                    await say(b"x" * 1001)(head, writer)
                case "nonsense":
                    writer.write(b"nonsense\r\n\r\n")
                case "end":
                    writer.close()
            return
        await say(b"x")(head, writer)

    told, came = asyncio.run(counted(answer))
    assert told == ["x", "nothing", "x", "x"]
    assert came[0] is came[1]
    assert came[2] is came[3]
    assert came[1] is not came[2]


def test_a_client_certificate_is_shown_and_a_new_one_as_soon_as_it_is_there(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = context(authority.issue("127.0.0.1"))
    server.load_verify_locations(authority.ca_file)
    server.verify_mode = ssl.CERT_OPTIONAL
    cert, key = tmp_path / "crt", tmp_path / "key"

    async def who(_: bytes, writer: asyncio.StreamWriter) -> None:
        shown = writer.get_extra_info("peercert") or {}
        await say(str(shown.get("serialNumber", "nobody")).encode())(_, writer)

    def issue() -> None:
        folder = authority.issue("edge-a")
        (folder / "tls.crt").replace(cert)
        (folder / "tls.key").replace(key)

    async def work() -> list[str]:
        told = []
        async with served(who, server) as port:
            url = f"https://127.0.0.1:{port}/"
            told.append(await once(url, Trust(str(authority.ca_file))))
            poll = Poll(url, Trust(str(authority.ca_file), str(cert), str(key)))
            issue()
            told.append((await poll.get(deadline_s=3)).text)
            issue()
            told.append((await poll.get(deadline_s=3)).text)
            poll.close()
        return told

    nobody, first, second = asyncio.run(work())
    assert nobody == "nobody"
    assert len({nobody, first, second}) == 3


@pytest.mark.parametrize("what", ["missing", "another key", "locked"])
def test_a_client_certificate_that_cannot_be_used_is_named(tmp_path: Path, what: str) -> None:
    """A key under a passphrase is refused; nobody is asked for it."""
    authority = Authority(tmp_path)
    leaf, other = authority.issue("a"), authority.issue("b")
    key = {"missing": tmp_path / "none", "another key": other / "tls.key", "locked": tmp_path / "locked"}[what]
    if what == "locked":
        loaded = serialization.load_pem_private_key((leaf / "tls.key").read_bytes(), None)
        encrypted = serialization.BestAvailableEncryption(b"word")
        key.write_bytes(loaded.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encrypted))
    trust = Trust(str(authority.ca_file), str(leaf / "tls.crt"), str(key))
    with pytest.raises(MissingError, match="cannot be shown as the client certificate of https://192"):
        asyncio.run(once("https://192.0.2.1/", trust))


def test_a_server_that_hangs_in_the_handshake_costs_no_socket(tmp_path: Path) -> None:
    """Asked each second for a night, it would use up all that a process may have."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        writer.close()

    async def work() -> int:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            poll = Poll(url, Trust(str(Authority(tmp_path).ca_file)))
            for _ in range(5):
                with pytest.raises(MissingError, match="in full"):
                    await poll.get(deadline_s=0.1)
            await asyncio.sleep(0.05)
            to = f":{int(url.split(':')[2][:-1]):04X}"
            return sum(line.split()[2].endswith(to) and line.split()[3] == "01" for line in Path("/proc/self/net/tcp").read_text().splitlines())

    assert asyncio.run(work()) == 0

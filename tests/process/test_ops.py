"""The ops listener over real sockets: health is open, the rest wants a token or a client certificate."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.ops import Ops
from edgekeeper.errors import MissingError
from edgekeeper.lab.certs import Authority
from edgekeeper.ops import server
from edgekeeper.ops.server import Voice, serve

from .edge import free_ports

TOKEN = "a-token-of-this-test"
PAGES = ("/healthz/live", "/healthz/ready", "/status", "/metrics")
VOICE = Voice(lambda _: {"schema": 1}, lambda: (True, "dns: well"), lambda: b"edgekeeper_x 1\n")


def ask(port: int, path: str, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> int:
    """The status of one request."""
    made = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        if tls is not None:  # a bare machine may not know the name localhost
            made.sock = tls.wrap_socket(socket.create_connection(("127.0.0.1", port), 5), server_hostname="localhost")
        made.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = made.getresponse()
        answer.read()
        return answer.status
    finally:
        made.close()


def while_served(ops: dict[str, str], token: str | None, questions: Callable[[int], Any]) -> Any:
    """Ask while it is served."""
    (port,) = free_ports(1)

    async def work() -> Any:
        task = asyncio.create_task(serve(Ops(listen=f"127.0.0.1:{port}", **ops), "127.0.0.1:1", VOICE, token))  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(10):
                while True:
                    try:
                        (await asyncio.open_connection("127.0.0.1", port))[1].close()
                        break
                    except OSError:
                        if task.done():
                            task.result()
                        await asyncio.sleep(0.01)
            return await asyncio.to_thread(questions, port)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return asyncio.run(work())


def test_with_a_token_health_is_open_and_the_rest_is_not() -> None:
    told = while_served({}, TOKEN, lambda port: [(ask(port, page), ask(port, page, token="x"), ask(port, page, token=TOKEN)) for page in PAGES])
    assert told == [(200, 200, 200), (200, 200, 200), (401, 401, 200), (401, 401, 200)]


def client(folder: Path, authority: Authority, certificate: Path | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(authority.ca_file))
    made.check_hostname = False  # it is issued for dns.example
    if certificate is not None:
        made.load_cert_chain(certificate / "tls.crt", certificate / "tls.key")
    return made


def test_with_client_certificates_health_is_open_and_only_a_certificate_of_the_ca_opens_the_rest(tmp_path: Path) -> None:
    (tmp_path / "strangers").mkdir()
    ours, strangers = Authority(tmp_path), Authority(tmp_path / "strangers")
    server = ours.issue()
    ops = {"certificate": str(server / "tls.crt"), "key": str(server / "tls.key"), "client_ca": str(ours.ca_file)}
    without, own = client(tmp_path, ours, None), client(tmp_path, ours, ours.issue())
    strange = client(tmp_path, ours, strangers.issue())

    def questions(port: int) -> list[tuple[int, int]]:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(port, "/status", tls=strange)
        return [(ask(port, page, tls=without), ask(port, page, tls=own)) for page in PAGES]

    assert while_served(ops, None, questions) == [(200, 200), (200, 200), (401, 200), (401, 200)]
    assert while_served(ops, TOKEN, lambda port: ask(port, "/status", tls=without, token=TOKEN)) == 200


def test_plain_requests_to_https_are_no_way_in(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    server = ours.issue()

    def question(port: int) -> None:
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(port, "/status", token=TOKEN)

    while_served({"certificate": str(server / "tls.crt"), "key": str(server / "tls.key")}, TOKEN, question)


def test_a_taken_address_is_told_and_kills_nobody() -> None:
    async def work() -> None:
        taken = await asyncio.start_server(lambda _, __: None, "127.0.0.1", 0)
        listen = f"127.0.0.1:{taken.sockets[0].getsockname()[1]}"
        async with taken:
            with pytest.raises(MissingError, match=rf"ops cannot listen on {listen} \(is it taken\?\)"):
                await serve(Ops(listen=listen), "127.0.0.1:1", VOICE, None)

    asyncio.run(work())


@pytest.mark.parametrize("what", ["missing", "garbage", "another key"])
def test_a_certificate_that_cannot_be_served_is_told(tmp_path: Path, what: str) -> None:
    (tmp_path / "other").mkdir()
    server, other = Authority(tmp_path).issue(), Authority(tmp_path / "other").issue()
    key = {"missing": tmp_path / "none", "garbage": tmp_path / "ca.crt", "another key": other / "tls.key"}[what]
    ops = Ops(listen="127.0.0.1:1", certificate=str(server / "tls.crt"), key=str(key))
    with pytest.raises(MissingError, match="ops cannot serve HTTPS with"):
        asyncio.run(serve(ops, "127.0.0.1:1", VOICE, None))


def test_a_client_that_says_nothing_does_not_keep_others_out() -> None:
    def questions(port: int) -> int:
        silent = [http.client.HTTPConnection("127.0.0.1", port, timeout=5) for _ in range(20)]
        for each in silent:
            each.connect()
        try:
            return ask(port, "/healthz/live")
        finally:
            for each in silent:
                each.close()

    assert while_served({}, None, questions) == 200


def test_clients_that_only_stand_there_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.5)

    def questions(port: int) -> tuple[int, int]:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(210)]
        for each in idle[::2]:
            each.sendall(b"GET /hea")
        full = ask(port, "/healthz/ready")
        end = time.monotonic() + 5
        while time.monotonic() < end and (after := ask(port, "/healthz/ready")) != 200:
            time.sleep(0.1)
        for each in idle:
            each.close()
        return full, after

    assert while_served({}, None, questions) == (503, 200)

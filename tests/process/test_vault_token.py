"""The token out of a server that speaks as OpenBao and Vault do: login by the service account, then one secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.turned import Still

from edgekeeper import log
from edgekeeper.config.expose import NetBird
from edgekeeper.errors import EdgekeeperError, MissingError, RefusedError, UsageError
from edgekeeper.expose.token import Reader, reader

JWT = "header.claims.signature"


class Vault:
    """As much of it as is asked: ``auth/kubernetes/login`` and a secret of KV version 2."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.logins = 0
        self.valid: set[str] = set()
        self.lease_s = 3600
        self.secret: Any = {"token": "nbp_first_token"}
        self.role = "edgekeeper"
        self.fault = ""

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if self.fault == "sealed":
            return 503, {"errors": ["Vault is sealed"]}
        if self.fault == "redirect":
            return 307, {}
        if path == "/v1/auth/kubernetes/login":
            if token or body != {"role": self.role, "jwt": JWT}:
                return 403, {"errors": ["permission denied"]}
            self.logins += 1
            self.valid.add(f"s.login-{self.logins}")
            return 200, {"auth": {"client_token": f"s.login-{self.logins}", "lease_duration": self.lease_s}}
        if token not in self.valid:
            return 403, {"errors": ["permission denied"]}
        if path != "/v1/secret/data/mesh/netbird":
            return 404, {"errors": []}
        return 200, {"data": {"data": self.secret, "metadata": {"version": 3}}}

    async def client(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await stream.readuntil(b"\r\n\r\n")).decode()
        lines = dict(line.lower().split(": ", 1) if "X-Vault-Token" not in line else line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await stream.readexactly(int(lines.get("content-length", 0)))
        if self.fault == "hangs":
            await asyncio.sleep(20)
        method, path, _ = head.split(" ", 2)
        status, said = self.answer(method, path, lines.get("X-Vault-Token", ""), json.loads(body or b"null"))
        text = b"{torn" if self.fault == "torn" else json.dumps(said).encode()
        elsewhere = f"Location: {self.url}/elsewhere\r\n" if status == 307 else ""
        answer = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{elsewhere}Connection: close\r\nContent-Length: {len(text)}\r\n\r\n"
        writer.write(answer.encode() + text)


def on(tmp_path: Path, work: Callable[[Vault, Reader, Still], Awaitable[None]], **more: Any) -> None:
    async def whole() -> None:
        vault = Vault()
        busy: set[asyncio.Task[None]] = set()

        async def client(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            busy.add(asyncio.current_task())  # type: ignore[arg-type]
            try:
                await vault.client(stream, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(client, "127.0.0.1", 0)
        vault.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        jwt = tmp_path / "jwt"
        jwt.write_text(JWT)
        jwt.chmod(0o600)
        wanted = {"url": vault.url, "role": "edgekeeper", "path": "mesh/netbird", "jwt_file": str(jwt), **more}
        clock = Still(0.0)
        read = reader(NetBird.model_validate({"url": "https://mesh.example", "timeout": "1s", "token_vault": wanted}), clock)
        try:
            await work(vault, read, clock)
        finally:
            server.close()
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    asyncio.run(whole())


def test_it_is_read_anew_each_time_with_one_login_a_lease(tmp_path: Path) -> None:
    async def work(vault: Vault, read: Reader, clock: Still) -> None:
        assert await read() == "nbp_first_token"
        vault.secret = {"token": "nbp_second_token"}
        assert await read() == "nbp_second_token"
        assert vault.logins == 1
        clock.now += 2500
        assert await read() == "nbp_second_token"
        assert vault.logins == 2, "before the lease is over"
        vault.valid.clear()
        assert await read() == "nbp_second_token"
        assert vault.logins == 3, "revoked"
        assert read.why == ""

    on(tmp_path, work)


@pytest.mark.parametrize("fault", ["sealed", "hangs", "torn"])
def test_while_it_does_not_answer_the_last_token_is_used_and_that_is_told(tmp_path: Path, fault: str) -> None:
    async def work(vault: Vault, read: Reader, clock: Still) -> None:
        vault.fault = fault
        with pytest.raises(MissingError, match="without the token the mesh is not asked"):
            await read()
        vault.fault = ""
        assert await read() == "nbp_first_token"
        vault.fault = fault
        assert await read() == "nbp_first_token"
        assert read.why.endswith("; the last token is used")
        vault.fault = ""
        await read()
        assert read.why == ""

    on(tmp_path, work)


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        ({"role": "other"}, RefusedError, "check the role, its bound service account and namespace"),
        ({"secret": {"tokens": "x"}}, UsageError, "name its key in expose.netbird.token_vault.key"),
        ({"secret": {"token": ""}}, UsageError, "name its key"),
        ({"secret": {"token": "two words"}}, UsageError, "does not hold a token"),
        ({"secret": {"token": "nbp_\u00e9"}}, UsageError, "does not hold a token"),
        ({"secret": None}, UsageError, "has no text under token"),
    ],
)
def test_what_a_person_must_mend_is_said_and_no_earlier_token_is_used(tmp_path: Path, change: dict[str, Any], kind: type[EdgekeeperError], what: str) -> None:
    async def work(vault: Vault, read: Reader, clock: Still) -> None:
        await read()
        for name, value in change.items():
            setattr(vault, name, value)
        vault.valid.clear()
        with pytest.raises(kind, match=what) as caught:
            await read()
        for secret in (JWT, "nbp_", "s.login", "two words"):
            assert secret not in str(caught.value)

    on(tmp_path, work)


def test_another_path_says_which_policy_to_check(tmp_path: Path) -> None:
    async def work(vault: Vault, read: Reader, clock: Still) -> None:
        with pytest.raises(RefusedError, match="secret/data/mesh/other; check that the secret is there"):
            await read()

    on(tmp_path, work, path="mesh/other")


def test_a_redirection_is_not_followed_so_that_no_token_goes_elsewhere(tmp_path: Path) -> None:
    async def work(vault: Vault, read: Reader, clock: Still) -> None:
        vault.fault = "redirect"
        with pytest.raises(EdgekeeperError):
            await read()
        assert vault.asked == ["POST /v1/auth/kubernetes/login"]

    on(tmp_path, work)


def test_the_environments_proxy_and_token_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("VAULT_TOKEN", "s.somebody-elses")
    monkeypatch.setenv("VAULT_ADDR", "http://127.0.0.1:1")

    async def work(vault: Vault, read: Reader, clock: Still) -> None:
        assert await read() == "nbp_first_token"

    on(tmp_path, work)


def test_nothing_of_it_reaches_a_log(tmp_path: Path) -> None:
    async def work(vault: Vault, read: Reader, clock: Still) -> None:
        token = await read()
        assert token not in json.dumps(log.redact({"why": f"the server said {token}"}))

    on(tmp_path, work)

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest
import uvicorn

from edgekeeper.ops.server import Voice, _Server, pages

TOKEN = "a-token-of-this-test"


def voice(*, ready: bool = True) -> Voice:
    return Voice(
        lambda roles: {"schema": 1, "roles": {} if roles is None else dict.fromkeys(sorted(roles))},
        lambda: (ready, "dns: because"),
        lambda: b"edgekeeper_x 1\n",
    )


def ask(
    path: str,
    *,
    token: str | None = None,
    header: str | None = None,
    certificates: bool = False,
    certified: bool = False,
    method: str = "GET",
    ready: bool = True,
) -> tuple[int, str]:
    """One request straight into the application."""
    path, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http", "path": path, "raw_path": path.encode(),
        "query_string": query.encode(), "root_path": "", "headers": [(b"authorization", header.encode("latin-1"))] if header is not None else [],
        "client": ("192.0.2.1", 1), "server": ("192.0.2.2", 80), "state": {"certified": certified},
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(pages(voice(ready=ready), token, certificates=certificates)(scope, receive, send))
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent).decode()


def test_health_is_open_to_everybody() -> None:
    for certificates in (True, False):
        assert ask("/healthz/live", token=TOKEN, certificates=certificates) == (200, "live\n")
        assert ask("/healthz/ready", token=TOKEN, certificates=certificates) == (200, "ready: dns: because\n")
    assert ask("/healthz/ready", token=TOKEN, ready=False) == (503, "not ready: dns: because\n")


@pytest.mark.parametrize("path", ["/status", "/metrics"])
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer \xff\xfe"])
def test_the_rest_is_guarded_by_the_token(path: str, header: str | None) -> None:
    status, body = ask(path, token=TOKEN, header=header)
    assert status == 401
    assert TOKEN not in body
    assert "schema" not in body


def test_the_token_opens_it() -> None:
    assert json.loads(ask("/status", token=TOKEN, header=f"Bearer {TOKEN}")[1]) == {"schema": 1, "roles": {}}
    assert ask("/metrics", token=TOKEN, header=f"Bearer {TOKEN}") == (200, "edgekeeper_x 1\n")


@pytest.mark.parametrize(("token", "certified", "status"), [(None, False, 401), (None, True, 200), (TOKEN, True, 200), (TOKEN, False, 401)])
def test_a_client_certificate_opens_it_where_they_are_asked_for(token: str | None, certified: bool, status: int) -> None:
    assert ask("/status", token=token, certificates=True, certified=certified)[0] == status


def test_a_certificate_opens_nothing_where_nobody_checked_it() -> None:
    assert ask("/status", token=TOKEN, certificates=False, certified=True)[0] == 401


def test_without_token_and_certificates_it_is_open_because_it_is_loopback() -> None:
    assert ask("/status")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_it_is_read_only(method: str) -> None:
    assert ask("/status", method=method)[0] == 405
    assert ask("/elsewhere")[0] == 404


def test_it_leaves_signals_to_the_supervisor() -> None:
    """uvicorn's own handlers would end it at TERM, before the engine is stopped, and send the signal again afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with _Server(uvicorn.Config(pages(voice(), None, certificates=False), log_config=None)).capture_signals():
        assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize(("query", "roles"), [("", []), ("role=vip", ["vip"]), ("role=vip,dns&role=lb", ["dns", "lb", "vip"]), ("role=", [""]), ("x=vip", [])])
def test_a_status_of_some_roles_only(query: str, roles: list[str]) -> None:
    assert list(json.loads(ask(f"/status?{query}")[1])["roles"]) == roles

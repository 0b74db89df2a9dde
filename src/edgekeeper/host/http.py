"""The HTTP client for any server: a deadline on every call, no retry hidden inside, a limit on what is read."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from edgekeeper.errors import MissingError
from edgekeeper.host.poll import Response, told
from edgekeeper.host.tls import NOBODY, Trust, client_context

__all__ = ["Client", "Flow", "Response", "Trust", "get", "request", "stream"]

_LIMIT = 8 * 2**20
_KEPT_S = 2.0
"""A connection that is not used for so long is closed from here: servers close theirs after 5 s and more, and a question that
crosses with that is lost."""
_FAILURES = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)
_UNUSED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For plain HTTP: the client would load the system's CAs at each call, 17 ms of processor (measured 2026-11-30)."""


async def get(url: str, *, deadline_s: float, headers: Mapping[str, str] | None = None, trust: Trust = NOBODY) -> Response:
    """GET a URL within the deadline, from the first packet to the last byte; MissingError says why there was no answer.

    Proxies of the environment are not used: the edge's own machines are asked directly. A redirection
    is an answer and not followed, so that a token in ``headers`` goes to nobody else.
    """
    return await request("GET", url, deadline_s=deadline_s, headers=headers, trust=trust)


async def request(
    method: str,
    url: str,
    *,
    deadline_s: float,
    headers: Mapping[str, str] | None = None,
    trust: Trust = NOBODY,
    body: bytes | None = None,
    uds: str | None = None,
) -> Response:
    """As ``get``, with any method and a body; ``uds`` is the path of a Unix socket to ask instead of the URL's host."""
    return await _ask(_client(url, trust, uds), method, url, deadline_s, headers, body, _LIMIT)


async def _ask(
    opened: AbstractAsyncContextManager[httpx2.AsyncClient],
    method: str,
    url: str,
    deadline_s: float,
    headers: Mapping[str, str] | None,
    body: bytes | None,
    limit: int,
) -> Response:
    wires: list[Any] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            wires.append(info["return_value"])

    try:
        with told(url, deadline_s, *_FAILURES):
            async with (
                asyncio.timeout(deadline_s),  # the client's own timeout begins anew with each byte
                opened as client,
                client.stream(method, url, headers=dict(headers or {}), content=body, extensions={"trace": trace}) as response,
            ):
                return Response(response.status_code, await _text(url, response, limit))
    except BaseException:
        for wire in wires:  # the library forgets the socket of a server that hangs in the TLS handshake
            await wire.aclose()
        raise


async def _text(url: str, response: httpx2.Response, limit: int) -> str:
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > limit:
            msg = f"{url} answered more than {limit} bytes; the answer is not used"
            raise MissingError(msg)
    return read.decode("utf-8", "replace")


class Client:
    """Many questions to one server over connections that are kept; ``async with`` it. Each ``request`` is as the function of that name.

    A kept connection that the server has closed is found out before anything is sent on it, and another one is made. What breaks after
    that is told and not tried again: the server may have done what it was asked. Certificates that were replaced are used from the next
    request on. An answer of more than ``limit`` bytes is none. More than ``connections`` requests at a time wait within their deadlines.
    """

    def __init__(self, trust: Trust = NOBODY, *, connections: int = 16, limit: int = _LIMIT) -> None:
        self._trust = trust
        self._connections = connections
        self._limit = limit
        self._client: httpx2.AsyncClient | None = None
        self._verify: ssl.SSLContext | None = None
        self._busy = 0
        self._left: list[httpx2.AsyncClient] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(self, method: str, url: str, *, deadline_s: float, headers: Mapping[str, str] | None = None, body: bytes | None = None) -> Response:
        """As the function ``request``, over a kept connection where there is one."""
        return await _ask(self._current(url), method, url, deadline_s, headers, body, self._limit)

    async def close(self) -> None:
        """End all connections."""
        if self._client is not None:
            self._left.append(self._client)
            self._client = None
        await self._forget()

    @contextlib.asynccontextmanager
    async def _current(self, url: str) -> AsyncIterator[httpx2.AsyncClient]:
        verify = _verify(self._trust, url)
        if self._client is None or self._verify is not verify:
            if self._client is not None:
                self._left.append(self._client)  # others may be in the middle of their answers
            limits = httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections, keepalive_expiry=_KEPT_S)
            self._client, self._verify = httpx2.AsyncClient(timeout=None, verify=verify, trust_env=False, limits=limits), verify
        self._busy += 1
        try:
            yield self._client
        finally:
            self._busy -= 1
            if not self._busy:
                await self._forget()

    async def _forget(self) -> None:
        left, self._left = self._left, []
        for client in left:
            await client.aclose()


@dataclass(frozen=True, slots=True)
class Flow:
    """An answer that has no end: its status, and its bytes as they come; iterating raises MissingError when the connection breaks."""

    status: int
    chunks: AsyncIterator[bytes]


@contextlib.asynccontextmanager
async def stream(url: str, *, deadline_s: float, uds: str | None = None) -> AsyncIterator[Flow]:
    """GET a URL whose answer goes on for ever; the head comes within the deadline or MissingError says why not.

    How long it may be silent afterwards is for the caller to judge; leaving the block ends the connection.
    """
    async with contextlib.AsyncExitStack() as stack:
        with told(url, deadline_s, *_FAILURES):
            async with asyncio.timeout(deadline_s):
                client = await stack.enter_async_context(_client(url, NOBODY, uds))
                response = await stack.enter_async_context(client.stream("GET", url, headers={"Accept-Encoding": "identity"}))
        yield Flow(response.status_code, _chunks(url, response, deadline_s))


async def _chunks(url: str, response: httpx2.Response, deadline_s: float) -> AsyncIterator[bytes]:
    with told(url, deadline_s, *_FAILURES):
        async for chunk in response.aiter_raw():
            yield chunk


def _client(url: str, trust: Trust, uds: str | None) -> httpx2.AsyncClient:
    verify = _verify(trust, url)
    transport = httpx2.AsyncHTTPTransport(verify=verify, trust_env=False, uds=uds) if uds is not None else None
    return httpx2.AsyncClient(timeout=None, verify=verify, trust_env=False, transport=transport)


def _verify(trust: Trust, url: str) -> ssl.SSLContext:
    return client_context(trust, url) if url.startswith("https") else _UNUSED

"""The HTTP client for any server: a deadline on every call, no retry hidden inside, a limit on what is read."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from edgekeeper.errors import MissingError
from edgekeeper.host.poll import Response, told
from edgekeeper.host.tls import NOBODY, Trust, client_context

__all__ = ["Flow", "Response", "Trust", "get", "request", "stream"]

_LIMIT = 8 * 2**20
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
    wires: list[Any] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            wires.append(info["return_value"])

    try:
        with told(url, deadline_s, *_FAILURES):
            async with (
                asyncio.timeout(deadline_s),  # the client's own timeout begins anew with each byte
                _client(url, trust, uds) as client,
                client.stream(method, url, headers=dict(headers or {}), content=body, extensions={"trace": trace}) as response,
            ):
                read = bytearray()
                async for chunk in response.aiter_bytes():
                    read += chunk
                    if len(read) > _LIMIT:
                        msg = f"{url} answered more than {_LIMIT} bytes; the answer is not used"
                        raise MissingError(msg)
                return Response(response.status_code, read.decode("utf-8", "replace"))
    finally:
        for wire in wires:  # the library forgets the socket of a server that hangs in the TLS handshake
            await wire.aclose()


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
    verify = client_context(trust, url) if url.startswith("https") else _UNUSED
    transport = httpx2.AsyncHTTPTransport(verify=verify, trust_env=False, uds=uds) if uds is not None else None
    return httpx2.AsyncClient(timeout=None, verify=verify, trust_env=False, transport=transport)

"""The HTTP client for any server: a deadline on every call, no retry hidden inside, a limit on what is read."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

import httpx2

from edgekeeper.errors import MissingError
from edgekeeper.host.poll import Response
from edgekeeper.host.tls import NOBODY, Trust, client_context

__all__ = ["Response", "Trust", "get"]

_LIMIT = 8 * 2**20
_UNUSED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For plain HTTP: the client would load the system's CAs at each call, 17 ms of processor (measured 2026-11-30)."""


async def get(url: str, *, deadline_s: float, headers: Mapping[str, str] | None = None, trust: Trust = NOBODY) -> Response:
    """GET a URL within the deadline, from the first packet to the last byte; MissingError says why there was no answer.

    Proxies of the environment are not used: the edge's own machines are asked directly. A redirection
    is an answer and not followed, so that a token in ``headers`` goes to nobody else.
    """
    verify = client_context(trust, url) if url.startswith("https") else _UNUSED
    wires: list[Any] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            wires.append(info["return_value"])

    try:
        async with (
            asyncio.timeout(deadline_s),  # the client's own timeout begins anew with each byte
            httpx2.AsyncClient(timeout=None, verify=verify, trust_env=False) as client,
            client.stream("GET", url, headers=dict(headers or {}), extensions={"trace": trace}) as response,
        ):
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LIMIT:
                    msg = f"{url} answered more than {_LIMIT} bytes; the answer is not used"
                    raise MissingError(msg)
            return Response(response.status_code, body.decode("utf-8", "replace"))
    except TimeoutError as err:
        msg = f"{url} did not answer in full within {deadline_s:g} s"
        raise MissingError(msg) from err
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ssl.SSLError) as err:
        msg = f"{url} did not answer: {type(err).__name__} {err}".rstrip()
        raise MissingError(msg) from err
    finally:
        for wire in wires:  # the library forgets the socket of a server that hangs in the TLS handshake
            await wire.aclose()

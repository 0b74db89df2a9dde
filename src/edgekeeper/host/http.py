"""The only HTTP client: a deadline on every call, no retry hidden inside, a limit on what is read."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from edgekeeper.errors import MissingError

_LIMIT = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered."""

    status: int
    text: str


async def get(url: str, *, deadline_s: float, headers: Mapping[str, str] | None = None, ca_file: str | None = None) -> Response:
    """GET a URL within the deadline; MissingError says why there was no answer.

    Proxies of the environment are not used: the edge's own machines are asked directly.
    """
    verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=ca_file) if url.startswith("https") else True
    try:
        async with (
            httpx2.AsyncClient(timeout=deadline_s, verify=verify, trust_env=False) as client,
            client.stream("GET", url, headers=dict(headers or {})) as response,
        ):
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LIMIT:
                    msg = f"{url} answered more than {_LIMIT} bytes; the answer is not used"
                    raise MissingError(msg)
            return Response(response.status_code, body.decode("utf-8", "replace"))
    except (httpx2.HTTPError, OSError, ssl.SSLError) as err:
        msg = f"{url} did not answer: {type(err).__name__} {err}".rstrip()
        raise MissingError(msg) from err

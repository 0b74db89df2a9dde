"""The only HTTP client: a deadline on every call, no retry hidden inside, a limit on what is read."""

from __future__ import annotations

import asyncio
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
    """GET a URL within the deadline, from the first packet to the last byte; MissingError says why there was no answer.

    Proxies of the environment are not used: the edge's own machines are asked directly. A redirection
    is an answer and not followed, so that a token in ``headers`` goes to nobody else.
    """
    try:
        verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=ca_file) if url.startswith("https") else True
    except (OSError, ssl.SSLError) as err:
        msg = f"{ca_file} cannot be used as the CA of {url}: {err.strerror or err}; {url} is not asked"
        raise MissingError(msg) from err
    try:
        async with (
            asyncio.timeout(deadline_s),  # the client's own timeout begins anew with each byte
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
    except TimeoutError as err:
        msg = f"{url} did not answer in full within {deadline_s:g} s"
        raise MissingError(msg) from err
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ssl.SSLError) as err:
        msg = f"{url} did not answer: {type(err).__name__} {err}".rstrip()
        raise MissingError(msg) from err
